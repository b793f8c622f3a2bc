//! The conditions a report of proofs was taken under: machine, kernel, clock, load, code.
//!
//! A condition that cannot be read says so; it is never left out.

use std::fs;
use std::process::Command;

use crate::workspace::Workspace;

/// Name and value of each condition, read now.
pub(crate) fn read(workspace: &Workspace) -> Vec<(&'static str, String)> {
    let cpus = std::thread::available_parallelism().map_or_else(|error| error.to_string(), |n| n.to_string());
    vec![
        ("taken at", jiff::Timestamp::now().to_string()),
        ("CPU", cpu_model(&file("/proc/cpuinfo"))),
        ("CPUs usable", cpus),
        ("hypervisor", if file("/proc/cpuinfo").contains(" hypervisor") { "yes" } else { "none seen" }.to_owned()),
        ("kernel", format!("{} {}", file("/proc/sys/kernel/osrelease"), file("/proc/sys/kernel/version"))),
        ("clock source", file("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("load before", file("/proc/loadavg")),
        ("commit", commit(workspace)),
        ("compiler", said(Command::new("rustc").arg("--version"))),
        ("profile", profile(std::env::vars_os().map(|(name, value)| (text(name), text(value))))),
    ]
}

/// The profile, with what the environment changes in it.
fn profile(environment: impl Iterator<Item = (String, String)>) -> String {
    let changed = environment.filter_map(|(name, value)| {
        name.strip_prefix("CARGO_PROFILE_RELEASE_").map(|name| format!(", {name}={value}"))
    });
    let mut changed: Vec<String> = changed.collect();
    changed.sort();
    format!("release{}", changed.concat())
}

fn text(value: std::ffi::OsString) -> String {
    value.to_string_lossy().into_owned()
}

fn cpu_model(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(':'));
    model.map_or_else(|| "not named in /proc/cpuinfo".to_owned(), |(_, name)| name.trim().to_owned())
}

/// The commit, and whether the files differ from it: figures of uncommitted code cannot be reproduced.
fn commit(workspace: &Workspace) -> String {
    let commit = said(Command::new("git").args(["rev-parse", "HEAD"]).current_dir(&workspace.root));
    let changes = Command::new("git").args(["status", "--porcelain"]).current_dir(&workspace.root).output();
    match changes {
        Ok(output) if output.status.success() && output.stdout.is_empty() => commit,
        Ok(output) if output.status.success() => format!("{commit} with uncommitted changes"),
        _ => format!("{commit}, changes unknown"),
    }
}

fn file(path: &str) -> String {
    match fs::read_to_string(path) {
        Ok(text) => text.trim().to_owned(),
        Err(error) => format!("{path}: {error}"),
    }
}

fn said(command: &mut Command) -> String {
    match command.output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Ok(output) => format!("unknown ({})", output.status),
        Err(error) => format!("unknown ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_said() {
        assert_eq!(cpu_model("processor : 0\nmodel name\t: Example CPU\n"), "Example CPU");
        assert!(cpu_model("").contains("not named"));
        assert!(file("/no/such/file").contains("/no/such/file"));
    }

    #[test]
    fn a_changed_profile_is_told() {
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let environment =
            [own("HOME", "/"), own("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"), own("CARGO_PROFILE_RELEASE_LTO", "off")];
        assert_eq!(profile(environment.into_iter()), "release, LTO=off, OPT_LEVEL=1");
        assert_eq!(profile([].into_iter()), "release");
    }

    #[test]
    fn no_condition_is_empty() {
        for (name, value) in read(&Workspace::discover().unwrap()) {
            assert!(!value.trim().is_empty(), "{name} is empty");
        }
    }
}
