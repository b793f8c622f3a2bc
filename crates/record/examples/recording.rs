//! Makes a recording, opens it and proves every byte. The reader trusts journals and checksums, never the size of a
//! file.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::sync::atomic::AtomicBool;

use hairspring_record::session::{Input, RecordConfig, record};
use hairspring_recording::Recording;
use hairspring_recording::verify::{VerifyOptions, verify};
use hairspring_source::Card;
use hairspring_store::{Ways, best};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let base = folder.path().join("first");
    let card: Card = "virtual:4ch,14bit,10MS/s,frames=100000".parse()?;
    let input = Input { source: card.open(None)?, targets: vec![base.clone()], channels: Vec::new() };
    record(vec![input], &RecordConfig::default(), &AtomicBool::new(false), &mut |_| ())?;

    let recording = Recording::open(&[base])?;
    println!(
        "{} blocks, {} bytes, {} gaps",
        recording.blocks().len(),
        recording.stored_bytes(),
        recording.gaps().len()
    );
    let mut store = best(8, Ways::ALL);
    let verified = verify(&mut *store, &recording, VerifyOptions { counters: true, sha512: false }, &mut |_| ())?;
    println!("{}: {} blocks proven, {} damaged", verified.verdict.name(), verified.blocks, verified.damaged);
    Ok(())
}
