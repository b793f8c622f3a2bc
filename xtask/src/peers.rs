//! `cargo xtask peers`: builds the peers' program, which only this task needs, and runs it.

use crate::workspace::Workspace;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A quarter of the samples
    #[arg(long)]
    quick: bool,
    /// One part alone: reads, calibrations, delays or executive
    #[arg(long)]
    only: Option<String>,
}

/// Runs the comparison; its tables go to the standard output.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let mut command = vec!["run", "--quiet", "--release", "-p", "peers", "--"];
    if arguments.quick {
        command.push("--quick");
    }
    if let Some(part) = &arguments.only {
        command.extend(["--only", part]);
    }
    let status = workspace.cargo(&command).status().map_err(|error| format!("run the peers: {error}"))?;
    Ok(status.success())
}
