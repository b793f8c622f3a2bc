//! `hairspring doctor`: tries settings that could improve a job on this computer, and reports the effect of each.

use std::fs::File;
use std::sync::atomic::Ordering;

use clap::{Args, ValueEnum};
use hairspring_advice::doctor::{Diagnosis, Launches, SettingEffect, TriedSettings, candidates, diagnose, turns_most};
use hairspring_advice::job::Requirement;
use hairspring_machine::{Host, Machine, Nanos};
use hairspring_settings::{Choice, IDLE_DEVICE, JOURNAL, SettingScope, Tunable};
use hairspring_sheet::{Figure, Method, Unit};
use hairspring_suite::SheetProgress;
use hairspring_suite::workload::WorkloadRun;
use hairspring_time::Timebase;
use serde_json::{Value, json};

use super::jobs::{self, Asked};
use crate::arguments::{Plain, duration};
use crate::exit::{Exit, Failure};
use crate::listing::{grouped, span};
use crate::measure::progress::ProgressLine;
use crate::page::{Example, Page};
use crate::table::{Side, item, table, wrapped};
use crate::tune::best::{self, Best};
use crate::{interrupt, output};

pub(crate) const PAGE: Page = Page {
    name: "doctor",
    examples: &[
        Example {
            does: "Which settings shorten event to action here? Takes about a minute and a half",
            line: "hairspring doctor",
        },
        Example {
            does: "Which make a loop of 1 kHz more punctual? Also tries and restores settings of the machine",
            line: "hairspring doctor --for \"loop 1kHz jitter 50us\" --allow machine",
        },
    ],
    files: &[
        (IDLE_DEVICE, "the limit on idle states, held open in the turns that try it"),
        (JOURNAL, "old values of settings of the machine, while they are changed"),
        best::FILE,
    ],
    environment: &[best::ENVIRONMENT],
};

/// Try the settings that could make a job better here
///
/// Compares turns under each setting with turns without any, in random order, and confirms the best combination on
/// fresh turns. Tries only settings that end with a program; with --allow machine also those of the machine, which are
/// restored.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The job: one of `hairspring can --list`, a requirement as for `can`, or a TOML file of jobs. Of several
    /// requirements the strictest counts; settings are judged by its median
    #[arg(long = "for", value_name = "JOB", default_value = "react 100us")]
    job: String,
    /// Also try settings beyond the program
    #[arg(long, value_name = "WHAT")]
    allow: Option<Allowed>,
    /// Length of each turn
    #[arg(long, value_name = "DURATION", default_value = "400ms", value_parser = duration)]
    turn: Nanos,
    /// Seed of the order of the turns, to repeat a run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Allowed {
    /// Settings of the whole machine; each is restored after its turn, and also after SIGKILL
    Machine,
}

/// The shortest turn that has enough events of a loop of 1 kHz.
const TURN_LEAST: Nanos = Nanos::from_millis(20);
/// The overhead of a turn: the start of a process and the calibration of its counter.
const START: Nanos = Nanos::from_millis(120);
/// Locked while a doctor runs: two would disturb each other.
const LOCK: &str = "hairspring-doctor.lock";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let asked: Result<Vec<_>, Failure> = jobs::of(&arguments.job)?.into_iter().map(Asked::on_time).collect();
    let strictest = asked?.into_iter().min_by_key(|(_, requirement)| requirement.limit);
    let Some(asked) = strictest else {
        return Err(Failure::bad_request(format!("{} has no job", arguments.job)));
    };
    if arguments.turn < TURN_LEAST {
        return Err(Failure::bad_request(format!(
            "--turn {} is too short: write {TURN_LEAST} or more",
            arguments.turn
        )));
    }
    let _alone = alone()?;
    let interrupted = interrupt::watch()?;
    let machine_allowed = arguments.allow == Some(Allowed::Machine);
    let candidates = candidates(machine_allowed);
    let fire_from = Host.affinity().0.first().map_or(0, |cpu| cpu.0);
    let words = ["turn".to_owned(), asked.0.clone(), arguments.turn.count().to_string(), fire_from.to_string()];
    let program =
        std::env::current_exe().map_err(|error| Failure::failed(format!("failed to find this program: {error}")))?;
    let mut turns = Launches { program, words: words.to_vec(), machine_allowed };
    let line = ProgressLine::new();
    let each = arguments.turn + START;
    let of = |turns: usize| Nanos::new(each.count().saturating_mul(turns as i64));
    let total = of(turns_most(candidates.len()));
    let stopped = || interrupted.load(Ordering::Relaxed);
    let mut show = |made: usize| line.show(SheetProgress { measuring: "settings in turns", done: of(made), total });
    let found = diagnose(&mut turns, &candidates, arguments.seed, &stopped, &mut show);
    line.end();
    let found = found.map_err(|why| Failure::failed(format!("the job does not run here: {why}")))?;
    if found.is_conclusive() && !stopped() {
        keep(&arguments.job, &found);
    }
    output::print(&match arguments.format {
        Plain::Text => text(&asked, &found, &candidates, machine_allowed, output::style(false).width),
        Plain::Json => as_json(&asked.0, &found, arguments.seed),
    })?;
    Ok(match (stopped(), found.is_conclusive()) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Success,
        (false, false) => Exit::NotShown,
    })
}

/// Stores the confirmed settings for `run --best`. A failure to store them does not affect the result.
fn keep(job: &str, found: &Diagnosis) {
    let confirmed = found.confirmed.as_ref().filter(|best| best.effect == SettingEffect::Helps);
    let (settings, ratio) = confirmed.map_or(("", 1.0), |best| (best.settings.as_str(), best.ratio));
    if let Err(error) = Best::new(job, settings, ratio).keep() {
        output::complain(&format!(
            "`hairspring run --best` cannot use this result, which could not be stored: {error}"
        ));
    }
}

/// Refuses to run beside another doctor.
fn alone() -> Result<File, Failure> {
    let path = std::env::temp_dir().join(LOCK);
    // Another user may have made the file; reading is enough for a lock.
    let opened = File::options().create(true).truncate(false).write(true).open(&path).or_else(|_| File::open(&path));
    let file = opened.map_err(|error| Failure::failed(format!("failed to open {}: {error}", path.display())))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(_) => Err(Failure::failed(
            "another `hairspring doctor` is running, and two would disturb each other; try again after its end",
        )),
    }
}

/// The hidden command `turn`: does the job under the settings that it was started with, and prints the value of each
/// event.
pub(crate) fn turn(job: &str, span_ns: i64, fire_from: u32) -> Result<Exit, Failure> {
    let (_, requirement) = Asked::new(job, None)?.on_time()?;
    let interrupted = interrupt::watch()?;
    let timebase = Timebase::calibrate(Host).map_err(Failure::failed_to)?;
    let fire_from = Some(hairspring_machine::Cpu(fire_from));
    let run = |span| {
        let workload = requirement.workload;
        WorkloadRun { workload, place: None, fire_from, idle_off: false, span }
    };
    let failed = |absent: hairspring_sheet::Absent| Failure::failed(absent.reason);
    // A tenth of the time to warm up, which does not count.
    run(Nanos::new(span_ns / 10)).observe(&timebase, &interrupted).map_err(failed)?;
    let observed = run(Nanos::new(span_ns)).observe(&timebase, &interrupted).map_err(failed)?;
    let values: Vec<String> = observed.values.iter().map(|value| format!("{value}\n")).collect();
    output::print(&values.concat())
}

fn text(
    (job, asked): &(String, Requirement),
    found: &Diagnosis,
    candidates: &[Choice],
    machine_allowed: bool,
    width: usize,
) -> String {
    let mut text = format!("What makes {} better on this computer\n\n", asked.subject());
    if !found.is_conclusive() {
        let sentence = format!(
            "No conclusion: two equal runs without changes differ by {} ({}). Other activity disturbs the computer; try again.",
            times(found.null.ratio),
            interval(&found.null)
        );
        text.extend(wrapped(&sentence, width).iter().map(|line| format!("{line}\n")));
        text.push('\n');
    }
    let rows: Vec<Vec<String>> = found
        .tried
        .iter()
        .chain([&found.null])
        .map(|tried| {
            let name = if tried.settings.is_empty() { "(nothing)".to_owned() } else { tried.settings.clone() };
            let cost = candidates.iter().find(|choice| choice.to_string() == tried.settings);
            let cost = cost.map_or("two equal runs without changes", |choice| choice.tunable().cost);
            match &tried.effect {
                SettingEffect::NotApplied(why) => {
                    vec![name, "–".to_owned(), "–".to_owned(), format!("not tried: {why}")]
                }
                effect => vec![name, times(tried.ratio), interval(tried), format!("{}; {cost}", said(effect))],
            }
        })
        .collect();
    let headings =
        [("setting", Side::Left), ("median", Side::Right), ("95 %", Side::Left), ("effect; cost", Side::Left)];
    text.push_str(&table(&headings, &rows, width));
    text.push('\n');
    match &found.confirmed {
        Some(best) if best.effect == SettingEffect::Helps => {
            let [before, after] = [0, 1].map(|arm| spread(found, arm));
            text.push_str(&item("1.", &format!("as it is: {before}"), width));
            text.push_str(&item("2.", &format!("with {}: {after}", best.settings), width));
            let sentence = format!(
                "Confirmed on fresh turns: the median is {} of what it was ({}). To apply it: hairspring run --set {} -- CMD, or \
                 hairspring run --best -- CMD",
                times(best.ratio),
                interval(best),
                best.settings
            );
            text.extend(wrapped(&sentence, width).iter().map(|line| format!("{line}\n")));
        }
        Some(best) => {
            let sentence =
                format!("{} seemed to help, but fresh turns do not confirm it ({}).", best.settings, interval(best));
            text.extend(wrapped(&sentence, width).iter().map(|line| format!("{line}\n")));
        }
        None if found.is_conclusive() => text.push_str("None of the settings tried helps this job here.\n"),
        None => {}
    }
    if found.void > 0 {
        text.push_str(&format!("Void and repeated because the computer was suspended: {} blocks.\n", found.void));
    }
    text.push_str(&not_tried(job, machine_allowed, width));
    text
}

/// Settings that a doctor tries only on request, or not at all.
fn not_tried(job: &str, machine_allowed: bool, width: usize) -> String {
    let mut text = String::new();
    if !machine_allowed {
        let with: Vec<String> = self::candidates(true).iter().map(ToString::to_string).collect();
        let without: Vec<String> = self::candidates(false).iter().map(ToString::to_string).collect();
        let more: Vec<&str> = with.iter().filter(|one| !without.contains(one)).map(String::as_str).collect();
        if !more.is_empty() {
            let sentence = format!(
                "Not tried, because they change the whole machine: {}. To try them, too: sudo hairspring doctor --for \"{}\" --allow machine",
                more.join(", "),
                job
            );
            text.extend(wrapped(&sentence, width).iter().map(|line| format!("{line}\n")));
        }
    }
    let at_boot = Tunable::all().filter(|tunable| matches!(tunable.scope, SettingScope::Boot | SettingScope::Host));
    let ids: Vec<&str> = at_boot.map(|tunable| tunable.id).collect();
    let sentence = format!(
        "Not tried, because they need a reboot, the host or the firmware: {}. `hairspring settings ID` tells how.",
        ids.join(", ")
    );
    text.extend(wrapped(&sentence, width).iter().map(|line| format!("{line}\n")));
    text
}

fn times(ratio: f64) -> String {
    format!("× {ratio:.2}")
}

fn interval(tried: &TriedSettings) -> String {
    match tried.interval {
        [low, high] if high.is_finite() => format!("{low:.2} to {high:.2}"),
        _ => "unknown".to_owned(),
    }
}

fn said(effect: &SettingEffect) -> &'static str {
    match effect {
        SettingEffect::Helps => "helps",
        SettingEffect::None => "no effect here",
        SettingEffect::Harms => "harmful here",
        SettingEffect::NotShown => "not shown",
        SettingEffect::NotApplied(_) => "not tried",
    }
}

fn figure(found: &Diagnosis, arm: usize) -> Figure {
    Figure::from_samples(Unit::Ns, Method::Stamp, &mut found.events[arm].values.clone())
}

fn spread(found: &Diagnosis, arm: usize) -> String {
    let figure = figure(found, arm);
    let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |ns| span(Nanos::new(ns.round() as i64)));
    format!(
        "median {}, 99 % {}, worst {} of {} events",
        shown(figure.median),
        shown(figure.p99),
        shown(figure.max),
        grouped(figure.n)
    )
}

fn as_json(asked: &str, found: &Diagnosis, seed: u64) -> String {
    let tried = |one: &TriedSettings| -> Value {
        let why = match &one.effect {
            SettingEffect::NotApplied(why) => Some(why),
            _ => None,
        };
        let known = one.interval[1].is_finite();
        json!({
            "settings": one.settings,
            "ratio": known.then_some(one.ratio),
            "interval": known.then_some(one.interval),
            "effect": said(&one.effect),
            "why_not": why,
        })
    };
    let events = |arm: usize| {
        let figure = figure(found, arm);
        json!({ "n": figure.n, "median_ns": figure.median, "p99_ns": figure.p99, "worst_ns": figure.max })
    };
    let confirmed = found
        .confirmed
        .as_ref()
        .map(|best| json!({ "best": tried(best), "as_it_is": events(0), "with_it": events(1) }));
    let value = json!({
        "schema": "hairspring.doctor/1",
        "job": asked,
        "seed": seed,
        "conclusive": found.is_conclusive(),
        "void_blocks": found.void,
        "null": tried(&found.null),
        "tried": found.tried.iter().map(tried).collect::<Vec<_>>(),
        "confirmed": confirmed,
    });
    format!("{value:#}\n")
}
