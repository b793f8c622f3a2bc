//! The level of every channel during a recording.

use hairspring_record::session::RecordProgress;
use hairspring_ring::monitor::{Look, Monitor};
use hairspring_ring::{Container, Frames, Layout};

/// Frames per look: enough for a level, little to copy.
const WINDOW: Frames = Frames(4096);
/// Most channels that fit into a line.
const CHANNELS: usize = 8;

/// The monitors of all cards.
#[derive(Default)]
pub(crate) struct Levels {
    monitors: Vec<Option<Monitor>>,
}

impl Levels {
    /// The present levels, in dB below full scale; for digital lines the share of time at 1.
    pub(crate) fn look(&mut self, cards: &[RecordProgress]) -> String {
        if self.monitors.is_empty() {
            let monitor =
                |card: &RecordProgress| Some(Monitor::new(card.tap.clone()?, card.description.layout, WINDOW, 1));
            self.monitors = cards.iter().map(monitor).collect();
        }
        let shown = self.monitors.iter_mut().zip(cards).map(|(monitor, card)| {
            let layout = card.description.layout;
            match monitor.as_mut().map(Monitor::look) {
                Some(Look::Fresh(picture) | Look::Same(picture)) => {
                    let levels = picture.channels.iter().take(CHANNELS);
                    let levels: Vec<_> = levels.map(|channel| level(layout, channel.mean, channel.rms)).collect();
                    let more = if picture.channels.len() > CHANNELS { " ..." } else { "" };
                    let unit = if layout.container() == Container::Bits { "" } else { " dB" };
                    format!("{}{more}{unit}", levels.join(" "))
                }
                _ => "-".to_owned(),
            }
        });
        let shown: Vec<_> = shown.collect();
        format!("levels {}", shown.join(" | "))
    }
}

/// The level of one channel in words.
fn level(layout: Layout, mean: f64, rms: f64) -> String {
    if layout.container() == Container::Bits {
        return format!("{mean:.2}");
    }
    // Minus zero is a zero.
    decibels(layout, mean, rms).map_or_else(|| "-∞".to_owned(), |level| format!("{}", level.round() + 0.0))
}

/// The level of an analogue channel in dB below full scale; `None` for silence and for digital lines.
pub(crate) fn decibels(layout: Layout, mean: f64, rms: f64) -> Option<f64> {
    let half = 2_f64.powi(i32::try_from(layout.resolution_bits()).unwrap_or(32) - 1);
    let part = match layout.container() {
        Container::Bits => return None,
        Container::F32 => rms,
        // Unsigned samples have their zero in the middle; the mean square about it follows from mean and mean square.
        Container::U8 | Container::U16 => (rms * rms - 2.0 * half * mean + half * half).max(0.0).sqrt() / half,
        _ => rms / half,
    };
    (part > 0.0).then(|| 20.0 * part.log10())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_scale_is_zero_decibels_however_samples_are_stored() {
        let signed = Layout::analogue(1, 14).expect("exists");
        assert_eq!(level(signed, 0.0, 8192.0), "0");
        assert_eq!(level(signed, 0.0, 819.2), "-20");
        assert_eq!(level(signed, 0.0, 0.0), "-∞");
        let unsigned = Layout::stored_as(1, 8, Container::U8).expect("exists");
        assert_eq!(level(unsigned, 128.0, 128.0), "-∞");
        // Half of the time 0 and half of the time 256: the largest swing.
        assert_eq!(level(unsigned, 128.0, 256.0 / 2_f64.sqrt()), "0");
        assert_eq!(level(Layout::digital(3).expect("exists"), 0.25, 0.5), "0.25");
    }
}
