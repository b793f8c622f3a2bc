//! [`ClockRecord`]: a recording's facts about time: when frame 0 was taken, how fast the card's clock runs, and how the
//! computer's clocks changed meanwhile.
//!
//! ```text
//!   CLOCK_MONOTONIC      a ───────────────── b        one pair: three clocks are read between two readings
//!   CLOCK_REALTIME            r                       of the reference
//!   CLOCK_MONOTONIC_RAW           w
//!
//!   frame                0 ── mark ── mark ──────────── mark ──── …
//!                      [   ]  [ ]    [   ]              [ ]       each an interval of CLOCK_MONOTONIC
//! ```
//!
//! * A [`ClockPair`] ties the reference to the time of day. Two pairs show changes of the clocks between them
//!   ([`ClockChange`]): a step of the time of day, a suspend, a slew of the reference against the undisciplined clock.
//! * A [`Mark`] is a frame and the interval in which it was taken. Marks give the [`TimeAxis`](axis::TimeAxis).
//!
//! Pairs and marks are taken before the start, at the first data, then at intervals that double up to a minute
//! ([`watch`]), and at the end. They are in the journal as soon as they are taken, so a crash keeps them. They are
//! never corrected: readers compute from them.
//!
//! A recording can also compare `CLOCK_MONOTONIC` with a clock outside the kernel: see [`external`].
//!
//! **Meaning of a mark.** A source that knows its own clock, or has a stamp of the kernel, states when a frame was
//! taken. For all others the time of a frame is its arrival at this program: after the last look without data, and
//! before the look that found it. Delay on the way there is in no interval.

pub mod axis;
pub mod external;
pub mod hull;
pub mod watch;

use std::fmt;
use std::str::FromStr;

use hairspring_machine::{Clock, Instant, Machine, Nanos};
use hairspring_ring::units::Frames;
use hairspring_source::SenderCount;
use hairspring_source::external::ExternalFacts;

use self::external::{ExternalReading, ExternalSilence};
use crate::beginning::Beginning;
use crate::journal::{ExternalHead, Record};

/// Brackets that are taken for a pair. The narrowest is kept, because a wider one was disturbed.
const BRACKETS: usize = 32;
/// The most marks, and the most pairs, of one recording. When there are more, every second one is left out: bounds
/// become wider, never wrong. In minutes this is more than two days.
const MOST: usize = 4096;
/// Frames and moments beyond these are refused, so that the arithmetic of the hull stays in its range: 36 years at 1
/// GS/s, 73 years.
const MOST_FRAME: u64 = 1 << 60;
const MOST_NS: i64 = 1 << 61;
/// The least suspend that is reported. The two readings that show it are some nanoseconds apart.
const LEAST_SUSPEND: Nanos = Nanos::from_millis(1);
/// The least change of the reference's rate that is reported. A time daemon corrects by less all the time.
const LEAST_SLEW: f64 = 5e-6;
/// Pairs nearer to each other do not show a slew.
const LEAST_BETWEEN: Nanos = Nanos::from_millis(100);

/// Identifies one boot of one computer. `CLOCK_MONOTONIC` of two boots cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BootId(pub [u8; 16]);

impl BootId {
    /// The id of this boot; `None` if the kernel does not state it.
    pub fn read() -> Option<Self> {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().parse().ok()
    }
}

impl fmt::Display for BootId {
    /// As the kernel writes it: hexadecimal digits in five groups.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            let dash = if matches!(place, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl FromStr for BootId {
    type Err = crate::journal::NotAnId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        Ok(Self(digits.parse::<crate::journal::RecordingId>()?.0))
    }
}

/// How far the time of day can be trusted, as the kernel states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReference {
    /// Whether NTP or PTP keeps the clock synchronized.
    pub synchronized: bool,
    /// The largest error of the time of day, by the kernel's own estimate.
    pub most_error: Nanos,
    /// When the kernel was asked.
    pub asked: Instant,
}

/// Readings of the kernel's clocks that belong together: at `monotonic` ± `within`, the others had the stated
/// values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPair {
    /// The reference.
    pub monotonic: Instant,
    /// The time of day.
    pub realtime: Nanos,
    /// The reference without discipline (`CLOCK_MONOTONIC_RAW`).
    pub raw: Nanos,
    /// The time for which the computer has been suspended since boot.
    pub suspended: Nanos,
    /// Half the width of the bracket.
    pub within: Nanos,
}

impl ClockPair {
    /// Reads the clocks; takes some microseconds. Real-time safe.
    pub fn take(machine: &impl Machine) -> Self {
        let brackets = std::array::from_fn::<_, BRACKETS, _>(|_| {
            let before = machine.monotonic();
            let realtime = machine.read(Clock::Realtime);
            let raw = machine.read(Clock::MonotonicRaw);
            let width = machine.monotonic() - before;
            // Rounded up, and a step of the clock at each end.
            (width, before, realtime, raw)
        });
        let (width, before, realtime, raw) =
            brackets.into_iter().min_by_key(|bracket| bracket.0).unwrap_or(brackets[0]);
        let half = Nanos::new(width.count() / 2);
        let within = width - half + machine.clock_step();
        // Two readings, so a computer that was never suspended seems to have been for some nanoseconds, or for less
        // than none.
        let suspended = machine.suspended().max(Nanos::ZERO);
        Self { monotonic: before + half, realtime, raw, suspended, within }
    }

    /// The time of day at a moment, by this pair: the same distance from its readings.
    fn realtime_at(&self, moment: Instant) -> Option<Nanos> {
        self.realtime.checked_add(moment - self.monotonic)
    }

    /// The moment of a time of day.
    fn monotonic_at(&self, realtime: Nanos) -> Option<Instant> {
        self.monotonic.checked_add(realtime.checked_sub(self.realtime)?)
    }

    fn offset(&self) -> Nanos {
        self.realtime - self.monotonic.as_monotonic()
    }
}

/// How the interval of a mark was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum MarkSource {
    /// From the start call until its data were seen.
    Start = 1,
    /// Frame 0 came with the first data of a sender.
    FirstData = 2,
    /// The card states it by its own clock.
    Card = 3,
    /// The kernel stamped its datagram.
    Kernel = 4,
    /// Between two looks: the last one without it, and the one that found it.
    Arrival = 5,
}

impl MarkSource {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Start, Self::FirstData, Self::Card, Self::Kernel, Self::Arrival];

    /// Its stable name in files and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::FirstData => "first_data",
            Self::Card => "card",
            Self::Kernel => "kernel",
            Self::Arrival => "arrival",
        }
    }
}

/// A frame, and when it was taken: between `earliest` and `latest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its global index.
    pub frame: Frames,
    /// Not before this.
    pub earliest: Instant,
    /// Not after this.
    pub latest: Instant,
    /// How that is known.
    pub how: MarkSource,
}

impl Mark {
    fn is_possible(&self) -> bool {
        let ends = [self.earliest, self.latest].map(|end| end.as_monotonic().count());
        self.frame.0 <= MOST_FRAME
            && self.earliest <= self.latest
            && ends.iter().all(|end| (-MOST_NS..=MOST_NS).contains(end))
    }
}

/// One finding about time that goes into a recording while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockNote {
    /// The clocks were read.
    Pair(ClockPair),
    /// A frame has a time.
    Mark(Mark),
    /// The time of frame 0 is known better than when the recording began.
    Frame0(Beginning, MarkSource),
    /// The sender of the stream counts, from here on. It comes before the note on frame 0.
    Count(SenderCount),
    /// The external clock was read.
    External(ExternalReading),
    /// The external clock returns no readings.
    ExternalSilence(ExternalSilence),
}

/// A change of the computer's clocks between two pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockChange {
    /// The kind of change.
    pub kind: ClockChangeKind,
    /// It happened after this moment,
    pub after: Instant,
    /// and before this one.
    pub before: Instant,
}

/// The kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClockChangeKind {
    /// The time of day was set, forward by this amount.
    Step(Nanos),
    /// The computer was suspended for this time; the reference stood still.
    Suspend(Nanos),
    /// The reference changed its rate, in parts per billion against the undisciplined clock: from the first to the
    /// second.
    Slew(f64, f64),
}

/// A recording's facts about time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClockRecord {
    /// The boot of the computer, to which all moments belong.
    pub boot_id: Option<BootId>,
    /// How far the time of day can be trusted.
    pub reference: Option<ClockReference>,
    /// The counter of the stream's sender: a clock of its own.
    pub count: Option<SenderCount>,
    /// The external clock with which the recording compares the kernel's, if there is one.
    pub external: Option<ExternalFacts>,
    pairs: Vec<ClockPair>,
    marks: Vec<Mark>,
    readings: Vec<ExternalReading>,
    silences: Vec<ExternalSilence>,
}

impl ClockRecord {
    /// The record of a recording that begins now, with its first pair. Reads a file: not for real-time threads.
    pub fn begin(machine: &impl Machine, boot_id: Option<BootId>) -> Self {
        let asked = machine.monotonic();
        let reference = machine.discipline().ok().map(|discipline| ClockReference {
            synchronized: discipline.synchronized,
            most_error: discipline.most_error,
            asked,
        });
        let mut record = Self { boot_id, reference, ..Self::default() };
        record.pair(ClockPair::take(machine));
        record
    }

    /// The record of the segment that follows: it keeps the boot, the reference, the sender's count and the external
    /// clock, and of the pairs, marks and readings the last.
    #[must_use]
    pub fn continued(&self) -> Self {
        Self {
            external: self.external.clone(),
            pairs: last_of(&self.pairs),
            marks: last_of(&self.marks),
            readings: last_of(&self.readings),
            silences: Vec::new(),
            ..*self
        }
    }

    /// Enters a pair.
    pub fn pair(&mut self, pair: ClockPair) {
        enter(&mut self.pairs, pair);
    }

    /// Enters a mark, unless it is impossible.
    pub fn mark(&mut self, mark: Mark) {
        if mark.is_possible() {
            enter(&mut self.marks, mark);
        }
    }

    /// The pairs, in the order in which they were taken.
    pub fn pairs(&self) -> &[ClockPair] {
        &self.pairs
    }

    /// The marks, in the order in which they were taken.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The mark of frame 0: the narrowest, if there are several.
    pub fn frame0(&self) -> Option<&Mark> {
        self.marks.iter().filter(|mark| mark.frame.0 == 0).min_by_key(|mark| mark.latest - mark.earliest)
    }

    /// The journal's records of all this.
    pub fn records(&self) -> Vec<Record> {
        if self.is_empty() {
            return Vec::new();
        }
        let pairs = self.pairs.iter().copied().map(Record::Pair);
        let marks = self.marks.iter().copied().map(Record::Mark);
        let count = self.count.map(Record::Count);
        let external = self.external.iter().map(|facts| Record::ExternalClock(ExternalHead::of(facts)));
        let readings = self.readings.iter().copied().map(Record::External);
        let silences = self.silences.iter().copied().map(Record::ExternalSilence);
        let known = [self.head()].into_iter().chain(pairs).chain(marks).chain(count);
        known.chain(external).chain(readings).chain(silences).collect()
    }

    /// The journal's record of the boot and the reference.
    fn head(&self) -> Record {
        Record::Clock { boot_id: self.boot_id.map_or([0; 16], |id| id.0), reference: self.reference }
    }

    /// Whether there are no facts at all.
    pub fn is_empty(&self) -> bool {
        self.boot_id.is_none()
            && self.reference.is_none()
            && self.count.is_none()
            && self.external.is_none()
            && self.pairs.is_empty()
            && self.marks.is_empty()
            && self.readings.is_empty()
            && self.silences.is_empty()
    }

    /// The time of day at a moment, by the nearest pair, and the error of that pair.
    pub fn realtime_at(&self, moment: Instant) -> Option<(Nanos, Nanos)> {
        let distance = |pair: &&ClockPair| (moment - pair.monotonic).count().unsigned_abs();
        let pair = self.pairs.iter().min_by_key(distance)?;
        Some((pair.realtime_at(moment)?, pair.within))
    }

    /// The earliest and latest time of day at a moment: by the pairs around it, between which the clock may have been
    /// set.
    pub fn realtime_within(&self, moment: Instant) -> Option<(Nanos, Nanos)> {
        let before = self.pairs.iter().filter(|pair| pair.monotonic <= moment).max_by_key(|pair| pair.monotonic);
        let after = self.pairs.iter().filter(|pair| pair.monotonic >= moment).min_by_key(|pair| pair.monotonic);
        let around = || before.into_iter().chain(after);
        let least = around().filter_map(|pair| Some(pair.realtime_at(moment)? - pair.within)).min()?;
        let most = around().filter_map(|pair| Some(pair.realtime_at(moment)? + pair.within)).max()?;
        Some((least, most))
    }

    /// The time for which the computer had been suspended at a moment of this boot: at least, and at most if a later
    /// pair bounds it.
    pub fn suspended_at(&self, moment: Instant) -> (Nanos, Option<Nanos>) {
        let before = self.pairs.iter().filter(|pair| pair.monotonic <= moment).map(|pair| pair.suspended).max();
        let after = self.pairs.iter().filter(|pair| pair.monotonic >= moment).map(|pair| pair.suspended).min();
        (before.unwrap_or(Nanos::ZERO), after)
    }

    /// The changes of the clocks that the pairs show, in order.
    pub fn changes(&self) -> Vec<ClockChange> {
        let mut changes = Vec::new();
        for (one, next) in self.pairs.iter().zip(self.pairs.iter().skip(1)) {
            let (after, before) = (one.monotonic, next.monotonic);
            let mut add = |kind| changes.push(ClockChange { kind, after, before });
            let suspended = next.suspended - one.suspended;
            let slept = suspended >= LEAST_SUSPEND;
            if slept {
                add(ClockChangeKind::Suspend(suspended));
            }
            // A suspend moves the time of day as well, by the difference of two readings.
            let expected = if slept { suspended } else { Nanos::ZERO };
            let unsure = one.within + next.within + if slept { LEAST_SUSPEND } else { Nanos::ZERO };
            let by = next.offset() - one.offset() - expected;
            if by.count().unsigned_abs() > unsure.count().unsigned_abs() {
                add(ClockChangeKind::Step(by));
            }
        }
        let rates: Vec<_> = self.pairs.windows(2).filter_map(|two| raw_rate(&two[0], &two[1])).collect();
        for ((_, one, unsure), (at, next, unsure_next)) in rates.iter().zip(rates.iter().skip(1)) {
            if (next - one).abs() > unsure + unsure_next + LEAST_SLEW {
                let kind = ClockChangeKind::Slew(one * 1e9, next * 1e9);
                changes.push(ClockChange { kind, after: at.0, before: at.1 });
            }
        }
        changes.sort_by_key(|change| change.after);
        changes
    }
}

/// Between which moments and at which rate the reference ran against the undisciplined clock, and the error of this
/// rate.
fn raw_rate(one: &ClockPair, next: &ClockPair) -> Option<((Instant, Instant), f64, f64)> {
    let (monotonic, raw) = (next.monotonic - one.monotonic, next.raw - one.raw);
    (monotonic >= LEAST_BETWEEN && raw >= LEAST_BETWEEN).then(|| {
        let raw_ns = raw.count() as f64;
        let rate = (monotonic - raw).count() as f64 / raw_ns;
        ((one.monotonic, next.monotonic), rate, (one.within + next.within).count() as f64 / raw_ns)
    })
}

fn last_of<T: Copy>(list: &[T]) -> Vec<T> {
    list.last().copied().into_iter().collect()
}

/// Appends an element. If there are too many, every second of the others is left out, never the first and the last.
fn enter<T>(list: &mut Vec<T>, one: T) {
    if list.len() >= MOST {
        let mut number = 0;
        list.retain(|_| {
            number += 1;
            number % 2 == 1
        });
    }
    list.push(one);
}

#[cfg(test)]
mod tests {
    use hairspring_machine::Host;

    use super::*;

    fn pair(monotonic: i64, realtime: i64, raw: i64, suspended: i64) -> ClockPair {
        let [realtime, raw, suspended] = [realtime, raw, suspended].map(Nanos::new);
        let monotonic = Instant::from_monotonic(Nanos::new(monotonic));
        ClockPair { monotonic, realtime, raw, suspended, within: Nanos::new(50) }
    }

    #[track_caller]
    fn check(pairs: &[ClockPair], expected: &[ClockChangeKind]) {
        let mut record = ClockRecord::default();
        pairs.iter().for_each(|pair| record.pair(*pair));
        let kinds: Vec<_> = record.changes().iter().map(|change| change.kind).collect();
        assert_eq!(kinds, expected);
    }

    const S: i64 = 1_000_000_000;

    #[test]
    fn a_pair_is_read_within_its_bracket() {
        let before = (Host.monotonic(), Host.read(Clock::Realtime));
        let pair = ClockPair::take(&Host);
        let after = (Host.monotonic(), Host.read(Clock::Realtime));
        assert!(before.0 - pair.within <= pair.monotonic && pair.monotonic <= after.0 + pair.within, "{pair:?}");
        assert!(before.1 <= pair.realtime && pair.realtime <= after.1 && pair.within > Nanos::ZERO, "{pair:?}");
    }

    #[test]
    fn a_step_of_the_clock_beyond_the_widths_is_told_and_a_smaller_one_is_not() {
        check(&[pair(0, 100 * S, 0, 0), pair(S, 101 * S + 100, S, 0)], &[]);
        let by = Nanos::new(-101);
        check(&[pair(0, 100 * S, 0, 0), pair(S, 101 * S - 101, S, 0)], &[ClockChangeKind::Step(by)]);
    }

    #[test]
    fn a_suspend_is_no_step() {
        let (slept, stepped) =
            (ClockChangeKind::Suspend(Nanos::from_secs(9)), ClockChangeKind::Step(Nanos::from_secs(-2)));
        check(&[pair(0, 100 * S, 0, 0), pair(S, 110 * S, S, 9 * S)], &[slept]);
        check(&[pair(0, 100 * S, 0, 0), pair(S, 108 * S, S, 9 * S)], &[slept, stepped]);
    }

    #[test]
    fn a_slew_shows_against_the_undisciplined_clock() {
        let pairs = [pair(0, 0, 0, 0), pair(S, S, S, 0), pair(2 * S, 2 * S, 2 * S - 500_000, 0)];
        let mut record = ClockRecord::default();
        pairs.iter().for_each(|pair| record.pair(*pair));
        let [change] = record.changes()[..] else { panic!("{:?}", record.changes()) };
        let ClockChangeKind::Slew(before, after) = change.kind else { panic!("{change:?}") };
        assert!(before.abs() < 1.0 && (after - 500_250.0).abs() < 1.0, "{change:?}");
        // The usual corrections of a time daemon are not reported.
        check(&[pair(0, 0, 0, 0), pair(S, S, S, 0), pair(2 * S, 2 * S, 2 * S - 4000, 0)], &[]);
    }

    #[test]
    fn a_recording_of_a_year_has_bounded_marks_with_the_first_and_the_last() {
        let mut record = ClockRecord::default();
        for minute in 0..525_600 {
            let at = Instant::from_monotonic(Nanos::from_secs(minute * 60));
            record.mark(Mark { frame: Frames(minute as u64), earliest: at, latest: at, how: MarkSource::Card });
        }
        assert!(record.marks().len() <= MOST);
        assert_eq!((record.marks()[0].frame.0, record.marks().last().map(|mark| mark.frame.0)), (0, Some(525_599)));
        let impossible =
            Mark { frame: Frames(u64::MAX), earliest: Instant::BOOT, latest: Instant::END, how: MarkSource::Card };
        let before = record.marks().len();
        record.mark(impossible);
        assert_eq!(record.marks().len(), before);
    }

    #[test]
    fn a_boot_id_is_printed_as_the_kernel_writes_it() {
        let text = "3ef30b1c-9a52-4a66-8e5a-0123456789ab";
        assert_eq!(text.parse::<BootId>().map(|id| id.to_string()), Ok(text.to_owned()));
        assert_eq!(
            BootId::read().map(|id| id.to_string()),
            std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|text| text.trim().to_owned())
        );
    }
}
