//! Settings of the machine: their benefit for a program, and that they are undone.

pub(crate) mod run;
pub(crate) mod undo;
