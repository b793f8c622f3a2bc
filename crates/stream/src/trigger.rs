//! Triggered acquisition.
