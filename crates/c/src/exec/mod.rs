//! The executive for programs in C: tasks with priorities, and what they wait for. The functions of
//! `include/hairspring_exec.h`.
//!
//! ```text
//!   hs_exec_wake(task) ─► the caller (context.rs) ─► the number in the id (ids.rs) ─► the same call of `hairspring_exec` ─► a code (outcome.rs)
//! ```
//!
//! **The caller** is known by one word of the thread, which the library sets before it calls a function of the program
//! and again when a call returns to it. So the functions have no argument for it, and a call from where it is not
//! allowed gets a code.
//!
//! **Ids** of tasks and objects are numbers with the kind and the executive in them. They are checked without a lock.
//!
//! **Nothing unwinds through functions in C.** A killed task is not unwound: its calls that wait return HS_E_KILLED at
//! once, and it must return. The calls that tasks make often have no guard against a panic, because it would cost more
//! than the call; one ends the process.

pub mod ids;

pub mod executive;

pub mod life;

pub mod task;

pub mod threshold;

pub mod usage;

pub mod mail;

pub mod object;

pub mod pool;

pub mod part;

pub mod result;

pub mod timer;

pub mod interrupt;

mod context;
mod outcome;
