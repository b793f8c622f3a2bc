//! `cargo xtask peers`: builds the program of the peers, which only this task needs, tests the parsers of the peers'
//! output, and runs the program.

use std::process::Stdio;

use crate::workspace::Workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A quarter of the samples
    #[arg(long)]
    quick: bool,
    /// One part alone: reads, calibrations, delays, executive, reaction, bridge, recording, datagrams, memory, callers,
    /// thread-metric or rtos-benchmark
    #[arg(long)]
    only: Option<String>,
    /// Where the files of the recordings go [default: the target folder]
    #[arg(long)]
    dir: Option<std::path::PathBuf>,
    /// A checkout of a suite whose own sources are to run, too: thread-metric=DIR or rtos-benchmark=DIR; once for each
    #[arg(long, value_name = "SUITE=DIR")]
    with: Vec<String>,
}

/// Runs the comparison; its tables go to the standard output.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let mut tests = workspace.cargo(&["test", "--quiet", "--release", "-p", "peers"]);
    // Standard output is for the tables.
    if !tests.stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return Err("test what reads the peers' output: cargo test --release -p peers".to_owned());
    }
    let mut command = vec!["run", "--quiet", "--release", "-p", "peers", "--"];
    if arguments.quick {
        command.push("--quick");
    }
    if let Some(part) = &arguments.only {
        command.extend(["--only", part]);
    }
    let folder = arguments.dir.as_ref().map(|folder| folder.display().to_string());
    if let Some(folder) = &folder {
        command.extend(["--dir", folder]);
    }
    for suite in &arguments.with {
        command.extend(["--with", suite]);
    }
    let status = workspace.cargo(&command).status().map_err(|error| format!("run the peers: {error}"))?;
    Ok(status.success())
}
