//! The calling programs: finds and starts them, and reads their output.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hairspring_sheet::Absent;
use serde_json::Value;
use tempfile::TempDir;

use super::rows::CALLS;
use crate::host::system::PROGRAMS;

/// Time limit of a program.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two checks for its end.
const LOOK: Duration = Duration::from_millis(2);
/// The variable that names the folder of installed programs, if they are not beside the command.
const FOLDER: &str = "HAIRSPRING_LIBEXEC";
/// The size of the mapped file.
const MAPPED_BYTES: usize = 8192;

/// A calling program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// The calling language, in ids.
    pub(crate) language: &'static str,
    /// The command to start, or why the program is not on this system.
    pub(crate) start: Result<Start, &'static str>,
}

/// Command line and files that start a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// The name of a program that is installed with the command, or of a script's interpreter; the command itself if
    /// there is none.
    pub(crate) program: Option<&'static str>,
    pub(crate) script: Option<&'static str>,
    /// Its last argument.
    pub(crate) last: Option<&'static str>,
    /// Command that installs it.
    pub(crate) remedy: &'static str,
}

impl Program {
    /// Runs the program once and returns the times of its calls. `ourselves` is the command that makes the calls from
    /// Rust when started as `caller`. Blocks until the program ends or is killed for taking too long.
    pub(super) fn run(&self, ourselves: Option<&Path>, calls: usize) -> Result<Vec<(&'static str, CallTimes)>, Absent> {
        let start = self.start.map_err(Absent::final_)?;
        let failed = |error: std::io::Error| Absent::final_(format!("failed to prepare a mapped file: {error}"));
        let folder = folder().map_err(failed)?;
        let (mapped, script) = (folder.path().join("mapped"), folder.path().join("script"));
        std::fs::write(&mapped, [0; MAPPED_BYTES]).map_err(failed)?;
        let mut command = start.command(ourselves, &script)?;
        command.arg(&mapped).arg(calls.to_string());
        command.args(start.last);
        let said = start.said(command, folder.path())?;
        understood(&said, self.language)
            .ok_or_else(|| Absent::final_(format!("the program's output is not in the expected form: {}", said.trim())))
    }
}

impl Start {
    fn command(&self, ourselves: Option<&Path>, script: &Path) -> Result<Command, Absent> {
        let Some(program) = self.program else {
            let none = || Absent::new("no program for the calls was given", "take the sheet with the command");
            let mut command = Command::new(ourselves.ok_or_else(none)?);
            command.arg("caller");
            return Ok(command);
        };
        if let Some(text) = self.script {
            std::fs::write(script, text)
                .map_err(|error| Absent::final_(format!("failed to write a script: {error}")))?;
            let mut command = Command::new(program);
            command.arg(script);
            return Ok(command);
        }
        installed(program, ourselves).map(Command::new).ok_or_else(|| {
            let remedy = format!("{}, or name its folder in {FOLDER}", self.remedy);
            Absent::new(format!("`{program}` is not installed"), remedy)
        })
    }

    /// Runs the program and returns its output, if it succeeded. It prints into files, because a full pipe would block
    /// it.
    fn said(&self, mut command: Command, folder: &Path) -> Result<String, Absent> {
        let name = command.get_program().to_string_lossy().into_owned();
        let failed = |error| Absent::final_(format!("failed to make a file for the output of {name}: {error}"));
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
        // Only a wait if it has ended.
        drop(child.kill());
        drop(child.wait());
        let read = |path: &Path| std::fs::read(path).map(|text| String::from_utf8_lossy(&text).into_owned());
        if ended == Some(true) {
            return read(&out).map_err(failed);
        }
        let complaint = read(&errors).unwrap_or_default();
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing").trim();
        let reason = match ended {
            Some(_) => format!("{name} failed: {last}"),
            None => format!("{name} did not end within {} s", PATIENCE.as_secs()),
        };
        Err(match self.script {
            Some(_) => Absent::new(reason, self.remedy),
            None => Absent::final_(reason),
        })
    }
}

/// A folder in memory, if the system has one.
fn folder() -> std::io::Result<TempDir> {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }
}

/// The path of a program that is installed with the command: in the folder for such programs, or beside the command.
fn installed(name: &str, ourselves: Option<&Path>) -> Option<PathBuf> {
    let named = std::env::var_os(FOLDER).map(PathBuf::from);
    let beside = ourselves.and_then(Path::parent).map(|bin| [bin.join("../libexec/hairspring"), bin.to_owned()]);
    named.into_iter().chain(beside.into_iter().flatten()).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The variable and value that point a copy of this command to the programs installed with the original.
pub(crate) fn told_to_copies(command: &Path) -> Option<(&'static str, PathBuf)> {
    let names = PROGRAMS.into_iter().filter_map(|program| program.start.ok());
    let mut names = names.filter(|start| start.script.is_none()).filter_map(|start| start.program);
    let folder = names.find_map(|name| installed(name, Some(command))?.parent().map(Path::to_owned))?;
    Some((FOLDER, folder.canonicalize().ok()?))
}

/// Times of a call in one process, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallTimes {
    /// The difference of the program's own stamps with nothing between them.
    pub(crate) stamp: f64,
    /// Number of calls in a block; a later sample is their mean.
    pub(crate) block: f64,
    pub(crate) first: f64,
    pub(crate) later: Vec<f64>,
}

/// The samples in a program's output, one object in a line. None if a call is missing, or a sample is not a time.
pub(crate) fn understood(said: &str, language: &str) -> Option<Vec<(&'static str, CallTimes)>> {
    let objects = said.lines().filter_map(|line| serde_json::from_str(line).ok());
    let object = objects.into_iter().find(|object: &Value| object["language"] == language)?;
    let mut samples = Vec::new();
    let stamp = object.get("stamp_ns")?.as_f64()?;
    for (call, _) in CALLS {
        let taken = object.get(call)?;
        let block = taken.get("block")?.as_f64().filter(|block| *block >= 1.0)?;
        let first = taken.get("first_ns")?.as_f64()?;
        let later = taken.get("later_ns")?.as_array()?.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>()?;
        let is_time = |ns: &f64| ns.is_finite() && *ns >= 0.0;
        if later.is_empty() || !later.iter().chain([&first, &stamp]).all(is_time) {
            return None;
        }
        samples.push((call, CallTimes { stamp, block, first, later }));
    }
    Some(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_prints_is_taken_apart_or_refused_whole() {
        let call = r#"{"block":100,"first_ns":90,"later_ns":[21.5,22]}"#;
        let good = format!(
            r#"{{"language":"c","stamp_ns":40,"now":{call},"delay_1us":{call},"word_read":{call},"word_write":{call}}}"#
        );
        let noise = format!("a warning\n{good}\n");
        let taken = understood(&noise, "c").expect("it is complete");
        assert_eq!(taken.len(), 4);
        assert_eq!(taken[0], ("now", CallTimes { stamp: 40.0, block: 100.0, first: 90.0, later: vec![21.5, 22.0] }));
        for bad in [
            good.replacen("21.5", "-1", 1),
            good.replacen("21.5", "\"fast\"", 1),
            good.replacen("[21.5,22]", "[]", 1),
            good.replacen("first_ns", "first", 1),
            good.replacen("stamp_ns", "stamp", 1),
            good.replacen("\"block\":100", "\"block\":0", 1),
            good.replace("word_read", "word"),
            good.replace("\"c\"", "\"d\""),
            String::new(),
        ] {
            assert_eq!(understood(&bad, "c"), None, "{bad}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_or_fails_is_absent_with_what_to_do() {
        let of = |program, script| {
            let start = Start { program, script, last: None, remedy: "install it" };
            Program { language: "c", start: Ok(start) }.run(None, 1).expect_err("there is none")
        };
        let absent = of(Some("no-such-program"), None);
        assert!(absent.remedy.is_some_and(|remedy| remedy.starts_with("install it, or")));
        let absent = of(Some("sh"), Some("echo a reason >&2; exit 3"));
        assert_eq!((absent.reason.as_str(), absent.remedy.as_deref()), ("sh failed: a reason", Some("install it")));
        let absent = of(Some("sh"), Some("echo nonsense"));
        assert!(absent.reason.contains("nonsense"), "{absent:?}");
        assert!(of(Some("no-such-interpreter"), Some("")).reason.contains("does not start"));
        assert!(of(None, None).remedy.is_some());
        let absent = Program { language: "c", start: Err("elsewhere") }.run(None, 1).expect_err("it is elsewhere");
        assert_eq!(absent, Absent::final_("elsewhere"));
    }
}
