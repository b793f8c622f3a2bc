//! The account of a recording: where every byte is, which frame it belongs to, and when the first frame was taken.

pub mod beginning;
pub mod ledger;
pub mod moment;
pub mod timeline;
