//! The sources of records on Linux.

mod cost;
mod output;
#[cfg(test)]
mod provoked;
mod symbols;
mod tasks;
#[cfg(test)]
mod tests;
mod tracefs;
mod tracer;
mod untraced;

pub use cost::CostPair;
pub use tracer::{Tracer, TracerSettings, own_thread};
pub use untraced::Untraced;
