//! Compares calls from C, Python and Tcl with calls from Rust, and with each language's own clock and sleep.
//!
//! Each language has a program in `xtask/peers/callers`, which measures our calls and the language's own in turns; the
//! programs run in turns, too. They use the installed packages: C by pkg-config, Tcl by TCLLIBPATH, Python by its own
//! path. Fresh processes with and without the Python package measure the cost of its import. A list under the table
//! has the goals that this run has reached.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hairspring_sheet::Unit;
use hairspring_suite::interleaving::median;
use hairspring_time::{Cpu, Host, LongDelay, Machine, Nanos, RealTime, Timebase};
use serde_json::Value;

use crate::report::cell;

const ROUNDS: usize = 5;
const BLOCKS: usize = 50;
const DELAYS: usize = 40;
const BLOCK: u32 = 1_000;
const REQUEST: Nanos = Nanos::from_millis(10);
/// Starts of Python in a round, with and without the package.
const STARTS: usize = 5;
/// The goals: greatest time that C may add to a reading of the clock, in nanoseconds,
const ADDED_MOST: f64 = 5.0;
/// the greatest ratio of the cost of our clock to the language's own in Python and Tcl,
const RATIO_MOST: f64 = 1.3;
/// the greatest difference of a long delay from one called from Rust: by its report, timed by its caller, and tuned,
const APART_MOST: f64 = 1_000.0;
/// and the greatest time of the import.
const IMPORT_MOST: f64 = 50e6;
/// The kinds of samples, in this order.
const KINDS: [&str; 7] = ["now", "clock", "told", "long", "tuned", "empty", "sleep"];
/// The folder of the programs.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/callers");

/// Samples of each kind, in nanoseconds.
type Taken = [Vec<f64>; KINDS.len()];

/// A language: its name, the names of its clock and its sleep, and the command that runs its program.
struct Language {
    name: &'static str,
    clock: &'static str,
    sleep: &'static str,
    program: Result<Command, String>,
    taken: Taken,
}

pub(crate) fn run(timebase: &Timebase, cpu: Cpu, folder: &Path, quick: bool) -> Result<(), String> {
    let _pinned = RealTime { cpu: Some(cpu), ..RealTime::default() }.apply(&Host);
    let script = |interpreter: &str, name: &str| {
        let mut command = Command::new(interpreter);
        command.arg(format!("{FOLDER}/{name}"));
        Ok(command)
    };
    let language = |name, clock, sleep, program| Language { name, clock, sleep, program, taken: Taken::default() };
    let mut languages = [
        language(
            "C",
            "clock_gettime",
            "nanosleep",
            compiled(folder, &[&format!("{FOLDER}/beside.c")], "peers-callers-c"),
        ),
        language("Python", "time.perf_counter_ns", "time.sleep", script("python3", "beside.py")),
        language("Tcl", "clock microseconds", "after", script("tclsh", "beside.tcl")),
    ];
    let mut rust = Taken::default();
    let mut import = Ok(Vec::new());
    let delays = if quick { DELAYS / 4 } else { DELAYS };
    for round in 1..=ROUNDS {
        eprintln!("calls from other languages, round {round} of {ROUNDS}");
        ours(timebase, delays, &mut rust)?;
        for language in &mut languages {
            let outcome = language.program.as_mut().map_err(|why| why.clone()).and_then(|command| {
                let mut once = Command::new(command.get_program());
                once.args(command.get_args()).arg(BLOCKS.to_string()).arg(delays.to_string());
                printed(&mut once)
            });
            match outcome {
                Ok(taken) => language.taken.iter_mut().zip(taken).for_each(|(all, mut some)| all.append(&mut some)),
                Err(why) => language.program = Err(why),
            }
        }
        import = import.and_then(imported);
    }
    println!("## Calls from other languages\n");
    println!(
        "Medians of {ROUNDS} rounds in turns. Clocks: {BLOCK} calls in a loop less the same loop without them. Delays: how much longer \
         than {REQUEST} a call took, as its report tells and as its caller sees it, whose caches are cold after a sleep; tuned: after \
         `tune`, which puts their median where the request is for the caller, and lets half of them be early. An empty call: how long a call \
         that does nothing takes between two readings of the clock after a sleep of {REQUEST}, which is how late a language alone is.\n"
    );
    let rust = rust.each_ref().map(|samples| median(samples));
    println!(
        "| from | our now | its own clock | ratio | our long delay, late by its report | as seen | tuned, as seen | an empty call after a sleep | its own sleep, as seen |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let row = |name: &str, clocks: &str, sleeps: &str, medians: [f64; KINDS.len()]| {
        let [now, clock, told, long, tuned, empty, sleep] = medians.map(ns);
        let ratio = medians[0] / medians[1];
        println!(
            "| {name} | {now} | {clocks} {clock} | {ratio:.2} | {told} | {long} | {tuned} | {empty} | {sleeps} {sleep} |"
        );
    };
    row("Rust", "std::time::Instant", "std::thread::sleep", rust);
    let mut goals = Vec::new();
    for language in &mut languages {
        let name = language.name;
        if let Err(why) = &language.program {
            println!("| {name} | absent: {why} | | | | | | | |");
            goals.push(format!("{name}: absent, so no goal was reached"));
            continue;
        }
        let medians = language.taken.each_ref().map(|samples| median(samples));
        row(name, language.clock, language.sleep, medians);
        goals.push(if name == "C" {
            goal("what C adds to a reading of the clock", medians[0] - rust[0], ADDED_MOST, ns)
        } else {
            let what = format!("our now from {name}, in times of its own clock");
            goal(&what, medians[0] / medians[1], RATIO_MOST, |ratio| format!("{ratio:.2}"))
        });
        for (kind, how) in [(2, "by its report"), (3, "as its caller sees it"), (4, "tuned, as its caller sees it")] {
            let what = format!("a long delay from {name} {how}, apart from one from Rust");
            goals.push(goal(&what, (medians[kind] - rust[kind]).abs(), APART_MOST, ns));
        }
    }
    goals.push(match &mut import {
        Ok(samples) => goal("the import of the Python package", median(samples), IMPORT_MOST, ns),
        Err(why) => format!("the import of the Python package: absent, {why}"),
    });
    println!("\nGoals in this run:\n");
    goals.iter().for_each(|goal| println!("* {goal}"));
    println!();
    Ok(())
}

fn ns(value: f64) -> String {
    cell(Some(value), Unit::Ns)
}

/// A goal, and whether the figure reaches it.
fn goal(what: &str, found: f64, most: f64, shown: impl Fn(f64) -> String) -> String {
    let word = if found <= most { "reached" } else { "missed" };
    format!("{what}: {}, at most {} wanted: {word}", shown(found), shown(most))
}

/// Adds a round of samples: how much longer a fresh Python runs if it imports the package.
fn imported(mut samples: Vec<f64>) -> Result<Vec<f64>, String> {
    let run = |code: &str| {
        let before = Host.monotonic();
        let output = Command::new("python3").args(["-c", code]).output().map_err(|error| error.to_string())?;
        let passed = Host.monotonic() - before;
        if output.status.success() { Ok(passed.count() as f64) } else { Err(complaint(&output.stderr)) }
    };
    for _ in 0..STARTS {
        samples.push(run("import hairspring")? - run("pass")?);
    }
    Ok(samples)
}

/// The same from Rust, in this process.
fn ours(timebase: &Timebase, delays: usize, taken: &mut Taken) -> Result<(), String> {
    let clock = || Host.monotonic();
    let sample = |call: &dyn Fn(u32)| {
        let before = clock();
        call(BLOCK);
        let between = clock();
        for round in 0..BLOCK {
            black_box(round);
        }
        ((between - before) - (clock() - between)).count() as f64 / f64::from(BLOCK)
    };
    let sleep = || std::thread::sleep(Duration::from_nanos(REQUEST.count().unsigned_abs()));
    for _ in 0..BLOCKS {
        let instant = std::time::Instant::now;
        taken[0].push(sample(&|calls| (0..calls).for_each(|_| keep(timebase.now()))));
        taken[1].push(sample(&|calls| (0..calls).for_each(|_| keep(instant()))));
    }
    let (mut long, mut tuned) = (LongDelay::new(timebase), LongDelay::new(timebase));
    tuned.tune(REQUEST).map_err(|error| error.to_string())?;
    for _ in 0..delays {
        let before = clock();
        let report = long.delay(REQUEST).map_err(|error| error.to_string())?;
        taken[3].push((clock() - before - REQUEST).count() as f64);
        taken[2].push(report.late.count() as f64);
        let before = clock();
        tuned.delay(REQUEST).map_err(|error| error.to_string())?;
        taken[4].push((clock() - before - REQUEST).count() as f64);
        let before = clock();
        sleep();
        taken[6].push((clock() - before - REQUEST).count() as f64);
        sleep();
        let before = clock();
        nothing();
        taken[5].push((clock() - before).count() as f64);
        sleep();
    }
    Ok(())
}

#[inline(never)]
fn nothing() {
    black_box(());
}

/// Keeps the compiler from removing a value that the program does not use.
fn keep<T>(value: T) {
    black_box(value);
}

/// Compiles a program in C, from these words of the compiler's command line, against the library that pkg-config finds.
pub(crate) fn compiled(folder: &Path, words: &[&str], name: &str) -> Result<Command, String> {
    let said = |command: &mut Command| {
        let output = command.output().map_err(|error| error.to_string())?;
        let text = || String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() { Ok(text()) } else { Err(complaint(&output.stderr)) }
    };
    let flags = said(Command::new("pkg-config").args(["--cflags", "--libs", "hairspring"]))?;
    let libraries = said(Command::new("pkg-config").args(["--variable=libdir", "hairspring"]))?;
    let program = folder.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-o"]).arg(&program).args(words).args(flags.split_whitespace());
    said(compiler.arg(format!("-Wl,-rpath,{libraries}")))?;
    Ok(Command::new(std::path::absolute(program).map_err(|error| error.to_string())?))
}

/// The line with the reason why a program failed: the first that does not belong to a stack trace.
pub(crate) fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let mut lines = text.lines().filter(|line| !line.starts_with([' ', '\t']) && !line.starts_with("Traceback"));
    lines.next().unwrap_or("it failed").to_owned()
}

/// The output of a program.
fn printed(command: &mut Command) -> Result<Taken, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(complaint(&output.stderr));
    }
    let printed: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let samples = |kind: &str| printed[kind].as_array()?.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>();
    let all = KINDS.map(|kind| samples(kind).ok_or_else(|| format!("no samples of {kind}")));
    let [now, clock, told, long, tuned, empty, sleep] = all;
    Ok([now?, clock?, told?, long?, tuned?, empty?, sleep?])
}
