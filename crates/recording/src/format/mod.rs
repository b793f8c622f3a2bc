//! The formats of a recording's files: the journal, and the metadata as SigMF.

pub mod journal;
pub mod sigmf;
