//! [`Facts`]: what is known of a machine: hardware, kernel, limits, load, threads.
//!
//! A fact that cannot be read is an [`Unread`] with its reason, never an empty string. Reading facts opens files and
//! takes milliseconds. Do it before a measurement, never inside one.

/// Everything that is known of a machine.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Facts in the order in which reports print them.
    pub facts: Vec<Fact>,
    /// The threads of the machine, at most [`THREADS_MAX`].
    pub threads: Vec<Thread>,
    /// Why the thread table is missing or cut short.
    pub threads_unread: Option<Unread>,
}

/// The most threads in the list; if there are more, `threads_unread` reports it.
pub const THREADS_MAX: usize = 4096;

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Stable id, `group.name`, for instance `cpu.model`.
    pub id: &'static str,
    /// Its label, for people.
    pub label: &'static str,
    /// Its value as people write it, with a unit.
    pub value: Result<String, Unread>,
    /// Whether it may identify the machine: host name, command lines, paths.
    pub private: bool,
}

/// Why a fact could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The reason, for instance `/sys/kernel/debug/sched/preempt: permission denied`.
    pub reason: String,
    /// Remedy that makes it readable, if there is one.
    pub remedy: Option<String>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// The kernel's name of the thread, at most 15 bytes.
    pub name: String,
    /// Scheduling policy: `other`, `fifo`, `rr`, `batch`, `idle`, `deadline`.
    pub policy: String,
    /// Real-time priority 1–99; 0 for policies without priorities.
    pub rt_priority: u32,
    /// CPU time used until now, in milliseconds.
    pub cpu_ms: u64,
}

impl Facts {
    /// The value of the fact with this id, if it was read.
    pub fn value(&self, id: &str) -> Option<&str> {
        self.facts.iter().find(|f| f.id == id)?.value.as_deref().ok()
    }
}
