//! A recording on disk, opened for reading.
