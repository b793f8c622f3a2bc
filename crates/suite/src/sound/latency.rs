//! From playing to recording, through the kernel's loop-back card.

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::{Layout, SampleRate};
use hairspring_sheet::Absent;
use hairspring_source::sound::SoundCard;

use super::RATE_HZ;
use super::card::{Stream, failed, has_loopback};
use crate::probe::{Samples, Taken};

/// A frame that takes longer never comes.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// Periods that are given to the card before they are due.
const AHEAD: u64 = 2;
/// Amplitude of the pulse that is searched for in the silence.
const PULSE: i16 = 20_000;

/// From the call that writes a frame until it is read, with two periods of silence before it.
pub(super) fn latency(period: u32, span: Nanos) -> Taken {
    has_loopback()?;
    let none = || Absent::final_("mono samples of 16 bits do not exist");
    let (layout, rate) = (Layout::analogue(1, 16).map_err(|_| none())?, SampleRate::hz(RATE_HZ.into()));
    let refused =
        |error: &dyn std::fmt::Display| Absent::new(format!("open the loop-back card: {error}"), "end what uses it");
    let place = format!("alsa:hw:Loopback,1,0,period={period},buffer={}", 8 * period);
    let card = SoundCard::for_output(&place, layout, rate.ok_or_else(none)?).map_err(|error| refused(&error))?;
    let mut plays = Stream::of(card.open_output().map_err(|error| refused(&error))?.0)?;
    let mut records = Stream::open_mono("hw:Loopback,0,0", period, 64 * period)?;
    let mut bytes = vec![0; 128 * period as usize];
    records.pcm.start().map_err(failed)?;
    let (begun, mut started, mut sent) = (records.pcm.now(), false, None::<Instant>);
    let mut samples = Samples::new();
    while records.pcm.now() - begun < span && !samples.is_full() {
        let status = plays.pcm.status().map_err(failed)?;
        let (ahead, boundary) = (plays.count.distance(status.pointer, status.program), plays.pcm.setup().boundary.0);
        if ahead > boundary / 2 {
            // It ran dry; the next frames written must be due later.
            plays.pcm.forward(boundary - ahead).map_err(failed)?;
        }
        let ahead = if ahead > boundary / 2 { 0 } else { ahead };
        let wanted = (AHEAD * u64::from(period)).saturating_sub(ahead) as usize;
        if wanted > 0 {
            let mut silence = vec![0; 2 * wanted];
            if started && sent.is_none() {
                silence[..2].copy_from_slice(&PULSE.to_le_bytes());
                sent = Some(plays.pcm.now());
            }
            plays.pcm.write(&silence).map_err(failed)?;
            if !started {
                plays.pcm.start().map_err(failed)?;
                started = true;
            }
        }
        records.wait();
        let read = match records.pcm.read(&mut bytes) {
            Ok(read) => read as usize,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(failed(error)),
        };
        let now = records.pcm.now();
        if let Some(at) = sent {
            if bytes[..2 * read].iter().any(|byte| *byte != 0) {
                samples.push_nanos(now - at);
                sent = None;
            } else if now - at > PATIENCE {
                return Err(Absent::final_("a frame that was played was never recorded"));
            }
        }
    }
    plays.pcm.halt();
    records.pcm.halt();
    samples.taken(&Absent::new("no frame came in the time there was", "take a longer sheet: --thorough"))
}
