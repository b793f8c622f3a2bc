//! An executive of a C program, which stays with the thread that made it, and the type of its messages.

#![expect(unsafe_code, reason = "an executive that stays with its thread; a message is numbers")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::CString;
use std::thread::ThreadId;

use hairspring_exec::{CallSite, Executive};

use super::context::{Home, Site};
use super::ids::hs_exec_task;
use super::result::Results;
use crate::error::{Failure, HS_E_THREAD};
use crate::handle::Kind;
use crate::pointer::Numbers;

/// An executive. Belongs to the thread that made it.
pub struct hs_exec(());

/// A message: 32 bytes, copied when it is sent and when it is received.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_message {
    /// The program's.
    pub words: [u64; 4],
}

// SAFETY: numbers.
unsafe impl Numbers for hs_exec_message {}

pub(crate) struct OwnedExec {
    executive: Executive,
    /// Of its tasks, and its parts. After `executive`, whose tasks refer to them.
    results: Box<Results>,
    pub(super) home: u32,
    /// Of each task, on fibers.
    stack_bytes: Option<usize>,
    thread: ThreadId,
    process: u32,
    /// Of the latest run.
    pub(super) mishaps: Vec<(hs_exec_task, CString)>,
}

// SAFETY: every use asks `is_own` first, so that only the thread that made it reaches what is in it; `hs_exec_free`
// asks, too.
unsafe impl Send for OwnedExec {}

impl Drop for OwnedExec {
    fn drop(&mut self) {
        self.results.free_parts();
    }
}

impl Kind for hs_exec {
    type Owned = OwnedExec;
    const WORD: u64 = u64::from_le_bytes(*b"executiv");
    const NAME: &'static str = "executive";
}

impl OwnedExec {
    /// An executive of the calling thread.
    pub(super) fn new(executive: Executive, home: u32, stack_bytes: Option<usize>) -> Self {
        let (results, thread, process) = (Results::new(), std::thread::current().id(), std::process::id());
        Self { executive, results, home, stack_bytes, thread, process, mishaps: Vec::new() }
    }

    /// Refuses threads that did not make it, and the child of a fork: its timers, its threads and its signals are the
    /// parent's.
    pub(super) fn is_own(&self) -> Result<(), Failure> {
        if std::process::id() != self.process {
            let text = "use an executive: it belongs to the process that forked this one; make another";
            return Err(Failure::new(HS_E_THREAD, text));
        }
        if std::thread::current().id() == self.thread {
            return Ok(());
        }
        Err(Failure::new(HS_E_THREAD, "use an executive: it belongs to the thread that made it"))
    }

    /// The place from which the program around it makes calls.
    pub(super) fn site(&self) -> Site<'_> {
        Site::new(self.executive.caller(), &self.results)
    }

    /// Results of its tasks, and its parts.
    pub(super) fn results(&self) -> &Results {
        &self.results
    }

    /// The reference to the executive that its tasks and procedures carry.
    pub(super) fn place(&self, exec: *const hs_exec) -> Home {
        Home::new(exec, &self.results, self.home, self.stack_bytes)
    }

    pub(super) fn executive(&mut self) -> &mut Executive {
        &mut self.executive
    }
}
