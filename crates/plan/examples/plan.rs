//! Plans a recording: whether an old computer records 200 MB/s for an hour, what limits it, and how large the buffer
//! must be.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_machine::Nanos;
use hairspring_plan::{Direction, MemoryRoom, Plan, Request, Stall, Stream, Sustainable, Target, Topology, Written};
use hairspring_ring::units::{ByteRate, Bytes};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A computer that an application note draws: card and disk share one PCI-X bus.
    let topology = Topology::named("an006-shared-pcix")?;
    let rate = ByteRate::new(200e6).ok_or("a rate is greater than 0")?;
    let disk = Target {
        name: "disk0".to_owned(),
        disks: vec!["disk0".to_owned()],
        unknown: String::new(),
        file_system: None,
        free: Some(Bytes::gib(500)),
    };
    let request = Request {
        direction: Direction::Record,
        streams: vec![Stream { card: "card0".to_owned(), rate }],
        targets: vec![disk],
        span: Some(Nanos::from_secs(3600)),
        stall: Stall { worst: Nanos::from_millis(250), sync_interval: Nanos::from_secs(1) },
        stall_is_assumed: true,
        memory: Some(MemoryRoom { total: Bytes::gib(4), available: Bytes::gib(3) }),
        pointer_bits: 64,
        sustainable: Ok(Sustainable { rate: ByteRate::new(250e6).ok_or("a rate")?, source: "a sheet".to_owned() }),
        fit: None,
        also: Vec::new(),
        written: Written::Both,
    };
    let plan = Plan::of(&request, &topology)?;
    println!("verdict: {}", plan.verdict.name());
    plan.reasons.iter().for_each(|reason| println!("  {}", reason.text));
    plan.sizes
        .iter()
        .for_each(|sizes| println!("{}: blocks of {}, a buffer of {}", sizes.card, sizes.notify, sizes.buffer));
    Ok(())
}
