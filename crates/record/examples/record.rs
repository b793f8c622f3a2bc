//! Records a card that has its own clock, and accounts for every byte.
//!
//! `cargo run --release -p hairspring-record --example record -- virtual:4ch,14bit,40MS/s,frames=40000000 /tmp/x`

#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::error::Error;
use std::sync::atomic::AtomicBool;

use hairspring_record::session::{Input, RecordConfig, record};
use hairspring_source::card::Card;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let text = arguments.next().unwrap_or_else(|| "virtual:4ch,14bit,10MS/s,frames=1000000".to_owned());
    let folder = tempfile::tempdir()?;
    let target = arguments.next().map_or_else(|| folder.path().join("x"), Into::into);
    let card: Card = text.parse()?;
    let input = Input { source: card.open(None)?, targets: vec![target], channels: Vec::new() };
    let stop = AtomicBool::new(false);
    for card in record(vec![input], &RecordConfig::default(), &stop, &mut |_| ())? {
        let outcome = &card.outcome;
        println!("{}: {}", outcome.verdict.name(), outcome.reason);
        println!("{:?}", outcome.ledger);
        if let Some(rate) = card.rate_reached() {
            println!("{rate}; worst stall {}, buffer at most {}", outcome.worst_stall, outcome.high_water);
        }
        println!(
            "CPU: {} recorder, of which {} checksums; {} source; {} in all",
            card.recorder_cpu, outcome.checksum_time, card.source_cpu, card.finished
        );
        for fallback in &outcome.fallbacks {
            println!("  {}: {}", fallback.name, fallback.refused.as_deref().unwrap_or("in use"));
        }
    }
    Ok(())
}
