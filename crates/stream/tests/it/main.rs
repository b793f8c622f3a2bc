//! The promises of the crate, in one binary of tests.

mod crashes;
mod hardship;
mod mended;
mod oracle;
mod plan;
mod recording;
mod session;
