//! The proofs, one subcommand each; `cargo xtask prove` runs them and writes the report.
//!
//! A proof prints what it likes and ends with one JSON object on the last line of standard output:
//! `{"passed": bool, "figures": {…}}`. Its exit status agrees with `passed`. It has at least one figure: the number of
//! trials, and the counts of excluded or wrong ones, each under its name. A proof that cannot be tried here gives the
//! reason under `not_run`.
//!
//! A new proof is a file here with `fn prove() -> Verdict`, a variant in `Proof`, and a row in the table of
//! `xtask/src/prove.rs` with its claim and its time limit.
#![expect(clippy::print_stdout, reason = "the verdict is the program's output")]

mod delays;
mod executive;
mod fingerprint;
mod front_end;
mod fuzz;
mod mutants;
mod order_statistics;
mod package;
mod placement;
mod recording;
mod run;
mod settings;
mod sheet;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde_json::{Map, Value, json};

#[derive(Parser)]
#[command(about = "Run one proof; the last line printed is its verdict as JSON")]
enum Proof {
    /// A sheet comes out whole in every format
    Formats,
    /// Comparisons declare nothing where nothing differs, and find a change of known size
    Agreement(sheet::agreement::Terms),
    /// Rows of a sheet agree with independent tools
    CrossCheck,
    /// Which part of the variance of figures comes from the process, and which from the time
    Variance(sheet::variance::Terms),
    /// A guaranteed minimum is never early
    NeverEarly {
        /// How many delays, half of them under each policy
        #[arg(long, default_value_t = 10_000_000)]
        count: u64,
    },
    /// Few of the delays that are late by stamps around them are called clean
    BlindSpots {
        /// How many delays of each length under each policy
        #[arg(long, default_value_t = 1_000_000)]
        count: u64,
    },
    /// The stated bound of a calibration holds in fresh processes
    Calibration {
        /// How many processes
        #[arg(long, default_value_t = 100)]
        processes: u32,
        /// The age at which each measures the true rate
        #[arg(long, default_value_t = 20)]
        seconds: u32,
        /// Be one of the processes
        #[arg(long, hide = true)]
        child: bool,
    },
    /// Culprits that are provoked on purpose are blamed by name
    Provoked {
        /// Times as much as in an ordinary run
        #[arg(long, default_value = "5")]
        times: String,
    },
    /// Gaps and late wake-ups of this machine have names
    NamedGaps,
    /// A virtual machine that is stopped blames its hypervisor
    Hypervisor,
    /// Preemptions are counted as the kernel counts them
    Sentinel {
        /// Rounds with a competitor, and as many without
        #[arg(long, default_value_t = 20)]
        rounds: u32,
        /// Length of a round in milliseconds
        #[arg(long, default_value_t = 300)]
        millis: u32,
    },
    /// Long delays end within a microsecond where nothing disturbs them
    LongDelays {
        /// Part of the full number of delays, in percent
        #[arg(long, default_value_t = 100)]
        part: u32,
    },
    /// The executive's core keeps its invariants in every state of small systems, and agrees with a naive model
    ExecutiveCore {
        /// Times the ordinary number of states and random programs
        #[arg(long, default_value = "6")]
        times: String,
    },
    /// Each of a list of deliberate breaks of the core is found by the test that the list names
    ExecutiveMutants,
    /// A call that readies a more urgent task does not return before that task has run
    Preemption {
        /// How many wakes
        #[arg(long, default_value_t = 10_000)]
        count: u64,
    },
    /// A periodic timer does not drift
    PeriodicTimer {
        /// How long on the host
        #[arg(long, default_value_t = 60)]
        seconds: i64,
    },
    /// Priority inversion, and its cures
    Inversion,
    /// The executive's timer is as late as cyclictest measures that this kernel wakes threads
    Cyclictest {
        /// How long each
        #[arg(long, default_value_t = 5)]
        seconds: i64,
    },
    /// The lock-free parts work in every interleaving of their threads
    Interleavings,
    /// Settings are as before, whenever the command that changed them was killed
    Undo {
        /// How many kills
        #[arg(long, default_value_t = 100)]
        count: u32,
    },
    /// A program is woken sooner under `hairspring run --set idle=off`
    Run {
        /// Length of each of ten runs of cyclictest
        #[arg(long, default_value_t = 5)]
        seconds: u32,
    },
    /// Event to action, and the ring, under settings
    Applied,
    /// `can` answers soon
    Answers,
    /// `doctor` finds the idle states unasked
    Doctor,
    /// A killed recorder has lost no block that its journal has
    RecordingKills {
        /// How many kills
        #[arg(long, default_value_t = 100)]
        count: u32,
        /// Where to record
        #[arg(long, default_value = "target/prove-recording")]
        dir: PathBuf,
    },
    /// A power cut takes nothing that a sync had covered
    PowerCuts {
        /// How many cuts
        #[arg(long, default_value_t = 10)]
        count: u32,
        /// Where the disk images lie
        #[arg(long, default_value = "target/prove-recording")]
        dir: PathBuf,
    },
    /// A power cut takes nothing of a series that a sync had covered
    SeriesPowerCuts {
        /// How many cuts
        #[arg(long, default_value_t = 100)]
        count: u32,
        /// Where the disk image lies
        #[arg(long, default_value = "target/prove-recording")]
        dir: PathBuf,
    },
    /// A recorder of a series that is killed and resumed has lost no block that a journal has
    SeriesKills {
        /// How many kills
        #[arg(long, default_value_t = 100)]
        count: u32,
        /// Where to record
        #[arg(long, default_value = "target/prove-recording")]
        dir: PathBuf,
    },
    /// A series records more than is kept, in bounded space
    SeriesLong {
        /// How much, in GB
        #[arg(long, default_value_t = 100)]
        gb: u64,
        /// The card's rate, in frames of 8 bytes
        #[arg(long, default_value = "62.5MS/s")]
        rate: String,
        /// How many segments of 1 GiB are kept
        #[arg(long, default_value_t = 4)]
        keep: u64,
        /// Where to record
        #[arg(long, default_value = "target/prove-recording")]
        dir: PathBuf,
    },
    /// A long recording is read back whole
    RecordingLong {
        /// How much
        #[arg(long, default_value_t = 20)]
        gib: u64,
        /// The card's rate, in frames of 8 bytes
        #[arg(long, default_value = "62.5MS/s")]
        rate: String,
        /// Where to record
        #[arg(long, default_value = "target/prove-recording")]
        dir: PathBuf,
    },
    /// The sanitizers see no data race and no bad access in the tests of ring, source, record and play that have
    /// threads or raw memory
    StreamSanitizers,
    /// The sanitizers see no data race and no bad access in the tests of the executive's thread back-end
    ExecutiveSanitizers,
    /// The sanitizers see no data race and no bad access in the programs in C of the executive
    CSanitizers,
    /// No pulse is shorter than asked
    Pulses {
        /// How many
        #[arg(long, default_value_t = 1_000_000)]
        count: u64,
    },
    /// Every event is acted upon or counted as missed
    Reactions {
        /// How many
        #[arg(long, default_value_t = 1_000_000)]
        count: u64,
    },
    /// The drivers work against those of real kernels, in virtual machines
    Lab,
    /// Exposures that nothing disturbed end within 10 µs of their time
    Exposures {
        /// How many
        #[arg(long, default_value_t = 100)]
        count: u32,
        /// How long each
        #[arg(long, default_value = "10s")]
        time: hairspring_machine::Nanos,
    },
    /// Each way to install works as README.md documents it
    Installs,
    /// An archive of many sheets is small and fast
    Archive {
        /// How many sheets
        #[arg(long, default_value_t = 10_000)]
        sheets: u64,
    },
    /// Each crate compiles out of its package
    Crates,
    /// Licences, sources and advisories of all crates
    Deny,
    /// Two releases, made in folders of different names, are equal byte for byte
    Release {
        /// Only these parts
        #[arg(long, value_name = "PART")]
        parts: Vec<String>,
    },
    /// Debian packages and the source distribution are installed, used and removed
    Packages,
    /// The metadata of recordings on the scripted disk are true after every end
    Crashes {
        /// How many recordings
        #[arg(long, default_value_t = 20_000)]
        seeds: u64,
        /// The seed to begin with
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// For how long at most; another run goes on from there
        #[arg(long, default_value_t = 5_000)]
        seconds: u64,
    },
    /// The way into and out of a delay costs no more than a peer's
    WayOut,
    /// Tests of the project in their long form; their figures are the lines `figure: NAME: VALUE` that they print
    Tests {
        /// Times as much as in an ordinary run
        #[arg(long, default_value = "1")]
        times: String,
        /// A variable of the environment for Cargo and the tests
        #[arg(long, value_name = "NAME=VALUE")]
        set: Vec<String>,
        /// The arguments of `cargo test` as one text, those of libtest left out
        #[arg(allow_hyphen_values = true)]
        arguments: String,
    },
    /// Steps of `cargo xtask test` that are short and long form in one
    Steps {
        /// Which
        #[arg(required = true)]
        steps: Vec<String>,
    },
    /// Every change that cargo-mutants makes to a part of the code is found by a test
    Mutants {
        /// Which part
        part: String,
        /// For how long at most; another run goes on from there
        #[arg(long, default_value_t = 10_800)]
        seconds: u32,
    },
    /// Every change of a random sample is found by a test
    MutantsSample {
        /// How many are drawn, at least
        #[arg(long, default_value_t = 350)]
        mutants: usize,
        /// Seed of the draw
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// For how long at most; another run goes on from there
        #[arg(long, default_value_t = 10_800)]
        seconds: u32,
        /// Try only those of these parts; what is known of the others is in the result
        parts: Vec<String>,
    },
    /// No input makes a parser panic or contradict itself
    Fuzz(fuzz::Terms),
}

/// The tests of ring, source, record and play with threads or raw memory.
const STREAM_CRATES: &[&str] = &["hairspring-ring", "hairspring-source", "hairspring-record", "hairspring-play"];
const STREAM_TESTS: &[&str] =
    &["ring::", "memory::", "monitor::", "player::", "trigger::external::", "session::", "recorder::", "store::"];

/// The tests of the thread back-end but those of its cost. Fibers are left out: ThreadSanitizer keeps a stack of calls
/// for each thread, and a switch of stacks without notice to it upsets that.
const EXECUTIVE_TESTS: &[&str] = &["thread::", "--skip", "thread::tests::cost::"];

/// Outcome and figures of a proof.
struct Verdict {
    passed: bool,
    figures: Map<String, Value>,
}

/// The figure with the reason why a proof could not be tried: then it has not passed, and has not failed either.
const NOT_RUN: &str = "not run";

impl Verdict {
    fn not_run(reason: String) -> Self {
        Self { passed: false, figures: Map::from_iter([(NOT_RUN.to_owned(), json!(reason))]) }
    }
}

fn main() -> ExitCode {
    let verdict = match Proof::parse() {
        Proof::Formats => sheet::formats::prove(),
        Proof::Agreement(terms) => sheet::agreement::prove(&terms),
        Proof::CrossCheck => sheet::cross_check::prove(),
        Proof::Variance(terms) => sheet::variance::prove(&terms),
        Proof::NeverEarly { count } => delays::never_early::prove(count),
        Proof::BlindSpots { count } => delays::blind_spots::prove(count),
        Proof::Calibration { child: true, seconds, .. } => delays::calibration::child(seconds),
        Proof::Calibration { processes, seconds, .. } => delays::calibration::prove(processes, seconds),
        Proof::Provoked { times } => run::cargo_test::prove(
            &["--release", "-p", "hairspring-culprit", "--lib", "--", "--nocapture", "--test-threads=1", "provoked"],
            &[("HAIRSPRING_PROOF", &times)],
        ),
        Proof::NamedGaps => sheet::named_gaps::prove(),
        Proof::Hypervisor => run::lab::hypervisor(),
        Proof::Sentinel { rounds, millis } => delays::sentinel::prove(rounds, millis),
        Proof::LongDelays { part } => delays::long_delays::prove(part),
        Proof::ExecutiveCore { times } => run::cargo_test::prove(
            &["-p", "hairspring-exec-core", "--test", "it", "--", "--nocapture"],
            &[("HAIRSPRING_PROOF", &times)],
        ),
        Proof::ExecutiveMutants => executive::mutants::prove(),
        Proof::Preemption { count } => executive::preemption(count),
        Proof::PeriodicTimer { seconds } => executive::periodic_timer(seconds),
        Proof::Inversion => executive::inversion(),
        Proof::Cyclictest { seconds } => executive::cyclictest(seconds),
        Proof::Interleavings => run::cargo_test::prove(
            &[
                "-p",
                "hairspring-exec",
                "-p",
                "hairspring-ring",
                "-p",
                "hairspring-device",
                "-p",
                "hairspring-station",
                "-p",
                "hairspring-c",
                "--lib",
                "loom_checks",
            ],
            &[("RUSTFLAGS", "--cfg loom"), ("CARGO_TARGET_DIR", "target/loom")],
        ),
        Proof::Undo { count } => settings::undo::prove(count),
        Proof::Run { seconds } => settings::run::prove(seconds),
        Proof::Applied => sheet::conclusions::applied(),
        Proof::Answers => sheet::conclusions::answers(),
        Proof::Doctor => sheet::conclusions::doctor(),
        Proof::RecordingKills { count, dir } => recording::kills(count, &dir),
        Proof::SeriesKills { count, dir } => recording::series::kills(count, &dir),
        Proof::SeriesPowerCuts { count, dir } => recording::series::power_cuts(count, &dir),
        Proof::SeriesLong { gb, rate, keep, dir } => recording::series::long(gb, &rate, keep, &dir),
        Proof::PowerCuts { count, dir } => recording::power_cuts(count, &dir),
        Proof::RecordingLong { gib, rate, dir } => recording::long(gib, &rate, &dir),
        Proof::Pulses { count } => front_end::pulses::prove(count),
        Proof::Reactions { count } => front_end::reactions::prove(count),
        Proof::Lab => run::lab::prove(),
        Proof::Exposures { count, time } => front_end::exposures::prove(count, time),
        Proof::Installs => package::installs::prove(),
        Proof::Archive { sheets } => sheet::archive::prove(sheets),
        Proof::Crates => package::distribution::prove_crates(),
        Proof::Deny => package::distribution::prove_deny(),
        Proof::Release { parts } => package::distribution::prove_release(&parts),
        Proof::Packages => package::distribution::prove_packages(),
        Proof::Tests { times, set, arguments } => {
            let arguments: Vec<&str> = arguments.split_whitespace().chain(["--", "--nocapture"]).collect();
            let set = set.iter().filter_map(|variable| variable.split_once('='));
            let environment: Vec<(&str, &str)> = set.chain([("HAIRSPRING_PROOF", times.as_str())]).collect();
            run::cargo_test::prove(&arguments, &environment)
        }
        Proof::Crashes { seeds, from, seconds } => recording::crashes::prove(seeds, from, seconds),
        Proof::WayOut => delays::way_out::prove(),
        Proof::Steps { steps } => run::steps::prove(&steps),
        Proof::Mutants { part, seconds } => mutants::prove(&part, seconds),
        Proof::MutantsSample { mutants, seed, seconds, parts } => {
            mutants::sample::prove(mutants, seed, seconds, &parts)
        }
        Proof::Fuzz(terms) => fuzz::prove(&terms),
        Proof::StreamSanitizers => run::cargo_test::sanitize(STREAM_CRATES, STREAM_TESTS),
        Proof::CSanitizers => run::c_sanitizers::prove(),
        Proof::ExecutiveSanitizers => run::cargo_test::sanitize(&["hairspring-exec"], EXECUTIVE_TESTS),
    };
    let mut said = json!({"passed": verdict.passed, "figures": verdict.figures});
    if let Some(reason) = verdict.figures.get(NOT_RUN).filter(|_| !verdict.passed) {
        said["not_run"] = reason.clone();
    }
    println!("{said}");
    if verdict.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
