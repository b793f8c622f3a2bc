//! [`JobAnswer`]: the answer that evidence gives to a requirement.

use hairspring_machine::Nanos;
use hairspring_suite::workload::Workload;

use super::bounds::{count_at_least, count_at_most, events_needed, share_at_least, share_at_most};
use super::evidence::Evidence;
use super::requirement::{Requirement, Tolerance};

/// The three answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// The requirement holds, with 95 % confidence.
    Yes,
    /// The requirement does not hold, with 95 % confidence.
    No,
    /// The evidence decides neither.
    NotShown,
}

impl AnswerKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::NotShown => "not shown",
        }
    }
}

/// A watch that would decide a requirement that is not shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Undecided {
    /// Number of events in total, and their time if known, if misses continue at the same rate.
    Watch(u64, Option<Nanos>),
    /// The evidence has no duration, and the requirement counts misses in a time.
    NoTime,
    /// The misses are so close to the permitted number that no reasonable watch decides.
    OnTheLimit,
}

/// The answer of evidence to a requirement.
#[derive(Clone, Debug, PartialEq)]
pub struct JobAnswer {
    /// The answer.
    pub outcome: AnswerKind,
    /// Lower limit of the misses: a share of all events, or a number in the tolerance's time. 95 %, one-sided.
    pub misses_at_least: f64,
    /// Upper limit of the misses, in the same terms.
    pub misses_at_most: f64,
    /// The smallest limit that the evidence would show; none if there are too few events.
    pub reach: Option<Nanos>,
    /// A watch that would decide it, if it is not shown.
    pub undecided: Option<Undecided>,
}

/// Longest watch that is advised, as a multiple of the one made.
const LONGER_MOST: f64 = 10_000.0;

impl JobAnswer {
    /// Judges a requirement by evidence.
    pub fn of(requirement: &Requirement, evidence: &Evidence) -> Self {
        let Some(scale) = Scale::of(requirement.tolerance, evidence) else {
            return Self {
                outcome: AnswerKind::NotShown,
                misses_at_least: 0.0,
                misses_at_most: f64::INFINITY,
                reach: None,
                undecided: Some(Undecided::NoTime),
            };
        };
        let (misses_at_least, misses_at_most) =
            (scale.at_least(evidence.misses), scale.at_most(evidence.misses_at_most));
        let outcome = if evidence.events > 0 && misses_at_most <= scale.permitted {
            AnswerKind::Yes
        } else if misses_at_least > scale.permitted {
            AnswerKind::No
        } else {
            AnswerKind::NotShown
        };
        let undecided = (outcome == AnswerKind::NotShown).then(|| scale.undecided(requirement.workload, evidence));
        let reach = evidence.reach(|above| evidence.events > 0 && scale.at_most(above) <= scale.permitted);
        Self { outcome, misses_at_least, misses_at_most, reach, undecided }
    }

    /// The margin: how far the limit is from the shown one, as a part of the limit; negative if the limit is too small.
    pub fn margin(&self, requirement: &Requirement) -> Option<f64> {
        self.reach.map(|reach| 1.0 - reach.count() as f64 / requirement.limit.count() as f64)
    }
}

/// Unit of misses: a share of the events, or a number in a time.
struct Scale {
    events: u64,
    /// The watched time, in units of the tolerance's time; none for a share.
    times: Option<f64>,
    permitted: f64,
}

impl Scale {
    /// None if the tolerance is about a time that the evidence does not have.
    fn of(tolerance: Tolerance, evidence: &Evidence) -> Option<Self> {
        let events = evidence.events;
        Some(match tolerance {
            Tolerance::Share(permitted) => Self { events, times: None, permitted },
            Tolerance::Rate(permitted, per) => {
                let watched = evidence.watched?.count() as f64;
                Self { events, times: Some(watched / per.count() as f64), permitted }
            }
        })
    }

    fn at_most(&self, misses: u64) -> f64 {
        match self.times {
            None => share_at_most(misses, self.events),
            Some(times) => count_at_most(misses) / times,
        }
    }

    fn at_least(&self, misses: u64) -> f64 {
        match self.times {
            None => share_at_least(misses, self.events),
            Some(times) => count_at_least(misses) / times,
        }
    }

    /// The watch that would decide, if misses continue at the same rate.
    fn undecided(&self, workload: Workload, evidence: &Evidence) -> Undecided {
        let longer = |factor: f64| {
            let events = (self.events as f64 * factor).ceil();
            let misses = (evidence.misses_at_most as f64 * factor).round() as u64;
            let scale = Self {
                events: events as u64,
                times: self.times.map(|times| times * factor),
                permitted: self.permitted,
            };
            scale.at_most(misses) <= self.permitted || scale.at_least(misses) > self.permitted
        };
        let mut factor = 1.0;
        if evidence.misses_at_most == 0 {
            factor = match self.times {
                None => events_needed(self.permitted) as f64 / self.events.max(1) as f64,
                Some(times) => count_at_most(0) / self.permitted / times.max(f64::MIN_POSITIVE),
            };
        } else {
            while !longer(factor) {
                factor *= 1.1;
                if factor > LONGER_MOST {
                    return Undecided::OnTheLimit;
                }
            }
        }
        let events = (self.events.max(1) as f64 * factor).ceil() as u64;
        let span = match (workload, evidence.watched) {
            (Workload::Loop(period), _) => i64::try_from(events).ok().map(|events| period * events),
            (_, Some(watched)) => Some(Nanos::new((watched.count() as f64 * factor).ceil() as i64)),
            (_, None) => None,
        };
        Undecided::Watch(events, span)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(text: &str, values: &[f64], watched: Nanos) -> JobAnswer {
        let requirement: Requirement = text.parse().expect("a requirement");
        JobAnswer::of(&requirement, &Evidence::of_samples(&requirement, values, watched))
    }

    /// Evidence with `good` events of 10 µs, and `bad` events of 1 ms.
    fn values(good: usize, bad: usize) -> Vec<f64> {
        [vec![10_000.0; good], vec![1_000_000.0; bad]].concat()
    }

    #[test]
    fn a_share_is_decided_by_its_limits() {
        let second = Nanos::from_secs(1);
        assert_eq!(answer("loop 1kHz jitter 50us", &values(2_995, 0), second).outcome, AnswerKind::Yes);
        let few = answer("loop 1kHz jitter 50us", &values(2_994, 0), second);
        assert_eq!(
            (few.outcome, few.undecided),
            (AnswerKind::NotShown, Some(Undecided::Watch(2_995, Some(Nanos::from_millis(2_995)))))
        );
        assert_eq!(answer("loop 1kHz jitter 50us", &values(1_000, 10), second).outcome, AnswerKind::No);
        // 3 of 3,000 is exactly the permitted share.
        assert_eq!(answer("loop 1kHz jitter 50us", &values(2_997, 3), second).outcome, AnswerKind::NotShown);
        assert_eq!(answer("loop 1kHz jitter 50us", &[], second).outcome, AnswerKind::NotShown);
    }

    #[test]
    fn a_rate_is_decided_by_the_watched_time() {
        let none = values(10_000, 0);
        let of = |watched| answer("loop 1kHz jitter 50us misses 1/h", &none, watched);
        assert_eq!(of(Nanos::from_secs(3 * 3600)).outcome, AnswerKind::Yes);
        let minute = of(Nanos::from_secs(60));
        assert_eq!(minute.outcome, AnswerKind::NotShown);
        assert!((minute.misses_at_most - 179.7).abs() < 0.1, "{}", minute.misses_at_most);
        assert_eq!(
            answer("loop 1kHz jitter 50us misses 1/h", &values(10_000, 1), Nanos::from_secs(60)).outcome,
            AnswerKind::No
        );
    }

    #[test]
    fn the_margin_is_what_the_limit_could_shrink_by() {
        let requirement: Requirement = "loop 1kHz jitter 50us".parse().expect("a requirement");
        let evidence = Evidence::of_samples(&requirement, &values(5_000, 0), Nanos::from_secs(5));
        let answer = JobAnswer::of(&requirement, &evidence);
        assert_eq!(answer.reach, Some(Nanos::from_micros(10)));
        assert_eq!(answer.margin(&requirement), Some(0.8));
    }

    proptest! {
        #[test]
        fn a_wider_limit_never_turns_a_yes_into_something_else(
            values in proptest::collection::vec(0.0..100_000.0_f64, 1..400),
            limit in 1_000_i64..100_000,
            wider in 0_i64..50_000,
        ) {
            let of = |limit: i64| answer(&format!("loop 1kHz jitter {limit}ns p90"), &values, Nanos::from_secs(1)).outcome;
            prop_assert!(of(limit) != AnswerKind::Yes || of(limit + wider) == AnswerKind::Yes);
            prop_assert!(of(limit + wider) != AnswerKind::No || of(limit) == AnswerKind::No);
        }

        #[test]
        fn what_the_evidence_reaches_is_a_yes(values in proptest::collection::vec(1_000.0..100_000.0_f64, 40..400)) {
            if let Some(reach) = answer("loop 1kHz jitter 1ms p90", &values, Nanos::from_secs(1)).reach {
                let text = format!("loop 1kHz jitter {}ns p90", reach.count());
                prop_assert_eq!(answer(&text, &values, Nanos::from_secs(1)).outcome, AnswerKind::Yes);
            }
        }
    }
}
