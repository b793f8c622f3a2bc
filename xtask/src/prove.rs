//! `cargo xtask prove`: the long proofs, in release mode, with a dated report that is committed under `proofs/`.
//!
//! A proof is a subcommand of the program `prover` (xtask/prover). The last line it prints is one JSON object,
//! `{"passed": bool, "figures": {…}}`; everything it says goes to its log. A proof that does not end with that line,
//! ends with another exit status than its verdict, has no figure, or runs over its limit has failed. The report
//! names the conditions first: a figure without them is none.
//!
//! Proofs come in groups. The general ones and the laws are the whole run. The mutants take hours and run only when
//! they are named; they keep their results, so a run that was ended goes on where it stopped.

mod conditions;
mod distribution;
mod laws;
mod mutants;

use std::fmt::Write;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::child::{self, Ended, Ending};
use crate::workspace::Workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run only the proofs and groups with these names; the report of one group is written, that of anything else is
    /// printed
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Name the proofs and end
    #[arg(long)]
    list: bool,
    /// Let `agreement` and `fuzz` go on where a run of them was ended
    #[arg(long)]
    resume: bool,
    /// Write the report, under proofs/, of whatever is run
    #[arg(long)]
    keep: bool,
    /// Let `fuzz` end after so many seconds; --resume goes on from there
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Let `mutants-sample` draw at least so many
    #[arg(long, value_name = "N")]
    mutants: Option<u32>,
}

struct Proof {
    name: &'static str,
    /// What has been shown when it passes, as a sentence.
    claim: &'static str,
    /// The prover's subcommand and its arguments.
    command: &'static [&'static str],
    limit_s: u64,
}

/// Proofs that are chosen by one name.
struct Group {
    name: &'static str,
    proofs: &'static [Proof],
    /// A run without `--only` has them.
    in_whole_run: bool,
}

const GROUPS: [Group; 8] = [
    Group { name: "general", proofs: PROOFS, in_whole_run: true },
    Group { name: "laws", proofs: laws::PROOFS, in_whole_run: true },
    Group { name: "culprits", proofs: CULPRITS, in_whole_run: true },
    Group { name: "settings", proofs: SETTINGS, in_whole_run: true },
    Group { name: "comparisons", proofs: COMPARISONS, in_whole_run: false },
    Group { name: "distribution", proofs: distribution::PROOFS, in_whole_run: false },
    Group { name: "fuzzing", proofs: FUZZING, in_whole_run: false },
    Group { name: "mutants", proofs: mutants::PROOFS, in_whole_run: false },
];

/// The proofs of these names and of the groups of these names, each once, in the order of the tables.
fn choose(only: &[String]) -> Result<Vec<&'static Proof>, String> {
    let known =
        |name: &str| GROUPS.iter().any(|group| group.name == name || group.proofs.iter().any(|p| p.name == name));
    if let Some(unknown) = only.iter().find(|name| !known(name)) {
        return Err(format!("find a proof named {unknown}; --list names them"));
    }
    let named = |name: &str| only.iter().any(|wanted| wanted == name);
    let mut chosen = Vec::new();
    for group in &GROUPS {
        let whole = if only.is_empty() { group.in_whole_run } else { named(group.name) };
        chosen.extend(group.proofs.iter().filter(|proof| whole || named(proof.name)));
    }
    Ok(chosen)
}

/// The report's file under `proofs/`: a whole run has one, a whole group, and a proof that no whole run has; anything
/// else if it is to be kept.
fn report_file(date: &str, only: &[String], keep: bool) -> Option<String> {
    let is_named = |group: &Group, name: &str| {
        group.name == name || !group.in_whole_run && group.proofs.iter().any(|proof| proof.name == name)
    };
    match only {
        [] => Some(format!("{date}.md")),
        names if keep => Some(format!("{date}-{}.md", names.join("-"))),
        [name] if GROUPS.iter().any(|group| is_named(group, name)) => Some(format!("{date}-{name}.md")),
        _ => None,
    }
}

/// Who took the time.
const CULPRITS: &[Proof] = &[
    Proof {
        name: "provoked",
        claim: "Provoked on purpose, these are blamed by name for at least 99 % of the time that they took for certain: a task of each policy, a page \
                fault, a storm of timers, a disk's interrupts, the loopback network's softirq, a kernel worker, a call of another CPU, a limit \
                of the group, and a move to another CPU.",
        command: &["provoked", "--times", "5"],
        limit_s: 300,
    },
    Proof {
        name: "named-gaps",
        claim: "On each CPU at least 95 % of the gaps of a polling loop and of the late wake-ups have a name.",
        command: &["named-gaps"],
        limit_s: 300,
    },
    Proof {
        name: "hypervisor",
        claim: "A virtual machine that is stopped 20 times blames its hypervisor for at least 99 % of the time in the holes.",
        command: &["hypervisor"],
        limit_s: 600,
    },
];

/// What changes the machine for a moment.
const SETTINGS: &[Proof] = &[
    Proof {
        name: "undo",
        claim: "Of a hundred commands that change settings of the machine and are killed at random moments, half of them with the \
                process that watches over them, each leaves the machine as it was: every file of the catalogue shows what it showed.",
        command: &["undo", "--count", "100"],
        limit_s: 600,
    },
    Proof {
        name: "run",
        claim: "Where cyclictest is installed: under `hairspring run --set idle=off` its median is at most 60 % of the plain one.",
        command: &["run", "--seconds", "5"],
        limit_s: 300,
    },
    Proof {
        name: "applied",
        claim: "Under `hairspring run --set idle=off,policy=fifo:80` event to action by eventfd has a median of at most 4 µs, and the ring at 1 MiB \
                reaches at least 95 % of the copy with adaptive polling.",
        command: &["applied"],
        limit_s: 240,
    },
    Proof {
        name: "answers",
        claim: "`hairspring can` answers within 90 s by measuring, and within 1 s from a sheet.",
        command: &["answers"],
        limit_s: 240,
    },
    Proof {
        name: "doctor",
        claim: "`hairspring doctor` finds unasked that idle states limit event to action, and makes it at least three times as fast, within 3 minutes.",
        command: &["doctor"],
        limit_s: 240,
    },
];

/// Inputs to parsers: hours, so only when they are named.
const FUZZING: &[Proof] = &[Proof {
    name: FUZZ,
    claim: "No input of a hundred million makes a parser of foreign files, packets or answers panic, hang or contradict itself: cards, devices \
            and triggers, channels, stations and requests to them, pages of stations, taps, datagrams, sound cards, browsers, metadata, journals with \
            the recovery that rests on them, compressed samples, indexes of series, topologies, sheets and their archive.",
    command: &["fuzz", "--inputs", "100000000"],
    limit_s: 4 * 3600,
}];

/// Hours on a machine that does nothing else, so only when they are named.
const COMPARISONS: &[Proof] = &[
    Proof {
        name: "variance",
        claim: "Which part of the variance of a figure's medians lies between rounds of one process, which part fresh processes add, and which \
            part minutes add: published, not judged.",
        command: &["variance"],
        limit_s: 3600,
    },
    Proof {
        name: "agreement",
        claim: "Of ten comparisons of a build with its own copy in turns (10 rounds, in the time of `--quick`) at most two declare a row, at most \
            0.2 % of the rows are \
            declared, and their signs are balanced; five pairs of single sheets declare none. Of the quiet rows 65 % are found at a \
            change of 10 % and 80 % at 20 %, none with the wrong sign, and 90 % of the intervals hold the change. A load that \
            grows or begins in the middle declares no more.",
        command: &["agreement", "--quick", "--runs", "10", "--rounds", "10"],
        limit_s: 6 * 3600,
    },
    Proof {
        name: "cross-check",
        claim: "Rows of a sheet agree with what independent tools of this machine measure of the same thing, each within a factor that the \
            two ways to measure leave open.",
        command: &["cross-check"],
        limit_s: 900,
    },
];

const FUZZ: &str = "fuzz";
/// The proofs that keep what they have measured, and go on with it.
const RESUMABLE: [&str; 2] = ["agreement", FUZZ];

const PROOFS: &[Proof] = &[
    Proof {
        name: "formats",
        claim: "A sheet comes out whole in every format, and the JSON document says which version it is.",
        command: &["formats"],
        limit_s: 900,
    },
    Proof {
        name: "never-early",
        claim: "None of ten million guaranteed-minimum delays of 0 to 20 µs is early by stamps around it, under \
                SCHED_OTHER and SCHED_FIFO.",
        command: &["never-early", "--count", "10000000"],
        limit_s: 900,
    },
    Proof {
        name: "calibration",
        claim: "In a hundred fresh processes the true rate lies inside the stated bound, which is at most 20 ppm at the \
                age of 5 ms and 1 ppm at 100 ms in 95 of them, for at most 1 ms of CPU time.",
        command: &["calibration", "--processes", "100"],
        limit_s: 300,
    },
    Proof {
        name: "sentinel",
        claim: "Preemptions are counted without a system call as the kernel counts involuntary switches.",
        command: &["sentinel", "--rounds", "20"],
        limit_s: 120,
    },
    Proof {
        name: "long-delays",
        claim: "Long delays of 1 ms to 1 s are never early and at the median at most 50 ns late, under SCHED_OTHER and \
                SCHED_FIFO; under SCHED_FIFO 99 % of the undisturbed ones end within 1 µs; at 1 s they use at most 0.1 % of \
                the CPU.",
        command: &["long-delays"],
        limit_s: 300,
    },
    Proof {
        name: "executive-core",
        claim: "The executive's core keeps every invariant in all states of small systems (up to 4 tasks, 2 resources of all \
                protocols, a mailbox, a semaphore), as far as each is explored, and does what a naive model does in random \
                programs.",
        command: &["executive-core", "--times", "6"],
        limit_s: 900,
    },
    Proof {
        name: "executive-fast-paths",
        claim: "Wakes, waits, starts, ends, messages and units of semaphores by the core's fast paths come out as in a naive model (20 million \
                random calls, at least half of them by a fast path), and on fibers by the short way, compiled into the task, as by the core \
                (16 million calls, more than half of them by the short way).",
        command: &[
            "tests",
            "--times",
            "200",
            "--release -p hairspring-exec-core -p hairspring-exec --test it fast_paths",
        ],
        limit_s: 1800,
    },
    Proof {
        name: "executive-mutants",
        claim: "Each deliberate break of the core that mutants.toml lists is found by the test named there.",
        command: &["executive-mutants"],
        limit_s: 1800,
    },
    Proof {
        name: "preemption",
        claim: "Each of ten thousand wakes of a more urgent task has run that task before the call returned, on fibers and on \
                threads on one CPU.",
        command: &["preemption", "--count", "10000"],
        limit_s: 120,
    },
    Proof {
        name: "periodic-timer",
        claim: "A periodic timer keeps to t0 + n·p: exactly over 100,000 periods in virtual time; after 60 s on the host it \
                is no later than at the beginning. It is never early.",
        command: &["periodic-timer", "--seconds", "60"],
        limit_s: 300,
    },
    Proof {
        name: "inversion",
        claim: "Without a remedy an urgent task waits for a middle one's computing; with inheritance or a ceiling only for \
                the owner's.",
        command: &["inversion"],
        limit_s: 120,
    },
    Proof {
        name: "cyclictest",
        claim: "Where cyclictest is installed: a periodic timer of threads on one CPU is late by the same order of magnitude \
                as cyclictest sees on the same kernel.",
        command: &["cyclictest", "--seconds", "5"],
        limit_s: 60,
    },
    Proof {
        name: "pulses",
        claim: "Of a million pulses on a virtual board none is shorter than asked.",
        command: &["pulses", "--count", "1000000"],
        limit_s: 120,
    },
    Proof {
        name: "reactions",
        claim: "Of a million events in storms, for one unit that waits asleep and one that polls, on one board behind one lock, \
                every one is acted upon or counted as missed, and the board was written to as often as they acted.",
        command: &["reactions", "--count", "1000000"],
        limit_s: 300,
    },
    Proof {
        name: "lab",
        claim: "The drivers do what they should against those of real kernels, in virtual machines: a PC, of which two boots whose \
                clock counts instructions find the same, and a board with GPIO lines.",
        command: &["lab"],
        limit_s: 1200,
    },
    Proof {
        name: "exposures",
        claim: "Of a hundred exposures of 10 s on a virtual board, with an instrument read in the middle, none is shorter than \
                asked, every one that nothing disturbed is within 10 µs of it, and what is longer says so.",
        command: &["exposures", "--count", "100", "--time", "10s"],
        limit_s: 1200,
    },
    Proof {
        name: "installs",
        claim: "Each way to install that README.md names works as it stands there, and what it shows in C, Tcl and Python runs with \
                what was installed.",
        command: &["installs"],
        limit_s: 1800,
    },
    Proof {
        name: "archive",
        claim: "An archive of 10,000 sheets takes at most 150 kB for each; listing it takes at most 0.2 s, the trend of one figure 0.5 s, comparing two of \
                them 0.1 s, each as the median of five.",
        command: &["archive", "--sheets", "10000"],
        limit_s: 1800,
    },
    Proof {
        name: "recording-kills",
        claim: "A recorder that is killed at any moment has lost no block that its journal has: all are recovered and are \
                what was recorded.",
        command: &["recording-kills", "--count", "100"],
        limit_s: 900,
    },
    Proof {
        name: "series-kills",
        claim: "A series whose recorder is killed 100 times, across cuts, deletions and resumptions, has lost no block that a journal has, and \
                a second recovery finds nothing to do.",
        command: &["series-kills", "--count", "100"],
        limit_s: 1800,
    },
    Proof {
        name: "series-power-cuts",
        claim: "A series whose disk loses power 100 times, across cuts, deletions and resumptions, has everything that a sync had covered; what is there is \
                what was recorded, and a second recovery finds nothing to do.",
        command: &["series-power-cuts", "--count", "100"],
        limit_s: 1800,
    },
    Proof {
        name: "series-long",
        claim: "100 GB at 500 MB/s are recorded in segments without loss, in the space of the four segments that are kept and those under way; \
                what is kept is read back as it was made.",
        command: &["series-long", "--gb", "100"],
        limit_s: 1800,
    },
    Proof {
        name: "series-year",
        claim: "A series of a million segments on the scripted disk needs no more memory, open files and metadata than one of a thousand.",
        command: &["tests", "--times", "3334", "--release -p hairspring-record --test it a_simulated_year"],
        limit_s: 7200,
    },
    Proof {
        name: "power-cuts",
        claim: "After a power cut (a copied disk image) everything is there that a sync had covered, and what is there is \
                what was recorded.",
        command: &["power-cuts", "--count", "10"],
        limit_s: 600,
    },
    Proof {
        name: "recording-long",
        claim: "20 GiB from a card that keeps its own clock are recorded without loss and read back as they were made.",
        command: &["recording-long", "--gib", "20"],
        limit_s: 900,
    },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    /// It could not be tried here, so it shows nothing. The whole has not passed either.
    NotRun,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "FAILED",
            Verdict::NotRun => "NOT RUN",
        }
    }
}

/// What a proof came to.
struct Outcome {
    verdict: Verdict,
    /// Why not, or empty.
    why: String,
    figures: Map<String, Value>,
    took: Duration,
}

/// Runs the proofs; `Ok(true)` when all passed.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    if arguments.list {
        for group in &GROUPS {
            println!("{}{}", group.name, if group.in_whole_run { "" } else { " (only when named)" });
            group.proofs.iter().for_each(|proof| println!("  {:<18} {}", proof.name, proof.claim));
        }
        return Ok(true);
    }
    let chosen = choose(&arguments.only)?;
    build(workspace)?;
    let conditions = conditions::read(workspace);
    let mut outcomes = Vec::new();
    for proof in chosen {
        eprintln!("begin  {}: {}", proof.name, proof.claim);
        let outcome = attempt(workspace, proof, arguments);
        eprintln!("{} {} in {} s {}", outcome.verdict.word(), proof.name, outcome.took.as_secs(), outcome.why);
        outcomes.push((proof, outcome));
    }
    let date = jiff::Timestamp::now().to_string()[..10].to_owned();
    let report = report(&date, &conditions, &outcomes);
    if let Some(name) = report_file(&date, &arguments.only, arguments.keep) {
        let file = workspace.root.join("proofs").join(&name);
        let written = fs::create_dir_all(workspace.root.join("proofs")).and_then(|()| fs::write(&file, &report));
        written.map_err(|error| format!("write {}: {error}", file.display()))?;
        eprintln!("wrote  proofs/{name}");
    } else {
        print!("{report}");
    }
    Ok(outcomes.iter().all(|(_, outcome)| outcome.verdict == Verdict::Passed))
}

fn build(workspace: &Workspace) -> Result<(), String> {
    eprintln!("begin  release build of the command and the prover");
    let begun = Instant::now();
    let mut cargo = workspace.cargo(&["build", "--release", "-p", "hairspring-cli", "-p", "prover"]);
    let built = cargo.status().map_err(|error| format!("run cargo build: {error}"))?.success();
    eprintln!("{}   release build in {} s", if built { "pass" } else { "FAIL" }, begun.elapsed().as_secs());
    built.then_some(()).ok_or_else(|| "build the command and the prover".to_owned())
}

fn attempt(workspace: &Workspace, proof: &Proof, arguments: &Arguments) -> Outcome {
    let mut command = Command::new(workspace.release_binary("prover"));
    command.args(proof.command).current_dir(&workspace.root);
    command.args((arguments.resume && RESUMABLE.contains(&proof.name)).then_some("--resume"));
    if let Some(drawn) = arguments.mutants.filter(|_| proof.name == mutants::SAMPLE) {
        command.args(["--mutants", &drawn.to_string()]);
    }
    if let Some(seconds) = arguments.seconds.filter(|_| proof.name == FUZZ) {
        command.args(["--seconds", &seconds.to_string()]);
    }
    let log = workspace.scratch("proofs").join(format!("{}.log", proof.name));
    judge(&child::run(proof.name, &mut command, Duration::from_secs(proof.limit_s), &log))
}

/// Reads a proof's verdict off its last line; anything unexpected is a failure.
fn judge(ended: &Ended) -> Outcome {
    let last = ended.output.trim_end().lines().last().unwrap_or("");
    let result: Value = serde_json::from_str(last).unwrap_or(Value::Null);
    let figures = result["figures"].as_object().cloned().unwrap_or_default();
    let said = result["passed"].as_bool();
    if let (Some(false), Ending::Exit(_), Some(reason)) = (said, &ended.how, result["not_run"].as_str()) {
        return Outcome { verdict: Verdict::NotRun, why: reason.to_owned(), figures, took: ended.took };
    }
    let why = match (said, &ended.how) {
        (Some(true), Ending::Exit(0)) if figures.is_empty() => "it passed without a figure".to_owned(),
        (Some(true), Ending::Exit(0)) => String::new(),
        (Some(false), Ending::Exit(_)) => "the proof says it did not hold".to_owned(),
        (Some(true), how) => format!("it says it passed, yet {how}"),
        (_, how) => format!("no verdict on its last line, {how}: {last}"),
    };
    let verdict = if why.is_empty() { Verdict::Passed } else { Verdict::Failed };
    Outcome { verdict, why, figures, took: ended.took }
}

fn report(date: &str, conditions: &[(&str, String)], outcomes: &[(&Proof, Outcome)]) -> String {
    let mut text = format!("# Proofs of {date}\n\nTaken by `cargo xtask prove`.\n\n## Conditions\n\n");
    for (name, value) in conditions {
        text += &format!("- {name}: {value}\n");
    }
    text += "\n## Verdicts\n\n| proof | verdict |\n|---|---|\n";
    for (proof, outcome) in outcomes {
        let _ = writeln!(text, "| {} | {} |", proof.name, outcome.verdict.word());
    }
    for (proof, outcome) in outcomes {
        let verdict = outcome.verdict.word();
        let command = format!("prover {}", proof.command.join(" "));
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
    fn check(how: Ending, output: &str, verdict: Verdict) {
        let outcome = judge(&Ended::of(how, output));
        assert_eq!(outcome.verdict, verdict, "{}", outcome.why);
    }

    #[test]
    fn only_a_whole_verdict_with_figures_and_the_right_status_passes() {
        let good = "working\n{\"passed\": true, \"figures\": {\"delays\": 10000000}}\n";
        check(Ending::Exit(0), good, Verdict::Passed);
        check(Ending::Exit(1), good, Verdict::Failed);
        check(Ending::TimedOut(Duration::from_secs(1)), good, Verdict::Failed);
        check(Ending::Exit(0), "{\"passed\": true, \"figures\": {}}", Verdict::Failed);
        check(Ending::Exit(0), "{\"passed\": false, \"figures\": {\"early\": 1}}", Verdict::Failed);
        check(Ending::Exit(0), &format!("{good}one more word\n"), Verdict::Failed);
        check(Ending::Exit(0), "", Verdict::Failed);
    }

    #[test]
    fn a_proof_that_could_not_be_tried_has_neither_passed_nor_failed() {
        let not_run = "{\"passed\": false, \"figures\": {}, \"not_run\": \"adjtimex is refused\"}";
        check(Ending::Exit(1), not_run, Verdict::NotRun);
        check(Ending::TimedOut(Duration::from_secs(1)), not_run, Verdict::Failed);
        let both = "{\"passed\": true, \"figures\": {\"n\": 1}, \"not_run\": \"half of it\"}";
        check(Ending::Exit(1), both, Verdict::Failed);
    }

    #[test]
    fn the_report_has_conditions_command_figures_and_verdict() {
        let figures = serde_json::json!({"never_early": {"n": 3}}).as_object().unwrap().clone();
        let took = Duration::from_millis(1500);
        let outcome = Outcome { verdict: Verdict::Passed, why: String::new(), figures, took };
        let absent = Outcome { verdict: Verdict::NotRun, why: "no permission".to_owned(), figures: Map::new(), took };
        let outcomes = [(&PROOFS[0], outcome), (&PROOFS[1], absent)];
        let text = report("2030-01-02", &[("kernel", "6.1".to_owned())], &outcomes);
        for part in [
            "# Proofs of 2030-01-02",
            "- kernel: 6.1",
            "| never-early | NOT RUN |",
            "formats: passed",
            "`prover formats` took 1.5 s",
            "| never_early | {\"n\":3} |",
            "never-early: NOT RUN",
            "no permission",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn a_group_is_chosen_by_its_name_and_only_a_whole_one_has_a_report_of_its_own() {
        let only = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(choose(&[]).unwrap().len(), PROOFS.len() + laws::PROOFS.len() + CULPRITS.len() + SETTINGS.len());
        assert_eq!(choose(&only(&["laws"])).unwrap().len(), laws::PROOFS.len());
        let [first, second] = [laws::PROOFS[0].name, PROOFS[0].name];
        let chosen = choose(&only(&[first, second, first])).unwrap();
        assert_eq!(chosen.iter().map(|proof| proof.name).collect::<Vec<_>>(), [second, first]);
        assert_eq!(choose(&only(&["laws", first])).unwrap().len(), laws::PROOFS.len());
        assert!(choose(&only(&["lawz"])).is_err_and(|error| error.contains("lawz")));
        assert_eq!(report_file("2030-01-02", &[], false).as_deref(), Some("2030-01-02.md"));
        assert_eq!(report_file("2030-01-02", &only(&["laws"]), false).as_deref(), Some("2030-01-02-laws.md"));
        assert_eq!(report_file("2030-01-02", &only(&[second]), false), None);
        let both = only(&[second, first]);
        assert_eq!(report_file("2030-01-02", &both, true), Some(format!("2030-01-02-{second}-{first}.md")));
        assert_eq!(
            report_file("2030-01-02", &only(&[RESUMABLE[0]]), false).as_deref(),
            Some("2030-01-02-agreement.md")
        );
        assert_eq!(report_file("2030-01-02", &only(&[FUZZ]), false).as_deref(), Some("2030-01-02-fuzz.md"));
    }

    #[test]
    fn no_two_proofs_or_groups_share_a_name() {
        let mut names: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
        names.extend(GROUPS.iter().flat_map(|group| group.proofs).map(|proof| proof.name));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
