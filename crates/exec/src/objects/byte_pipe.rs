//! [`BytePipe`]: a stream of bytes between tasks, with waiting for bytes and for room.

use std::collections::VecDeque;
use std::sync::Arc;

use super::guarded::{ExclusiveStep, Guarded};
use super::waiting::{Common, Line, SelectWatcher, SelectionMember, delete, step_of};
use crate::calls::{CallSite, Create, Limit, TaskCtx};
use crate::errors::{CreateError, ObjectError, WaitError};

/// A stream of bytes with a bounded buffer. Cloning it makes another handle of the same pipe.
///
/// A read takes what there is, up to the size of the reader's buffer; a write puts in what there is room for. Both
/// return the number of bytes. With threads the copy is made under the executive's lock, so keep pieces short where
/// latency counts.
#[derive(Clone)]
pub struct BytePipe {
    state: Common<Bytes>,
    readers: Line,
    writers: Line,
}

struct Bytes {
    bytes: VecDeque<u8>,
    capacity: usize,
    watcher: SelectWatcher,
}

impl BytePipe {
    pub(crate) fn new(site: &(impl Create + ?Sized), capacity: usize) -> Result<Self, CreateError> {
        let (readers, writers) = (Line::new(site)?, Line::new(site)?);
        let state = Bytes { bytes: VecDeque::with_capacity(capacity), capacity, watcher: SelectWatcher::default() };
        Ok(Self { state: Arc::new(Guarded::new(site.caller().back_end.home(), state)), readers, writers })
    }

    /// Waits until there is at least one byte, and reads. Returns how many bytes it read; 0 for an empty buffer.
    ///
    /// # Errors
    /// [`WaitError`] names the reasons, each with what to do.
    pub fn read(&self, ctx: &TaskCtx<'_>, buffer: &mut [u8], limit: Limit) -> Result<usize, WaitError> {
        let until = ctx.until(limit);
        self.readers.wait(ctx, until, &self.state, |state| {
            let count = state.take(buffer);
            (count > 0 || buffer.is_empty()).then(|| (count, [Some(self.writers.let_go()), None]))
        })
    }

    /// Waits until there is room for at least one byte, and writes. Returns how many bytes it wrote; 0 for none.
    ///
    /// # Errors
    /// [`WaitError`] names the reasons, each with what to do.
    pub fn write(&self, ctx: &TaskCtx<'_>, bytes: &[u8], limit: Limit) -> Result<usize, WaitError> {
        let until = ctx.until(limit);
        self.writers.wait(ctx, until, &self.state, |state| {
            let count = state.put(bytes);
            (count > 0 || bytes.is_empty()).then(|| (count, [state.watcher.told(), Some(self.readers.let_go())]))
        })
    }

    /// Writes all of it, and waits for room as often as it must. The limit is for all together.
    ///
    /// # Errors
    /// [`WaitError`] names the reasons. Some of the bytes may have been written then.
    pub fn write_all(&self, ctx: &TaskCtx<'_>, bytes: &[u8], limit: Limit) -> Result<(), WaitError> {
        let limit = ctx.fixed(limit);
        let mut rest = bytes;
        while !rest.is_empty() {
            let count = self.write(ctx, rest, limit)?;
            rest = &rest[count..];
        }
        Ok(())
    }

    /// Reads what there is, without waiting.
    ///
    /// # Errors
    /// The pipe belongs to another executive.
    pub fn try_read(&self, site: &impl CallSite, buffer: &mut [u8]) -> Result<usize, ObjectError> {
        let mut result = Err(ObjectError::NoSuchObject);
        step_of(site, &mut |step| {
            let count = self.state.open(step)?.take(buffer);
            result = Ok(count);
            (count > 0).then(|| [Some(self.writers.let_go()), None, None])
        });
        result
    }

    /// Writes what there is room for, without waiting.
    ///
    /// # Errors
    /// The pipe belongs to another executive.
    pub fn try_write(&self, site: &impl CallSite, bytes: &[u8]) -> Result<usize, ObjectError> {
        let mut result = Err(ObjectError::NoSuchObject);
        step_of(site, &mut |step| {
            let state = self.state.open(step)?;
            let count = state.put(bytes);
            result = Ok(count);
            (count > 0).then(|| [state.watcher.told(), Some(self.readers.let_go()), None])
        });
        result
    }

    /// Deletes the pipe: tasks that wait for it get [`NoSuchObject`](WaitError::NoSuchObject), and so does every later
    /// use by any handle. Its bytes are gone.
    ///
    /// # Errors
    /// It was deleted before, or belongs to another executive.
    pub fn delete(&self, site: &(impl CallSite + ?Sized)) -> Result<(), ObjectError> {
        delete(site, &self.state, |state| {
            [state.watcher.told(), Some(self.writers.delete()), Some(self.readers.delete())]
        })
    }

    /// How many bytes are in it; 0 in another executive.
    pub fn len(&self, site: &impl CallSite) -> usize {
        let mut count = 0;
        step_of(site, &mut |step| {
            count = self.state.open(step)?.bytes.len();
            None
        });
        count
    }

    /// Whether there is no byte in it.
    pub fn is_empty(&self, site: &impl CallSite) -> bool {
        self.len(site) == 0
    }
}

impl Bytes {
    fn take(&mut self, buffer: &mut [u8]) -> usize {
        let count = self.bytes.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(self.bytes.drain(..count)) {
            *to = from;
        }
        count
    }

    fn put(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.capacity - self.bytes.len());
        self.bytes.extend(&bytes[..count]);
        count
    }
}

impl SelectionMember for BytePipe {
    fn is_ready(&self, step: &mut ExclusiveStep) -> Option<bool> {
        Some(!self.state.open(step)?.bytes.is_empty())
    }

    fn watcher<'s>(&'s self, step: &'s mut ExclusiveStep) -> Option<&'s mut SelectWatcher> {
        Some(&mut self.state.open(step)?.watcher)
    }
}
