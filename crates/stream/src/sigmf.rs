//! The recording's metadata as SigMF.
