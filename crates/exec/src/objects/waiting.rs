//! [`Line`] and [`News`]: how tasks wait for guarded state to change. A line lets one task go at a time; news reach all
//! that wait.

use std::sync::Arc;

use hairspring_exec_core::{Bits, Call, CallStatus, EventsId, Reply, SemaphoreId, Until};

use super::guarded::{Calls, ExclusiveStep, Guarded};
use crate::calls::{CallSite, Caller, Create, TaskCtx};
use crate::errors::{CreateError, ObjectError, Refusal, accept, refusal};

/// A line of waiting tasks: a semaphore without room for a unit, so that a signal without a waiter leaves nothing
/// behind.
#[derive(Clone, Copy)]
pub(crate) struct Line(SemaphoreId);

impl Line {
    pub(crate) fn new(site: &(impl Create + ?Sized)) -> Result<Self, CreateError> {
        site.semaphore(0, 0).map(Self)
    }

    /// Lets the first of the line go.
    #[inline(always)]
    pub(crate) fn let_go(self) -> Call {
        Call::SignalSemaphore { semaphore: self.0 }
    }

    /// The call that deletes the line: all that wait in it go on without what they waited for.
    pub(crate) fn delete(self) -> Call {
        Call::DeleteSemaphore { semaphore: self.0 }
    }

    /// Tries until it succeeds; after each failure, waits for the line to move. `attempt` returns the result and the
    /// calls that notify other tasks.
    pub(crate) fn wait<T, R, E: Refusal>(
        self,
        ctx: &TaskCtx<'_>,
        until: Until,
        state: &Guarded<T>,
        mut attempt: impl FnMut(&mut T) -> Option<(R, [Option<Call>; 2])>,
    ) -> Result<R, E> {
        let mut result = None;
        loop {
            // A task that is killed when it has been let go passes that on.
            let passing = Passing { ctx, line: self };
            let reply = ctx.step(&mut |step| {
                let value = state.open(step)?;
                match attempt(value) {
                    Some((found, [first, second])) => {
                        result = Some(found);
                        Some([first, second, None])
                    }
                    None => Some([Some(Call::WaitSemaphore { semaphore: self.0, until, at: None }), None, None]),
                }
            });
            std::mem::forget(passing);
            if let Some(result) = result {
                return Ok(result);
            }
            match reply.map_or(CallStatus::NoSuchObject, |reply| reply.status) {
                CallStatus::Ok => {}
                CallStatus::TimedOut => return Err(refusal(CallStatus::TimedOut)),
                status => {
                    // A task in C is not unwound.
                    ctx.tell(self.let_go());
                    return Err(refusal(status));
                }
            }
        }
    }
}

struct Passing<'c, 'k> {
    ctx: &'c TaskCtx<'k>,
    line: Line,
}

impl Drop for Passing<'_, '_> {
    fn drop(&mut self) {
        self.ctx.tell(self.line.let_go());
    }
}

/// Something that changes, by number. All that wait for the next change go on with it.
///
/// The change with number n sets bit `n mod 2` of an event group, and in the same step clears the other. A task that
/// has seen change n waits for the bit of n + 1, which is clear until that change comes.
pub(crate) struct News {
    events: EventsId,
    pub(crate) number: u64,
}

impl News {
    pub(crate) fn new(site: &(impl Create + ?Sized)) -> Result<Self, CreateError> {
        Ok(Self { events: site.events(0)?, number: 0 })
    }

    /// Counts a change; returns the calls that announce it, to be made in the same step.
    pub(crate) fn change(&mut self) -> [Option<Call>; 2] {
        let clear = Call::ClearEvents { events: self.events, bits: bit(self.number) };
        self.number += 1;
        [Some(clear), Some(Call::SignalEvents { events: self.events, bits: bit(self.number) })]
    }

    /// The call that ends the news: all that wait for the next change go on without it.
    pub(crate) fn delete(&self) -> Call {
        Call::DeleteEvents { events: self.events }
    }

    /// The call that waits for the next change.
    pub(crate) fn wait(&self, until: Until) -> Calls {
        let bits = Bits::Any(bit(self.number + 1));
        [Some(Call::WaitEvents { events: self.events, bits, take: false, until, at: None }), None, None]
    }
}

fn bit(number: u64) -> u32 {
    1 << (number % 2)
}

/// The selector to notify when an object becomes ready, if one waits for it.
#[doc(hidden)]
#[derive(Default)]
pub struct SelectWatcher(Option<EventsId>);

impl SelectWatcher {
    /// The call that notifies it.
    pub(crate) fn told(&self) -> Option<Call> {
        self.0.map(|events| Call::SignalEvents { events, bits: 1 })
    }
}

/// An object that a [`Selector`] can wait for: a [`MessageQueue`](super::MessageQueue) with a message in it, a
/// [`BytePipe`](super::BytePipe) with bytes in it, a [`Subscriber`](super::Subscriber) with a value that it has not
/// heard.
pub trait Selectable: SelectionMember {}

impl<W: SelectionMember> Selectable for W {}

/// Sealed: only this crate's objects are looked at in a step of the executive.
pub trait SelectionMember {
    /// Whether there is something to take; none if the object is of another executive.
    #[doc(hidden)]
    fn is_ready(&self, step: &mut ExclusiveStep) -> Option<bool>;
    /// The task to wake when there is.
    #[doc(hidden)]
    fn watcher<'s>(&'s self, step: &'s mut ExclusiveStep) -> Option<&'s mut SelectWatcher>;
}

/// Waits for the first of several objects. Belongs to one task at a time.
///
/// ```
/// use hairspring_exec::{Backend, Create, ExecConfig, Executive, Limit, Nanos, Priority, RunLimit, errors::SelectError};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
/// let (commands, data) = (executive.message_queue::<String>(4)?, executive.byte_pipe(64)?);
/// let mut selector = executive.selector()?;
/// let (command, stream) = (commands.clone(), data.clone());
/// let urgent = Priority::new(10).ok_or("0 to 63")?;
/// let reader = executive.task("reader", urgent, move |ctx| {
///     assert_eq!(selector.wait(ctx, &[&command, &stream], Limit::Forever), Ok(1), "bytes came first");
///     assert_eq!(stream.try_read(ctx, &mut [0; 8]), Ok(5));
///     let limit = Limit::For(Nanos::from_micros(100));
///     assert_eq!(selector.wait(ctx, &[&command, &stream], limit), Err(SelectError::TimedOut));
/// })?;
/// let writer = executive.task("writer", Priority::LOWEST, move |ctx| {
///     assert_eq!(data.try_write(ctx, b"hello"), Ok(5));
/// })?;
/// # use hairspring_exec::Services;
/// executive.trigger(reader)?;
/// executive.trigger(writer)?;
/// assert!(executive.run(RunLimit::Forever).clean());
/// # Ok(())
/// # }
/// ```
pub struct Selector {
    events: EventsId,
    home: u32,
}

impl Selector {
    pub(crate) fn new(site: &(impl Create + ?Sized)) -> Result<Self, CreateError> {
        let home = site.caller().back_end.home();
        site.events(0).map(|events| Self { events, home })
    }

    /// Deletes the selector's part of the executive; every later wait is refused.
    ///
    /// # Errors
    /// It was deleted before, or belongs to another executive.
    pub fn delete(&mut self, site: &(impl CallSite + ?Sized)) -> Result<(), ObjectError> {
        let Caller { back_end, by } = site.caller();
        if back_end.home() != self.home {
            return Err(ObjectError::NoSuchObject);
        }
        accept(back_end.cold().call(by, Call::DeleteEvents { events: self.events })).map(drop)
    }

    /// Waits until one of the objects has something to take; returns its place in `objects`, the first if there are
    /// several. Nothing is taken: another task may be faster, so take without waiting, and select again if there is
    /// nothing.
    ///
    /// # Errors
    /// [`SelectError`](crate::errors::SelectError) names the reasons, each with what to do.
    pub fn wait(
        &mut self,
        ctx: &TaskCtx<'_>,
        objects: &[&dyn Selectable],
        limit: crate::Limit,
    ) -> Result<usize, crate::errors::SelectError> {
        let until = ctx.until(limit);
        let events = self.events;
        loop {
            let mut found = None;
            let mut refused = CallStatus::NoSuchObject;
            let reply = {
                let _unwatched = Unwatched { ctx, objects, events };
                ctx.step(&mut |step| {
                    for (place, object) in objects.iter().enumerate() {
                        if object.is_ready(step)? {
                            found = Some(place);
                            return None;
                        }
                        let watcher = object.watcher(step)?;
                        if watcher.0.is_some_and(|other| other != events) {
                            refused = CallStatus::NotOwner;
                            return None;
                        }
                        watcher.0 = Some(events);
                    }
                    let clear = Call::ClearEvents { events, bits: 1 };
                    let wait = Call::WaitEvents { events, bits: Bits::Any(1), take: true, until, at: None };
                    Some([Some(clear), Some(wait), None])
                })
            };
            match (found, reply.map(|reply: Reply| reply.status)) {
                (Some(place), _) => return Ok(place),
                (None, None) => return Err(refusal(refused)),
                (None, Some(CallStatus::Ok)) => {}
                (None, Some(status)) => return Err(refusal(status)),
            }
        }
    }
}

/// Takes the selector away from its objects when the wait is over, however it ends.
struct Unwatched<'c, 'k> {
    ctx: &'c TaskCtx<'k>,
    objects: &'c [&'c dyn Selectable],
    events: EventsId,
}

impl Drop for Unwatched<'_, '_> {
    fn drop(&mut self) {
        self.ctx.step(&mut |step| {
            for object in self.objects {
                if let Some(watcher) = object.watcher(step)
                    && watcher.0 == Some(self.events)
                {
                    watcher.0 = None;
                }
            }
            None
        });
    }
}

/// A step from any place that makes calls.
pub(crate) fn step_of(
    site: &(impl CallSite + ?Sized),
    decide: &mut dyn FnMut(&mut ExclusiveStep) -> Option<Calls>,
) -> Option<Reply> {
    let Caller { back_end, by } = site.caller();
    back_end.cold().step(by, decide)
}

/// Deletes an object: closes its state, and makes the calls that end the waits for it in the same step.
pub(crate) fn delete<T>(
    site: &(impl CallSite + ?Sized),
    state: &Guarded<T>,
    calls: impl Fn(&T) -> Calls,
) -> Result<(), ObjectError> {
    let mut gone = None;
    step_of(site, &mut |step| {
        let value = state.close(step)?;
        let calls = calls(&value);
        gone = Some(value);
        Some(calls)
    });
    // Its contents are dropped here, after the step.
    gone.map(drop).ok_or(ObjectError::NoSuchObject)
}

/// The state that the handles of one object share.
pub(crate) type Common<T> = Arc<Guarded<T>>;
