//! The answers about the requirements of a job, as text and as JSON.

use hairspring_advice::job::{AnswerKind, Arm, Evidence, JobAnswer, JobNeed, Requirement, Tolerance, Undecided};
use hairspring_advice::soak::{SOAK_CONDITIONS, changed_conditions, conditions_mark};
use hairspring_machine::{Host, Nanos};
use hairspring_sheet::Sheet;
use hairspring_suite::read_conditions;
use hairspring_suite::workload::Workload;
use serde_json::{Value, json};

use super::jobs::Asked;
use super::recording::{self, Recorded};
use crate::exit::{Exit, Failure};
use crate::listing::{clock, grouped, span};
use crate::table::wrapped;

/// The answer to one requirement, or why there is none.
pub(super) struct Answer {
    pub(super) asked: Asked,
    /// The unchanged machine first.
    pub(super) arms: Vec<Arm>,
    /// The answer about a recording.
    pub(super) recorded: Option<Recorded>,
    pub(super) conditions: Vec<String>,
    pub(super) notes: Vec<String>,
}

impl Answer {
    pub(super) fn new(asked: Asked) -> Self {
        Self { asked, arms: Vec::new(), recorded: None, conditions: Vec::new(), notes: Vec::new() }
    }

    pub(super) fn outcome(&self) -> AnswerKind {
        if let Some(recorded) = &self.recorded {
            return recorded.answer.outcome;
        }
        self.arms.first().map_or(AnswerKind::NotShown, |arm| arm.answer.outcome)
    }
}

pub(super) fn from_sheet(asked: Asked, sheet: &Sheet, named: &str) -> Result<Answer, Failure> {
    let said = match &asked.need {
        JobNeed::Record(record) => {
            let recorded = recording::from_sheet(record.clone(), sheet, named)?;
            return Ok(Answer { recorded: Some(recorded), ..Answer::new(asked) });
        }
        JobNeed::OnTime(requirement) => Evidence::of_sheet(requirement, sheet).map(|evidence| {
            let answer = JobAnswer::of(requirement, &evidence);
            (
                format!("{} of the sheet of {}", evidence.source, sheet.taken.when()),
                Arm { settings: "as it is", evidence, answer },
            )
        }),
    };
    let unsaid = Answer::new(asked);
    Ok(match said {
        Ok((condition, arm)) => Answer { arms: vec![arm], conditions: vec![condition], ..unsaid },
        Err(why) => Answer { notes: vec![format!("{why}: leave out --sheet to watch it on this computer")], ..unsaid },
    })
}

/// Conditions of this computer that differ from those of the soak; `None` if none differs, and for a sheet that is not
/// of a soak.
pub(super) fn other_conditions(sheet: &Sheet) -> Option<String> {
    const NAMED: usize = 4;
    let mark = sheet.conditions.value(SOAK_CONDITIONS)?;
    let here = read_conditions(&Host, false);
    if conditions_mark(&here) == mark {
        return None;
    }
    let changed = changed_conditions(&sheet.conditions, &here);
    let mut named: Vec<String> =
        changed.iter().take(NAMED).map(|(label, then, now)| format!("{label}: {then}, now {now}")).collect();
    if changed.len() > NAMED {
        named.push(format!("{} more", changed.len() - NAMED));
    }
    Some(format!(
        "The conditions of this computer differ from those of the soak ({}). The answers hold for the soak; for the present conditions, watch again.",
        named.join("; ")
    ))
}

pub(super) fn exit(said: &[Answer]) -> Exit {
    let any = |outcome| said.iter().any(|said| said.outcome() == outcome);
    if any(AnswerKind::No) {
        Exit::Cannot
    } else if any(AnswerKind::NotShown) {
        Exit::NotShown
    } else {
        Exit::Success
    }
}

/// The indentation of the sentences below an answer.
const INDENT: usize = 11;

pub(super) fn text(said: &[Answer], width: usize) -> String {
    let mut text = String::new();
    for said in said {
        let job = said.asked.job.as_ref().map_or_else(String::new, |job| format!("  (job {job})"));
        text.push_str(&format!("{:<INDENT$}{}{job}\n", said.outcome().name().to_uppercase(), said.asked.text));
        for sentence in sentences(said) {
            for line in wrapped(&sentence, width.saturating_sub(INDENT).max(30)) {
                text.push_str(&format!("{:INDENT$}{line}\n", ""));
            }
        }
        text.push('\n');
    }
    let foot = "Each answer has a confidence of 95 % and holds for this computer as it was while it was watched. Events that did not \
                happen then (a backup, a full disk, other programs) are not covered.";
    for line in wrapped(foot, width) {
        text.push_str(&format!("{line}\n"));
    }
    text
}

/// The sentences about a requirement, most important first.
fn sentences(said: &Answer) -> Vec<String> {
    let requirement = match (&said.recorded, &said.asked.need) {
        (Some(recorded), _) => return recorded.sentences(&said.asked.text),
        (None, JobNeed::Record(_)) => return said.notes.clone(),
        (None, JobNeed::OnTime(requirement)) => requirement,
    };
    let mut sentences = Vec::new();
    if let Some(Arm { answer, evidence, .. }) = said.arms.first() {
        sentences.push(verdict(requirement, answer));
        sentences.extend(decides(said, requirement, answer));
        let watched = evidence.watched.map_or_else(String::new, |watched| format!(" in {}", span(watched)));
        let of = plural(requirement);
        sentences.push(format!(
            "Evidence: {} {of}{watched}, {} beyond the limit; median {}, worst {}. {}.",
            grouped(evidence.events),
            beyond(evidence),
            span(evidence.median),
            span(evidence.worst),
            said.conditions.join(", "),
        ));
    }
    if let [as_it_is, other] = said.arms.as_slice() {
        sentences.push(effect(requirement, as_it_is, other));
    }
    sentences.extend(said.notes.iter().cloned());
    sentences
}

fn beyond(evidence: &Evidence) -> String {
    match (evidence.misses, evidence.misses_at_most) {
        (least, most) if least == most => grouped(least),
        (least, most) => format!("{} to {}", grouped(least), grouped(most)),
    }
}

fn plural(requirement: &Requirement) -> &'static str {
    match requirement.workload {
        Workload::Loop(_) => "periods",
        Workload::Reaction(_) => "events",
        Workload::Delay(_) => "delays",
        Workload::Gaps => "gaps",
    }
}

/// Misses in the terms of the requirement: a share of the periods, or a number of periods in a time.
fn misses(requirement: &Requirement, misses: f64) -> String {
    match requirement.per() {
        None => format!("{} of the {}", percent(misses), plural(requirement)),
        Some(per) => format!("{} {} in {per}", count(misses), plural(requirement)),
    }
}

/// A number of misses, which need not be whole.
fn count(misses: f64) -> String {
    if misses >= 10.0 || misses == 0.0 { grouped(misses.round() as u64) } else { format!("{misses:.1}") }
}

fn percent(share: f64) -> String {
    // Two significant digits.
    let value = share * 100.0;
    let digits = if value > 0.0 { (1.0 - value.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };
    format!("{value:.digits$} %")
}

fn verdict(requirement: &Requirement, answer: &JobAnswer) -> String {
    let may = requirement.permitted();
    match answer.outcome {
        AnswerKind::Yes => {
            let most = misses(requirement, answer.misses_at_most);
            let margin = match answer.reach.zip(answer.margin(requirement)) {
                Some((reach, margin)) => {
                    format!(" A limit of {} would hold as well: {:.0} % of margin.", span(reach), margin * 100.0)
                }
                None => String::new(),
            };
            format!("At most {most} are beyond {}, and {may} may be beyond it.{margin}", requirement.limit)
        }
        AnswerKind::No => {
            let least = misses(requirement, answer.misses_at_least);
            let reach = match answer.reach {
                Some(reach) if reach > requirement.limit => format!(" A limit of {} would hold.", span(reach)),
                _ => String::new(),
            };
            format!("At least {least} are beyond {}, and {may} may be beyond it.{reach}", requirement.limit)
        }
        AnswerKind::NotShown if answer.undecided == Some(Undecided::NoTime) => {
            "A sheet does not store how long its events were watched, and the requirement counts misses over time."
                .to_owned()
        }
        AnswerKind::NotShown => format!(
            "Between {} and {} are beyond {}, and {may} may be beyond it.",
            match requirement.tolerance {
                Tolerance::Share(_) => percent(answer.misses_at_least),
                Tolerance::Rate(..) => count(answer.misses_at_least),
            },
            misses(requirement, answer.misses_at_most),
            requirement.limit
        ),
    }
}

/// The watch that would decide it.
fn decides(said: &Answer, requirement: &Requirement, answer: &JobAnswer) -> Option<String> {
    let asked = &said.asked.text;
    Some(match answer.undecided? {
        Undecided::Watch(events, needed) => {
            let longer = match needed {
                // A third more, as a margin for a few misses.
                Some(needed) => format!(
                    ", which takes {}: hairspring can \"{asked}\" --watch {}",
                    if needed < MINUTES { span(needed) } else { clock(needed) },
                    written(needed)
                ),
                None => format!(": hairspring can \"{asked}\""),
            };
            format!("{} {} would decide it{longer}", grouped(events), plural(requirement))
        }
        Undecided::NoTime => format!("Watch it on this computer: hairspring can \"{asked}\" --watch 1h"),
        Undecided::OnTheLimit => {
            format!(
                "The result is so close to the limit that no reasonable watch decides: ask for more than {}.",
                requirement.limit
            )
        }
    })
}

/// From this span on, seconds are hard to read.
const MINUTES: Nanos = Nanos::from_secs(120);

/// A third more than a span, in whole seconds, minutes or hours, as `--watch` takes it.
fn written(span: Nanos) -> String {
    let seconds = (span.as_secs_f64() * 1.3).ceil();
    match seconds {
        seconds if seconds > 7200.0 => format!("{}h", (seconds / 3600.0).ceil()),
        seconds if seconds > 120.0 => format!("{}min", (seconds / 60.0).ceil()),
        seconds => format!("{seconds}s"),
    }
}

/// The effect of switching idle states off.
fn effect(requirement: &Requirement, as_it_is: &Arm, other: &Arm) -> String {
    let [before, after] = [as_it_is, other].map(|arm| arm.evidence.median);
    let outcome = match (as_it_is.answer.outcome, other.answer.outcome) {
        (before, after) if before == after => format!("still {}", after.name()),
        (_, after) => format!("the answer would be {}", after.name()),
    };
    let reach = other.answer.reach.map_or_else(String::new, |reach| {
        let holds = if reach <= requirement.limit { "a limit" } else { "only a limit" };
        format!(", {holds} of {} holds", span(reach))
    });
    format!(
        "With {}: median {} → {}, {outcome}{reach}. To apply it: hairspring run --set {} -- CMD",
        other.settings,
        span(before),
        span(after),
        other.settings
    )
}

pub(super) fn as_json(said: &[Answer]) -> String {
    let arm = |requirement: &Requirement, arm: &Arm| -> Value {
        let Arm { settings, evidence, answer } = arm;
        let decides = answer.undecided.map(|undecided| match undecided {
            Undecided::Watch(events, span) => json!({ "events": events, "watch_ns": span.map(Nanos::count) }),
            Undecided::NoTime => json!("no time is known"),
            Undecided::OnTheLimit => json!("on the limit"),
        });
        json!({
            "settings": settings,
            "answer": answer.outcome.name(),
            "misses_at_least": answer.misses_at_least,
            "misses_at_most": Some(answer.misses_at_most).filter(|most| most.is_finite()),
            "reach_ns": answer.reach.map(Nanos::count),
            "margin": answer.margin(requirement),
            "would_decide": decides,
            "evidence": {
                "source": evidence.source,
                "events": evidence.events,
                "beyond": [evidence.misses, evidence.misses_at_most],
                "watched_ns": evidence.watched.map(Nanos::count),
                "median_ns": evidence.median.count(),
                "worst_ns": evidence.worst.count(),
            },
        })
    };
    let one = |said: &Answer| -> Value {
        let requirement = match &said.asked.need {
            JobNeed::OnTime(requirement) => requirement,
            JobNeed::Record(_) => {
                return json!({
                    "requirement": said.asked.text,
                    "job": said.asked.job,
                    "answer": said.outcome().name(),
                    "confidence": 0.95,
                    "record": said.recorded.as_ref().map(Recorded::json),
                    "notes": said.notes,
                });
            }
        };
        let permitted = match requirement.tolerance {
            Tolerance::Share(share) => json!({ "share": share }),
            Tolerance::Rate(misses, per) => json!({ "misses": misses, "per_ns": per.count() }),
        };
        json!({
            "requirement": said.asked.text,
            "job": said.asked.job,
            "limit_ns": requirement.limit.count(),
            "permitted": permitted,
            "answer": said.outcome().name(),
            "confidence": 0.95,
            "conditions": said.conditions,
            "arms": said.arms.iter().map(|one| arm(requirement, one)).collect::<Vec<_>>(),
            "notes": said.notes,
        })
    };
    let value = json!({ "schema": "hairspring.can/1", "answers": said.iter().map(one).collect::<Vec<_>>() });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_written_with_two_digits_that_count() {
        assert_eq!(
            [0.001, 0.000_998_7, 0.5, 0.000_001_23, 0.0].map(percent),
            ["0.10 %", "0.100 %", "50 %", "0.00012 %", "0 %"]
        );
    }
}
