//! `hairspring watch`: late wake-ups and preemptions of another program's threads, and their culprits.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use hairspring_advice::watch::{RecordCost, Spans, ThreadWatch, WatchedCase};
use hairspring_culprit::host::{Tracer, TracerSettings};
use hairspring_culprit::{Tally, Wanted};
use hairspring_machine::{Host, Machine, Nanos};
use hairspring_sheet::Unit;
use hairspring_sheet::render::quantity;
use hairspring_suite::time_of_day;
use serde_json::{Value, json};
use signal_hook::iterator::Signals;

use crate::arguments::{Plain, duration};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::listing::{grouped, percent, span};
use crate::output::{self, OutputFile};
use crate::page::{Example, Page};
use crate::progress_line::ProgressLine;
use crate::table::{Side, table, wrapped};
use crate::tune::run as launched;

pub(crate) const PAGE: Page = Page {
    name: "watch",
    examples: &[
        Example {
            does: "What delays a control loop? Runs it, and reports when it ends",
            line: "hairspring watch -- ./control-loop",
        },
        Example {
            does: "Watch a running program for a minute, and keep the report",
            line: "hairspring watch --pid 1234 --for 1min --format json --out watch.json",
        },
    ],
    files: &[("tracefs", "the kernel's tracepoints; mounted privately")],
    environment: &[],
};

/// Say who delays the threads of a program
///
/// Reads from the kernel's tracepoints how long each wake-up and each preemption took, and which interrupt, softirq,
/// task or hypervisor took the time. Signals and the exit code of CMD pass through.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Process to watch, with the processes that it starts, until it ends or Ctrl-C comes
    #[arg(long, value_name = "P", required_unless_present = "program", conflicts_with = "program")]
    pid: Option<u32>,
    /// End after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, requires = "pid")]
    span: Option<Nanos>,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
    /// Write the report to this file [default: standard output; with CMD, which may print there, standard error]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Program to run and watch, and its arguments
    #[arg(value_name = "CMD", last = true)]
    program: Vec<OsString>,
}

/// Interval between two looks at the records: a ring of 4 MiB lasts for 800,000 records a second.
const LOOK: Nanos = Nanos::from_millis(50);
/// The most processes that are watched: a program that starts more is watched in part.
const PROCESSES_MOST: usize = 1000;

/// Results of a watch, and its own cost.
struct Watched {
    /// The process, and its name.
    process: u32,
    name: String,
    watch: ThreadWatch,
    span: Nanos,
    /// CPU time of this process.
    own: Nanos,
    missing: Vec<String>,
    /// Cost of a record, or the reason why it is unknown.
    cost: Result<RecordCost, String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let file = arguments.out.as_deref().map(OutputFile::create).transpose()?;
    if let Some(pid) = arguments.pid.filter(|pid| threads_of(*pid).is_empty()) {
        return Err(Failure::bad_request(format!("--pid {pid}: there is no such process")));
    }
    let (watched, exit) = match arguments.pid {
        Some(pid) => {
            let interrupted = interrupt::watch()?;
            let mut tracer = open(Exit::Failed)?;
            (watch(arguments, pid, None, &mut tracer, &interrupted)?.0, Exit::Success)
        }
        None => of_program(arguments)?,
    };
    let report = match arguments.format {
        Plain::Text => text(&watched, output::style(false).width),
        Plain::Json => as_json(&watched),
    };
    match file {
        Some(file) => file.finish(&report)?,
        None if arguments.pid.is_some() => drop(output::print(&report)?),
        // A terminal that is gone must not change the exit code of the program.
        None => drop(std::io::Write::write_all(&mut std::io::stderr().lock(), report.as_bytes())),
    }
    Ok(exit)
}

/// Runs a program and watches it. Nothing is run if it cannot be watched.
fn of_program(arguments: &Arguments) -> Result<(Watched, Exit), Failure> {
    let mut tracer = open(Exit::NotSet)?;
    let signals = Signals::new(launched::forwarded())
        .map_err(|error| Failure { exit: Exit::NotSet, text: format!("failed to watch for signals: {error}") })?;
    let mut command = Command::new(&arguments.program[0]);
    let mut child = command.args(&arguments.program[1..]).spawn().map_err(|error| {
        let name = arguments.program[0].display();
        let exit = if error.kind() == std::io::ErrorKind::NotFound { Exit::NotFound } else { Exit::CannotRun };
        Failure { exit, text: format!("failed to run {name}: {error}") }
    })?;
    launched::forward(signals, child.id());
    let pid = child.id();
    let (watched, status) = watch(arguments, pid, Some(&mut child), &mut tracer, &AtomicBool::new(false))?;
    let status = status.map_or_else(|| child.wait(), Ok);
    let status = status.map_err(|error| Failure::failed(format!("failed to wait for the program: {error}")))?;
    Ok((watched, Exit::Program(launched::code(status))))
}

fn open(refused: Exit) -> Result<Tracer, Failure> {
    let failed = |text: String| Failure { exit: refused, text };
    let settings =
        TracerSettings::of_all_cpus().map_err(|error| failed(format!("failed to list the CPUs: {error}")))?;
    // Page faults are many and explain few wake-ups.
    let settings = TracerSettings { faults: false, ..settings };
    Tracer::open(&settings).map_err(|untraced| failed(format!("no program can be watched: {untraced}")))
}

/// Watches until the process ends, the time has passed or a signal asks to end.
fn watch(
    arguments: &Arguments,
    pid: u32,
    mut child: Option<&mut Child>,
    tracer: &mut Tracer,
    interrupted: &AtomicBool,
) -> Result<(Watched, Option<std::process::ExitStatus>), Failure> {
    let guest = Host.counter_evidence().hypervisor.is_some();
    let (mut watch, mut live) = (ThreadWatch::new(guest), ProgressLine::new(arguments.quiet));
    let (start, own) = (Host.monotonic(), Host.usage().cpu);
    let (mut threads, mut status, mut name) = (BTreeSet::new(), None, String::new());
    loop {
        let gone = match &mut child {
            Some(child) => {
                status = child
                    .try_wait()
                    .map_err(|error| Failure::failed(format!("failed to inspect the program: {error}")))?;
                status.is_some()
            }
            None => threads_of(pid).is_empty(),
        };
        threads.extend(family(pid));
        // Looked at each time: a program that is started by another has the name of that one first.
        if let Ok(now) = std::fs::read_to_string(format!("/proc/{pid}/comm")) {
            now.trim().clone_into(&mut name);
        }
        let mut records = Vec::new();
        let until = tracer.drain(|cpu, record| records.push((cpu, record)));
        watch.take(records, until, &threads);
        let elapsed = Host.monotonic() - start;
        live.show(elapsed, || line(&watch, elapsed));
        if gone || interrupted.load(Ordering::Relaxed) || arguments.span.is_some_and(|span| elapsed >= span) {
            break;
        }
        Host.sleep_until(Host.monotonic() + LOOK);
    }
    live.end();
    let (span, own) = (Host.monotonic() - start, Host.usage().cpu - own);
    let cost = match tracer.cpus().last() {
        Some(&cpu) => tracer.cost(cpu).map_err(|untraced| untraced.to_string()),
        None => Err("no CPU is watched".to_owned()),
    };
    let cost = cost.and_then(|pairs| RecordCost::of(&pairs).ok_or_else(|| "too few pairs of blocks".to_owned()));
    Ok((Watched { process: pid, name, watch, span, own, missing: tracer.missing().to_vec(), cost }, status))
}

/// The threads of a process; none if there is no such process.
fn threads_of(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The threads of a process and of those that it has started.
fn family(pid: u32) -> Vec<u32> {
    let (mut processes, mut threads) = (vec![pid], Vec::new());
    let mut next = 0;
    while let Some(&pid) = processes.get(next).filter(|_| next < PROCESSES_MOST) {
        next += 1;
        for thread in threads_of(pid) {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).unwrap_or_default();
            processes.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
            threads.push(thread);
        }
    }
    threads
}

fn line(watch: &ThreadWatch, elapsed: Nanos) -> String {
    let worst = watch.worst.first().map_or_else(String::new, |case| format!("; worst: {}", told(watch, case)));
    format!(
        "{}: {} wake-ups, {} preemptions{worst}",
        crate::listing::clock(elapsed),
        grouped(watch.wakeups.whole().gaps),
        grouped(watch.preemptions.whole().gaps)
    )
}

/// `job woken 2.1 ms late: task hog, pid 33, real time 20 (99 %)`.
fn told(watch: &ThreadWatch, case: &WatchedCase) -> String {
    let length = case.lost.to - case.lost.from;
    let what = match case.lost.wanted {
        Wanted::Wake => format!("woken {} late", span(length)),
        Wanted::Run => format!("without its CPU for {}", span(length)),
    };
    let part = |time: Nanos| percent(time.count().unsigned_abs(), length.count().unsigned_abs());
    let who: Vec<String> =
        case.shares.iter().take(2).map(|share| format!("{} ({})", share.culprit, part(share.time))).collect();
    format!("{} {what}: {}", name(watch, case), who.join(", "))
}

/// The name that the thread of a case had last: a program has another one before it is executed.
fn name<'w>(watch: &'w ThreadWatch, case: &WatchedCase) -> &'w str {
    watch.threads.get(&case.lost.thread).map_or("?", |thread| thread.name.as_str())
}

fn quantile(spans: &Spans, share: f64) -> Nanos {
    let at_most = spans.histogram.at_most(share).map_or(Nanos::ZERO, |ns| Nanos::new(ns as i64));
    at_most.min(spans.worst)
}

fn text(watched: &Watched, width: usize) -> String {
    let Watched { process, name, watch, span: length, .. } = watched;
    let threads = match watch.threads.len() {
        1 => "1 thread".to_owned(),
        count => format!("{} threads", grouped(count as u64)),
    };
    let mut text = format!("Watched {name} (process {process}) for {}, {threads}\n", span(*length));
    for (heading, wanted, tally) in [
        ("Wake-ups: from the call that wakes a thread until it has a CPU", Wanted::Wake, &watch.wakeups),
        ("Preemptions: from losing the CPU until it has a CPU again", Wanted::Run, &watch.preemptions),
    ] {
        text.push_str(&format!("\n{heading}\n"));
        let rows = watch.threads.iter().filter_map(|(id, thread)| {
            let spans = if wanted == Wanted::Wake { &thread.wakeups } else { &thread.preemptions };
            let cells = [quantile(spans, 0.5), quantile(spans, 0.99), spans.worst, spans.total].map(span);
            let row = [vec![format!("{} {id}", thread.name), grouped(spans.count())], cells.to_vec()].concat();
            (spans.count() > 0).then_some(row)
        });
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            text.push_str("  none\n");
            continue;
        }
        let right = |heading| (heading, Side::Right);
        let headings =
            [("thread", Side::Left), right("n"), right("median"), right("99 %"), right("worst"), right("in all")];
        text.push_str(&table(&headings, &rows, width));
        text.push_str(&format!("\n{}\n", "Who took that time"));
        let whole = tally.whole().total.count().unsigned_abs();
        let rows: Vec<Vec<String>> = tally
            .culprits()
            .into_iter()
            .take(CULPRITS_MOST)
            .map(|(culprit, toll)| {
                let part = percent(toll.total.count().unsigned_abs(), whole);
                vec![grouped(toll.gaps), span(toll.longest), span(toll.total), part, culprit.to_string()]
            })
            .collect();
        let headings = [right("cases"), right("longest"), right("in all"), right("share"), ("culprit", Side::Left)];
        text.push_str(&table(&headings, &rows, width));
    }
    if !watch.worst.is_empty() {
        text.push_str("\nThe longest\n");
        let rows: Vec<_> = watch.worst.iter().map(|case| vec![time_of_day(case.lost.to), told(watch, case)]).collect();
        text.push_str(&table(&[("time", Side::Left), ("what", Side::Left)], &rows, width));
    }
    text.push('\n');
    for line in wrapped(&cost(watched), width) {
        text.push_str(&format!("{line}\n"));
    }
    text
}

/// Most culprits that a text lists.
const CULPRITS_MOST: usize = 12;

fn cost(watched: &Watched) -> String {
    let Watched { watch, span: length, own, missing, cost, .. } = watched;
    let seconds = length.as_secs_f64().max(1e-3);
    let lost = match watch.losses {
        0 => "none were lost".to_owned(),
        losses => format!("records were lost {} times, and with them events of those moments", grouped(losses)),
    };
    let each = match cost {
        Ok(RecordCost { mean_ns, limits_ns: [low, high], pairs }) => {
            let ns = |ns: f64| quantity(ns, Unit::Ns);
            format!(
                "One costs {} (95 %: {} to {}), in all {} of one CPU: the extra time of two threads that wake each other, in {pairs} pairs of \
                 blocks with records and without",
                ns(*mean_ns),
                ns(*low),
                ns(*high),
                quantity(mean_ns * watch.records as f64 / (seconds * 1e9), Unit::Ratio)
            )
        }
        Err(why) => format!("The cost of one is unknown: {why}"),
    };
    let mut text = format!(
        "The kernel wrote {} records ({:.0} a second); {lost}. {each}. Reading them took {} of a CPU.",
        grouped(watch.records),
        watch.records as f64 / seconds,
        percent(own.count().unsigned_abs(), length.count().unsigned_abs())
    );
    if !missing.is_empty() {
        text.push_str(&format!(" This kernel has no {}.", missing.join(", ")));
    }
    text
}

fn as_json(watched: &Watched) -> String {
    let Watched { process, name: program, watch, span: length, own, missing, cost } = watched;
    let spans = |spans: &Spans| {
        json!({
            "n": spans.count(),
            "median_ns": quantile(spans, 0.5).count(),
            "p99_ns": quantile(spans, 0.99).count(),
            "worst_ns": spans.worst.count(),
            "total_ns": spans.total.count(),
        })
    };
    let culprits = |tally: &Tally| -> Vec<Value> {
        let one = |(culprit, toll): (&hairspring_culprit::Culprit, hairspring_culprit::Toll)| {
            json!({
                "culprit": culprit.to_string(),
                "kind": culprit.kind().name(),
                "cases": toll.gaps,
                "total_ns": toll.total.count(),
                "longest_ns": toll.longest.count(),
            })
        };
        tally.culprits().into_iter().map(one).collect()
    };
    let threads = watch.threads.iter().map(|(id, thread)| {
        json!({ "id": id, "name": thread.name, "wakeups": spans(&thread.wakeups), "preemptions": spans(&thread.preemptions) })
    });
    let worst = watch.worst.iter().map(|case| {
        let shares = case
            .shares
            .iter()
            .map(|share| json!({ "culprit": share.culprit.to_string(), "time_ns": share.time.count() }));
        json!({
            "thread": case.lost.thread,
            "name": name(watch, case),
            "kind": if case.lost.wanted == Wanted::Wake { "wakeup" } else { "preemption" },
            "ended": time_of_day(case.lost.to),
            "length_ns": (case.lost.to - case.lost.from).count(),
            "shares": shares.collect::<Vec<_>>(),
        })
    });
    let value = json!({
        "schema": "hairspring.watch/1",
        "watched": format!("{program} (process {process})"),
        "span_ns": length.count(),
        "threads": threads.collect::<Vec<_>>(),
        "wakeups": culprits(&watch.wakeups),
        "preemptions": culprits(&watch.preemptions),
        "worst": worst.collect::<Vec<_>>(),
        "records": watch.records,
        "losses": watch.losses,
        "own_cpu_ns": own.count(),
        "record_cost_ns": cost.as_ref().ok().map(|cost| json!({
            "mean": cost.mean_ns,
            "low": cost.limits_ns[0],
            "high": cost.limits_ns[1],
            "pairs": cost.pairs,
        })),
        "missing": missing,
    });
    format!("{value:#}\n")
}
