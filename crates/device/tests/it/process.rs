//! Other processes: this binary again, told by its environment what to do.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use hairspring_device::{Device, Lockable, Protocol};

use crate::{board, timebase};

/// Where a child finds its job.
const JOB: &str = "HAIRSPRING_DEVICE_JOB";
/// What a child says when it is where it shall be.
const READY: &str = "ready";

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

/// Is a test like the others to the harness; only as a child it does something.
#[test]
fn a_job() {
    let Ok(job) = std::env::var(JOB) else { return };
    let mut words = job.splitn(3, ' ');
    let (name, protocol, folder) = (words.next(), words.next(), words.next().expect("three words"));
    let timebase = timebase();
    let protocol = protocol.and_then(|text| text.parse().ok()).expect("a protocol");
    let mut board = board(Path::new(folder), protocol, &timebase);
    let ready = || {
        let _ = writeln!(std::io::stdout(), "{READY}");
        let _ = std::io::stdout().flush();
    };
    match name.expect("a job") {
        "hold" => {
            let _guard = board.lock().lock().expect("the lock");
            ready();
            // Until it is killed.
            std::thread::sleep(std::time::Duration::from_secs(600));
        }
        "count" => {
            board.init().expect("it is initialised");
            ready();
            count(&mut board, 3000);
        }
        "survive" => {
            ready();
            crate::gone::survive(Path::new(folder), protocol, &timebase);
        }
        "forget" => {
            ready();
            crate::gone::forget(Path::new(folder), protocol);
        }
        "pulses" => {
            board.init().expect("it is initialised");
            ready();
            crate::stopped::pulses(&mut board, &timebase);
        }
        "events" => {
            ready();
            crate::stopped::events(&timebase);
        }
        "stranger" => {
            ready();
            crate::gone::stranger(&board);
        }
        other => panic!("no job {other}"),
    }
}

/// Counts up in the input register, in steps that others would break if they came between them.
pub(crate) fn count(board: &mut hairspring_device::VirtualBoard<'_, hairspring_time::Host>, times: u32) {
    for _ in 0..times {
        let now = {
            let _guard = board.lock().lock().expect("the lock");
            let now = board.inputs();
            std::hint::spin_loop();
            board.connect(hairspring_device::Lines(now.0 + 1));
            now
        };
        assert!(now.0 < u32::MAX);
    }
}
