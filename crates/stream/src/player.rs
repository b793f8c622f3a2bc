//! Disk to output at rate.
