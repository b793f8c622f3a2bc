//! Other processes: this test binary again, told by its environment what to do. The jobs are in `main.rs`.
//!
//! The tests of the station crate use this file too.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hairspring_device::Protocol;

/// Where a child finds its job.
const JOB: &str = "HAIRSPRING_DEVICE_JOB";
/// What a child says when it is where it shall be.
const READY: &str = "ready";
/// How often a process is stopped, and for how long.
const STOPS: u32 = 12;
const STOPPED: Duration = Duration::from_millis(40);

/// A process that does a job with the board of a folder.
pub(crate) struct Other {
    child: Child,
    /// Kept, for it may have more to say.
    _said: BufReader<ChildStdout>,
}

impl Other {
    /// Starts one, and waits until it is ready.
    pub(crate) fn start(job: &str, folder: &Path, protocol: Protocol) -> Self {
        Self::start_by(Command::new(this_binary()), job, folder, protocol)
    }

    /// The same in a PID namespace of its own, which takes root.
    pub(crate) fn start_in_another_namespace(job: &str, folder: &Path, protocol: Protocol) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child"]).arg(this_binary());
        Self::start_by(command, job, folder, protocol)
    }

    fn start_by(mut command: Command, job: &str, folder: &Path, protocol: Protocol) -> Self {
        let job = format!("{job} {protocol} {}", folder.display());
        command.args(["--exact", "process::a_job", "--nocapture"]).env(JOB, job);
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::piped()).spawn().expect("it starts");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        // What stands before it on its line is the test harness's.
        let is_ready = said.by_ref().lines().map_while(Result::ok).any(|line| line.ends_with(READY));
        assert!(is_ready, "it is not ready");
        Self { child, _said: said }
    }

    /// Sends it a signal of this name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(sent.expect("kill is there").success(), "{name}");
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("it ends");
    }

    /// Waits until it has ended well.
    #[track_caller]
    pub(crate) fn finish(mut self) {
        drop(self.child.stdin.take());
        let ended = self.child.wait().expect("it ends");
        assert!(ended.success(), "{ended}");
    }
}

fn this_binary() -> std::path::PathBuf {
    std::env::current_exe().expect("this binary")
}

/// To the test harness this is a test like the others; it does something only in a child.
#[test]
fn a_job() {
    let Ok(job) = std::env::var(JOB) else { return };
    let mut words = job.splitn(3, ' ');
    let (name, protocol, folder) = (words.next(), words.next(), words.next().expect("three words"));
    let protocol = protocol.and_then(|text| text.parse().ok()).expect("a protocol");
    let ready = || {
        let _ = writeln!(std::io::stdout(), "{READY}");
        let _ = std::io::stdout().flush();
    };
    crate::do_job(name.expect("a job"), Path::new(folder), protocol, &ready);
}

/// Starts a process, and stops it at moments that have nothing to do with what it does.
pub(crate) fn stop_now_and_then(job: &str, folder: &Path) {
    let other = Other::start(job, folder, Protocol::Inherit);
    for number in 0..STOPS {
        std::thread::sleep(Duration::from_micros(7_300 + 1_700 * u64::from(number)));
        other.signal("STOP");
        std::thread::sleep(STOPPED);
        other.signal("CONT");
    }
    other.finish();
}

/// Waits until the other process wants no more, which closes our input then.
pub(crate) fn until_told(is_over: &AtomicBool) {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    is_over.store(true, Ordering::Release);
}
