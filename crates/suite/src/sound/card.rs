//! The measured sound card, and its streams.

use std::fs;
use std::io;

use hairspring_machine::Nanos;
use hairspring_ring::notifier::Notifier;
use hairspring_sheet::Absent;
use hairspring_source::sound::{Pcm, PcmStatus, PointerCount, SoundCard};

use super::RATE_HZ;

const NO_CARD: &str =
    "plug in a sound card and load its driver, or load the kernel's loop-back card: modprobe snd-aloop";
const NO_LOOPBACK: &str = "modprobe snd-aloop";

/// The name of the kernel's loop-back card.
const LOOPBACK: &str = "Loopback";

/// The stream that is recorded: `hw:0,0`.
pub(super) fn recording() -> Result<String, Absent> {
    let devices = fs::read_to_string("/proc/asound/pcm").unwrap_or_default();
    let cards = fs::read_to_string("/proc/asound/cards").unwrap_or_default();
    first_recording(&devices, &cards)
        .ok_or_else(|| Absent::new("this computer has no sound card that records", NO_CARD))
}

/// Whether there is a loop-back card.
pub(super) fn has_loopback() -> Result<(), Absent> {
    match fs::exists(format!("/proc/asound/{LOOPBACK}")) {
        Ok(true) => Ok(()),
        _ => Err(Absent::new("the kernel's loop-back card is not loaded", NO_LOOPBACK)),
    }
}

/// The first device with inputs: lines such as `00-00: ALC887 Analog : ALC887 Analog : playback 1 : capture 1`. The
/// loop-back card comes last.
fn first_recording(devices: &str, cards: &str) -> Option<String> {
    let has_inputs = devices.lines().filter(|line| line.contains("capture"));
    let places = has_inputs.filter_map(|line| {
        let (card, device) = line.split_once(':')?.0.split_once('-')?;
        Some((card.trim().parse::<u32>().ok()?, device.trim().parse::<u32>().ok()?))
    });
    let is_loopback = |card: u32| {
        let head = format!("{card} [{LOOPBACK}");
        cards.lines().any(|line| line.trim_start().starts_with(&head))
    };
    let (card, device) = places.min_by_key(|(card, device)| (is_loopback(*card), *card, *device))?;
    Some(format!("hw:{card},{device}"))
}

/// An open stream, and the state of its pointer.
pub(super) struct Stream {
    pub(super) pcm: Pcm,
    notifier: Notifier,
    pub(super) count: PointerCount,
}

fn refused(what: &str, error: &dyn std::fmt::Display) -> Absent {
    Absent::new(
        format!("{what}: {error}"),
        "see `hairspring record --card alsa:hw:0,0,2ch,16bit,48kS/s --for 1s --to x`",
    )
}

/// A system's refusal while a stream is used.
pub(super) fn failed(error: io::Error) -> Absent {
    refused("use the sound card", &error)
}

impl Stream {
    /// Opens a stream that records, in the first form that the card has.
    pub(super) fn open(place: &str, period: u32, buffer: u32) -> Result<Self, Absent> {
        Self::open_as(&["2ch,16bit", "2ch,32bit", "1ch,16bit", "1ch,32bit"], place, period, buffer)
    }

    /// Opens a stream that records one channel of 16 bits.
    pub(super) fn open_mono(place: &str, period: u32, buffer: u32) -> Result<Self, Absent> {
        Self::open_as(&["1ch,16bit"], place, period, buffer)
    }

    fn open_as(forms: &[&str], place: &str, period: u32, buffer: u32) -> Result<Self, Absent> {
        let mut said = String::new();
        for form in forms {
            let text = format!("alsa:{place},{form},{RATE_HZ}S/s,period={period},buffer={buffer}");
            let card: SoundCard = text.parse().map_err(|error| refused("name the sound card", &error))?;
            match card.open_input() {
                Ok((pcm, _)) => return Self::of(pcm),
                Err(error) => said = error.to_string(),
            }
        }
        Err(refused("open the sound card", &said))
    }

    pub(super) fn of(mut pcm: Pcm) -> Result<Self, Absent> {
        let setup = *pcm.setup();
        let step = if setup.moves_by_periods { setup.period.0 } else { 1 };
        let now = pcm.now();
        let count = PointerCount::new(setup.boundary.0, setup.buffer.0, step, setup.rate.as_hz(), 0, now);
        let notifier = Notifier::new().map_err(failed)?;
        Ok(Self { pcm, notifier, count })
    }

    /// Waits until a period has passed, a second at most.
    pub(super) fn wait(&self) {
        self.notifier.wait(self.pcm.descriptor(), Nanos::from_secs(1));
    }

    /// Takes and drops the available frames. Returns the status, the frames that passed since the last look, and
    /// whether any were overwritten.
    pub(super) fn pass(&mut self) -> Result<(PcmStatus, u64, bool), Absent> {
        let status = self.pcm.status().map_err(failed)?;
        let passed = self.count.advance(status.pointer, status.changed).least;
        let waiting = self.count.distance(status.program, status.pointer);
        let overwritten = waiting > self.pcm.setup().buffer.0 || passed > self.pcm.setup().buffer.0;
        if waiting > 0 {
            self.pcm.forward(waiting).map_err(failed)?;
        }
        Ok((status, passed, overwritten))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_card_is_measured_before_the_loop_back_card() {
        let cards = " 0 [Loopback       ]: Loopback - Loopback\n                      Loopback 1\n 1 [PCH            ]: HDA-Intel - HDA Intel PCH\n";
        let loopback = "00-00: Loopback PCM : Loopback PCM : playback 8 : capture 8\n00-01: Loopback PCM : Loopback PCM : playback 8 : capture 8\n";
        let real =
            "01-03: HDMI 0 : HDMI 0 : playback 1\n01-00: ALC887 Analog : ALC887 Analog : playback 1 : capture 1\n";
        assert_eq!(first_recording(&format!("{loopback}{real}"), cards).as_deref(), Some("hw:1,0"));
        assert_eq!(first_recording(loopback, cards).as_deref(), Some("hw:0,0"));
        assert_eq!(first_recording("01-03: HDMI 0 : HDMI 0 : playback 1\n", cards), None);
        assert_eq!(first_recording("", ""), None);
    }
}
