//! Tests of the crate's promises.

mod blames;
mod properties;
mod script;
