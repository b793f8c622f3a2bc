//! `hairspring can`: whether this computer can do a job.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Args;
use hairspring_advice::job::{
    AnswerKind, Arm, Evidence, JobAnswer, JobNeed, Requirement, Tolerance, Trial, TrialRequest, Undecided,
};
use hairspring_machine::{Cpu, Host, Machine, Nanos};
use hairspring_settings::IDLE_DEVICE;
use hairspring_suite::workload::Workload;
use hairspring_suite::{SheetError, SheetProgress};
use hairspring_time::Timebase;
use serde_json::{Value, json};

use super::jobs::{self, Asked};
use super::recording::{self, Recorded};
use super::soak;
use crate::arguments::{Plain, number, parsed};
use crate::exit::{Exit, Failure};
use crate::listing::{clock, grouped, span};
use crate::measure::historic;
use crate::measure::progress::ProgressLine;
use crate::page::{Example, Page};
use crate::table::wrapped;
use crate::{interrupt, output};

pub(crate) const PAGE: Page = Page {
    name: "can",
    examples: &[
        Example {
            does: "Can a loop of 1 kHz be late by no more than 50 us in 99.9 % of its periods?",
            line: "hairspring can \"loop 1kHz jitter 50us\"",
        },
        Example {
            does: "Two requirements at once, the second for 99.99 % of the events",
            line: "hairspring can \"delay 10us within 200ns\" \"react 100us p99.99\"",
        },
        Example {
            does: "Can /data take two hours of 400 MB/s without loss? Records for 25 s, and removes the files",
            line: "hairspring can \"record 400MB/s for 2h to /data\"",
        },
        Example { does: "A ready-made job; --list shows them all", line: "hairspring can --job cnc-servo" },
        Example {
            does: "Answer from an earlier sheet, without measuring",
            line: "hairspring can \"loop 1kHz jitter 50us\" --sheet sheet.json",
        },
        Example {
            does: "Watch for an hour, because the limit is a few misses an hour",
            line: "hairspring can \"loop 1kHz jitter 100us misses 6/h\" --watch 1h",
        },
    ],
    files: &[(IDLE_DEVICE, "the limit on idle states, held open while they are tried off")],
    environment: &[],
};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// What the job needs, for instance "loop 1kHz jitter 50us", "react to udp 100us p99.99", "delay 10us within 200ns", "audio
    /// 48kHz/64", followed by p99.9 or misses 1/h, for 8h, ordinary or fifo; or "record 400MB/s for 2h to DIR"
    #[arg(value_name = "REQUIREMENT")]
    requirements: Vec<String>,
    /// A ready-made job. May be repeated
    #[arg(long, value_name = "NAME")]
    job: Vec<String>,
    /// A TOML file of jobs, each with a name and a list of its needs
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,
    /// Existing folder for recordings that name none
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// List the ready-made jobs
    #[arg(long)]
    list: bool,
    /// Answer from this sheet, without measuring
    #[arg(long, value_name = "FILE", conflicts_with_all = ["watch", "cpu", "priority"])]
    sheet: Option<String>,
    /// Watch each requirement for this long, and as long with idle states off [default: as long as it needs, 4 s to 20 s]
    #[arg(long, value_name = "DURATION", value_parser = parsed::<Nanos>)]
    watch: Option<Nanos>,
    /// CPU that the job runs on [default: the last one that this process may use]
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    /// Priority under SCHED_FIFO, 1 to 99
    #[arg(long, value_name = "P", default_value_t = 80, value_parser = number::<u8>(1, 99))]
    priority: u8,
    /// Format of the answers
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
}

/// The answer to one requirement, or why there is none.
pub(super) struct Said {
    asked: Asked,
    /// The unchanged machine first.
    arms: Vec<Arm>,
    /// The answer about a recording.
    recorded: Option<Recorded>,
    conditions: Vec<String>,
    notes: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let width = output::style(false).width;
    if arguments.list {
        return output::print(&jobs::list(width)).map(|_| Exit::Success);
    }
    let asked = asked(arguments)?;
    let (said, interrupted) = match &arguments.sheet {
        Some(named) => {
            let sheet = historic::find(named)?;
            let said = asked.into_iter().map(|asked| from_sheet(asked, &sheet, named));
            let mut said = said.collect::<Result<Vec<_>, _>>()?;
            let other = soak::other_conditions(&sheet);
            said.iter_mut().filter(|said| !said.arms.is_empty()).for_each(|said| said.notes.extend(other.clone()));
            (said, false)
        }
        None => watched(arguments, asked)?,
    };
    output::print(&match arguments.format {
        Plain::Text => text(&said, width),
        Plain::Json => as_json(&said),
    })?;
    Ok(if interrupted { Exit::Interrupted } else { exit(&said) })
}

fn asked(arguments: &Arguments) -> Result<Vec<Asked>, Failure> {
    let mut asked = jobs::asked(&arguments.requirements, &arguments.job, arguments.jobs.as_deref())?;
    for one in &mut asked {
        let JobNeed::Record(record) = &mut one.need else { continue };
        if let (None, Some(dir)) = (&record.folder, &arguments.dir) {
            one.text = format!("{} to {}", one.text, dir.display());
            record.folder = Some(dir.clone());
        }
    }
    if asked.is_empty() {
        let text = "no requirement is given: write one, like \"loop 1kHz jitter 50us\", or --job NAME; --list shows \
                    the ready-made jobs";
        return Err(Failure::bad_request(text));
    }
    Ok(asked)
}

pub(super) fn from_sheet(asked: Asked, sheet: &hairspring_sheet::Sheet, named: &str) -> Result<Said, Failure> {
    let said = match &asked.need {
        JobNeed::Record(record) => {
            let recorded = recording::from_sheet(record.clone(), sheet, named)?;
            return Ok(Said { recorded: Some(recorded), ..Said::new(asked) });
        }
        JobNeed::OnTime(requirement) => Evidence::of_sheet(requirement, sheet).map(|evidence| {
            let answer = JobAnswer::of(requirement, &evidence);
            (
                format!("{} of the sheet of {}", evidence.source, sheet.taken.when()),
                Arm { settings: AS_IT_IS, evidence, answer },
            )
        }),
    };
    let unsaid = Said::new(asked);
    Ok(match said {
        Ok((condition, arm)) => Said { arms: vec![arm], conditions: vec![condition], ..unsaid },
        Err(why) => Said { notes: vec![format!("{why}: leave out --sheet to watch it on this computer")], ..unsaid },
    })
}

fn watched(arguments: &Arguments, asked: Vec<Asked>) -> Result<(Vec<Said>, bool), Failure> {
    let cpu = arguments.cpu.map(Cpu);
    if let Some(cpu) = cpu.filter(|cpu| !Host.affinity().0.contains(cpu)) {
        return Err(Failure::bad_request(SheetError::NoSuchCpu(cpu, Host.affinity().0).to_string()));
    }
    if arguments.watch.is_some_and(|span| span <= Nanos::ZERO) {
        return Err(Failure::bad_request("--watch takes a span above zero, like 30s"));
    }
    let interrupted = interrupt::watch()?;
    let timebase = Timebase::calibrate_to(Host, 1.0, Nanos::from_millis(100)).map_err(Failure::failed_to)?;
    let request = TrialRequest { span: arguments.watch, cpu, priority: arguments.priority };
    let span_of = |one: &Asked| match &one.need {
        JobNeed::OnTime(requirement) => request.span_of(requirement) * 2,
        JobNeed::Record(_) => arguments.watch.unwrap_or(recording::LENGTH),
    };
    let spans: Vec<Nanos> = asked.iter().map(span_of).collect();
    let total: Nanos = spans.iter().copied().sum();
    let line = ProgressLine::new();
    let (mut said, mut done) = (Vec::new(), Nanos::ZERO);
    for (one, span) in asked.into_iter().zip(spans) {
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        let mut show = |part: f64| {
            let here = Nanos::new((span.count() as f64 * part) as i64);
            line.show(SheetProgress { measuring: &one.text, done: done + here, total });
        };
        let trial = match &one.need {
            JobNeed::OnTime(requirement) => Trial::run(requirement, &request, &timebase, &interrupted, &mut show),
            JobNeed::Record(record) => {
                let recorded =
                    recording::watched(record.clone(), arguments.watch, &interrupted, &mut |part| show(part))?;
                done += span;
                said.extend(recorded.map(|recorded| Said { recorded: Some(recorded), ..Said::new(one) }));
                continue;
            }
        };
        done += span;
        let unsaid = Said::new(one);
        said.push(match trial {
            Ok(trial) => Said { arms: trial.arms, conditions: trial.conditions, notes: trial.notes, ..unsaid },
            Err(absent) => {
                let remedy = absent.remedy.map_or_else(String::new, |remedy| format!(": {remedy}"));
                Said { notes: vec![format!("{}{remedy}", absent.reason)], ..unsaid }
            }
        });
    }
    line.end();
    Ok((said, interrupted.load(Ordering::Relaxed)))
}

const AS_IT_IS: &str = "as it is";

impl Said {
    fn new(asked: Asked) -> Self {
        Self { asked, arms: Vec::new(), recorded: None, conditions: Vec::new(), notes: Vec::new() }
    }

    fn outcome(&self) -> AnswerKind {
        if let Some(recorded) = &self.recorded {
            return recorded.answer.outcome;
        }
        self.arms.first().map_or(AnswerKind::NotShown, |arm| arm.answer.outcome)
    }
}

pub(super) fn exit(said: &[Said]) -> Exit {
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

pub(super) fn text(said: &[Said], width: usize) -> String {
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
    let foot = "Each answer has a confidence of 95 % and holds for this computer as it was while it was watched. What did not \
                happen then (a backup, a full disk, other programs) is not in it.";
    for line in wrapped(foot, width) {
        text.push_str(&format!("{line}\n"));
    }
    text
}

/// The sentences about a requirement, most important first.
fn sentences(said: &Said) -> Vec<String> {
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
            format!("At most {most} are beyond {}, and {may} may be.{margin}", requirement.limit)
        }
        AnswerKind::No => {
            let least = misses(requirement, answer.misses_at_least);
            let reach = match answer.reach {
                Some(reach) if reach > requirement.limit => format!(" A limit of {} would hold.", span(reach)),
                _ => String::new(),
            };
            format!("At least {least} are beyond {}, and {may} may be.{reach}", requirement.limit)
        }
        AnswerKind::NotShown if answer.undecided == Some(Undecided::NoTime) => {
            "A sheet does not tell how long its events were watched, and the requirement counts misses in a time."
                .to_owned()
        }
        AnswerKind::NotShown => format!(
            "Between {} and {} are beyond {}, and {may} may be.",
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
fn decides(said: &Said, requirement: &Requirement, answer: &JobAnswer) -> Option<String> {
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
        "With {}: median {} → {}, {outcome}{reach}. To have it: hairspring run --set {} -- CMD",
        other.settings,
        span(before),
        span(after),
        other.settings
    )
}

fn as_json(said: &[Said]) -> String {
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
    let one = |said: &Said| -> Value {
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
