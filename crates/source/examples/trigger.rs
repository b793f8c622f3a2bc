//! Triggered acquisition: a gate keeps only the frames around two rising edges of a stream.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_ring::layout::Layout;
use hairspring_ring::units::Frames;
use hairspring_source::trigger::{Gate, Shots, Trigger};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let layout = Layout::analogue(1, 16)?;
    let trigger: Trigger = "rising:ch0@0.5".parse()?;
    let (before, from) = (Frames(3), Frames(5));
    let mut gate = Gate::new(trigger, layout, before, from, Shots::Repeated(Some(2)))?;
    // A square wave that rises every 40 frames.
    let samples = (0..100).map(|frame| if frame % 40 < 20 { i16::MIN } else { i16::MAX });
    let stream: Vec<u8> = samples.flat_map(i16::to_le_bytes).collect();
    let (mut first, mut rest) = (Frames(0), &stream[..]);
    while !rest.is_empty() {
        let decision = gate.feed(first, rest, false);
        let end = Frames(first.0 + decision.frames.0);
        match decision.keep {
            Some(shot) => println!("frames {} to {}: shot {shot}", first.0, end.0 - 1),
            None => println!("frames {} to {}: left out", first.0, end.0 - 1),
        }
        rest = &rest[layout.bytes_of(decision.frames).0 as usize..];
        first = end;
    }
    println!("{} shots", gate.shots());
    Ok(())
}
