//! Foreign suites of executives: our programs of their contracts in rounds, and their own sources from a checkout on a
//! porting layer of ours.
//!
//! No source of a suite is committed. `--with SUITE=DIR` names a checkout, whose sources are compiled as they are, with
//! a porting layer that takes its back-end from `HS_BACKEND`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::callers::complaint;

pub(crate) const BACK_ENDS: [&str; 2] = ["fibers", "threads"];

/// Interval at which a run of a suite is polled.
const LOOK: Duration = Duration::from_millis(20);

/// A suite, its name after `--with`, and a file by which its checkout is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suite {
    ThreadMetric,
    RtosBenchmark,
}

impl Suite {
    const ALL: [(Self, &str, &str); 2] = [
        (Self::ThreadMetric, "thread-metric", "include/tm_api.h"),
        (Self::RtosBenchmark, "rtos-benchmark", "h/bench_api.h"),
    ];
}

/// A checkout of a suite.
#[derive(Clone, Debug)]
pub(crate) struct Checkout {
    suite: Suite,
    folder: PathBuf,
}

impl Checkout {
    /// Reads SUITE=DIR.
    pub(crate) fn named(given: &str) -> Result<Self, String> {
        let known = || Suite::ALL.map(|(_, name, _)| format!("{name}=DIR")).join(" or ");
        let (name, folder) = given.split_once('=').ok_or_else(|| format!("write {}", known()))?;
        let suite = Suite::ALL.into_iter().find(|(_, known, _)| *known == name);
        let (suite, _, file) = suite.ok_or_else(|| format!("write {}", known()))?;
        if !Path::new(folder).join(file).is_file() {
            return Err(format!("{folder} has no {file}"));
        }
        Ok(Self { suite, folder: folder.into() })
    }

    /// The folder of this suite, if one was given; of several the last.
    pub(crate) fn of(checkouts: &[Self], suite: Suite) -> Option<&Path> {
        checkouts.iter().rfind(|checkout| checkout.suite == suite).map(|checkout| checkout.folder.as_path())
    }
}

/// End of a run of a suite.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Success,
    Failure(String),
    /// It printed nothing for too long, and was killed.
    Silence,
}

/// Runs a suite on a back-end until it ends or prints nothing for `silence`; its output goes through `file`, so that it
/// waits for no reader.
pub(crate) fn observed(
    mut program: Command,
    back_end: &str,
    file: &Path,
    silence: Duration,
) -> Result<(String, Ending), String> {
    let output = fs::File::create(file).map_err(|error| format!("create {}: {error}", file.display()))?;
    let child = program.env("HS_BACKEND", back_end).stdout(output).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("start {}: {error}", file.display()))?;
    let (mut length, mut since) = (0, Instant::now());
    let silent = loop {
        let now = fs::metadata(file).map_or(length, |facts| facts.len());
        if now != length {
            (length, since) = (now, Instant::now());
        }
        match child.try_wait() {
            Ok(None) if since.elapsed() < silence => std::thread::sleep(LOOK),
            Ok(Some(_)) => break false,
            _ => {
                let _ = child.kill();
                break true;
            }
        }
    };
    let output = child.wait_with_output().map_err(|error| format!("wait for {}: {error}", file.display()))?;
    let said = fs::read_to_string(file).map_err(|error| format!("read {}: {error}", file.display()))?;
    let ending = match (silent, output.status.success()) {
        (true, _) => Ending::Silence,
        (false, true) => Ending::Success,
        (false, false) => Ending::Failure(complaint(&output.stderr)),
    };
    Ok((said, ending))
}

/// Runs a program of ours on the back-ends in turns, with a number for the amount of work, and reads its output.
pub(crate) fn in_rounds<T>(
    program: &Command,
    suite: &str,
    rounds: usize,
    amount: u64,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<[Vec<T>; 2], String> {
    let mut taken = BACK_ENDS.map(|_| Vec::new());
    for round in 1..=rounds {
        eprintln!("{suite}, round {round} of {rounds}");
        for (back_end, taken) in BACK_ENDS.iter().zip(&mut taken) {
            let output = Command::new(program.get_program()).args([back_end, &amount.to_string()[..]]).output();
            let output = output.map_err(|error| format!("run the program of {suite}: {error}"))?;
            taken.push(read(&String::from_utf8_lossy(&output.stdout))?);
        }
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, name: &str, silence: Duration) -> (String, Ending) {
        let file = std::env::temp_dir().join(format!("peers-{name}-{}.txt", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let observed = observed(command, "fibers", &file, silence).unwrap();
        let _ = fs::remove_file(file);
        observed
    }

    #[test]
    fn a_run_that_says_nothing_more_is_killed_and_what_it_said_is_kept() {
        let said = shell("echo on $HS_BACKEND; exec sleep 100", "silent", Duration::from_millis(500));
        assert_eq!(said, ("on fibers\n".to_owned(), Ending::Silence));
    }

    #[test]
    fn a_run_that_speaks_now_and_then_is_not_killed_and_says_why_it_failed() {
        // Longer than the limit in all.
        let script = "for turn in 1 2 3 4 5 6 7 8; do echo $turn; sleep 0.25; done; echo no rights >&2; exit 2";
        let (said, ending) = shell(script, "slow", Duration::from_millis(1500));
        assert_eq!(said.lines().count(), 8);
        assert_eq!(ending, Ending::Failure("no rights".to_owned()));
        assert_eq!(shell("true", "well", Duration::from_secs(60)).1, Ending::Success);
    }

    #[test]
    fn a_checkout_is_known_by_its_header() {
        let folder = std::env::temp_dir().join(format!("peers-checkout-{}", std::process::id()));
        fs::create_dir_all(folder.join("h")).unwrap();
        let given = format!("rtos-benchmark={}", folder.display());
        assert!(Checkout::named(&given).is_err_and(|why| why.contains("has no h/bench_api.h")));
        fs::write(folder.join("h/bench_api.h"), "").unwrap();
        let found = [Checkout::named(&given).unwrap()];
        let _ = fs::remove_dir_all(&folder);
        assert_eq!(Checkout::of(&found, Suite::RtosBenchmark), Some(folder.as_path()));
        assert_eq!(Checkout::of(&found, Suite::ThreadMetric), None);
        let known = "write thread-metric=DIR or rtos-benchmark=DIR";
        assert_eq!(Checkout::named("rhealstone=/").unwrap_err(), known);
        assert_eq!(Checkout::named("rtos-benchmark").unwrap_err(), known);
    }
}
