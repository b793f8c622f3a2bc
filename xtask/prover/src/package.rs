//! What strangers get, and how they install it.

pub(crate) mod distribution;
pub(crate) mod installs;
