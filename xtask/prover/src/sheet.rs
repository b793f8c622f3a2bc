//! Data sheets: their rows, comparisons and conclusions, and the archive that keeps them.

pub(crate) mod agreement;
pub(crate) mod archive;
pub(crate) mod conclusions;
pub(crate) mod cross_check;
pub(crate) mod formats;
pub(crate) mod named_gaps;
pub(crate) mod rows;
pub(crate) mod variance;
