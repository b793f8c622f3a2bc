//! [`Culprit`]: the cause that took the time.

use std::fmt;
use std::sync::Arc;

use crate::record::{Context, KernelTask, Vector};

/// Cause that took the time of a thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Culprit {
    /// An interrupt or a softirq.
    Context(Context),
    /// A non-maskable interrupt.
    Nmi,
    /// Another task.
    Task(KernelTask),
    /// A kernel worker, with the function of its work where that is known.
    Worker(KernelTask, Option<Arc<str>>),
    /// The thread's own page fault; major if the thread had to wait for it.
    PageFault {
        /// Whether the thread gave up the CPU meanwhile, for instance to wait for a disk.
        major: bool,
    },
    /// The thread itself: it waited in its own system call, or was returning from the kernel.
    OwnCall,
    /// The kernel kept the thread from running although its CPU was free: a limit of its group, or of real-time
    /// threads.
    Throttling,
    /// The kernel moved the thread to another CPU.
    Migration,
    /// The CPU left an idle state. On a guest this includes the time in which the host wakes the virtual CPU.
    IdleExit,
    /// The CPU's frequency changed.
    Frequency,
    /// The hypervisor: by the kernel's records the thread ran, but it did not.
    Hypervisor,
    /// Firmware (system management mode) or hardware: as the hypervisor, on a machine without one.
    Firmware,
    /// Unknown, with the reason.
    Unexplained(WhyUnexplained),
}

/// Why the culprit is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WhyUnexplained {
    /// Records of the kernel were lost.
    RecordsLost,
    /// The records do not cover the time.
    NotCovered,
}

/// The kinds of culprits, for tables and ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "`people` says what each is")]
pub enum CulpritKind {
    Timer,
    Interrupt,
    FunctionCall,
    Reschedule,
    OtherVector,
    Softirq,
    Task,
    Worker,
    PageFault,
    OwnCall,
    Throttling,
    Migration,
    IdleExit,
    Frequency,
    Hypervisor,
    Firmware,
    Unexplained,
}

impl CulpritKind {
    /// All kinds, in the order of the tables.
    pub const ALL: [Self; 17] = [
        Self::Timer,
        Self::Interrupt,
        Self::FunctionCall,
        Self::Reschedule,
        Self::OtherVector,
        Self::Softirq,
        Self::Task,
        Self::Worker,
        Self::PageFault,
        Self::OwnCall,
        Self::Throttling,
        Self::Migration,
        Self::IdleExit,
        Self::Frequency,
        Self::Hypervisor,
        Self::Firmware,
        Self::Unexplained,
    ];

    /// Its name in ids and in JSON.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].0
    }

    /// Its description, for people.
    pub fn people(self) -> &'static str {
        KINDS[self as usize].1
    }
}

/// Name and description of each kind, in the order of [`CulpritKind::ALL`].
const KINDS: [(&str, &str); CulpritKind::ALL.len()] = [
    ("timer", "timer interrupt"),
    ("interrupt", "device interrupt"),
    ("function_call", "function call of another CPU"),
    ("reschedule", "reschedule interrupt"),
    ("other_vector", "other interrupt"),
    ("softirq", "softirq"),
    ("task", "another task"),
    ("worker", "kernel worker"),
    ("page_fault", "page fault"),
    ("own_call", "the thread's own call"),
    ("throttling", "throttling"),
    ("migration", "migration"),
    ("idle_exit", "idle exit"),
    ("frequency", "frequency change"),
    ("hypervisor", "hypervisor"),
    ("firmware", "firmware or hardware"),
    ("unexplained", "unexplained"),
];

impl Culprit {
    /// Its kind.
    pub fn kind(&self) -> CulpritKind {
        match self {
            Self::Context(Context::Interrupt { .. }) => CulpritKind::Interrupt,
            Self::Context(Context::Softirq(_)) => CulpritKind::Softirq,
            Self::Context(Context::Vector(vector)) => match vector {
                Vector::LocalTimer => CulpritKind::Timer,
                Vector::CallFunction | Vector::CallFunctionSingle => CulpritKind::FunctionCall,
                Vector::Reschedule => CulpritKind::Reschedule,
                _ => CulpritKind::OtherVector,
            },
            Self::Nmi => CulpritKind::OtherVector,
            Self::Task(_) => CulpritKind::Task,
            Self::Worker(..) => CulpritKind::Worker,
            Self::PageFault { .. } => CulpritKind::PageFault,
            Self::OwnCall => CulpritKind::OwnCall,
            Self::Throttling => CulpritKind::Throttling,
            Self::Migration => CulpritKind::Migration,
            Self::IdleExit => CulpritKind::IdleExit,
            Self::Frequency => CulpritKind::Frequency,
            Self::Hypervisor => CulpritKind::Hypervisor,
            Self::Firmware => CulpritKind::Firmware,
            Self::Unexplained(_) => CulpritKind::Unexplained,
        }
    }

    /// Whether it names a culprit.
    pub fn is_named(&self) -> bool {
        !matches!(self, Self::Unexplained(_))
    }
}

impl fmt::Display for Culprit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Context(Context::Interrupt { irq, name }) => write!(f, "interrupt {irq}, {name}"),
            Self::Context(Context::Softirq(softirq)) => write!(f, "softirq {}", softirq.name()),
            Self::Context(Context::Vector(vector)) => f.write_str(vector.people()),
            Self::Nmi => f.write_str("non-maskable interrupt"),
            Self::Task(task) => write!(f, "task {}, pid {}, {}", task.name(), task.pid, task.scheduling()),
            Self::Worker(task, Some(function)) => write!(f, "kernel worker {}, {function}", task.name()),
            Self::Worker(task, None) => write!(f, "kernel worker {}", task.name()),
            Self::PageFault { major: false } => f.write_str("page fault"),
            Self::PageFault { major: true } => f.write_str("page fault that waited for a disk"),
            Self::OwnCall => f.write_str("the thread's own system call"),
            Self::Throttling => f.write_str("throttling"),
            Self::Migration => f.write_str("migration to another CPU"),
            Self::IdleExit => f.write_str("exit from an idle state"),
            Self::Frequency => f.write_str("frequency change"),
            Self::Hypervisor => f.write_str("hypervisor"),
            Self::Firmware => f.write_str("firmware or hardware"),
            Self::Unexplained(WhyUnexplained::RecordsLost) => f.write_str("unexplained: records were lost"),
            Self::Unexplained(WhyUnexplained::NotCovered) => f.write_str("unexplained: outside of the records"),
        }
    }
}
