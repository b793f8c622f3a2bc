//! What a machine says of itself: hardware, kernel, limits, load, threads.
//!
//! A fact that cannot be read is an [`Unread`] with its reason, never an empty string. Reading facts opens files and is
//! slow (milliseconds); it belongs before a measurement, never inside one.

/// Everything a machine says of itself.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Facts in the order in which they should be printed.
    pub facts: Vec<Fact>,
    /// The threads of the machine, at most [`THREADS_MAX`].
    pub threads: Vec<Thread>,
    /// Why the thread table is missing or cut short.
    pub threads_unread: Option<Unread>,
}

/// The most threads that are listed; a machine with more says so in `threads_unread`.
pub const THREADS_MAX: usize = 4096;

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Stable id, `group.name`, for instance `cpu.model`.
    pub id: &'static str,
    /// What it is, for people.
    pub label: &'static str,
    /// What was read, as people write it, with its unit.
    pub value: Result<String, Unread>,
    /// Whether it may tell who or where the machine is: host name, command lines, paths.
    pub private: bool,
}

/// Why a fact could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The reason, for instance `/sys/kernel/debug/sched/preempt: permission denied`.
    pub reason: String,
    /// What to do to get it, if anything.
    pub remedy: Option<String>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Name as the kernel keeps it, at most 15 bytes.
    pub name: String,
    /// Scheduling policy: `other`, `fifo`, `rr`, `batch`, `idle`, `deadline`.
    pub policy: String,
    /// Real-time priority 1–99; 0 for the policies that have none.
    pub rt_priority: u32,
    /// CPU time used so far, in milliseconds.
    pub cpu_ms: u64,
}

impl Facts {
    /// The value of the fact with this id, if it was read.
    pub fn value(&self, id: &str) -> Option<&str> {
        self.facts.iter().find(|f| f.id == id)?.value.as_deref().ok()
    }
}
