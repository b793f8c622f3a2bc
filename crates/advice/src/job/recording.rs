//! [`RecordRequirement`]: a recording of hours without loss, and the answer from a plan and a watched recording.
//!
//! Two things must hold. The plan must fit with its margins: the folder's rate, its free space, memory for buffers that
//! outlast twice the longest stall, and the links. And no data may be lost. A loss counts as a miss, and one miss is
//! permitted in the whole job. So *yes* needs a watch of three times the job's length, and one loss in a short watch is
//! a *no*.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use hairspring_describe::DescriptionError;
use hairspring_machine::Nanos;
use hairspring_plan::{Fits, Plan};
use hairspring_ring::{ByteRate, Bytes};

use super::answer::AnswerKind;
use super::bounds::{count_at_least, count_at_most};
use super::requirement::{Requirement, Words, span};

/// A requirement: a job that must be on time, or a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum JobNeed {
    /// A loop, a reaction or a delay.
    OnTime(Requirement),
    /// A recording.
    Record(RecordRequirement),
}

/// `record 400MB/s for 2h to DIR`.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordRequirement {
    /// The rate of the data.
    pub rate: ByteRate,
    /// For how long.
    pub span: Nanos,
    /// The folder of the recording; none if not named yet.
    pub folder: Option<PathBuf>,
}

/// A watched recording.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordEvidence {
    /// For how long data arrived.
    pub watched: Nanos,
    /// Stored bytes.
    pub volume: Bytes,
    /// Why data were lost; none without a loss.
    pub lost: Option<String>,
    /// Greatest fill of the buffer, in thousandths.
    pub high_water_promille: u64,
    /// The longest time of a write.
    pub worst_stall: Nanos,
    /// The buffer.
    pub buffer: Bytes,
    /// The rate at which the folder takes data from a card that waits.
    pub unpaced: ByteRate,
}

/// The answer from a plan and evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordAnswer {
    /// The answer: the worst of its reasons.
    pub outcome: AnswerKind,
    /// Why, the worst first.
    pub reasons: Vec<(AnswerKind, String)>,
    /// Lower and upper limit of the losses in the whole recording, with 95 % each; none without a watch.
    pub losses: Option<[f64; 2]>,
    /// Length of a watch without a loss that would show it.
    pub watch: Nanos,
}

/// The permitted losses in the whole recording; no measurement can show that there will be none.
const PERMITTED: f64 = 1.0;

impl AnswerKind {
    /// The answer of a plan's verdict. A plan without margin, or with an assumption, shows nothing.
    pub fn of_plan(fits: Fits) -> Self {
        match fits {
            Fits::WithMargin => Self::Yes,
            Fits::Tight | Fits::Unknown => Self::NotShown,
            Fits::No => Self::No,
        }
    }

    /// Its weight among several.
    fn weight(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::NotShown => 1,
            Self::No => 2,
        }
    }
}

impl RecordAnswer {
    /// Judges by a plan and, if there is one, by a watched recording.
    pub fn of(requirement: &RecordRequirement, plan: &Plan, evidence: Option<&RecordEvidence>) -> Self {
        let told =
            plan.reasons.iter().filter_map(|reason| Some((AnswerKind::of_plan(reason.fits?), reason.text.clone())));
        let mut reasons: Vec<(AnswerKind, String)> = told.collect();
        let losses = evidence.map(|evidence| {
            let lost = u64::from(evidence.lost.is_some());
            let times = evidence.watched.count().max(1) as f64 / requirement.span.count() as f64;
            [count_at_least(lost) / times, count_at_most(lost) / times]
        });
        let watched = evidence.map_or(Nanos::ZERO, |evidence| evidence.watched);
        reasons.push(match (losses, evidence.and_then(|evidence| evidence.lost.as_ref())) {
            (Some([least, _]), Some(why)) if least > PERMITTED => {
                (AnswerKind::No, format!("data were lost after {watched}: {why}"))
            }
            (Some(_), Some(why)) => (AnswerKind::NotShown, format!("data were lost after {watched}: {why}")),
            (Some([_, most]), None) if most <= PERMITTED => {
                (AnswerKind::Yes, format!("no data were lost in {watched}"))
            }
            (Some(_), None) => {
                (AnswerKind::NotShown, format!("no data were lost in {watched}, which is too short for this recording"))
            }
            (None, _) => (AnswerKind::NotShown, "no recording at this rate was watched".to_owned()),
        });
        reasons.sort_by_key(|(kind, _)| std::cmp::Reverse(kind.weight()));
        let outcome = reasons.first().map_or(AnswerKind::NotShown, |(kind, _)| *kind);
        let watch = Nanos::new((requirement.span.count() as f64 * count_at_most(0) / PERMITTED).ceil() as i64);
        Self { outcome, reasons, losses, watch }
    }

    /// The margin between the rate and the folder's own rate, as a part of the latter; negative if the folder takes
    /// less.
    pub fn margin(requirement: &RecordRequirement, evidence: &RecordEvidence) -> f64 {
        1.0 - requirement.rate.bytes_per_s() / evidence.unpaced.bytes_per_s().max(1.0)
    }
}

impl FromStr for JobNeed {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        match text.split_whitespace().next() {
            Some("record") => text.parse().map(Self::Record),
            _ => text.parse().map(Self::OnTime),
        }
    }
}

impl FromStr for RecordRequirement {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        const RATE: &str = "write the rate, like 400MB/s";
        // A folder may have spaces and commas in its name.
        let (before, folder) = match text.split_once(" to ") {
            Some((before, folder)) => (before, Some(folder.trim())),
            None => (text, None),
        };
        let mut words = Words::of(before);
        words.word("record", "write record 400MB/s for 2h to DIR")?;
        let rate = words.next(RATE)?;
        let (written, rate) = (rate, rate.parse_or::<ByteRate>(RATE)?);
        if rate.bytes_per_s() < 1.0 {
            return Err(written.wrong("write a rate above zero, like 400MB/s"));
        }
        words.word("for", "write `for` and a duration, like for 2h")?;
        let span = span(words.next("write a duration, like 2h")?)?;
        words.end("write `to` and the folder, like to /data")?;
        match folder {
            Some("") => Err(words.after("write the folder after `to`, like to /data")),
            folder => Ok(Self { rate, span, folder: folder.map(PathBuf::from) }),
        }
    }
}

impl fmt::Display for RecordRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a recording of {} for {} without loss", self.rate, self.span)
    }
}

#[cfg(test)]
mod tests {
    use hairspring_plan::{PlanReason, Request, Stall, Stream, Topology, Written, sizes};
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> RecordRequirement {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_recording_is_read_as_people_write_it() {
        let asked = read("record 400 MB/s for 2 h to /data/my disk, old");
        assert_eq!((asked.rate.bytes_per_s(), asked.span), (400e6, Nanos::from_secs(7200)));
        assert_eq!(asked.folder, Some(PathBuf::from("/data/my disk, old")));
        assert_eq!(read("record 1MB/s for 10min").folder, None);
        assert!(matches!("loop 1kHz jitter 50us".parse(), Ok(JobNeed::OnTime(_))));
        assert!(matches!("record 1MB/s for 10min".parse(), Ok(JobNeed::Record(_))));
        for (text, at, why) in [
            ("record", "", "400MB/s"),
            ("record 400 for 2h", "400 for", "400MB/s"),
            ("record 0MB/s for 2h", "0MB/s", "above zero"),
            ("record 4MB/s 2h", "2h", "for 2h"),
            ("record 4MB/s for 2h into /data", "into", "to /data"),
        ] {
            let error = text.parse::<RecordRequirement>().expect_err("none");
            assert_eq!(&text[error.place()], at, "{error}");
            assert!(error.why().contains(why), "{error}");
        }
    }

    /// A plan with this verdict.
    fn plan(fits: Fits) -> Plan {
        let (topology, cards) = Topology::named("an006-own-bus").expect("built in").with_cards(1).expect("room");
        let rate = ByteRate::new(1e6).expect("a rate");
        let request = Request {
            direction: hairspring_plan::Direction::Record,
            streams: vec![Stream { card: cards[0].clone(), rate }],
            targets: Vec::new(),
            span: None,
            stall: Stall { worst: sizes::STALL_USUAL, sync_interval: sizes::SYNC_INTERVAL },
            stall_is_assumed: false,
            memory: None,
            pointer_bits: 64,
            sustainable: Err(String::new()),
            fit: None,
            also: Vec::new(),
            written: Written::Both,
        };
        let mut plan = Plan::of(&request, &topology).expect("a plan");
        plan.reasons = vec![PlanReason { fits: Some(fits), text: "as it is said".to_owned() }];
        plan
    }

    fn evidence(watched: Nanos, lost: bool) -> RecordEvidence {
        RecordEvidence {
            watched,
            volume: Bytes::mib(1),
            lost: lost.then(|| "the buffer was full".to_owned()),
            high_water_promille: 10,
            worst_stall: Nanos::from_millis(1),
            buffer: Bytes::mib(64),
            unpaced: ByteRate::new(500e6).expect("a rate"),
        }
    }

    #[test]
    fn plan_and_watch_must_both_hold() {
        let asked = read("record 400MB/s for 1h to /data");
        let answer = |fits, watched: i64, lost| {
            let evidence = evidence(Nanos::from_secs(watched), lost);
            RecordAnswer::of(&asked, &plan(fits), Some(&evidence)).outcome
        };
        assert_eq!(answer(Fits::WithMargin, 3 * 3600, false), AnswerKind::Yes);
        assert_eq!(answer(Fits::WithMargin, 20, false), AnswerKind::NotShown);
        assert_eq!(answer(Fits::WithMargin, 20, true), AnswerKind::No);
        assert_eq!(answer(Fits::Tight, 3 * 3600, false), AnswerKind::NotShown);
        assert_eq!(answer(Fits::Unknown, 3 * 3600, false), AnswerKind::NotShown);
        assert_eq!(answer(Fits::No, 3 * 3600, false), AnswerKind::No);
        // One loss late in a long watch is permitted.
        assert_eq!(answer(Fits::WithMargin, 3 * 3600, true), AnswerKind::NotShown);
        let unwatched = RecordAnswer::of(&asked, &plan(Fits::WithMargin), None);
        assert_eq!((unwatched.outcome, unwatched.losses), (AnswerKind::NotShown, None));
        assert!((RecordAnswer::margin(&asked, &evidence(Nanos::ZERO, false)) - 0.2).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn a_watch_of_the_advised_length_shows_it(span_s in 1_i64..1_000_000, more in 0_i64..1000) {
            let asked = RecordRequirement { span: Nanos::from_secs(span_s), ..read("record 1MB/s for 1h") };
            let of = |watched| RecordAnswer::of(&asked, &plan(Fits::WithMargin), Some(&evidence(watched, false)));
            let advised = of(Nanos::from_secs(1)).watch;
            prop_assert_eq!(of(advised + Nanos::from_secs(more)).outcome, AnswerKind::Yes);
            prop_assert_eq!(of(advised - Nanos::from_millis(1)).outcome, AnswerKind::NotShown);
        }
    }
}
