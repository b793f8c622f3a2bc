//! The promises of the crate, in one binary of tests.

mod copies;
mod crashes;
mod gaps;
mod hardship;
mod lying;
mod mended;
mod oracle;
mod recorder;
mod recording;
mod series;
mod session;
mod times;
mod versions;
