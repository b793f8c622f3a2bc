//! [`IdleLimit`]: a limit on the time that CPUs may take to leave an idle state. It is in force while it is held.

use std::fs::File;
use std::sync::Arc;

use crate::Nanos;

/// A limit on the exit latency of all CPUs, in force until it is dropped:
/// [`Machine::limit_idle`](crate::Machine::limit_idle).
///
/// It belongs to the process, not to the thread: any thread may hold it and drop it.
#[derive(Debug)]
pub struct IdleLimit {
    pub(crate) file: Option<File>,
    /// The limit, for a simulated machine to look at.
    pub(crate) _simulated: Option<Arc<Nanos>>,
}

impl IdleLimit {
    /// The open file that keeps the limit in force, on a machine that has one. A process that inherits its descriptor
    /// holds the limit, too.
    pub fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }
}
