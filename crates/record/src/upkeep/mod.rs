//! Operations on finished recordings: recover, compress, join.

pub mod compress;
pub mod join;
pub(crate) mod owned;
pub mod recover;
