//! `cargo xtask`: the tasks of the repository: checks, generated files, installation, proofs.
//!
//! Each subcommand is one file; this one is the table of contents. It is meant for a Linux machine with the
//! toolchain that `rust-version` in the root manifest names.
#![expect(clippy::print_stdout, reason = "a command talks to its user")]
#![expect(clippy::print_stderr, reason = "progress of a proof goes beside its result")]

mod apt;
mod book;
mod child;
mod components;
mod deb;
mod flags;
mod r#gen;
mod install;
mod lab;
mod library;
mod lint;
mod peers;
mod prove;
mod release;
mod reproducible;
mod shapes;
mod tally;
mod test;
mod toolchain;
mod wheel;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Check, generate and prove what is in this repository")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run all checks and end with one line: N passed, N failed, N skipped
    Test(test::Arguments),
    /// Check the invariants of ARCHITECTURE.md over all tracked files
    Lint,
    /// Measure the chapter Reaction with builds of every optimisation level, side by side
    Flags(flags::Arguments),
    /// Build the book of docs/ into target/book
    Book,
    /// Write the files that the command generates, or check that they are current
    Gen(r#gen::Arguments),
    /// Install the command, the libraries, header, manual page, completions and the Tcl package
    Install(install::Arguments),
    /// Make Debian packages of what `install` installs, under the target directory
    Deb,
    /// Make all packages of a version in one folder, with checksums and a bill of materials
    Release(release::Arguments),
    /// Test the drivers with the kernel's real ones, in a virtual machine
    Lab(lab::Arguments),
    /// Measure other people's clocks and sleeps beside ours, in one run, as ratios
    Peers(peers::Arguments),
    /// Run the long proofs in release mode and write a dated report under proofs/
    Prove(prove::Arguments),
}

fn main() -> ExitCode {
    let outcome = Workspace::discover().and_then(|workspace| match Arguments::parse().task {
        Task::Test(arguments) => test::run(&workspace, &arguments),
        Task::Lint => lint::run(&workspace),
        Task::Flags(arguments) => flags::run(&workspace, &arguments),
        Task::Book => book::run(&workspace),
        Task::Gen(arguments) => r#gen::run(&workspace, &arguments),
        Task::Install(arguments) => install::run(&workspace, &arguments),
        Task::Deb => deb::run(&workspace),
        Task::Release(arguments) => release::run(&workspace, &arguments),
        Task::Lab(arguments) => lab::run(&workspace, &arguments),
        Task::Peers(arguments) => peers::run(&workspace, &arguments),
        Task::Prove(arguments) => prove::run(&workspace, &arguments),
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: failed to {error}");
            ExitCode::from(2)
        }
    }
}
