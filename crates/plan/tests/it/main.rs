//! Planning: topologies, flows, sizes, and the verdict with its reasons.

mod file;
mod flows;
mod never_panics;
mod sizes;
mod system;
mod verdict;

use hairspring_plan::{Flow, Load, Loads, Topology};
use hairspring_ring::ByteRate;

fn mb_per_s(rate: f64) -> ByteRate {
    ByteRate::new(rate * 1e6).expect("finite")
}

fn named(name: &str) -> Topology {
    Topology::named(name).expect("built in")
}

fn flow(from: &str, to: &str, rate_mb_per_s: f64) -> Flow {
    Flow { from: from.to_owned(), to: to.to_owned(), rate: mb_per_s(rate_mb_per_s) }
}

#[track_caller]
fn loads(topology: &Topology, flows: &[Flow]) -> Loads {
    Loads::of(topology, flows).expect("all devices exist")
}

#[track_caller]
fn load<'l>(loads: &'l Loads, name: &str) -> &'l Load {
    loads.loads.iter().find(|load| load.name == name).unwrap_or_else(|| panic!("no load on {name}"))
}
