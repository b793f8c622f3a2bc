//! The promises of the executive, through its public interface, in one binary of tests.

mod programs;
mod trace;
