//! Direct use of Linux: sleeping on a word, the clock, and how threads are scheduled.

pub(crate) mod clock;
pub(crate) mod futex;
pub(crate) mod given_stack;
pub(crate) mod scheduling;
pub(crate) mod stack;
pub(crate) mod sync;
