//! The machine: the one seam to CPU and kernel.

pub mod facts;
