//! The packages that users get, and their installation.

pub(crate) mod distribution;
pub(crate) mod installs;
