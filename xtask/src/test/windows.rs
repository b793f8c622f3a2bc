//! Windows: the command and the library are built for x86_64-pc-windows-gnu and run under Wine.
//!
//! mingw links. Two replacements make up for what this Wine lacks:
//! * `bcryptprimitives.dll` with one function, which newer versions of Wine have, lies beside the programs
//!   (`windows/`).
//! * The prefix is an empty folder. `WINEBOOTSTRAPMODE` is the mode in which Wine runs its own set-up; in it Wine finds
//!   every library in its own folder. So a program starts in 0.1 s; a whole prefix would take 7 s and 700 MB.
//!
//! It tests the command's help, clock, delays, exit codes and a sheet. The sheet must say that it was made under Wine,
//! and measure calls of the DLL. A C program runs with the DLL, and the declarations for VBA are compared with the
//! header and the DLL's exports (`windows/vba.rs`).

mod command;
mod vba;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Context, needs};
use crate::child::Ended;
use crate::tally::Tally;
use crate::toolchain::{self, WINDOWS};
use crate::workspace::Workspace;

const PACKAGES: [&str; 2] = ["hairspring-cli", "hairspring-c"];
pub(crate) const LINKER: &str = "x86_64-w64-mingw32-gcc";
pub(crate) const OBJDUMP: &str = "x86_64-w64-mingw32-objdump";
const HEADER: &str = "crates/c/include/hairspring.h";
pub(crate) fn wine() -> Option<PathBuf> {
    // Debian's package for 64 bits installs it outside PATH.
    let hidden = PathBuf::from("/usr/lib/wine/wine64");
    ["wine64", "wine"].into_iter().find_map(needs::in_path).or_else(|| hidden.is_file().then_some(hidden))
}

/// Wine with its own prefix, and the folder of the programs.
pub(super) struct Place<'a> {
    context: &'a Context<'a>,
    wine: PathBuf,
    prefix: PathBuf,
    programs: PathBuf,
}

pub(crate) fn check(context: &Context, name: &str) -> Tally {
    let folder = context.workspace.scratch("windows");
    let mut tally = Tally::default();
    if !note(&mut tally, name, build(context)) {
        return tally;
    }
    let Some(wine) = wine() else { return Tally::fail(name, "Wine has vanished", "") };
    let prefix = folder.join("prefix");
    if let Err(why) = make_prefix(&prefix) {
        return Tally::fail(name, why, "");
    }
    let place = Place { context, wine, prefix, programs: toolchain::programs(context.workspace, WINDOWS) };
    if !note(&mut tally, name, stub(&place)) {
        return tally;
    }
    note(&mut tally, name, caller(&place));
    tally.add(command::check(&place, name));
    note(&mut tally, name, client(&place));
    tally.add(vba::check(&place, name));
    tally
}

/// Makes an empty prefix for Wine.
pub(crate) fn make_prefix(prefix: &Path) -> Result<(), String> {
    let ready = std::fs::create_dir_all(prefix)
        // Wine looks at this before it fills a prefix.
        .and_then(|()| std::fs::write(prefix.join(".update-timestamp"), "disable\n"));
    ready.map_err(|error| format!("make {}: {error}", prefix.display()))
}

/// A program in this folder under Wine, with this prefix; a client finds the command beside it.
pub(crate) fn under_wine(wine: &Path, prefix: &Path, programs: &Path, program: &str) -> Command {
    let mut command = Command::new(wine);
    command.arg(program).current_dir(programs);
    command
        .env("WINEPREFIX", prefix)
        .env("WINEBOOTSTRAPMODE", "1")
        .env("WINEDEBUG", "-all")
        .env("HAIRSPRING", r".\hairspring.exe");
    command
}

/// The compiler's command for the library that this Wine lacks, into a folder of programs.
pub(crate) fn compile_stub(workspace: &Workspace, programs: &Path) -> Command {
    let mut compile = Command::new(LINKER);
    compile.args(["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-o"]).arg(programs.join("bcryptprimitives.dll"));
    compile.arg(source("bcryptprimitives.c")).arg("-ladvapi32").current_dir(&workspace.root);
    compile
}

/// Counts one check; returns whether it passed.
fn note(tally: &mut Tally, name: &str, outcome: Result<(), (String, String)>) -> bool {
    match outcome {
        Ok(()) => tally.passed += 1,
        Err((why, tail)) => {
            tally.failure(name, why, tail);
            return false;
        }
    }
    true
}

fn done(what: &str, ended: &Ended) -> Result<(), (String, String)> {
    if ended.succeeded() { Ok(()) } else { Err((format!("{what}: {}", ended.how), ended.tail())) }
}

fn build(context: &Context) -> Result<(), (String, String)> {
    let mut cargo = toolchain::cargo(context.workspace, &["build"], WINDOWS);
    for package in PACKAGES {
        cargo.args(["-p", package]);
    }
    done("cargo build", &context.run("windows build", &mut cargo))
}

/// A file of this step, from the root of the repository.
pub(crate) fn source(name: &str) -> String {
    format!("xtask/src/test/windows/{name}")
}

fn stub(place: &Place) -> Result<(), (String, String)> {
    done(LINKER, &place.context.run("windows stub", &mut compile_stub(place.context.workspace, &place.programs)))
}

/// Runs a program in C with the DLL, which counts and names its own failures.
fn client(place: &Place) -> Result<(), (String, String)> {
    on_the_dll(place, "client.exe", &source("client.c"))?;
    done("client.exe", &place.run("client.exe", ["client.tmp"]))
}

/// The program that the chapter *Callers* starts, beside the command.
fn caller(place: &Place) -> Result<(), (String, String)> {
    on_the_dll(place, "callers-c.exe", "crates/suite/callers/callers.c")
}

fn on_the_dll(place: &Place, program: &str, source: &str) -> Result<(), (String, String)> {
    let mut compile = Command::new(LINKER);
    compile.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I", "crates/c/include", "-o"]);
    compile.arg(place.programs.join(program)).arg(source).arg("-L").arg(&place.programs);
    compile.arg("-lhairspring").current_dir(&place.context.workspace.root);
    done(LINKER, &place.context.run(&format!("windows {program} build"), &mut compile))
}

impl Place<'_> {
    /// Runs a program under Wine in its folder.
    fn run<S: AsRef<OsStr>>(&self, program: &str, arguments: impl IntoIterator<Item = S>) -> Ended {
        let mut command = under_wine(&self.wine, &self.prefix, &self.programs, program);
        command.args(arguments);
        let words: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        self.context.run(&format!("wine {}", words.join(" ")), &mut command)
    }
}
