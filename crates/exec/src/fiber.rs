//! The fiber back-end: all tasks on one thread, the carrier, each on a stack of its own.
//!
//! A switch is a few nanoseconds, and takes place only at calls and at `preempt_point()`: a task that computes is not
//! interrupted. The same engine on [`Sim`](hairspring_machine::Sim) is the sim back-end, where `work()` is a preemption
//! point at every nanosecond, because there time passes only through calls.
//!
//! **How it switches.** The core says who is to run. Whoever makes a call and is not first any more gives the CPU away:
//!
//! ```text
//!      carrier ── 1 resume ──► B ── 2 resume ──► A          B woke A, which is more urgent: A runs on top of B
//!                              B ◄─ 3 suspend ── A          A waits: back to whoever resumed it
//!      carrier ◄─ 4 suspend ── B                            B waits; the carrier resumes the next
//! ```
//! 1, 2: a task that is preempted resumes the one that preempts it. 3, 4: a task that waits, or that must make room for one
//! on the chain below it, suspends to its resumer, who looks again at who is first. So preemption and return cost one
//! switch each instead of the two that a scheduler in the middle would take. The chain of resumes is never longer than the
//! number of tasks, and each link of it is either ready or about to be left.
//!
//! **When it looks.** Every call and every end of a run tests one [attention word](attention); while a deadline is set it reads the
//! processor's counter too (see [`DeadlineCheck`]). If anything may be due, [`Fibers::attend`] serves it there and then, on the stack of the
//! task that made the call, before anybody less urgent runs. Nothing else looks at interrupts, time or limits. The counter
//! costs some 10 ns per call where a virtual machine reads it slowly, and nothing while no deadline and no limit is set.
//!
//! **Why it is sound.** Everything here belongs to the carrier thread; the type is neither `Send` nor `Sync`. Cells are
//! borrowed only between two switches, never across one: the functions that switch take `&self` and hold no reference into
//! a cell while they do.

mod attend;
pub(crate) mod attention;
mod carrier;
mod cell;
mod deadline;
mod engine;
mod fibers;
mod life;
mod objects;
mod overflow;
mod placement;
mod run;
mod stacks;
mod switch;
mod unwinding;
mod watchdog;

pub(crate) use fibers::Fibers;
