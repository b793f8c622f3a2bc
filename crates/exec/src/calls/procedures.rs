//! The contexts of procedures: [`TimerCtx`] for timers, [`IspCtx`] for interrupts. None of their calls can wait.

use crate::system::clock::instant_of;
use hairspring_machine::Instant;
use std::marker::PhantomData;

use hairspring_exec_core::{By, Expired, TimerId};

use super::services::{CallSite, Caller};
use crate::back_end::BackEnd;

/// The context of a timer procedure. The procedure runs above all tasks and must be short.
pub struct TimerCtx<'k> {
    back_end: BackEnd<'k>,
    timer: TimerId,
    here: PhantomData<*const ()>,
}

/// Why a timer procedure runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expiry {
    /// When the timer was due.
    pub deadline: Instant,
    /// Expirations before this one that had no run of their own.
    pub missed: u64,
    /// All expirations that the timer missed since it was started.
    pub overruns: u64,
}

impl From<Expired> for Expiry {
    fn from(Expired { deadline, missed, overruns }: Expired) -> Self {
        Self { deadline: instant_of(deadline), missed, overruns }
    }
}

impl<'k> TimerCtx<'k> {
    pub(crate) fn new(back_end: BackEnd<'k>, timer: TimerId) -> Self {
        Self { back_end, timer, here: PhantomData }
    }

    /// The timer that went off.
    pub fn timer(&self) -> TimerId {
        self.timer
    }

    /// Ends the run of the executive.
    pub fn stop(&self) {
        self.back_end.cold().stop(By::Kernel);
    }
}

/// The context of a conforming interrupt service procedure. None of its calls can wait.
pub struct IspCtx<'k> {
    back_end: BackEnd<'k>,
    isp: u16,
    here: PhantomData<*const ()>,
}

impl<'k> IspCtx<'k> {
    #[inline]
    pub(crate) fn new(back_end: BackEnd<'k>, isp: u16) -> Self {
        Self { back_end, isp, here: PhantomData }
    }

    /// Ends the run of the executive.
    pub fn stop(&self) {
        self.back_end.cold().stop(By::Interrupt(self.isp));
    }
}

impl CallSite for TimerCtx<'_> {
    fn caller(&self) -> Caller<'_> {
        Caller { back_end: self.back_end, by: By::Kernel }
    }
}

impl CallSite for IspCtx<'_> {
    #[inline(always)]
    fn caller(&self) -> Caller<'_> {
        Caller { back_end: self.back_end, by: By::Interrupt(self.isp) }
    }
}
