//! The account of a recording: where every byte is, which frame it is, and when the first one was taken.

pub mod beginning;
pub mod ledger;
pub mod timeline;
