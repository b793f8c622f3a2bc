//! VCD.
