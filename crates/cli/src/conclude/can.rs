//! `hairspring can`: whether this computer can do a job.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Args;
use hairspring_advice::job::{JobNeed, Trial, TrialRequest};
use hairspring_machine::{Cpu, Host, Machine, Nanos};
use hairspring_settings::IDLE_DEVICE;
use hairspring_suite::{SheetError, SheetProgress};
use hairspring_time::Timebase;

use super::answer::{self, Answer};
use super::jobs::{self, Asked, JobArguments};
use super::recording;
use crate::arguments::{Plain, parsed};
use crate::exit::{Exit, Failure};
use crate::measure::historic;
use crate::measure::progress::ProgressLine;
use crate::page::{Example, Page};
use crate::placement::Measuring;
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

/// Say whether this computer can do a job: yes, no or not shown
///
/// Watches each requirement on this computer, unchanged and with idle states off, or looks it up in a sheet. An answer
/// has a confidence of 95 % and holds for the computer as it was while it was watched.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// What the job needs, for instance "loop 1kHz jitter 50us", "react to udp 100us p99.99", "delay 10us within
    /// 200ns", "audio 48kHz/64", followed by p99.9 or misses 1/h, for 8h, ordinary or fifo; or "record 400MB/s for 2h
    /// to DIR"
    #[arg(value_name = "REQUIREMENT")]
    requirements: Vec<String>,
    #[command(flatten)]
    jobs: JobArguments,
    /// Existing folder for recordings that name none
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// List the ready-made jobs
    #[arg(long)]
    list: bool,
    /// Answer from this sheet, without measuring
    #[arg(long, value_name = "FILE", conflicts_with_all = ["watch", "cpu", "priority"])]
    sheet: Option<String>,
    /// Watch each requirement for this long, and as long with idle states off [default: as long as it needs, 4 s to 20
    /// s]
    #[arg(long, value_name = "DURATION", value_parser = parsed::<Nanos>)]
    watch: Option<Nanos>,
    #[command(flatten)]
    place: Measuring,
    /// Format of the answers
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
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
            let said = asked.into_iter().map(|asked| answer::from_sheet(asked, &sheet, named));
            let mut said = said.collect::<Result<Vec<_>, _>>()?;
            let other = answer::other_conditions(&sheet);
            said.iter_mut().filter(|said| !said.arms.is_empty()).for_each(|said| said.notes.extend(other.clone()));
            (said, false)
        }
        None => watched(arguments, asked)?,
    };
    output::print(&match arguments.format {
        Plain::Text => answer::text(&said, width),
        Plain::Json => answer::as_json(&said),
    })?;
    Ok(if interrupted { Exit::Interrupted } else { answer::exit(&said) })
}

fn asked(arguments: &Arguments) -> Result<Vec<Asked>, Failure> {
    let mut asked = arguments.jobs.asked(&arguments.requirements)?;
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

fn watched(arguments: &Arguments, asked: Vec<Asked>) -> Result<(Vec<Answer>, bool), Failure> {
    let cpu = arguments.place.cpu.map(Cpu);
    if let Some(cpu) = cpu.filter(|cpu| !Host.affinity().0.contains(cpu)) {
        return Err(Failure::bad_request(SheetError::NoSuchCpu(cpu, Host.affinity().0).to_string()));
    }
    if arguments.watch.is_some_and(|span| span <= Nanos::ZERO) {
        return Err(Failure::bad_request("--watch takes a span above zero, like 30s"));
    }
    let interrupted = interrupt::watch()?;
    let timebase = Timebase::calibrate_to(Host, 1.0, Nanos::from_millis(100)).map_err(Failure::failed_to)?;
    let request = TrialRequest { span: arguments.watch, cpu, priority: arguments.place.priority };
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
                said.extend(recorded.map(|recorded| Answer { recorded: Some(recorded), ..Answer::new(one) }));
                continue;
            }
        };
        done += span;
        let unsaid = Answer::new(one);
        said.push(match trial {
            Ok(trial) => Answer { arms: trial.arms, conditions: trial.conditions, notes: trial.notes, ..unsaid },
            Err(absent) => {
                let remedy = absent.remedy.map_or_else(String::new, |remedy| format!(": {remedy}"));
                Answer { notes: vec![format!("{}{remedy}", absent.reason)], ..unsaid }
            }
        });
    }
    line.end();
    Ok((said, interrupted.load(Ordering::Relaxed)))
}
