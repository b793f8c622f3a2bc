//! What is done with a recording afterwards: proven, mended, joined.

pub mod join;
pub mod recover;
pub mod verify;
