//! Pulses drawn over each other, as `pulse --out` and `scope --out` write them.

use std::path::Path;

use hairspring_sheet::{Overlaid, Overlay, render};
use hairspring_time::{GAP_LEAST, Nanos};

use crate::exit::Failure;

/// The ending of a drawing's file name.
pub(crate) const DRAWING: &str = "svg";

/// Whether the name has this ending, in any case.
pub(crate) fn ends_with(file: &Path, ending: &str) -> bool {
    file.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending))
}

/// Renders the drawings.
pub(crate) fn drawn(overlays: &[Overlay]) -> Result<String, Failure> {
    render::overlays(overlays).map_err(Failure::failed_to)
}

/// Draws pulses that this program made; disturbed ones are a separate kind.
pub(crate) fn made(title: String, asked: Nanos, pulses: impl Iterator<Item = (Nanos, Nanos, bool)>) -> Overlay {
    let pulses = pulses.map(|(least, most, disturbed)| overlaid(least, most, usize::from(disturbed)));
    Overlay {
        title,
        kinds: vec!["undisturbed".to_owned(), "disturbed while high".to_owned()],
        pulses: pulses.collect(),
        markers_ns: Some(asked.count() as f64).into_iter().filter(|width| *width > 0.0).collect(),
    }
}

/// Draws pulses that were watched, each with its least and greatest width. A watcher does not know what disturbed a
/// pulse. So there are two separate kinds: pulses longer than the median by more than the shortest gap, and pulses
/// shorter than the first marker.
pub(crate) fn seen(title: String, widths: &[(Nanos, Nanos)], markers: &[Nanos]) -> Overlay {
    let mut sorted: Vec<Nanos> = widths.iter().map(|(least, _)| *least).collect();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(Nanos::ZERO);
    let mut kinds = vec!["as usual".to_owned(), format!("longer than the median by more than {GAP_LEAST}")];
    kinds.extend(markers.first().map(|marker| format!("shorter than {marker}")));
    let kind = |least: Nanos, most: Nanos| match markers.first() {
        Some(marker) if most < *marker => 2,
        _ => usize::from(least > median + GAP_LEAST),
    };
    // Two readings can be closer together than the clock's resolution.
    let pulses = widths.iter().map(|(least, most)| overlaid((*least).max(Nanos::ZERO), *most, kind(*least, *most)));
    Overlay {
        title,
        kinds,
        pulses: pulses.collect(),
        markers_ns: markers.iter().map(|marker| marker.count() as f64).collect(),
    }
}

fn overlaid(least: Nanos, most: Nanos, kind: usize) -> Overlaid {
    Overlaid { at_least_ns: least.count() as f64, at_most_ns: most.max(least).count() as f64, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pulses_that_were_seen_are_told_apart_by_their_widths() {
        let micros = |least, most| (Nanos::from_micros(least), Nanos::from_micros(most));
        let widths = [micros(10, 11), micros(10, 12), micros(11, 12), micros(13, 14), micros(10, 40), micros(1, 9)];
        let kinds =
            |markers: &[Nanos]| seen(String::new(), &widths, markers).pulses.iter().map(|p| p.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&[]), [0, 0, 0, 1, 0, 0]);
        assert_eq!(kinds(&[Nanos::from_micros(10), Nanos::from_micros(99)]), [0, 0, 0, 1, 0, 2]);
        let drawing = drawn(&[seen("line 1".to_owned(), &widths, &[Nanos::from_micros(10)])]).expect("a drawing");
        for said in ["4 as usual", "1 longer than the median by more than 1 µs", "1 shorter than 10 µs"] {
            assert!(drawing.contains(said), "no {said:?}");
        }
    }
}
