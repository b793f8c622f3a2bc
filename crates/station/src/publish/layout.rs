//! The words of a page: the position of each value of a [`StationState`]. Only this file knows the layout.
//!
//! | word | station's block |
//! | ---: | --- |
//! | 0 | words in use: 64 for the station, and 64 for each unit |
//! | 1 | phase: 0 starting, 1 running, 2 stopping, 3 ended, 4 fault |
//! | 2 | start of the station, `CLOCK_REALTIME` in ns |
//! | 3 | time of this state, `CLOCK_MONOTONIC` in ns |
//! | 4 | number of this state, from 1 |
//! | 5, 6 | `CLOCK_REALTIME` minus `CLOCK_MONOTONIC` in ns, and its uncertainty |
//! | 7 | process id |
//! | 8 | number of units |
//! | 16–23 | name, UTF-8, padded with zeros |
//! | 24–27 | version |
//! | 28–59 | message |
//!
//! | word | a unit's block |
//! | ---: | --- |
//! | 0–7 | name |
//! | 8–14 | events, activations, missed, late, overrun, without stamps, skipped |
//! | 15 | 1 if any property can be set |
//! | 16–19 | latest event: its number, cycle, stamp by `CLOCK_MONOTONIC` and by `CLOCK_REALTIME` in ns |
//! | 20 | origin of that stamp: 0 due, 1 sender, 2 kernel, 3 wake |
//! | 21–23 | latency in ns: median, 99 %, longest |
//! | 24–27 | properties in force: enable, latest start after an event, width in ns, value |
//! | 28–31 | their set-points |
//! | 32, 33 | values that wait for their events, and that have expired |
//! | 34–59 | histogram of the latencies: below 100 ns, from 100, 200, 500 ns, …, from 10 s on |
//!
//! All other words are 0. An unknown value is the word of all ones.

use hairspring_machine::{Instant, Nanos};

use super::histogram::LatencyHistogram;
use super::state::{ClockReading, LatestEvent, Phase, StationState, UnitLatency, UnitProperties, UnitState};
use crate::event::Stamped;
use crate::property::PropertyValues;
use crate::unit::Counts;

/// Words of a block.
pub(super) const BLOCK_WORDS: usize = 64;
/// Units that a page has room for; a station file admits no more.
pub(super) const UNITS_MOST: usize = 64;
/// Encoding of an unknown value.
const UNKNOWN: u64 = u64::MAX;
const STAMPED: [Stamped; 4] = [Stamped::Due, Stamped::Sender, Stamped::Kernel, Stamped::Wake];

/// Number and time that the publisher adds to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Issue {
    pub(super) number: u64,
    pub(super) at: Instant,
    pub(super) process: u64,
}

/// Writes a text into words, truncated at a character if it is too long.
fn put_text(text: &str, words: &mut [u64]) {
    let room = size_of_val(words);
    let end = (0..=text.len().min(room)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let mut bytes = text.as_bytes()[..end].to_vec();
    bytes.resize(room, 0);
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
}

fn text(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn put_known(value: Option<Nanos>) -> u64 {
    value.map_or(UNKNOWN, |value| value.count().cast_unsigned())
}

fn known(word: u64) -> Option<u64> {
    (word != UNKNOWN).then_some(word)
}

fn nanos(word: u64) -> Nanos {
    Nanos::new(word.cast_signed())
}

/// The words of a state. Units beyond the page's room are left out; a station file admits no more.
pub(super) fn encode(state: &StationState, issue: Issue, words: &mut Vec<u64>) {
    let units = &state.units[..state.units.len().min(UNITS_MOST)];
    words.clear();
    words.resize(BLOCK_WORDS * (1 + units.len()), 0);
    let (station, blocks) = words.split_at_mut(BLOCK_WORDS);
    station[0] = (BLOCK_WORDS * (1 + units.len())) as u64;
    station[1] = state.phase as u64;
    station[2] = state.started_realtime_ns.cast_unsigned();
    station[3] = issue.at.as_monotonic().count().cast_unsigned();
    station[4] = issue.number;
    station[5] = state.clock.realtime_offset.count().cast_unsigned();
    station[6] = state.clock.within.count().cast_unsigned();
    station[7] = issue.process;
    station[8] = units.len() as u64;
    put_text(&state.name, &mut station[16..24]);
    put_text(&state.version, &mut station[24..28]);
    put_text(&state.message, &mut station[28..60]);
    for (unit, block) in units.iter().zip(blocks.as_chunks_mut::<BLOCK_WORDS>().0) {
        encode_unit(unit, block);
    }
}

fn encode_unit(unit: &UnitState, block: &mut [u64; BLOCK_WORDS]) {
    put_text(&unit.name, &mut block[..8]);
    let Counts { events, activations, missed, delayed, overrun, unrecorded, skipped } = unit.counts;
    block[8..15].copy_from_slice(&[events, activations, missed, delayed, overrun, unrecorded, skipped]);
    if let Some(UnitProperties { set_points, read_back, waiting, expired }) = unit.properties {
        block[15] = 1;
        block[24..28].copy_from_slice(&read_back.0.map(i64::cast_unsigned));
        block[28..32].copy_from_slice(&set_points.0.map(i64::cast_unsigned));
        block[32..34].copy_from_slice(&[waiting, expired]);
    }
    let latest = unit.latest.map_or([UNKNOWN; 5], |event| {
        let stamped = STAMPED.iter().position(|stamped| *stamped == event.stamped).unwrap_or_default();
        let at = event.at.as_monotonic().count().cast_unsigned();
        [event.sequence, event.cycle.unwrap_or(UNKNOWN), at, event.realtime_ns.cast_unsigned(), stamped as u64]
    });
    block[16..21].copy_from_slice(&latest);
    let UnitLatency { median, p99, max } = unit.latency;
    block[21..24].copy_from_slice(&[median, p99, max].map(put_known));
    block[34..60].copy_from_slice(&unit.histogram.0);
}

/// A state and its issue; `None` if the words are invalid, as on a page that was never written.
pub(super) fn decode(words: &[u64]) -> Option<(StationState, Issue)> {
    let (station, blocks) = words.split_at_checked(BLOCK_WORDS)?;
    let count = usize::try_from(station[8]).ok().filter(|count| *count <= UNITS_MOST)?;
    if station[0] != (BLOCK_WORDS * (1 + count)) as u64 || station[4] == 0 {
        return None;
    }
    let units = blocks.as_chunks::<BLOCK_WORDS>().0.get(..count)?;
    let state = StationState {
        name: text(&station[16..24]),
        version: text(&station[24..28]),
        message: text(&station[28..60]),
        started_realtime_ns: station[2].cast_signed(),
        phase: *Phase::ALL.get(usize::try_from(station[1]).ok()?)?,
        clock: ClockReading { realtime_offset: nanos(station[5]), within: nanos(station[6]) },
        units: units.iter().map(decode_unit).collect::<Option<_>>()?,
    };
    let at = Instant::from_monotonic(nanos(station[3]));
    Some((state, Issue { number: station[4], at, process: station[7] }))
}

/// The state in the words of a page, and the words that the state is published as. For fuzzing.
#[doc(hidden)]
pub fn published_again(words: &[u64]) -> Option<(StationState, Vec<u64>)> {
    let (state, issue) = decode(words)?;
    let mut again = Vec::new();
    encode(&state, issue, &mut again);
    Some((state, again))
}

fn decode_unit(block: &[u64; BLOCK_WORDS]) -> Option<UnitState> {
    let [events, activations, missed, delayed, overrun, unrecorded, skipped] = *block[8..].first_chunk()?;
    let values = |at: usize| Some(PropertyValues(block[at..].first_chunk::<4>()?.map(u64::cast_signed)));
    let properties = match block[15] {
        0 => None,
        _ => {
            let (waiting, expired) = (block[32], block[33]);
            Some(UnitProperties { set_points: values(28)?, read_back: values(24)?, waiting, expired })
        }
    };
    let latest = match known(block[16]) {
        None => None,
        Some(sequence) => Some(LatestEvent {
            sequence,
            cycle: known(block[17]),
            at: Instant::from_monotonic(nanos(block[18])),
            realtime_ns: block[19].cast_signed(),
            stamped: *STAMPED.get(usize::try_from(block[20]).ok()?)?,
        }),
    };
    let span = |at: usize| known(block[at]).map(nanos);
    Some(UnitState {
        name: text(&block[..8]),
        counts: Counts { events, activations, missed, delayed, overrun, unrecorded, skipped },
        latest,
        latency: UnitLatency { median: span(21), p99: span(22), max: span(23) },
        histogram: LatencyHistogram(*block[34..].first_chunk()?),
        properties,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn state() -> StationState {
        let counts = Counts { events: 9, activations: 6, missed: 3, delayed: 2, overrun: 1, unrecorded: 4, skipped: 2 };
        let at = Instant::from_monotonic(Nanos::new(77));
        let latest = LatestEvent {
            sequence: 9,
            cycle: Some(17),
            at,
            realtime_ns: 1_700_000_000_123_456_789,
            stamped: Stamped::Kernel,
        };
        let latency = UnitLatency { median: Some(Nanos::new(5)), p99: None, max: Some(Nanos::new(8)) };
        let mut histogram = LatencyHistogram::default();
        histogram.add(Nanos::new(150));
        let (set_points, read_back) = (PropertyValues([1, -1, 20, 3]), PropertyValues([0, -1, 10, 3]));
        let properties = Some(UnitProperties { set_points, read_back, waiting: 1, expired: 2 });
        StationState {
            name: "shutter".to_owned(),
            version: "1".to_owned(),
            message: "ready".to_owned(),
            started_realtime_ns: 1_700_000_000_000_000_001,
            phase: Phase::Running,
            clock: ClockReading { realtime_offset: Nanos::new(-3), within: Nanos::new(40) },
            units: vec![
                UnitState { name: "a".to_owned(), counts, latest: Some(latest), latency, histogram, properties },
                UnitState { name: "b".to_owned(), ..UnitState::default() },
            ],
        }
    }

    const ISSUE: Issue = Issue { number: 3, at: Instant::from_monotonic(Nanos::new(99)), process: 4711 };

    #[test]
    fn a_state_comes_back_as_it_was() {
        let mut words = Vec::new();
        encode(&state(), ISSUE, &mut words);
        assert_eq!(words.len(), 3 * BLOCK_WORDS);
        // After its end there may be words of an older, longer text.
        words.extend([7; 100]);
        assert_eq!(decode(&words), Some((state(), ISSUE)));
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_at_a_character() {
        let mut words = [0; 2];
        put_text("0123456789abcdé", &mut words);
        assert_eq!(text(&words), "0123456789abcdé");
        put_text("0123456789abcdeé", &mut words);
        assert_eq!(text(&words), "0123456789abcde");
    }

    #[test]
    fn a_page_that_nobody_has_written_to_is_no_state() {
        assert_eq!(decode(&[0; 4 * BLOCK_WORDS]), None);
        assert_eq!(decode(&[]), None);
    }

    proptest! {
        #[test]
        fn any_words_are_a_state_or_none(words in prop::collection::vec(any::<u64>(), 0..300), units in 0..6_u64) {
            let mut words = words;
            if let Some(station) = words.first_chunk_mut::<9>() {
                (station[0], station[1], station[8]) = (64 * (1 + units), station[1] % 6, units);
            }
            if let Some((state, _)) = decode(&words) {
                prop_assert_eq!(state.units.len() as u64, units);
            }
        }
    }
}
