//! The programs that call: how each is found, started and understood.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hairspring_sheet::Absent;
use serde_json::Value;
use tempfile::TempDir;

use super::rows::CALLS;

/// A program has made its calls by then.
const PATIENCE: Duration = Duration::from_secs(20);
/// Looks while waiting for its end.
const LOOK: Duration = Duration::from_millis(2);
/// Names the folder of installed programs where they are not beside the command.
const FOLDER: &str = "HAIRSPRING_LIBEXEC";
/// What is mapped.
const MAPPED_BYTES: usize = 4096;

const PYTHON: &str = include_str!("../../../../bindings/callers/callers.py");
const TCL: &str = include_str!("../../../../bindings/callers/callers.tcl");

/// A program that calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    /// Who calls, in ids.
    pub(super) language: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// The command itself.
    Ourselves,
    /// Installed with the command, under this name; what it is told last.
    Installed(&'static str, Option<&'static str>),
    /// A script: its interpreter, its text, and what provides the package that it needs.
    Script(&'static str, &'static str, &'static str),
    /// Not for this system.
    Elsewhere(&'static str),
}

pub(super) const PROGRAMS: [Program; 6] = [
    Program { language: "rust", kind: Kind::Ourselves },
    Program { language: "c", kind: Kind::Installed("callers-c", None) },
    Program { language: "c_pointer", kind: Kind::Installed("callers-c", Some("pointer")) },
    Program {
        language: "python",
        kind: Kind::Script("python3", PYTHON, "`pip install ./bindings/python` in the project"),
    },
    Program {
        language: "tcl",
        kind: Kind::Script("tclsh", TCL, "`cargo xtask install --prefix DIR`, and DIR/lib in TCLLIBPATH"),
    },
    Program { language: "dll", kind: Kind::Elsewhere("the DLL is called on Windows") },
];

impl Program {
    /// Runs it once: samples in nanoseconds by the ids of their rows. `ourselves` is the command that makes the calls of Rust when
    /// it is told `caller`. Blocks until the program ends, or is ended for taking too long.
    pub(super) fn run(&self, ourselves: Option<&Path>, calls: usize) -> Result<Vec<(String, Vec<f64>)>, Absent> {
        let failed = |error: std::io::Error| Absent::final_(format!("failed to prepare a mapped file: {error}"));
        let folder = folder().map_err(failed)?;
        let (mapped, script) = (folder.path().join("mapped"), folder.path().join("script"));
        std::fs::write(&mapped, [0; MAPPED_BYTES]).map_err(failed)?;
        let mut command = self.command(ourselves, &script)?;
        command.arg(&mapped).arg(calls.to_string());
        if let Kind::Installed(_, last) = self.kind {
            command.args(last);
        }
        let said = self.said(command, folder.path())?;
        understood(&said, self.language).ok_or_else(|| {
            Absent::final_(format!("the program said nothing that could be understood: {}", said.trim()))
        })
    }

    fn command(&self, ourselves: Option<&Path>, script: &Path) -> Result<Command, Absent> {
        match self.kind {
            Kind::Ourselves => {
                let none = || Absent::new("no program was named that makes the calls", "take the sheet by the command");
                let mut command = Command::new(ourselves.ok_or_else(none)?);
                command.arg("caller");
                Ok(command)
            }
            Kind::Installed(name, _) => installed(name, ourselves).map(Command::new).ok_or_else(|| {
                Absent::new(
                    format!("`{name}` is not installed"),
                    format!("`cargo xtask install --prefix DIR` and take the sheet by DIR/bin/hairspring, or name its folder in {FOLDER}"),
                )
            }),
            Kind::Script(interpreter, text, _) => {
                let failed = |error| Absent::final_(format!("failed to write a script: {error}"));
                std::fs::write(script, text).map_err(failed)?;
                let mut command = Command::new(interpreter);
                command.arg(script);
                Ok(command)
            }
            Kind::Elsewhere(reason) => Err(Absent::final_(reason)),
        }
    }

    /// What it printed, if it ended well. It prints into files: a pipe that nobody reads would hold it up.
    fn said(&self, mut command: Command, folder: &Path) -> Result<String, Absent> {
        let name = command.get_program().to_string_lossy().into_owned();
        let failed = |error| Absent::final_(format!("failed to make a file for what {name} prints: {error}"));
        let (out, errors) = (folder.join("out"), folder.join("errors"));
        command.stdin(Stdio::null());
        command.stdout(File::create(&out).map_err(failed)?).stderr(File::create(&errors).map_err(failed)?);
        let mut child =
            command.spawn().map_err(|_| Absent::new(format!("{name} does not start"), format!("install {name}")))?;
        let begun = Instant::now();
        let ended = loop {
            match child.try_wait() {
                Ok(None) if begun.elapsed() < PATIENCE => std::thread::sleep(LOOK),
                Ok(Some(status)) => break Some(status.success()),
                _ => break None,
            }
        };
        // No more than a wait if it has ended.
        drop(child.kill());
        drop(child.wait());
        let read = |path: &Path| std::fs::read(path).map(|text| String::from_utf8_lossy(&text).into_owned());
        if ended == Some(true) {
            return read(&out).map_err(failed);
        }
        let complaint = read(&errors).unwrap_or_default();
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim();
        let reason = match ended {
            Some(_) => format!("{name} failed: {last}"),
            None => format!("{name} did not end within {} s", PATIENCE.as_secs()),
        };
        Err(match self.kind {
            Kind::Script(_, _, provides) => Absent::new(reason, provides),
            _ => Absent::final_(reason),
        })
    }
}

/// A folder in memory, where there is such a folder.
fn folder() -> std::io::Result<TempDir> {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }
}

/// Where a program of ours is that is installed with the command.
fn installed(name: &str, ourselves: Option<&Path>) -> Option<PathBuf> {
    let named = std::env::var_os(FOLDER).map(PathBuf::from);
    let beside = ourselves.and_then(Path::parent).map(|bin| bin.join("../libexec/hairspring"));
    named.into_iter().chain(beside).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The samples in what a program printed, one object in a line. Nothing if a call is missing, or a sample is no time.
pub(super) fn understood(said: &str, language: &str) -> Option<Vec<(String, Vec<f64>)>> {
    let objects = said.lines().filter_map(|line| serde_json::from_str(line).ok());
    let object = objects.into_iter().find(|object: &Value| object["language"] == language)?;
    let mut samples = Vec::new();
    for (call, _) in CALLS {
        let taken = object.get(call)?;
        let first = taken.get("first_ns")?.as_f64()?;
        let later = taken.get("later_ns")?.as_array()?.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>()?;
        let is_time = |ns: &f64| ns.is_finite() && *ns >= 0.0;
        if later.is_empty() || !later.iter().chain([&first]).all(is_time) {
            return None;
        }
        samples.push((format!("callers.{language}.{call}.first"), vec![first]));
        samples.push((format!("callers.{language}.{call}.later"), later));
    }
    Some(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_prints_is_taken_apart_or_refused_whole() {
        let call = r#"{"first_ns":90,"later_ns":[21.5,22]}"#;
        let good =
            format!(r#"{{"language":"c","now":{call},"delay_1us":{call},"word_read":{call},"word_write":{call}}}"#);
        let noise = format!("a warning\n{good}\n");
        let taken = understood(&noise, "c").expect("it is complete");
        assert_eq!(taken.len(), 8);
        assert_eq!(taken[0], ("callers.c.now.first".to_owned(), vec![90.0]));
        assert_eq!(taken[1], ("callers.c.now.later".to_owned(), vec![21.5, 22.0]));
        for bad in [
            good.replacen("21.5", "-1", 1),
            good.replacen("21.5", "\"fast\"", 1),
            good.replacen("[21.5,22]", "[]", 1),
            good.replacen("first_ns", "first", 1),
            good.replace("word_read", "word"),
            good.replace("\"c\"", "\"d\""),
            String::new(),
        ] {
            assert_eq!(understood(&bad, "c"), None, "{bad}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_or_fails_is_absent_with_what_to_do() {
        let of = |kind| Program { language: "c", kind }.run(None, 1).expect_err("there is none");
        let absent = of(Kind::Installed("no-such-program", None));
        assert!(absent.remedy.is_some_and(|remedy| remedy.contains("cargo xtask install")));
        let absent = of(Kind::Script("sh", "echo a reason >&2; exit 3", "installing it"));
        assert_eq!((absent.reason.as_str(), absent.remedy.as_deref()), ("sh failed: a reason", Some("installing it")));
        let absent = of(Kind::Script("sh", "echo nonsense", "installing it"));
        assert!(absent.reason.contains("nonsense"), "{absent:?}");
        assert!(of(Kind::Script("no-such-interpreter", "", "")).reason.contains("does not start"));
        assert!(of(Kind::Ourselves).remedy.is_some());
    }
}
