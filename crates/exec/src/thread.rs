//! The thread back-end: one thread of the kernel for each task, and Linux does the preempting.
//!
//! **Problem.** Tasks are to be preempted wherever they are, at once, by any task that becomes more urgent, without
//! signals (whose handlers can stop a task inside a libc lock) and without a kernel of our own.
//!
//! **Solution.** The core decides, under one lock; a task of priority *p* is a thread with `SCHED_FIFO` priority 80 −
//! *p* that sleeps on a word of its own while the core does not let it run. The thread that lets it run sets the word
//! under the lock and issues the wake after the lock is given back; that moment Linux takes the CPU away from the less
//! urgent.
//!
//! ```text
//!   95  watchdog          takes the priority of a runaway task, whatever happens
//!   88  interrupts        one thread for each source
//!   85  kernel            ticks, timer procedures, the limit of a run
//!   80  task of priority 0
//!    ⋮
//!   17  task of priority 63
//!    —  the caller of `run`, and the rest of the machine
//! ```
//!
//! **Conditions.** Profile UP puts all of them on one CPU: then the most urgent ready task is the one that runs. That
//! is watched: a task that makes a call and is not the core's first is counted as a violation (one that sleeps in a
//! system call of its own lets others run, and is found so). Profile SMP lets as many run as there are CPUs; a wake
//! then does not preempt its sender. Without the permission for real-time priority everything works, in no particular
//! order, and [`Finish::strict`](crate::Finish::strict) is false. The kernel throttles real-time threads that leave
//! less than 5 % of a second to others (`sched_rt_runtime_us`).
//!
//! The policy of a task's thread belongs to the executive. A task that wishes for another one
//! ([`Held`](hairspring_machine::Held), a real-time guard) leaves that order for as long: it runs as it wished until
//! the executive changes its priority (by a call, by a resource, or as the watchdog), which overrules the wish. The end
//! of the wish puts the policy back that the thread had when the wish came, and that lasts until its priority changes
//! again. Wishes for CPUs, timer slack and memory are left alone.
//!
//! **Deferred.** Suspending or killing another task, and ending the run, takes effect at that task's next call (AMX
//! does it at once): a thread cannot be stopped at an arbitrary place without a signal. A suspended task's next call is
//! made when it is resumed; a killed task unwinds instead of making its next call (but a call that gives back a buffer
//! or a resource is made). The end of a run kills all tasks. One that still computes without a call after the
//! watchdog's time is left behind, demoted, and reported as a runaway.
//!
//! **Why nothing is lost.** The word mirrors the core's state and is written under the lock only; the kernel compares
//! it when a thread goes to sleep. See [`parking`] for the words, [`mirror`] for nudges that are owed, [`entry`] for
//! the way of a call.

mod bands;
mod engine;
mod entry;
mod futures;
mod gate;
mod given;
mod interrupts;
mod kernel;
mod lock;
mod mirror;
mod parking;
mod procedure;
mod run;
mod slices;
mod state;
mod status;
mod task;
mod threads;
mod watchdog;

#[cfg(test)]
mod tests;

pub(crate) use threads::Threads;
