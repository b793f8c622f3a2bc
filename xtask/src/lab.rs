//! `cargo xtask lab`: the drivers against the kernel's real ones, in a virtual machine that is made, run and thrown
//! away.
//!
//! There are two: a PC, and a board for arm64, which has GPIO lines. Each is QEMU in software emulation with a
//! PREEMPT_RT kernel of the distribution; its programs are `lab-guest` and the command (see `lab/README.md`). The
//! guest's findings come back as lines of JSON, its output on the parallel port as a file. This page compares, prints
//! and counts. Times of a machine in software emulation do not apply to a real one: they are printed, never judged.

mod image;
pub(crate) mod kind;
mod machine;
mod results;
mod sheet;
mod stops;
pub(crate) mod supplies;
mod wires;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::child;
use crate::tally::Tally;
use crate::test::Context;
use crate::toolchain::{self, AARCH64};
use crate::workspace::Workspace;
use kind::Kind;
use machine::{Clock, Machine};
use results::Results;

/// The guest's programs, the tests first.
const PROGRAMS: [&str; 2] = ["lab-guest", "hairspring"];
/// As the tests build them, examples and their dependencies included, so that after those there is next to nothing to
/// do.
const BUILD: [&str; 8] = ["build", "--profile", "test", "--workspace", "--exclude", "peers", "--bins", "--examples"];
/// The board's: the tests alone, without any library of its own.
const BUILD_FOR_BOARD: [&str; 4] = ["build", "-p", "lab", "--bins"];
const BOARD_ENVIRONMENT: [(&str, &str); 2] = [
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"),
    ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS", "-C target-feature=+crt-static"),
];
/// Time limit for the build of the guest.
const BUILD_LIMIT: Duration = Duration::from_secs(480);

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// First install what is missing: QEMU from the Debian archive when run as root; the kernel and BusyBox stay under
    /// the target directory
    #[arg(long)]
    setup: bool,
    /// Boot twice with a clock that counts instructions, and compare what both found
    #[arg(long)]
    icount: bool,
    /// Boot the board for arm64, which has GPIO lines, instead of the PC
    #[arg(long, conflicts_with = "icount")]
    board: bool,
    /// All of it: the PC twice with a clock that counts instructions, and the board
    #[arg(long, conflicts_with_all = ["icount", "board"])]
    long: bool,
    /// Run only the tests whose names begin like this, for instance disk
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
}

/// Runs the lab; `Ok(true)` when nothing failed.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let kinds: &[Kind] = match (arguments.long, arguments.board) {
        (true, _) => &[Kind::Pc, Kind::Board],
        (_, true) => &[Kind::Board],
        _ => &[Kind::Pc],
    };
    let mut tally = Tally::default();
    for kind in kinds {
        if arguments.setup {
            supplies::install(workspace, *kind, &mut |command| must(workspace, command))?;
        }
        if let Some(missing) = supplies::missing(workspace, *kind) {
            return Err(format!("start the lab: {}; run it with --setup", missing.what));
        }
    }
    for kind in kinds {
        let icount = arguments.icount || arguments.long && *kind == Kind::Pc;
        tally.add(tests(workspace, *kind, icount, &arguments.only, Duration::MAX));
    }
    print!("\n{}", tally.details());
    println!("{}", tally.closing_line());
    Ok(tally.succeeded())
}

/// The same as a step of the test run: the PC alone.
pub(crate) fn check(context: &Context, _name: &str) -> Tally {
    tests(context.workspace, Kind::Pc, false, "", context.limit())
}

fn tests(workspace: &Workspace, kind: Kind, icount: bool, only: &str, limit: Duration) -> Tally {
    let prepared = build(workspace, kind, limit).and_then(|programs| {
        let libraries = match kind {
            Kind::Pc => libraries(workspace, &programs)?,
            Kind::Board => BTreeSet::new(),
        };
        Machine::prepare(workspace, kind, &programs, &libraries, only)
    });
    let machine = match prepared {
        Ok(machine) => machine,
        Err(why) => return Tally::fail("lab", why, ""),
    };
    if !icount {
        let label = if kind == Kind::Board { "board" } else { "lab" };
        return boot(&machine, label, Clock::Host, limit).0;
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

/// Boots once, prints the findings and counts them.
fn boot(machine: &Machine, label: &str, clock: Clock, limit: Duration) -> (Tally, Option<Results>) {
    let booted = machine.boot(label, clock, limit);
    match Results::read(machine.kind(), &booted.results, &booted.captured) {
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

/// Builds the guest's programs, without the parts that only a debugger needs: the machine has little memory.
fn build(workspace: &Workspace, kind: Kind, limit: Duration) -> Result<Vec<PathBuf>, String> {
    let (mut command, built, programs, strip): (_, _, &[&str], _) = match kind {
        Kind::Pc => (workspace.cargo(&BUILD), workspace.target.join("debug"), &PROGRAMS, "strip"),
        Kind::Board => {
            let mut command = toolchain::cargo(workspace, &BUILD_FOR_BOARD, AARCH64);
            command.envs(BOARD_ENVIRONMENT);
            let built = toolchain::programs(workspace, AARCH64);
            (command, built, &PROGRAMS[..1], "aarch64-linux-gnu-strip")
        }
    };
    let log = workspace.scratch("logs").join("lab-build.log");
    let ended = child::run("the guest's build", &mut command, BUILD_LIMIT.min(limit), &log);
    if !ended.succeeded() {
        return Err(format!("the guest's programs were not built: {}\n{}", ended.how, ended.tail()));
    }
    let stripped = programs.iter().map(|program| {
        let small = kind.folder(workspace).join(program);
        let mut strip = Command::new(strip);
        strip.arg("-o").arg(&small).arg(built.join(program));
        must(workspace, &mut strip).map(|_| small)
    });
    stripped.collect()
}

/// The shared libraries that programs need, and their loader, by their paths here.
fn libraries(workspace: &Workspace, programs: &[PathBuf]) -> Result<BTreeSet<PathBuf>, String> {
    let told = must(workspace, Command::new("ldd").args(programs))?;
    Ok(told.lines().filter_map(library).collect())
}

/// The file in a line of `ldd`: `name => path (address)`, or `path (address)`.
fn library(line: &str) -> Option<PathBuf> {
    let (place, _) = line.rsplit_once(" (0x")?;
    let path = place.rsplit_once("=> ").map_or(place, |(_, path)| path).trim();
    path.starts_with('/').then(|| path.into())
}

fn must(workspace: &Workspace, command: &mut Command) -> Result<String, String> {
    let label = command.get_program().to_string_lossy().into_owned();
    let log = workspace.scratch("logs").join("lab-setup.log");
    let ended = child::run(&label, command, Duration::from_secs(600), &log);
    if ended.succeeded() { Ok(ended.output) } else { Err(format!("run {label}: {}\n{}", ended.how, ended.tail())) }
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn libraries_are_read_from_the_lines_that_name_a_file() {
        assert_eq!(
            library("\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)"),
            Some("/lib/x86_64-linux-gnu/libc.so.6".into())
        );
        assert_eq!(library("\t/lib64/ld-linux-x86-64.so.2 (0x00007f)"), Some("/lib64/ld-linux-x86-64.so.2".into()));
        for line in ["\tlinux-vdso.so.1 (0x00007f)", "target/lab-guest:", "\tlibx.so => not found", ""] {
            assert_eq!(library(line), None, "{line}");
        }
    }
}
