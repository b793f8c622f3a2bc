//! Operations on finished recordings: verify, recover, join.

pub mod compress;
pub mod join;
pub(crate) mod owned;
pub mod recover;
pub mod verify;
