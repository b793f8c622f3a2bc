//! [`KernelRecord`]: an event on one CPU and its time, from the kernel.

use std::fmt;
use std::sync::Arc;

use hairspring_machine::{Instant, Nanos};

/// One record of the kernel on one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRecord {
    /// The time, on `CLOCK_MONOTONIC`.
    pub at: Instant,
    /// The event.
    pub event: KernelEvent,
}

/// An event on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelEvent {
    /// The CPU went from one task to another.
    Switch {
        /// The task that had the CPU.
        from: KernelTask,
        /// Why it gave up the CPU.
        left_as: LeftAs,
        /// The task that has the CPU now. Process id 0 is the idle task.
        to: KernelTask,
    },
    /// A task is being woken. The CPU that wakes writes this record, which need not be the CPU on which the task will
    /// run.
    Waking {
        /// The thread that is woken.
        pid: u32,
    },
    /// The CPU entered an interrupt or a softirq.
    Enter(Context),
    /// The CPU left it.
    Exit(Context),
    /// A kernel worker began a piece of work.
    WorkBegins {
        /// The worker's thread.
        pid: u32,
        /// The work's function; `None` if this process may not see the kernel's addresses.
        function: Option<Arc<str>>,
    },
    /// A kernel worker ended a piece of work.
    WorkEnds {
        /// The worker's thread.
        pid: u32,
    },
    /// A page fault of a thread. The kernel writes no record at its end.
    Fault {
        /// The thread.
        pid: u32,
    },
    /// A non-maskable interrupt of this length ended.
    Nmi(Nanos),
    /// The CPU entered an idle state, or left it (`None`).
    Idle(Option<u32>),
    /// The CPU's frequency changed.
    Frequency,
    /// Records were lost between the record before and this one.
    Lost,
}

/// A task as the scheduler records it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelTask {
    /// Its thread id; 0 is the idle task of a CPU.
    pub pid: u32,
    /// The kernel's priority: below 0 deadline, 0 to 98 real time (99 minus the number that users know), 100 to 139
    /// nice -20 to 19.
    pub priority: i16,
    name: [u8; NAME_BYTES],
}

/// The kernel's limit for the length of a task's name.
const NAME_BYTES: usize = 16;

/// Why a task gave up the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftAs {
    /// It could have continued, but was preempted or throttled.
    Runnable,
    /// It waits for something, or was stopped.
    Blocked,
}

/// Contexts of a CPU outside of tasks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    /// An interrupt of the CPU itself: its timer, or a message from another CPU.
    Vector(Vector),
    /// The handler of a device.
    Interrupt {
        /// The number of the interrupt line.
        irq: u32,
        /// The name that the driver registered.
        name: Arc<str>,
    },
    /// Deferred work of an interrupt.
    Softirq(Softirq),
}

/// The interrupts of a CPU that have no device. `irq_work` is missing: the kernel does not allow sampling its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the kernel's; `people` says what they are")]
pub enum Vector {
    LocalTimer,
    Reschedule,
    CallFunction,
    CallFunctionSingle,
    Thermal,
    Threshold,
    DeferredError,
    Error,
    Spurious,
    PlatformIpi,
}

impl Vector {
    /// All softirqs.
    pub const ALL: [Self; 10] = [
        Self::LocalTimer,
        Self::Reschedule,
        Self::CallFunction,
        Self::CallFunctionSingle,
        Self::Thermal,
        Self::Threshold,
        Self::DeferredError,
        Self::Error,
        Self::Spurious,
        Self::PlatformIpi,
    ];

    /// The kernel's name in its tracepoints.
    pub fn name(self) -> &'static str {
        match self {
            Self::LocalTimer => "local_timer",
            Self::Reschedule => "reschedule",
            Self::CallFunction => "call_function",
            Self::CallFunctionSingle => "call_function_single",
            Self::Thermal => "thermal_apic",
            Self::Threshold => "threshold_apic",
            Self::DeferredError => "deferred_error_apic",
            Self::Error => "error_apic",
            Self::Spurious => "spurious_apic",
            Self::PlatformIpi => "x86_platform_ipi",
        }
    }

    /// Whether only faulty or overheated hardware raises it.
    pub(crate) fn is_rare(self) -> bool {
        !matches!(self, Self::LocalTimer | Self::Reschedule | Self::CallFunction | Self::CallFunctionSingle)
    }

    /// Its description, for people.
    pub fn people(self) -> &'static str {
        match self {
            Self::LocalTimer => "timer interrupt",
            Self::Reschedule => "reschedule interrupt of another CPU",
            Self::CallFunction | Self::CallFunctionSingle => "function call of another CPU",
            Self::Thermal => "thermal interrupt",
            Self::Threshold => "machine check threshold interrupt",
            Self::DeferredError => "deferred error interrupt",
            Self::Error => "error interrupt of the APIC",
            Self::Spurious => "spurious interrupt",
            Self::PlatformIpi => "platform interrupt",
        }
    }
}

/// The kernel's softirqs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Softirq(pub u32);

impl Softirq {
    /// The kernel's name of it.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 10] =
            ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
        usize::try_from(self.0).ok().and_then(|number| NAMES.get(number)).unwrap_or(&"of an unknown number")
    }
}

impl KernelTask {
    /// A task with this name, truncated to the kernel's 15 bytes.
    pub fn new(pid: u32, name: &str, priority: i16) -> Self {
        Self::from_bytes(pid, name.as_bytes(), priority)
    }

    /// A task whose name is in the kernel's form, up to the first zero.
    pub(crate) fn from_bytes(pid: u32, bytes: &[u8], priority: i16) -> Self {
        let mut name = [0; NAME_BYTES];
        for (to, &from) in name[..NAME_BYTES - 1].iter_mut().zip(bytes.iter().take_while(|&&byte| byte != 0)) {
            *to = from;
        }
        Self { pid, priority, name }
    }

    /// Its name; bytes that are not UTF-8 are replaced.
    pub fn name(&self) -> String {
        let length = self.name.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        String::from_utf8_lossy(&self.name[..length]).into_owned()
    }

    /// Whether it is the idle task.
    pub fn is_idle(&self) -> bool {
        self.pid == 0
    }

    /// Whether it is a kernel worker.
    pub fn is_worker(&self) -> bool {
        self.name.starts_with(b"kworker/")
    }

    /// Whether it is the kernel's task that moves running tasks from its CPU to others.
    pub(crate) fn moves_tasks(&self) -> bool {
        self.name.starts_with(b"migration/")
    }

    /// Its policy and priority, for people. The kernel's records do not distinguish FIFO from round-robin.
    pub fn scheduling(&self) -> String {
        match self.priority {
            ..0 => "deadline".to_owned(),
            0..100 => format!("real time {}", 99 - self.priority),
            _ => format!("nice {}", self.priority - 120),
        }
    }
}

impl fmt::Debug for KernelTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.name(), self.pid, self.priority)
    }
}
