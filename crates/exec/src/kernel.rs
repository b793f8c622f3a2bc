//! [`Kernel`]: the back-end at hand, as contexts hold it.

use hairspring_exec_core::{By, Call, Reply};
use hairspring_machine::Host;

use crate::engine::Engine;
use crate::fiber::Fibers;
use crate::message::Bytes;

/// The back-end at hand. Small and copied.
#[derive(Clone, Copy)]
pub(crate) enum Kernel<'k> {
    /// Fibers on this computer, whose calls are compiled into the caller: they cost less than a call through a table.
    Fiber(&'k Fibers<Host>),
    /// Any other.
    Other(&'k dyn Engine),
}

impl<'k> Kernel<'k> {
    /// Makes a call. The fiber back-end is compiled into the caller, for it costs less than the call itself.
    #[inline(always)]
    pub(crate) fn call(self, by: By, call: Call) -> Reply {
        match self {
            Self::Fiber(fibers) => fibers.call_inline(by, call),
            Self::Other(_) => self.cold().call(by, call),
        }
    }

    #[inline(always)]
    pub(crate) fn send(self, by: By, call: Call, message: Bytes<'_>) -> Reply {
        match self {
            Self::Fiber(fibers) => fibers.send_inline(by, call, message),
            Self::Other(_) => self.cold().send(by, call, message),
        }
    }

    /// The number of the executive, which typed handles are compared with.
    #[inline(always)]
    pub(crate) fn home(self) -> u32 {
        match self {
            Self::Fiber(fibers) => fibers.home_inline(),
            Self::Other(engine) => engine.home(),
        }
    }

    /// The back-end for calls whose cost does not matter.
    #[inline(never)]
    pub(crate) fn cold(self) -> &'k dyn Engine {
        match self {
            Self::Fiber(fibers) => fibers,
            Self::Other(engine) => engine,
        }
    }
}
