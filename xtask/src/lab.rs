//! `cargo xtask lab`: the drivers against the kernel's real ones, in a virtual machine that is made, run and thrown away.
//!
//! The machine is QEMU in software emulation with a PREEMPT_RT kernel of the distribution; its programs are `lab-guest` and the command (see
//! `lab/README.md`). What the guest found comes back as lines of JSON, what it did to the parallel port as a file. This page compares, prints and
//! counts. Times of a machine in software emulation say nothing about a real one: they are printed, never judged.

mod image;
mod machine;
mod results;
mod sheet;
pub(crate) mod supplies;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::child;
use crate::tally::Tally;
use crate::test::Context;
use crate::workspace::Workspace;
use machine::{Clock, Machine};
use results::Results;

/// The guest's packages and their programs, the tests first; profile and target.
const PACKAGES: [(&str, &str); 2] = [("lab", "lab-guest"), ("hairspring-cli", "hairspring")];
const PROFILE: &str = "lab";
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// How long the build of the guest may take.
const BUILD_LIMIT: Duration = Duration::from_secs(480);

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// First install what is missing: QEMU from the Debian archive when run as root; the kernel and BusyBox stay under the
    /// target directory
    #[arg(long)]
    setup: bool,
    /// Boot twice with a clock that counts instructions, and compare what both found
    #[arg(long)]
    icount: bool,
    /// Run only the tests whose names begin like this, for instance disk
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
}

/// Runs the lab; `Ok(true)` when nothing failed.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    if arguments.setup {
        supplies::install(workspace, &mut |command| must(workspace, command))?;
    }
    if let Some(missing) = supplies::missing(workspace) {
        return Err(format!("start the lab: {}; run cargo xtask lab --setup", missing.what));
    }
    let tally = tests(workspace, arguments.icount, &arguments.only, Duration::MAX);
    print!("\n{}", tally.details());
    println!("{}", tally.closing_line());
    Ok(tally.succeeded())
}

/// The same as a step of the test run.
pub(crate) fn check(context: &Context, _name: &str) -> Tally {
    tests(context.workspace, false, "", context.limit())
}

fn tests(workspace: &Workspace, icount: bool, only: &str, limit: Duration) -> Tally {
    let prepared = build(workspace, limit).and_then(|programs| Machine::prepare(workspace, &programs, only));
    let machine = match prepared {
        Ok(machine) => machine,
        Err(why) => return Tally::fail("lab", why, ""),
    };
    if !icount {
        return boot(&machine, "lab", Clock::Host, limit).0;
    }
    let (mut tally, first) = boot(&machine, "first boot", Clock::Instructions, limit);
    let (second_tally, second) = boot(&machine, "second boot", Clock::Instructions, limit);
    tally.add(second_tally);
    if let (Some(first), Some(second)) = (first, second) {
        let compared = first.compared_with(&second);
        println!("{}", compared.told);
        match compared.differences.is_empty() {
            true => tally.add(Tally::pass()),
            false => tally.failure("lab: two boots", "they found different things", compared.differences.join("\n")),
        }
    }
    tally
}

/// Boots once, prints what was found and counts it.
fn boot(machine: &Machine, label: &str, clock: Clock, limit: Duration) -> (Tally, Option<Results>) {
    let booted = machine.boot(label, clock, limit);
    match Results::read(&booted.results, &booted.captured) {
        Ok(results) => {
            println!("{}: the machine ran for {:.1} s\n{}", label, booted.took.as_secs_f64(), results.table());
            let mut tally = results.tally();
            if let Err(why) = machine.keep(label, results.sheet()) {
                tally.failure(label, why, "");
            }
            if !booted.how_it_ended.is_empty() {
                tally.failure(label, booted.how_it_ended, booted.console_tail);
            }
            (tally, Some(results))
        }
        Err(why) => {
            let why = [booted.how_it_ended, why].join("; ");
            (Tally::fail(label, why.trim_start_matches("; "), booted.console_tail), None)
        }
    }
}

/// Builds the guest's programs, linked with all they need, for there are no libraries in the machine.
fn build(workspace: &Workspace, limit: Duration) -> Result<Vec<PathBuf>, String> {
    let mut command = workspace.cargo(&["build", "--profile", PROFILE, "--target", TARGET]);
    for (package, _) in PACKAGES {
        command.args(["-p", package]);
    }
    command.env("RUSTFLAGS", "-C target-feature=+crt-static");
    let log = workspace.scratch("logs").join("lab-build.log");
    let ended = child::run("the guest's build", &mut command, BUILD_LIMIT.min(limit), &log);
    if !ended.succeeded() {
        return Err(format!("the guest's programs were not built: {}\n{}", ended.how, ended.tail()));
    }
    let folder = workspace.target.join(TARGET).join(PROFILE);
    Ok(PACKAGES.map(|(_, program)| folder.join(program)).to_vec())
}

fn must(workspace: &Workspace, command: &mut Command) -> Result<String, String> {
    let label = command.get_program().to_string_lossy().into_owned();
    let log = workspace.scratch("logs").join("lab-setup.log");
    let ended = child::run(&label, command, Duration::from_secs(600), &log);
    if ended.succeeded() { Ok(ended.output) } else { Err(format!("run {label}: {}\n{}", ended.how, ended.tail())) }
}
