//! The trace of a run: every call with its time, its caller and how it came out.
//!
//! All decisions of an executive follow from its calls, so a trace records only the calls. [`replay`](Trace::replay)
//! sends them through a fresh core and derives which task ran or waited when. It checks that this core answers each
//! call as the recorded one did.

use hairspring_exec_core::{By, Call, Reply};
use hairspring_machine::Instant;

mod chrome;
mod lanes;
mod replay;
mod text;
mod vcd;

pub use replay::{ReplayMismatch, TraceEvent, TraceEventKind};

/// One call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceRecord {
    /// When the core had decided.
    pub at: Instant,
    /// The caller.
    pub by: By,
    /// The call.
    pub call: Call,
    /// The reply.
    pub reply: Reply,
}

/// A recorded run.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// Which back-end ran it.
    pub backend: &'static str,
    /// Envelopes of the executive.
    pub envelopes: u16,
    /// The calls in the order in which the core decided them, from the making of the executive on.
    pub records: Vec<TraceRecord>,
    /// Calls at the end that found the trace full.
    pub lost: u64,
    /// Names of tasks, by [`TaskId::index`](hairspring_exec_core::TaskId::index).
    pub tasks: Vec<String>,
    /// Names of timers, by index.
    pub timers: Vec<String>,
    /// Names of interrupt service procedures, by number.
    pub isps: Vec<String>,
}

/// The calls of a run while it runs: as many as were asked for, allocated in advance.
#[derive(Debug)]
pub(crate) struct Log {
    records: Vec<TraceRecord>,
    lost: u64,
}

impl Log {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { records: Vec::with_capacity(capacity), lost: 0 }
    }

    /// Keeps a call; once full, counts it. Does not allocate.
    pub(crate) fn record(&mut self, at: Instant, by: By, call: Call, reply: Reply) {
        if self.records.len() < self.records.capacity() {
            self.records.push(TraceRecord { at, by, call, reply });
        } else {
            self.lost += 1;
        }
    }

    /// The trace until now.
    pub(crate) fn trace(&self, backend: &'static str, envelopes: u16) -> Trace {
        Trace {
            backend,
            envelopes,
            records: self.records.clone(),
            lost: self.lost,
            tasks: Vec::new(),
            timers: Vec::new(),
            isps: Vec::new(),
        }
    }
}
