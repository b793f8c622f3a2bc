//! [`MessageQueue`]: messages of any type, moved from task to task, with waiting for room.
//!
//! Beside mailboxes and exchanges, whose messages are copied through the envelopes of the executive: here a message is
//! any value that can be sent to a task, and the queue owns it in between. All its memory is allocated when it is made.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use hairspring_exec_core::Call;

use super::guarded::{ExclusiveStep, Guarded};
use super::waiting::{Common, Line, SelectWatcher, SelectionMember, delete, step_of};
use crate::calls::{CallSite, Create, Limit, TaskCtx};
use crate::errors::{CreateError, ObjectError, SendError, WaitError};

/// A queue of messages of type `T`, first in, first out. Cloning it makes another handle of the same queue.
///
/// Waiting tasks are in order of priority. A task that comes while another has been let go and does not run yet can
/// overtake it.
///
/// ```
/// use hairspring_exec::{Backend, Create, ExecConfig, Executive, Limit, Priority, RunLimit, Services};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
/// let queue = executive.message_queue::<Vec<u8>>(1)?;
/// let from = queue.clone();
/// let reader = executive.task("reader", Priority::LOWEST, move |ctx| {
///     for length in [1, 2] {
///         assert_eq!(from.receive(ctx, Limit::Forever).map(|bytes| bytes.len()), Ok(length));
///     }
/// })?;
/// let writer = executive.task("writer", Priority::HIGHEST, move |ctx| {
///     queue.send(ctx, vec![7; 1], Limit::Forever).expect("there is room for one");
///     queue.send(ctx, vec![7; 2], Limit::Forever).expect("it waits for room");
/// })?;
/// executive.trigger(reader)?;
/// executive.trigger(writer)?;
/// assert!(executive.run(RunLimit::Forever).clean());
/// # Ok(())
/// # }
/// ```
pub struct MessageQueue<T: Send + 'static> {
    state: Common<Messages<T>>,
    /// Tasks that wait for a message, and for room.
    receivers: Line,
    senders: Line,
}

struct Messages<T> {
    messages: VecDeque<T>,
    capacity: usize,
    watcher: SelectWatcher,
}

/// A message that was not sent, and why.
#[derive(Clone, PartialEq, Eq)]
pub struct Unsent<T, E> {
    /// The message.
    pub message: T,
    /// The reason.
    pub why: E,
}

impl<T, E: fmt::Debug> fmt::Debug for Unsent<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unsent({:?})", self.why)
    }
}

impl<T, E: fmt::Display> fmt::Display for Unsent<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<T, E: std::error::Error> std::error::Error for Unsent<T, E> {}

impl<T: Send + 'static> Clone for MessageQueue<T> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), receivers: self.receivers, senders: self.senders }
    }
}

impl<T: Send + 'static> MessageQueue<T> {
    pub(crate) fn new(site: &(impl Create + ?Sized), capacity: usize) -> Result<Self, CreateError> {
        let (receivers, senders) = (Line::new(site)?, Line::new(site)?);
        let state =
            Messages { messages: VecDeque::with_capacity(capacity), capacity, watcher: SelectWatcher::default() };
        Ok(Self { state: Arc::new(Guarded::new(site.caller().back_end.home(), state)), receivers, senders })
    }

    /// Sends a message, and waits for room if there is none.
    ///
    /// # Errors
    /// [`WaitError`] names the reasons, each with what to do; the message comes back.
    pub fn send(&self, ctx: &TaskCtx<'_>, message: T, limit: Limit) -> Result<(), Unsent<T, WaitError>> {
        let mut message = Some(message);
        let until = ctx.until(limit);
        let sent = self.senders.wait(ctx, until, &self.state, |state| {
            let calls = state.put(&mut message, self.receivers)?;
            Some(((), calls))
        });
        match (sent, message) {
            (Err(why), Some(message)) => Err(Unsent { message, why }),
            _ => Ok(()),
        }
    }

    /// Sends a message without waiting: for procedures, and for the program around the executive.
    ///
    /// # Errors
    /// [`SendError::MailboxFull`] if there is no room, [`SendError::NoSuchObject`] for a queue of another executive;
    /// the message comes back.
    pub fn try_send(&self, site: &impl CallSite, message: T) -> Result<(), Unsent<T, SendError>> {
        let mut message = Some(message);
        let mut why = SendError::NoSuchObject;
        step_of(site, &mut |step| {
            let state = self.state.open(step)?;
            why = SendError::MailboxFull;
            let [first, second] = state.put(&mut message, self.receivers)?;
            Some([first, second, None])
        });
        match message {
            Some(message) => Err(Unsent { message, why }),
            None => Ok(()),
        }
    }

    /// Waits for a message.
    ///
    /// # Errors
    /// [`WaitError`] names the reasons, each with what to do.
    pub fn receive(&self, ctx: &TaskCtx<'_>, limit: Limit) -> Result<T, WaitError> {
        let until = ctx.until(limit);
        self.receivers.wait(ctx, until, &self.state, |state| {
            let message = state.messages.pop_front()?;
            Some((message, [Some(self.senders.let_go()), None]))
        })
    }

    /// Takes a message if there is one.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] if there is none, [`WaitError::NoSuchObject`] for a queue of another executive.
    pub fn try_receive(&self, site: &impl CallSite) -> Result<T, WaitError> {
        let mut result = Err(WaitError::NoSuchObject);
        step_of(site, &mut |step| {
            let state = self.state.open(step)?;
            result = state.messages.pop_front().ok_or(WaitError::TimedOut);
            result.is_ok().then(|| [Some(self.senders.let_go()), None, None])
        });
        result
    }

    /// Deletes the queue: tasks that wait for it get [`NoSuchObject`](crate::errors::WaitError::NoSuchObject), and so
    /// does every later use by any handle. Its messages are dropped.
    ///
    /// # Errors
    /// It was deleted before, or belongs to another executive.
    pub fn delete(&self, site: &(impl CallSite + ?Sized)) -> Result<(), ObjectError> {
        delete(site, &self.state, |state| {
            [state.watcher.told(), Some(self.senders.delete()), Some(self.receivers.delete())]
        })
    }

    /// Drops all messages, lets the tasks go that wait for room, and returns how many messages there were.
    pub fn clear(&self, site: &impl CallSite) -> usize {
        // The first step alone sets the count: messages that arrive while this loop runs stay.
        let count = self.len(site);
        (0..count).take_while(|_| self.try_receive(site).is_ok()).count()
    }

    /// How many messages are in it; 0 in another executive.
    pub fn len(&self, site: &impl CallSite) -> usize {
        let mut count = 0;
        step_of(site, &mut |step| {
            count = self.state.open(step)?.messages.len();
            None
        });
        count
    }

    /// Whether there is no message in it.
    pub fn is_empty(&self, site: &impl CallSite) -> bool {
        self.len(site) == 0
    }
}

impl<T> Messages<T> {
    /// Takes a message in if there is room, and returns the calls that notify the receiver and the selector.
    fn put(&mut self, message: &mut Option<T>, receivers: Line) -> Option<[Option<Call>; 2]> {
        if self.messages.len() == self.capacity {
            return None;
        }
        self.messages.push_back(message.take()?);
        Some([self.watcher.told(), Some(receivers.let_go())])
    }
}

impl<T: Send + 'static> SelectionMember for MessageQueue<T> {
    fn is_ready(&self, step: &mut ExclusiveStep) -> Option<bool> {
        Some(!self.state.open(step)?.messages.is_empty())
    }

    fn watcher<'s>(&'s self, step: &'s mut ExclusiveStep) -> Option<&'s mut SelectWatcher> {
        Some(&mut self.state.open(step)?.watcher)
    }
}
