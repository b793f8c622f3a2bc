//! [`Broadcast`]: values that every subscriber hears; with a capacity of one, the latest value of something.
//!
//! Problem: one task measures, several want each value or only the newest, and none may hold up the others. Solution:
//! the values lie in a ring, and each subscriber has its own place in it. A subscriber that falls behind by more than
//! the ring's length misses values, and gets their number.

use std::collections::VecDeque;
use std::sync::Arc;

use hairspring_exec_core::{CallStatus, Reply};

use super::guarded::{ExclusiveStep, Guarded};
use super::waiting::{Common, News, SelectWatcher, SelectionMember, delete, step_of};
use crate::calls::{CallSite, Create, Limit, TaskCtx};
use crate::errors::{CreateError, ObjectError, WaitError, refusal};

/// The newest values of type `T`, for any number of subscribers. Cloning it makes another handle of the same broadcast.
///
/// ```
/// use hairspring_exec::{Backend, Create, ExecConfig, Executive, Heard, Limit, Priority, RunLimit, Services};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
/// let temperature = executive.broadcast::<f64>(1)?;
/// let mut newest = temperature.subscribe(&executive)?;
/// let display = executive.task("display", Priority::LOWEST, move |ctx| {
///     assert_eq!(newest.next(ctx, Limit::Forever), Ok(Heard { value: 20.5, missed: 1 }));
/// })?;
/// let sensor = executive.task("sensor", Priority::HIGHEST, move |ctx| {
///     temperature.send(ctx, 20.0).expect("it is of this executive");
///     temperature.send(ctx, 20.5).expect("it is of this executive");
///     assert_eq!(temperature.latest(ctx), Some(20.5));
/// })?;
/// executive.trigger(display)?;
/// executive.trigger(sensor)?;
/// assert!(executive.run(RunLimit::Forever).clean());
/// # Ok(())
/// # }
/// ```
pub struct Broadcast<T: Copy + Send + 'static> {
    state: Common<Values<T>>,
}

struct Values<T> {
    /// The newest, the oldest first. Their numbers end with that of the news.
    values: VecDeque<T>,
    capacity: usize,
    news: News,
    watcher: SelectWatcher,
}

/// A listener of a broadcast, with its own place among the values.
pub struct Subscriber<T: Copy + Send + 'static> {
    state: Common<Values<T>>,
    /// The number of the value heard last.
    heard: u64,
}

/// A value that a subscriber heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heard<T> {
    /// The value.
    pub value: T,
    /// Values before it that the subscriber was too slow for.
    pub missed: u64,
}

impl<T: Copy + Send + 'static> Clone for Broadcast<T> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<T: Copy + Send + 'static> Broadcast<T> {
    pub(crate) fn new(site: &(impl Create + ?Sized), capacity: usize) -> Result<Self, CreateError> {
        let capacity = capacity.max(1);
        let values = VecDeque::with_capacity(capacity);
        let state = Values { values, capacity, news: News::new(site)?, watcher: SelectWatcher::default() };
        Ok(Self { state: Arc::new(Guarded::new(site.caller().back_end.home(), state)) })
    }

    /// Sends a value to all subscribers; the oldest makes room. Never waits.
    ///
    /// # Errors
    /// The broadcast belongs to another executive.
    pub fn send(&self, site: &impl CallSite, value: T) -> Result<(), ObjectError> {
        let told = step_of(site, &mut |step| {
            let state = self.state.open(step)?;
            if state.values.len() == state.capacity {
                state.values.pop_front();
            }
            state.values.push_back(value);
            let [clear, tell] = state.news.change();
            Some([clear, state.watcher.told(), tell])
        });
        told.map_or(Err(ObjectError::NoSuchObject), |_| Ok(()))
    }

    /// The newest value; none before the first, and in another executive.
    pub fn latest(&self, site: &impl CallSite) -> Option<T> {
        let mut latest = None;
        step_of(site, &mut |step| {
            latest = self.state.open(step)?.values.back().copied();
            None
        });
        latest
    }

    /// Deletes the broadcast: tasks that wait for it get [`NoSuchObject`](WaitError::NoSuchObject), and so does every
    /// later use by any handle. Its subscribers have nothing to hear any more.
    ///
    /// # Errors
    /// It was deleted before, or belongs to another executive.
    pub fn delete(&self, site: &(impl CallSite + ?Sized)) -> Result<(), ObjectError> {
        delete(site, &self.state, |state| [state.watcher.told(), Some(state.news.delete()), None])
    }

    /// A subscriber that hears what comes from now on.
    ///
    /// # Errors
    /// The broadcast belongs to another executive.
    pub fn subscribe(&self, site: &impl CallSite) -> Result<Subscriber<T>, ObjectError> {
        let mut heard = None;
        step_of(site, &mut |step| {
            heard = Some(self.state.open(step)?.news.number);
            None
        });
        let heard = heard.ok_or(ObjectError::NoSuchObject)?;
        Ok(Subscriber { state: Arc::clone(&self.state), heard })
    }
}

impl<T: Copy + Send + 'static> Subscriber<T> {
    /// Waits for a value that this subscriber has not heard: the oldest that is still there.
    ///
    /// # Errors
    /// [`WaitError`] names the reasons, each with what to do.
    pub fn next(&mut self, ctx: &TaskCtx<'_>, limit: Limit) -> Result<Heard<T>, WaitError> {
        let until = ctx.until(limit);
        loop {
            let mut found = None;
            let reply = ctx.step(&mut |step| {
                let state = self.state.open(step)?;
                found = state.after(self.heard);
                if found.is_some() { None } else { Some(state.news.wait(until)) }
            });
            if let Some((heard, number)) = found {
                self.heard = number;
                return Ok(heard);
            }
            match reply.map_or(CallStatus::NoSuchObject, |reply: Reply| reply.status) {
                CallStatus::Ok => {}
                status => return Err(refusal(status)),
            }
        }
    }

    /// Takes a value that this subscriber has not heard, if there is one.
    pub fn try_next(&mut self, site: &impl CallSite) -> Option<Heard<T>> {
        let mut found = None;
        step_of(site, &mut |step| {
            found = self.state.open(step)?.after(self.heard);
            None
        });
        let (heard, number) = found?;
        self.heard = number;
        Some(heard)
    }
}

impl<T: Copy> Values<T> {
    /// The oldest value with a number after `heard`, and its number.
    fn after(&self, heard: u64) -> Option<(Heard<T>, u64)> {
        let oldest = self.news.number - self.values.len() as u64 + 1;
        let number = oldest.max(heard + 1);
        let value = *self.values.get((number - oldest) as usize)?;
        Some((Heard { value, missed: number - heard - 1 }, number))
    }
}

impl<T: Copy + Send + 'static> SelectionMember for Subscriber<T> {
    fn is_ready(&self, step: &mut ExclusiveStep) -> Option<bool> {
        Some(self.state.open(step)?.news.number > self.heard)
    }

    fn watcher<'s>(&'s self, step: &'s mut ExclusiveStep) -> Option<&'s mut SelectWatcher> {
        Some(&mut self.state.open(step)?.watcher)
    }
}
