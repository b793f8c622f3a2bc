//! The promises of the crate, in one binary of tests.

mod plan;
