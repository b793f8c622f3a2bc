//! What the crate promises.

mod blames;
mod properties;
mod script;
