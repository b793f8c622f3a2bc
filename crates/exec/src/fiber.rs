//! The fiber back-end: all tasks on one thread, the carrier, each on a stack of its own.
//!
//! A switch is a few nanoseconds, and takes place only at calls and at `preempt_point()`: a task that computes is not
//! interrupted. The same engine on [`Sim`](hairspring_machine::Sim) is the sim back-end, where `work()` is a preemption
//! point at every nanosecond, because there time passes only through calls.
//!
//! **How it switches.** The core decides which task runs. A task that makes a call and is no longer first gives the CPU
//! away:
//!
//! ```text
//!      carrier ── 1 resume ──► B ── 2 resume ──► A          B woke A, which is more urgent: A runs on top of B
//!                              B ◄─ 3 suspend ── A          A waits: back to its resumer
//!      carrier ◄─ 4 suspend ── B                            B waits; the carrier resumes the next
//! ```
//! 1, 2: a preempted task resumes the task that preempts it. 3, 4: a task that waits, or that must make room for a task
//! below it on the chain, suspends to its resumer. The resumer then checks again which task is first. So preemption and
//! return cost one switch each; a scheduler in the middle would need two. The chain of resumes is never longer than the
//! number of tasks. Each task on it is ready or about to leave it.
//!
//! **When it looks.** Every call and every end of a run tests one [attention word](attention). While a deadline is
//! near, it also reads the processor's counter (see [`deadline`]); an [alarm] watches one that is far away. If anything
//! may be due, [`Fibers::attend`] serves it at once, on the stack of the calling task, before a less urgent task runs.
//! No other code looks at interrupts, time or limits. The counter costs up to 10 ns per call on a virtual machine that
//! reads it slowly, and nothing while no deadline is near.
//!
//! **Why it is sound.** All state belongs to the carrier thread; the type is neither `Send` nor `Sync`. A cell is
//! borrowed only between two switches, never across one: the functions that switch take `&self` and hold no reference
//! into a cell during a switch.

mod alarm;
mod attend;
pub(crate) mod attention;
mod carrier;
mod cell;
mod deadline;
mod engine;
mod fibers;
mod fpu_control;
mod futures;
mod life;
mod objects;
mod overflow;
mod placement;
mod run;
mod shadow_stack;
mod short;
mod slices;
mod stacks;
mod status;
mod switch;
mod unwinding;
mod usage;
mod watchdog;

pub(crate) use fibers::Fibers;
pub(crate) use shadow_stack::can_switch;
pub(crate) use switch::SwitchBack;
