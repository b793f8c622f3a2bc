//! Settings of the machine: what they bring to a program, and that they are undone.

pub(crate) mod run;
pub(crate) mod undo;
