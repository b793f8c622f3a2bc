//! [`Mutex`]: a resource that owns its data, and [`Condition`]: waiting for the data to change.
//!
//! The core's resource decides which task is the owner, with all three protocols against priority inversion. A resource
//! nests, and a `&mut` must not, so a flag beside the data refuses a second lock by the owner.
#![expect(unsafe_code, reason = "the data belong to the one guard that exists")]

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_exec_core::{Call, CallStatus, Reply, ResourceId, ResourceProtocol};

use super::guarded::Guarded;
use super::waiting::{Common, News, delete, step_of};
use crate::calls::{CallSite, Caller, Create, Limit, TaskCtx};
use crate::errors::{CreateError, InUseError, ObjectError, ReserveError, WaitError, accept, refusal};

/// Data that one task at a time uses. Cloning it makes another handle of the same mutex.
///
/// A task that is killed or panics while it uses the data leaves them as they are; the next one can
/// [ask](Locked::was_abandoned).
///
/// ```
/// use hairspring_exec::{Backend, Create, ExecConfig, Executive, Limit, Priority, ResourceProtocol, RunLimit, Services};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
/// let log = executive.mutex(ResourceProtocol::Inherit, Vec::new())?;
/// for name in ["first", "second"] {
///     let log = log.clone();
///     let task = executive.task(name, Priority::LOWEST, move |ctx| {
///         log.lock(ctx, Limit::Forever).expect("nobody keeps it").push(name);
///     })?;
///     executive.trigger(task)?;
/// }
/// assert!(executive.run(RunLimit::Forever).clean());
/// // The tasks have handles of it, too.
/// drop(executive);
/// assert_eq!(log.into_inner(), Some(vec!["first", "second"]));
/// # Ok(())
/// # }
/// ```
pub struct Mutex<T: Send + 'static> {
    resource: ResourceId,
    home: u32,
    data: Arc<Data<T>>,
}

struct Data<T> {
    /// A guard exists.
    locked: AtomicBool,
    /// The last guard was dropped by a task that unwound.
    abandoned: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through the one guard that `locked` admits, or by the last handle.
unsafe impl<T: Send> Sync for Data<T> {}

/// The right to use the data of a [`Mutex`], until it is dropped.
pub struct Locked<'c, 'k, T: Send + 'static> {
    ctx: &'c TaskCtx<'k>,
    mutex: Mutex<T>,
    was_abandoned: bool,
}

impl<T: Send + 'static> Clone for Mutex<T> {
    fn clone(&self) -> Self {
        Self { resource: self.resource, home: self.home, data: Arc::clone(&self.data) }
    }
}

impl<T: Send + 'static> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mutex({:?})", self.resource)
    }
}

impl<T: Send + 'static> Mutex<T> {
    pub(crate) fn new(
        site: &(impl Create + ?Sized),
        protocol: ResourceProtocol,
        value: T,
    ) -> Result<Self, CreateError> {
        let resource = site.resource(protocol)?;
        let (locked, abandoned) = (AtomicBool::new(false), AtomicBool::new(false));
        let data = Arc::new(Data { locked, abandoned, value: UnsafeCell::new(value) });
        Ok(Self { resource, home: site.caller().back_end.home(), data })
    }

    /// Waits until no other task uses the data, and keeps them until the guard is dropped.
    ///
    /// # Errors
    /// [`ReserveError`] names the reasons, each with what to do. A task that has locked the mutex already gets
    /// [`Deadlock`](ReserveError::Deadlock).
    pub fn lock<'c, 'k>(&self, ctx: &'c TaskCtx<'k>, limit: Limit) -> Result<Locked<'c, 'k, T>, ReserveError> {
        let Caller { back_end, by } = ctx.caller();
        if back_end.home() != self.home {
            return Err(ReserveError::NoSuchObject);
        }
        let call = Call::Reserve { resource: self.resource, until: ctx.until(limit), at: None };
        accept::<ReserveError>(back_end.call(by, call))?;
        // Acquire pairs with the Release in `drop`: the data are as the last guard left them.
        if self.data.locked.swap(true, Ordering::Acquire) {
            // It nests: the caller is the owner.
            back_end.call(by, Call::Release { resource: self.resource });
            return Err(ReserveError::Deadlock);
        }
        // Relaxed: it belongs to the data.
        let was_abandoned = self.data.abandoned.swap(false, Ordering::Relaxed);
        Ok(Locked { ctx, mutex: self.clone(), was_abandoned })
    }

    /// Deletes the mutex's part of the executive: no handle locks it any more. The data stay until the last handle is
    /// dropped.
    ///
    /// # Errors
    /// [`InUseError::InUse`] while a task has it locked; [`InUseError::NoSuchObject`] if it was deleted before, or
    /// belongs to another executive.
    pub fn delete(&self, site: &(impl CallSite + ?Sized)) -> Result<(), InUseError> {
        let Caller { back_end, by } = site.caller();
        if back_end.home() != self.home {
            return Err(InUseError::NoSuchObject);
        }
        accept(back_end.cold().call(by, Call::DeleteResource { resource: self.resource })).map(drop)
    }

    /// The data, if this is the last handle.
    pub fn into_inner(self) -> Option<T> {
        Arc::into_inner(self.data).map(|data| data.value.into_inner())
    }
}

impl<T: Send + 'static> Locked<'_, '_, T> {
    /// Whether the task that used the data before was killed or panicked while it did.
    pub fn was_abandoned(&self) -> bool {
        self.was_abandoned
    }

    /// Waits as long as the predicate holds: unlocks the mutex, waits for the condition, locks again, and looks again.
    ///
    /// # Errors
    /// [`ReserveError`] names the reasons; the mutex is not locked then.
    pub fn wait_while(
        self,
        condition: &Condition,
        limit: Limit,
        mut holds: impl FnMut(&mut T) -> bool,
    ) -> Result<Self, ReserveError> {
        let mut locked = self;
        let (ctx, limit) = (locked.ctx, locked.ctx.fixed(limit));
        let mut over = false;
        while holds(&mut locked) {
            if over {
                return Err(ReserveError::TimedOut);
            }
            // While the mutex is locked, so that no change is missed.
            let seen = condition.changes(ctx).map_err(|_| ReserveError::NoSuchObject)?;
            let mutex = locked.mutex.clone();
            drop(locked);
            match condition.wait_for_change(ctx, seen, limit) {
                // One more look, because the data may have changed at the last moment.
                Err(WaitError::TimedOut) => over = true,
                Err(error) => return Err(refusal(error.into())),
                Ok(()) => {}
            }
            locked = mutex.lock(ctx, Limit::Forever)?;
        }
        Ok(locked)
    }
}

impl<T: Send + 'static> Deref for Locked<'_, '_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this is the one guard.
        unsafe { &*self.mutex.data.value.get() }
    }
}

impl<T: Send + 'static> DerefMut for Locked<'_, '_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this is the one guard, and it is borrowed mutably.
        unsafe { &mut *self.mutex.data.value.get() }
    }
}

impl<T: Send + 'static> Drop for Locked<'_, '_, T> {
    fn drop(&mut self) {
        let Caller { back_end, by } = self.ctx.caller();
        let data = &self.mutex.data;
        if std::thread::panicking() && back_end.cold().is_unwinding(self.ctx.id()) {
            // Relaxed: it belongs to the data.
            data.abandoned.store(true, Ordering::Relaxed);
        }
        // Release pairs with the Acquire in `lock`.
        data.locked.store(false, Ordering::Release);
        // The guard owns what it releases.
        let _: Reply = back_end.call(by, Call::Release { resource: self.mutex.resource });
    }
}

/// Notifies waiting tasks that the data of a [`Mutex`] have changed. Cloning it makes another handle of the same
/// condition.
#[derive(Clone)]
pub struct Condition {
    state: Common<News>,
}

impl Condition {
    pub(crate) fn new(site: &(impl Create + ?Sized)) -> Result<Self, CreateError> {
        Ok(Self { state: Arc::new(Guarded::new(site.caller().back_end.home(), News::new(site)?)) })
    }

    /// Deletes the condition: tasks that wait for it get [`NoSuchObject`](WaitError::NoSuchObject), and so does every
    /// later use by any handle.
    ///
    /// # Errors
    /// It was deleted before, or belongs to another executive.
    pub fn delete(&self, site: &(impl CallSite + ?Sized)) -> Result<(), ObjectError> {
        delete(site, &self.state, |news| [Some(news.delete()), None, None])
    }

    /// Lets all tasks look again that wait for this condition.
    ///
    /// # Errors
    /// The condition belongs to another executive.
    pub fn notify_all(&self, site: &impl CallSite) -> Result<(), ObjectError> {
        let told = step_of(site, &mut |step| {
            let [clear, tell] = self.state.open(step)?.change();
            Some([clear, tell, None])
        });
        told.map_or(Err(ObjectError::NoSuchObject), |_| Ok(()))
    }

    /// The number of changes until now, for data under a lock of another kind than [`Mutex`]. Read it while the data
    /// are locked, unlock them, and [wait](Self::wait_for_change) for more: no change is missed.
    ///
    /// # Errors
    /// The condition belongs to another executive.
    pub fn changes(&self, site: &impl CallSite) -> Result<u64, ObjectError> {
        let mut number = Err(ObjectError::NoSuchObject);
        step_of(site, &mut |step| {
            number = Ok(self.state.open(step)?.number);
            None
        });
        number
    }

    /// Waits until there have been more changes than `seen`; returns at once if there have been.
    ///
    /// # Errors
    /// [`WaitError`] names the reasons, each with what to do.
    pub fn wait_for_change(&self, ctx: &TaskCtx<'_>, seen: u64, limit: Limit) -> Result<(), WaitError> {
        let until = ctx.until(limit);
        let mut changed = false;
        let reply = ctx.step(&mut |step| {
            let news = self.state.open(step)?;
            changed = news.number != seen;
            if changed { None } else { Some(news.wait(until)) }
        });
        match reply.map_or(CallStatus::NoSuchObject, |reply| reply.status) {
            _ if changed => Ok(()),
            CallStatus::Ok => Ok(()),
            status => Err(refusal(status)),
        }
    }
}
