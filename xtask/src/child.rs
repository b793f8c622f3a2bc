//! A child process with a time limit, its own process group, a log file and progress messages.
//!
//! Promises: `run` returns within a second of the limit; when the limit is over or the user interrupts, the child *and
//! all of its descendants* are killed; the log holds both of its output streams. The child has no standard input: no
//! task may wait for a person.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How often a running child is checked.
const POLL: Duration = Duration::from_millis(20);
/// How often a progress message appears, so that a long build does not look like a hang.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);
/// How many lines of a log's end a report repeats.
const TAIL_LINES: usize = 40;

/// Result of a child.
pub(crate) struct Ended {
    pub(crate) how: Ending,
    /// Both streams in the order they were written.
    pub(crate) output: String,
    pub(crate) took: Duration,
    /// CPU time of the child and of those descendants that their parents waited for.
    pub(crate) cpu: Duration,
    pub(crate) log: PathBuf,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Exit(i32),
    Signal(i32),
    TimedOut(Duration),
    Interrupted,
    NotStarted(String),
}

impl Ended {
    pub(crate) fn succeeded(&self) -> bool {
        self.how == Ending::Exit(0)
    }

    /// One that ended like this with this output, for tests.
    #[cfg(test)]
    pub(crate) fn of(how: Ending, output: &str) -> Ended {
        Ended { how, output: output.to_owned(), took: Duration::ZERO, cpu: Duration::ZERO, log: "log".into() }
    }

    /// The end of the log, for a report of a failure.
    pub(crate) fn tail(&self) -> String {
        tail(&self.output)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exit(code) => write!(f, "exit status {code}"),
            Ending::Signal(signal) => write!(f, "killed by signal {signal}"),
            Ending::TimedOut(limit) => write!(f, "killed after its limit of {} s", limit.as_secs()),
            Ending::Interrupted => write!(f, "interrupted"),
            Ending::NotStarted(error) => write!(f, "could not be started: {error}"),
        }
    }
}

/// The share of the CPUs that a child gets in competition with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// An equal share.
    Equal,
    /// Only idle time.
    Leftover,
}

/// Runs `command` to its end, at most for `limit`; both streams go to `log`.
pub(crate) fn run(label: &str, command: &mut Command, limit: Duration, log: &Path) -> Ended {
    run_with(label, command, limit, log, Share::Equal)
}

/// As `run`, with a share of the CPUs.
pub(crate) fn run_with(label: &str, command: &mut Command, limit: Duration, log: &Path, share: Share) -> Ended {
    let begun = Instant::now();
    let mut cpu = Duration::ZERO;
    let how = match start(command, log, share) {
        Ok(mut child) => wait(label, &mut child, begun, limit, log, &mut cpu),
        Err(error) => Ending::NotStarted(format!("{}: {error}", command.get_program().to_string_lossy())),
    };
    let output = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    Ended { how, output, took: begun.elapsed(), cpu, log: log.to_owned() }
}

/// The last lines of a text, marked when something was left out.
pub(crate) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let skipped = lines.len().saturating_sub(TAIL_LINES);
    let note = if skipped > 0 { format!("… {skipped} lines before\n") } else { String::new() };
    note + &lines[skipped..].join("\n")
}

/// True once the user pressed Ctrl-C or another process sent SIGTERM. Children are in their own process groups and do
/// not receive the terminal's signal, so this process must end them.
pub(crate) fn interrupted() -> bool {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let flag = FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // Without a handler Ctrl-C ends this process at once, and the child runs until its limit: tolerable.
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
        }
        flag
    });
    // Relaxed: the flag carries no other data with it.
    flag.load(Ordering::Relaxed)
}

fn start(command: &mut Command, log: &Path, share: Share) -> std::io::Result<Child> {
    interrupted();
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = File::create(log)?;
    // The clone shares the file offset, so the streams follow each other instead of overwriting.
    let child = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0).spawn()?;
    if share == Share::Leftover {
        // If this fails, the other lane is only slower.
        let _ = rustix::process::setpriority_process(Some(pid(&child)), 19);
    }
    Ok(child)
}

fn wait(label: &str, child: &mut Child, begun: Instant, limit: Duration, log: &Path, cpu: &mut Duration) -> Ending {
    let mut next_sign = SIGN_OF_LIFE;
    loop {
        // The kernel forgets the CPU time of a child that was waited for, so the last look is before that.
        *cpu = cpu_time(child).unwrap_or(*cpu);
        match child.try_wait() {
            Ok(Some(status)) => {
                return match (status.code(), status.signal()) {
                    (Some(code), _) => Ending::Exit(code),
                    (None, signal) => Ending::Signal(signal.unwrap_or(0)),
                };
            }
            Ok(None) => {}
            Err(error) => return Ending::NotStarted(format!("lost: {error}")),
        }
        let elapsed = begun.elapsed();
        if elapsed >= limit || interrupted() {
            end_group(child);
            return if elapsed >= limit { Ending::TimedOut(limit) } else { Ending::Interrupted };
        }
        if elapsed >= next_sign {
            println!("       … {label}, {} s: {}", elapsed.as_secs(), last_line(log));
            next_sign += SIGN_OF_LIFE;
        }
        std::thread::sleep(POLL);
    }
}

/// CPU time so far, from /proc: of the child, and of the descendants that were waited for. `None` if there is no such
/// file.
fn cpu_time(child: &Child) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    // The name in parentheses may have spaces; utime, stime, cutime and cstime are fields 14 to 17.
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(4);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second()))
}

/// Kills the child and its descendants, and reaps it.
fn end_group(child: &mut Child) {
    // Fails only when the whole group has already ended.
    let _ = rustix::process::kill_process_group(pid(child), rustix::process::Signal::KILL);
    let _ = child.wait();
}

fn pid(child: &Child) -> rustix::process::Pid {
    rustix::process::Pid::from_child(child)
}

fn last_line(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("").trim().chars().take(90).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> (Ended, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let ended = run("test", Command::new("sh").args(["-c", script]).current_dir(&folder), limit, &log);
        (ended, folder)
    }

    #[test]
    fn both_streams_and_the_status_are_kept() {
        let (ended, _folder) = shell("echo out; echo err >&2; exit 3", Duration::from_secs(20));
        assert_eq!(ended.how, Ending::Exit(3));
        assert_eq!(ended.output, "out\nerr\n");
        assert!(!ended.succeeded());
    }

    #[test]
    fn the_cpu_time_of_a_child_and_its_own_children_is_counted() {
        let (ended, _folder) =
            shell("sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; sleep 0.1", Duration::from_secs(60));
        assert!(
            ended.cpu >= Duration::from_millis(50) && ended.cpu <= ended.took * 2,
            "{:?} of {:?}",
            ended.cpu,
            ended.took
        );
    }

    #[test]
    fn a_child_has_no_standard_input() {
        let (ended, _folder) = shell("cat; echo done", Duration::from_secs(20));
        assert_eq!(ended.output, "done\n");
    }

    #[test]
    fn at_the_limit_the_grandchildren_go_too() {
        let (ended, _folder) = shell("sleep 300 & echo $!; wait", Duration::from_millis(300));
        assert_eq!(ended.how, Ending::TimedOut(Duration::from_millis(300)));
        let grandchild = ended.output.trim();
        // A killed process may remain a zombie until init reaps it, and dying takes a moment. The test requires that it
        // does not run for its 300 s.
        let runs = || {
            let state = fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
            !(state.is_empty() || state.contains(") Z"))
        };
        let begun = Instant::now();
        while runs() {
            assert!(begun.elapsed() < Duration::from_secs(10), "the grandchild still runs");
            std::thread::sleep(POLL);
        }
    }

    #[test]
    fn a_missing_program_is_an_outcome_not_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let ended =
            run("test", &mut Command::new("no-such-program"), Duration::from_secs(1), &folder.path().join("log"));
        assert!(matches!(ended.how, Ending::NotStarted(_)), "{}", ended.how);
    }

    #[test]
    fn what_gets_what_is_left_is_nice_and_so_is_what_it_starts() {
        for (share, nice) in
            [(Share::Equal, rustix::process::getpriority_process(None).unwrap()), (Share::Leftover, 19)]
        {
            let folder = tempfile::tempdir().unwrap();
            let log = folder.path().join("log");
            let limit = Duration::from_secs(20);
            let ended = run_with("test", Command::new("sh").args(["-c", "sleep 0.3; nice"]), limit, &log, share);
            assert_eq!(ended.output.trim(), nice.to_string(), "{share:?}");
        }
    }

    #[test]
    fn a_tail_says_what_it_left_out() {
        let long: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let tail = tail(&long);
        assert!(tail.starts_with("… 60 lines before\nline 60\n") && tail.ends_with("line 99"));
    }
}
