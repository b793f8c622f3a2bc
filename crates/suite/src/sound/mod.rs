//! Chapter *Sound*: the clock of a sound card, how soon a program runs after its interrupt, the smallest buffer that
//! loses nothing, and the way from playing to recording through the kernel's loop-back card.
//!
//! A card is only recorded, never played to, except the loop-back card, which has no loudspeaker.

mod card;
mod latency;
mod periods;
mod rate;

use hairspring_machine::Machine;
use hairspring_sheet::{Method, Unit};

use crate::probe::{Class, Probes, Row, Setting};

/// Frames of the periods that are tried, least first.
const PERIODS: [u32; 6] = [32, 64, 128, 256, 512, 1024];
/// The periods whose lateness is a row: those that programs for music use.
const WATCHED: [u32; 3] = [64, 128, 256];
/// The rate of all streams.
const RATE_HZ: u32 = 48_000;

/// The probes of the chapter.
pub(crate) fn probes<M: Machine + Clone + Sync + 'static>() -> Probes<M> {
    let mut probes = Probes::new(
        "sound",
        "Sound",
        "A sound card is a converter with a clock of its own. Its first device that records is measured at 48 kHz: a real card before \
         the kernel's loop-back card, whose clock is this computer's timer.",
    );
    probes.needs_host("a simulated machine has no sound card");
    let table = probes.table(
        "sound.card",
        "The card's clock",
        "a fifth of the chapter's time; the rate cannot be known better than the card shows its position",
    );
    let measures = "how far the card's rate is from the nominal one, against CLOCK_MONOTONIC; the interval is hard";
    let row = Row::new("rate_error", "true rate, off the nominal", Unit::Ppm, Method::Rate, measures);
    probes.one_on_host(Setting::BestClass, table, row, |context, _| {
        context.say("the rate of a sound card");
        rate::rate_error(context.share(0.2))
    });
    let table = probes.table(
        "sound.period",
        "At the end of a period of the card",
        "a tenth of the chapter's time for each period; the range of the card",
    );
    for period in WATCHED {
        let measures = "from the end of a period, by the card's position, until the program runs that waits for it, in a buffer of two periods";
        let row = Row::new(
            format!("48khz_{period}.late"),
            format!("{period} frames: end → program"),
            Unit::Ns,
            Method::Stamp,
            measures,
        );
        probes.one_on_host(Setting::Class(Class::Fifo), table, row, move |context, _| {
            context.say("the interrupts of a sound card");
            periods::late(period, context.share(0.1))
        });
    }
    let measures =
        "how far the time from one interrupt to the next is from the frames that passed, periods of 256 frames";
    let row = Row::new("48khz_256.jitter", "256 frames: end → end", Unit::Ns, Method::Stamp, measures);
    probes.one_on_host(Setting::Class(Class::Fifo), table, row, |context, _| {
        context.say("the interrupts of a sound card");
        periods::jitter(256, context.share(0.1))
    });
    let measures = "the smallest of 32, 64, … 1,024 frames of which a buffer of two periods overwrote nothing";
    let row = Row::new(
        "48khz.smallest",
        "smallest period without an overrun, in frames",
        Unit::Count,
        Method::Count,
        measures,
    );
    probes.one_on_host(Setting::Class(Class::Fifo), table, row, |context, _| {
        context.say("the smallest buffer of a sound card");
        periods::smallest(&PERIODS, context.share(0.05))
    });
    let table = probes.table(
        "sound.loopback",
        "From playing to recording, by the kernel's loop-back card",
        "a tenth of the chapter's time; the card moves by ticks of the kernel",
    );
    let measures = "from the call that hands over a frame until the program that records has it, periods of 256 frames";
    let row = Row::new("latency", "write → read", Unit::Ns, Method::Stamp, measures);
    probes.one_on_host(Setting::BestClass, table, row, |context, _| {
        context.say("the way through the loop-back card");
        latency::latency(256, context.share(0.1))
    });
    probes
}
