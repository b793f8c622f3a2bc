//! Other processes: this test binary again, with its job in the environment.
//!
//! The binary has a test named `a_job` at its root, which calls [`do_job`] with its jobs.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Environment variable with a child's job.
const JOB: &str = "HAIRSPRING_TEST_JOB";
/// Line that a child prints when it is ready.
const READY: &str = "ready";
/// Number of stops of a process, and the time of each.
const STOPS: u32 = 12;
const STOPPED: Duration = Duration::from_millis(40);

/// A process that does a job in a folder, in one of several ways.
pub struct Other {
    child: Child,
    /// Kept open, so that the child can print more.
    _said: BufReader<ChildStdout>,
}

impl Other {
    /// Starts one, and waits until it is ready.
    ///
    /// # Panics
    /// If it does not start, or ends before it is ready.
    pub fn start(job: &str, folder: &Path, way: impl Display) -> Self {
        Self::start_by(Command::new(this_binary()), job, folder, way)
    }

    /// The same in a PID namespace of its own, which takes root.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn start_in_another_namespace(job: &str, folder: &Path, way: impl Display) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child"]).arg(this_binary());
        Self::start_by(command, job, folder, way)
    }

    /// The same by a command that runs this binary, with arguments and environment of its caller's.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn start_by(mut command: Command, job: &str, folder: &Path, way: impl Display) -> Self {
        let job = format!("{job} {way} {}", folder.display());
        command.args(["--exact", "a_job", "--nocapture"]).env(JOB, job);
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::piped()).spawn().expect("it starts");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        // The test harness may have printed before it on the same line.
        let is_ready = said.by_ref().lines().map_while(Result::ok).any(|line| line.ends_with(READY));
        assert!(is_ready, "it is not ready");
        Self { child, _said: said }
    }

    /// Sends it a signal of this name.
    ///
    /// # Panics
    /// If it has ended.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(sent.expect("kill is there").success(), "{name}");
    }

    /// Kills it.
    ///
    /// # Panics
    /// If it has ended.
    pub fn kill(mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("it ends");
    }

    /// Waits until it has ended.
    ///
    /// # Panics
    /// If it has failed.
    #[track_caller]
    pub fn finish(mut self) {
        drop(self.child.stdin.take());
        let ended = self.child.wait().expect("it ends");
        assert!(ended.success(), "{ended}");
    }
}

fn this_binary() -> std::path::PathBuf {
    std::env::current_exe().expect("this binary")
}

/// In a child, does its job: `job` gets the name of the job, the folder, the way, and a function that reports the child
/// ready. In any other process, does nothing.
///
/// # Panics
/// If the parent has named no job, folder and way.
pub fn do_job(job: impl FnOnce(&str, &Path, &str, &dyn Fn())) {
    let Ok(told) = std::env::var(JOB) else { return };
    let [name, way, folder] = told.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("three words: {told}") };
    let ready = || {
        let _ = writeln!(std::io::stdout(), "{READY}");
        let _ = std::io::stdout().flush();
    };
    job(name, Path::new(folder), way, &ready);
}

/// Starts a process, and stops it by SIGSTOP at moments independent of its activity. Returns when it has ended.
///
/// # Panics
/// If it fails.
pub fn stop_now_and_then(job: &str, folder: &Path, way: impl Display) {
    let other = Other::start(job, folder, way);
    for number in 0..STOPS {
        std::thread::sleep(Duration::from_micros(7_300 + 1_700 * u64::from(number)));
        other.signal("STOP");
        std::thread::sleep(STOPPED);
        other.signal("CONT");
    }
    other.finish();
}

/// In a child: waits until the parent closes the child's input, which it does when it wants no more.
pub fn until_told(is_over: &AtomicBool) {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    is_over.store(true, Ordering::Release);
}
