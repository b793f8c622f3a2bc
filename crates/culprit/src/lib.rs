//! Finds the culprit for a thread's lost time: an interrupt, a softirq, a task, a kernel worker, a page fault,
//! throttling, the hypervisor.
//!
//! # Problem
//! A polling thread sees a gap; a sleeping thread wakes up late. Neither sees why. The kernel's tracepoints record the
//! events on the CPU meanwhile, stamped on `CLOCK_MONOTONIC`.
//!
//! # Solution
//! ```text
//! Tracer ── KernelRecord ──► CpuHistory ── who had the CPU, moment by moment ──┐
//!  Linux                      a stack: NMI > interrupt > softirq > task        ├─► blame ──► Blame ──► Tally
//!                                         LostTime: thread, from, to, wanted ──┘
//! ```
//! [`host::Tracer`] reads, on Linux, the records of chosen CPUs. [`CpuHistory`] derives the occupant of the CPU at each
//! moment. [`blame`] divides the time that a thread lost among the culprits. Everything except the tracer is pure: a
//! function of records and times.
//!
//! # Conditions
//! * Blame goes by coverage, not by presence: an interrupt that took 2 µs of a gap of 200 µs is blamed for 2 µs.
//! * The parts always add up to the time lost, to the nanosecond.
//! * Where records were lost there is no verdict. Such time is [`Culprit::Unexplained`], with the reason, and is never
//!   blamed on the hypervisor.
//! * Time in which the thread ran by the kernel's records, but did not, was taken below the kernel: by the hypervisor
//!   on a guest, by the firmware or the hardware elsewhere. This is a conclusion by exclusion.
//! * An interrupt that is delivered at the end of such a theft is its consequence, and is not blamed.
//!
//! # Limits
//! A theft during another task's time, or during a softirq, cannot be seen: it counts as that task's or softirq's time.
//! A theft during an interrupt handler shows if the handler took ten times its usual time. A page fault has no record
//! of its end; it counts until the thread's next own stamp.
//!
//! # Example
//! ```
//! use hairspring_culprit::{CpuHistory, Culprit, KernelEvent, KernelRecord, KernelTask, LeftAs};
//! use hairspring_culprit::{LostTime, Terms, Wanted, blame};
//! use hairspring_machine::{Instant, Nanos};
//!
//! let poller = KernelTask::new(100, "poller", 120);
//! let other = KernelTask::new(200, "backup", 120);
//! let us = |at| Instant::BOOT + Nanos::from_micros(at);
//! let mut history = CpuHistory::new();
//! let switch = |at, from, to| KernelRecord {
//!     at: us(at),
//!     event: KernelEvent::Switch { from, left_as: LeftAs::Runnable, to },
//! };
//! history.push(switch(0, other, poller));
//! history.push(switch(100, poller, other));
//! history.push(switch(150, other, poller));
//! history.known_until(us(200));
//! let lost = LostTime { thread: 100, from: us(99), to: us(151), wanted: Wanted::Run };
//! let blame = blame(&lost, &history, &Terms::guest());
//! assert_eq!(blame.chief().map(|share| share.culprit.to_string()), Some("task backup, pid 200, nice 0".to_owned()));
//! ```

mod blame;
mod culprit;
#[cfg(target_os = "linux")]
mod format;
mod history;
#[cfg(target_os = "linux")]
pub mod host;
mod record;
mod tally;

pub use blame::{Blame, BlamePart, LostTime, Share, Terms, Wanted, blame};
pub use culprit::{Culprit, CulpritKind, WhyUnexplained};
pub use history::{CpuHistory, Occupant};
pub use record::{Context, KernelEvent, KernelRecord, KernelTask, LeftAs, Softirq, Vector};
pub use tally::{Tally, Toll};
