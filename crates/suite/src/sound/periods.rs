//! End of a period: lateness of the program, regularity of the interrupts, and the smallest size that loses nothing.

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::Frames;
use hairspring_sheet::Absent;

use super::card::{Stream, failed, recording};
use crate::probe::{Reading, Samples, Taken};

const NONE: &str = "no period of the card ended in the time there was";
const LONGER: &str = "take a longer sheet: --thorough";

/// Opens the card with two periods of exactly this size, and starts it.
fn two_periods(period: u32) -> Result<Stream, Absent> {
    let mut stream = Stream::open(&recording()?, period, 2 * period)?;
    let (granted, buffer) = (stream.pcm.setup().period.0, stream.pcm.setup().buffer.0);
    if (granted, buffer) != (u64::from(period), 2 * u64::from(period)) {
        return Err(Absent::final_(format!(
            "the card has no periods of {period} frames in a buffer of two: the nearest are {granted} in {buffer}"
        )));
    }
    stream.pcm.start().map_err(failed)?;
    Ok(stream)
}

/// Time from a period's end until this thread runs. The end is known from the card's position when this thread looks.
pub(super) fn late(period: u32, span: Nanos) -> Taken {
    let mut stream = two_periods(period)?;
    let mut samples = Samples::new();
    let (begun, mut overruns, mut total) = (stream.pcm.now(), 0_u64, 0_u64);
    while stream.pcm.now() - begun < span && !samples.is_full() {
        stream.wait();
        let woken = stream.pcm.now();
        let (status, passed, overwritten) = stream.pass()?;
        overruns += u64::from(overwritten);
        total += passed;
        if !status.is_stamped && stream.pcm.setup().moves_by_periods {
            return Err(Absent::final_("the card's pointer moves by periods, and its driver does not stamp them"));
        }
        if passed > 0 {
            let beyond = stream.pcm.setup().rate.time_of(Frames(total % u64::from(period)));
            samples.push_nanos((woken - (status.changed - beyond)).max(Nanos::ZERO));
        }
    }
    stream.pcm.halt();
    let taken = samples.taken(&Absent::new(NONE, LONGER))?;
    Ok(match overruns {
        0 => taken,
        _ => taken.with_caveat(format!("frames were overwritten {overruns} times")),
    })
}

/// The distance of interrupts, less that of the frames between them.
pub(super) fn jitter(period: u32, span: Nanos) -> Taken {
    let mut stream = two_periods(period)?;
    let mut samples = Samples::new();
    let (begun, mut last) = (stream.pcm.now(), None::<Instant>);
    while stream.pcm.now() - begun < span && !samples.is_full() {
        stream.wait();
        let (status, passed, _) = stream.pass()?;
        if let Some(last) = last.filter(|_| passed > 0) {
            let nominal = stream.pcm.setup().rate.time_of(Frames(passed));
            samples.push_nanos((status.changed - last - nominal).abs());
        }
        last = Some(status.changed);
    }
    stream.pcm.halt();
    samples.taken(&Absent::new(NONE, LONGER))
}

/// The smallest period of which two overwrote nothing in this span.
pub(super) fn smallest(periods: &[u32], span: Nanos) -> Taken {
    let mut refused = None;
    for period in periods {
        let mut stream = match two_periods(*period) {
            Ok(stream) => stream,
            Err(absent) => {
                refused = Some(absent);
                continue;
            }
        };
        let (begun, mut held) = (stream.pcm.now(), true);
        while held && stream.pcm.now() - begun < span {
            stream.wait();
            held = !stream.pass()?.2;
        }
        stream.pcm.halt();
        if held {
            return Ok(Reading::single(f64::from(*period)));
        }
        refused = None;
    }
    let most = periods.last().copied().unwrap_or_default();
    let overrun = Absent::new(format!("frames were overwritten even in two periods of {most}"), "give it a quiet CPU");
    Err(refused.unwrap_or(overrun))
}
