//! Stripes joined into one file.
