//! The proofs, one subcommand each; `cargo xtask prove` runs them and writes the report.
//!
//! A proof prints what it likes and ends with one JSON object on the last line of standard output:
//! `{"passed": bool, "figures": {…}}`. Its exit status agrees with `passed`. It has at least one figure: how much
//! was tried, and under which names the counts of what was excluded or wrong can be found.
//!
//! A new proof is a file here with `fn prove() -> Verdict`, a variant in `Proof`, and a row in the table of
//! `xtask/src/prove.rs` with its claim and its time limit.
#![expect(clippy::print_stdout, reason = "the verdict is the program's output")]

mod formats;

use std::process::ExitCode;

use clap::Parser;
use serde_json::{Map, Value, json};

#[derive(Parser)]
#[command(about = "Run one proof; the last line printed is its verdict as JSON")]
enum Proof {
    /// A sheet comes out whole in every format
    Formats,
}

/// What a proof found.
struct Verdict {
    passed: bool,
    figures: Map<String, Value>,
}

fn main() -> ExitCode {
    let verdict = match Proof::parse() {
        Proof::Formats => formats::prove(),
    };
    println!("{}", json!({"passed": verdict.passed, "figures": verdict.figures}));
    if verdict.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
