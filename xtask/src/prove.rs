//! `cargo xtask prove`: the long proofs, in release mode, with a dated report that is committed under `proofs/`.
//!
//! A proof is a subcommand of the program `prover` (xtask/prover). The last line it prints is one JSON object,
//! `{"passed": bool, "figures": {…}}`; everything it says goes to its log. A proof that does not end with that line,
//! ends with another exit status than its verdict, has no figure, or runs over its limit has failed. The report
//! names the conditions first: a figure without them is none.

mod conditions;

use std::fmt::Write;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::child::{self, Ended, Ending};
use crate::workspace::Workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run only the proofs with these names, and print the report instead of writing it
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Name the proofs and end
    #[arg(long)]
    list: bool,
}

struct Proof {
    /// The prover's subcommand.
    name: &'static str,
    /// What has been shown when it passes, as a sentence.
    claim: &'static str,
    arguments: &'static [&'static str],
    limit_s: u64,
}

const PROOFS: &[Proof] = &[
    Proof {
        name: "formats",
        claim: "A sheet comes out whole in every format, and the JSON document says which version it is.",
        arguments: &[],
        limit_s: 900,
    },
    Proof {
        name: "never-early",
        claim: "None of ten million guaranteed-minimum delays of 0 to 20 µs is early by stamps around it, under \
                SCHED_OTHER and SCHED_FIFO.",
        arguments: &["--count", "10000000"],
        limit_s: 900,
    },
    Proof {
        name: "calibration",
        claim: "In a hundred fresh processes the true rate lies inside the stated bound, which is at most 20 ppm at the \
                age of 5 ms and 1 ppm at 100 ms in 95 of them, for at most 1 ms of CPU time.",
        arguments: &["--processes", "100"],
        limit_s: 300,
    },
    Proof {
        name: "sentinel",
        claim: "Preemptions are counted without a system call as the kernel counts involuntary switches.",
        arguments: &["--rounds", "20"],
        limit_s: 120,
    },
    Proof {
        name: "long-delays",
        claim: "Long delays of 1 ms to 1 s are never early and at the median at most 50 ns late, under SCHED_OTHER and \
                SCHED_FIFO; under SCHED_FIFO 99 % of the undisturbed ones end within 1 µs; at 1 s they use at most 0.1 % of \
                the CPU.",
        arguments: &[],
        limit_s: 300,
    },
    Proof {
        name: "executive-core",
        claim: "The executive's core keeps every invariant in all states of small systems (up to 4 tasks, 2 resources of all \
                protocols, a mailbox, a semaphore), as far as each is explored, and does what a naive model does in random \
                programs.",
        arguments: &["--times", "6"],
        limit_s: 900,
    },
    Proof {
        name: "executive-mutants",
        claim: "Each deliberate break of the core that mutants.toml lists is found by the test named there.",
        arguments: &[],
        limit_s: 1800,
    },
    Proof {
        name: "preemption",
        claim: "Each of ten thousand wakes of a more urgent task has run that task before the call returned, on fibers and on \
                threads on one CPU.",
        arguments: &["--count", "10000"],
        limit_s: 120,
    },
    Proof {
        name: "periodic-timer",
        claim: "A periodic timer keeps to t0 + n·p: exactly over 100,000 periods in virtual time; after 60 s on the host it \
                is no later than at the beginning. It is never early.",
        arguments: &["--seconds", "60"],
        limit_s: 300,
    },
    Proof {
        name: "inversion",
        claim: "Without a remedy an urgent task waits for a middle one's computing; with inheritance or a ceiling only for \
                the owner's.",
        arguments: &[],
        limit_s: 120,
    },
    Proof {
        name: "cyclictest",
        claim: "Where cyclictest is installed: a periodic timer of threads on one CPU is late by the same order of magnitude \
                as cyclictest sees on the same kernel.",
        arguments: &["--seconds", "5"],
        limit_s: 60,
    },
    Proof {
        name: "interleavings",
        claim: "The doorbell and the ring between interrupt sources and the executive, the gate of interrupt procedures, the \
                cursors of the recording ring with its evictions and taps, the words of a signal, and the counts of C's \
                handles miss, lose, double and tear nothing and hold nobody up; a lock in the order of coming is never had by \
                two. In any interleaving of their threads with up to three preemptions.",
        arguments: &[],
        limit_s: 900,
    },
    Proof {
        name: "stream-sanitizers",
        claim: "ThreadSanitizer and AddressSanitizer (nightly) see no data race and no bad access in the stream crate's tests \
                with threads or raw memory.",
        arguments: &[],
        limit_s: 1800,
    },
    Proof {
        name: "executive-sanitizers",
        claim: "ThreadSanitizer and AddressSanitizer (nightly) see no data race and no bad access in the tests of the \
                executive's thread back-end and its interrupt sources.",
        arguments: &[],
        limit_s: 1800,
    },
    Proof {
        name: "pulses",
        claim: "Of a million pulses on a virtual board none is shorter than asked.",
        arguments: &["--count", "1000000"],
        limit_s: 120,
    },
    Proof {
        name: "reactions",
        claim: "Of a million events in storms, for one unit that waits asleep and one that polls, on one board behind one lock, \
                every one is acted upon or counted as missed, and the board was written to as often as they acted.",
        arguments: &["--count", "1000000"],
        limit_s: 300,
    },
    Proof {
        name: "lab",
        claim: "The drivers do what they should against those of real kernels, in virtual machines: a PC, of which two boots whose \
                clock counts instructions find the same, and a board with GPIO lines.",
        arguments: &[],
        limit_s: 1200,
    },
    Proof {
        name: "exposures",
        claim: "Of a hundred exposures of 10 s on a virtual board, with an instrument read in the middle, none is shorter than \
                asked, every one that nothing disturbed is within 10 µs of it, and what is longer says so.",
        arguments: &["--count", "100", "--time", "10s"],
        limit_s: 1200,
    },
    Proof {
        name: "installs",
        claim: "Each way to install that README.md names works as it stands there, and what it shows in C, Tcl and Python runs with \
                what was installed.",
        arguments: &[],
        limit_s: 1800,
    },
    Proof {
        name: "fuzz",
        claim: "No input, of a minute's worth for each target, makes a parser of the stream crate (cards and triggers, metadata, \
                journals with the recovery that rests on them, topologies) panic or contradict itself.",
        arguments: &["--seconds", "60"],
        limit_s: 1800,
    },
    Proof {
        name: "recording-kills",
        claim: "A recorder that is killed at any moment has lost no block that its journal has: all are recovered and are \
                what was recorded.",
        arguments: &["--count", "100"],
        limit_s: 900,
    },
    Proof {
        name: "power-cuts",
        claim: "After a power cut (a copied disk image) everything is there that a sync had covered, and what is there is \
                what was recorded.",
        arguments: &["--count", "10"],
        limit_s: 600,
    },
    Proof {
        name: "recording-long",
        claim: "20 GiB from a card that keeps its own clock are recorded without loss and read back as they were made.",
        arguments: &["--gib", "20"],
        limit_s: 900,
    },
];

/// What a proof came to.
struct Outcome {
    passed: bool,
    /// Why not, or empty.
    why: String,
    figures: Map<String, Value>,
    took: Duration,
}

/// Runs the proofs; `Ok(true)` when all passed.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    if let Some(unknown) = arguments.only.iter().find(|name| PROOFS.iter().all(|proof| proof.name != name.as_str())) {
        return Err(format!("find a proof named {unknown}; --list names them"));
    }
    let all = arguments.only.is_empty();
    let chosen: Vec<&Proof> =
        PROOFS.iter().filter(|proof| all || arguments.only.iter().any(|name| name == proof.name)).collect();
    if arguments.list {
        for proof in chosen {
            println!("{:<12} {}", proof.name, proof.claim);
        }
        return Ok(true);
    }
    build(workspace)?;
    let conditions = conditions::read(workspace);
    let mut outcomes = Vec::new();
    for proof in chosen {
        eprintln!("begin  {}: {}", proof.name, proof.claim);
        let outcome = attempt(workspace, proof);
        let verdict = if outcome.passed { "pass" } else { "FAIL" };
        eprintln!("{verdict}   {} in {} s {}", proof.name, outcome.took.as_secs(), outcome.why);
        outcomes.push((proof, outcome));
    }
    let date = jiff::Timestamp::now().to_string()[..10].to_owned();
    let report = report(&date, &conditions, &outcomes);
    if all {
        let file = workspace.root.join("proofs").join(format!("{date}.md"));
        let written = fs::create_dir_all(workspace.root.join("proofs")).and_then(|()| fs::write(&file, &report));
        written.map_err(|error| format!("write {}: {error}", file.display()))?;
        eprintln!("wrote  proofs/{date}.md");
    } else {
        print!("{report}");
    }
    Ok(outcomes.iter().all(|(_, outcome)| outcome.passed))
}

fn build(workspace: &Workspace) -> Result<(), String> {
    eprintln!("begin  release build of the command and the prover");
    let begun = Instant::now();
    let status = workspace.cargo(&["build", "--release", "-p", "hairspring-cli", "-p", "prover"]).status();
    let built = status.map_err(|error| format!("run cargo build: {error}"))?.success();
    eprintln!("{}   release build in {} s", if built { "pass" } else { "FAIL" }, begun.elapsed().as_secs());
    built.then_some(()).ok_or_else(|| "build the command and the prover".to_owned())
}

fn attempt(workspace: &Workspace, proof: &Proof) -> Outcome {
    let mut command = Command::new(workspace.release_binary("prover"));
    command.arg(proof.name).args(proof.arguments).current_dir(&workspace.root);
    let log = workspace.scratch("proofs").join(format!("{}.log", proof.name));
    judge(&child::run(proof.name, &mut command, Duration::from_secs(proof.limit_s), &log))
}

/// Reads a proof's verdict off its last line; anything unexpected is a failure.
fn judge(ended: &Ended) -> Outcome {
    let last = ended.output.trim_end().lines().last().unwrap_or("");
    let result: Value = serde_json::from_str(last).unwrap_or(Value::Null);
    let figures = result["figures"].as_object().cloned().unwrap_or_default();
    let said = result["passed"].as_bool();
    let why = match (said, &ended.how) {
        (Some(true), Ending::Exit(0)) if figures.is_empty() => "it passed without a figure".to_owned(),
        (Some(true), Ending::Exit(0)) => String::new(),
        (Some(false), Ending::Exit(_)) => "the proof says it did not hold".to_owned(),
        (Some(true), how) => format!("it says it passed, yet {how}"),
        (_, how) => format!("no verdict on its last line, {how}: {last}"),
    };
    Outcome { passed: why.is_empty(), why, figures, took: ended.took }
}

fn report(date: &str, conditions: &[(&str, String)], outcomes: &[(&Proof, Outcome)]) -> String {
    let mut text = format!("# Proofs of {date}\n\nTaken by `cargo xtask prove`.\n\n## Conditions\n\n");
    for (name, value) in conditions {
        text += &format!("- {name}: {value}\n");
    }
    for (proof, outcome) in outcomes {
        let verdict = if outcome.passed { "passed" } else { "FAILED" };
        let command = [&["prover", proof.name], proof.arguments].concat().join(" ");
        let _ = write!(text, "\n## {}: {verdict}\n\n{}\n\n", proof.name, proof.claim);
        let _ = write!(text, "`{command}` took {:.1} s. {}\n\n", outcome.took.as_secs_f64(), outcome.why);
        if !outcome.figures.is_empty() {
            text += "| figure | value |\n|---|---|\n";
        }
        for (name, value) in &outcome.figures {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let _ = writeln!(text, "| {name} | {} |", value.replace('|', "\\|"));
        }
    }
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(how: Ending, output: &str, passed: bool) {
        let ended = Ended { how, output: output.to_owned(), took: Duration::from_secs(1), log: "log".into() };
        let outcome = judge(&ended);
        assert_eq!(outcome.passed, passed, "{}", outcome.why);
    }

    #[test]
    fn only_a_whole_verdict_with_figures_and_the_right_status_passes() {
        let good = "working\n{\"passed\": true, \"figures\": {\"delays\": 10000000}}\n";
        check(Ending::Exit(0), good, true);
        check(Ending::Exit(1), good, false);
        check(Ending::TimedOut(Duration::from_secs(1)), good, false);
        check(Ending::Exit(0), "{\"passed\": true, \"figures\": {}}", false);
        check(Ending::Exit(0), "{\"passed\": false, \"figures\": {\"early\": 1}}", false);
        check(Ending::Exit(0), &format!("{good}one more word\n"), false);
        check(Ending::Exit(0), "", false);
    }

    #[test]
    fn the_report_has_conditions_command_figures_and_verdict() {
        let figures = serde_json::json!({"never_early": {"n": 3}}).as_object().unwrap().clone();
        let outcome = Outcome { passed: true, why: String::new(), figures, took: Duration::from_millis(1500) };
        let text = report("2030-01-02", &[("kernel", "6.1".to_owned())], &[(&PROOFS[0], outcome)]);
        for part in [
            "# Proofs of 2030-01-02",
            "- kernel: 6.1",
            "formats: passed",
            "`prover formats` took 1.5 s",
            "| never_early | {\"n\":3} |",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
