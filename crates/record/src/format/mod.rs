//! What stands in the files of a recording: the journal, and the metadata as SigMF.

pub mod journal;
pub mod sigmf;
