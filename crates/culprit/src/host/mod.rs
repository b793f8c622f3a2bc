//! The sources of records on Linux.

mod cost;
mod missed_switches;
#[cfg(test)]
mod provoked;
mod redirect;
mod symbols;
#[cfg(test)]
mod tests;
mod tracefs;
mod tracer;
mod untraced;

pub use cost::CostPair;
pub use tracer::{Tracer, TracerSettings, own_thread};
pub use untraced::Untraced;
