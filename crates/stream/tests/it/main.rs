//! The promises of the crate, in one binary of tests.

mod oracle;
mod plan;
mod recording;
