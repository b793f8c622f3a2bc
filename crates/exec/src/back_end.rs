//! [`BackEnd`]: a context's reference to its back-end.

use hairspring_exec_core::{By, Call, Reply};
use hairspring_machine::Host;

use crate::engine::Engine;
use crate::fiber::{Fibers, SwitchBack};
use crate::message::Bytes;

/// A reference to a back-end. Small and `Copy`.
#[derive(Clone, Copy)]
pub(crate) enum BackEnd<'k> {
    /// Fibers on this computer. Their calls are inlined into the caller, because they cost less than a call through a
    /// table.
    Fiber(&'k Fibers<Host>, SwitchBack),
    /// Any other.
    Other(&'k dyn Engine),
}

impl<'k> BackEnd<'k> {
    /// Makes a call. The fiber back-end is inlined into the caller, because it costs less than the call itself.
    #[inline(always)]
    pub(crate) fn call(self, by: By, call: Call) -> Reply {
        match self {
            Self::Fiber(fibers, back) => fibers.call_inline(by, call, back),
            Self::Other(_) => self.cold().call(by, call),
        }
    }

    /// Makes a call in the general way; most calls take a fast path before. Marked cold, so that the compiler predicts
    /// the fast path. Otherwise it counts each of a dozen checks as even, and compiles a switch behind them as code
    /// that hardly ever runs.
    #[cold]
    #[inline(never)]
    pub(crate) fn call_rarely(self, by: By, call: Call) -> Reply {
        self.cold().call(by, call)
    }

    /// The same with a message.
    #[cold]
    #[inline(never)]
    pub(crate) fn send_rarely(self, by: By, call: Call, message: Bytes<'_>) -> Reply {
        self.cold().send(by, call, message)
    }

    #[inline(always)]
    pub(crate) fn send(self, by: By, call: Call, message: Bytes<'_>) -> Reply {
        match self {
            Self::Fiber(fibers, back) => fibers.send_inline(by, call, message, back),
            Self::Other(_) => self.cold().send(by, call, message),
        }
    }

    /// The number of the executive, which typed handles are compared with.
    #[inline(always)]
    pub(crate) fn home(self) -> u32 {
        match self {
            Self::Fiber(fibers, _) => fibers.home_inline(),
            Self::Other(engine) => engine.home(),
        }
    }

    /// The back-end, for calls that need not be fast.
    #[inline(never)]
    pub(crate) fn cold(self) -> &'k dyn Engine {
        match self {
            Self::Fiber(fibers, _) => fibers,
            Self::Other(engine) => engine,
        }
    }
}
