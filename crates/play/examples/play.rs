//! A player: a recording goes to an output that compares each frame with the generator that made it.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};

use hairspring_play::player::PlayConfig;
use hairspring_play::sink::{Checker, Unclocked};
use hairspring_play::{Track, play};
use hairspring_record::session::{self, Input, record};
use hairspring_recording::Recording;
use hairspring_source::{Card, Pattern};
use hairspring_store::{Ways, best};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let base = folder.path().join("first");
    let card: Card = "virtual:4ch,14bit,10MS/s,frames=100000,data=counter".parse()?;
    let input = Input { source: card.open(None)?, targets: vec![base.clone()], channels: Vec::new() };
    record(vec![input], &session::RecordConfig::default(), &AtomicBool::new(false), &mut |_| ())?;

    let track = Track::of(&Recording::open(&[base])?);
    let (checker, checked) = Checker::new(Pattern::Counter, track.layout);
    let sink = Box::new(Unclocked::new(checker));
    let stop = Arc::new(AtomicBool::new(false));
    let played = play(&track, sink, best(8, Ways::ALL), &PlayConfig::default(), &stop, &mut |_| ())?;
    let checked = checked.lock().unwrap_or_else(PoisonError::into_inner).clone();
    println!("{}: {} frames are right, {:?} is wrong", played.verdict.name(), checked.right, checked.wrong);
    Ok(())
}
