//! A round in its own process: its start, the protocol of the two sides, and its end.
//!
//! ```text
//!   sheet ── stdin: the request, one line ────────────────────────────► round
//!         ◄─ stdout: hello, then progress and parts, a line each ─────
//!         ── stdin closed: end early, send the results ─────────────►
//! ```
//!
//! A measuring process must be fresh: its pages, its layout (address space randomisation, an environment of random
//! length) and its first CPU all vary between two runs. It ends with its input, so it never outlives the sheet.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use hairspring_machine::{Host, Nanos};
use hairspring_sheet::Build;
use hairspring_time::Timebase;
use serde::{Deserialize, Serialize};

use super::{Measuring, PROTOCOL, RoundPart, RoundRequest, take_round};
use crate::probe::{ChapterDeclaration, SheetProgress, registry};

/// The hidden command for a round.
pub const COMMAND: &str = "round";
/// The variable whose length is random.
const PADDING: &str = "HAIRSPRING_PADDING";
/// Time between two checks for an interruption by the user.
const LOOK: Duration = Duration::from_millis(50);
/// The required bound of the rate before the first measurement, and the time limit for it, without a given calibration.
const BOUND_PPM: f64 = 0.5;
const AGE: Nanos = Nanos::from_millis(50);

/// A request to a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// List the rows.
    Declare,
    /// To measure.
    Take(RoundRequest),
}

/// A line of a round's output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Say {
    Hello { protocol: u32 },
    Declared { build: Build, chapters: Vec<ChapterDeclaration> },
    Progress { measuring: String, done_ns: i64, total_ns: i64 },
    Part(Box<RoundPart>),
    Failed(String),
    Ended,
}

/// Serves a round: measures the request in the line `asked`, and writes the results to `output`. Ends early once
/// `interrupted` is set, which the caller does at the end of the input. `program` is started for chapters that need
/// other processes. Returns `false` if the line is not a valid request.
///
/// # Errors
/// The output is gone.
pub fn serve(
    asked: &str,
    build: &Build,
    program: Option<&Path>,
    interrupted: &AtomicBool,
    output: &mut impl Write,
) -> std::io::Result<bool> {
    let output = RefCell::new(output);
    let say = |say: &Say| -> std::io::Result<()> {
        let mut line = serde_json::to_string(say)?;
        line.push('\n');
        let mut output = output.borrow_mut();
        output.write_all(line.as_bytes())?;
        output.flush()
    };
    say(&Say::Hello { protocol: PROTOCOL })?;
    let request = match serde_json::from_str(asked) {
        Ok(Ask::Take(request)) => request,
        Ok(Ask::Declare) => {
            return say(&Say::Declared { build: build.clone(), chapters: registry() }).map(|()| true);
        }
        Err(_) => return Ok(false),
    };
    // Changes of the clocks since then are reported before the first chapter.
    let anchors = request.anchors.as_deref().and_then(|anchors| anchors.parse().ok());
    let timebase = match anchors {
        Some(anchors) => Timebase::resume(Host, anchors),
        None => Timebase::calibrate_to(Host, BOUND_PPM, AGE),
    };
    let timebase = match timebase {
        Ok(timebase) => timebase,
        Err(error) => return say(&Say::Failed(format!("failed to {error}"))).map(|()| true),
    };
    let mut progress = |progress: SheetProgress<'_>| {
        let SheetProgress { measuring, done, total } = progress;
        let said = Say::Progress { measuring: measuring.to_owned(), done_ns: done.count(), total_ns: total.count() };
        // If the sheet's process is gone, the input has ended, too.
        drop(say(&said));
    };
    let mut gone = None;
    let part = |part: RoundPart| gone = say(&Say::Part(Box::new(part))).err().or(gone.take());
    let taken = take_round(&Host, &request, Measuring { timebase, program, interrupted }, &mut progress, part);
    if let Some(error) = gone {
        return Err(error);
    }
    say(&taken.map_or_else(|error| Say::Failed(error.to_string()), |_| Say::Ended)).map(|()| true)
}

/// The result of a process for a round.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) parts: Vec<RoundPart>,
    pub(crate) declared: Option<(Build, Vec<ChapterDeclaration>)>,
    /// Why it did not finish.
    pub(crate) failed: Option<Failed>,
}

/// Why a round did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The program cannot serve rounds at all.
    NoRound(String),
    /// The program serves rounds, but failed.
    Broken(String),
}

impl Failed {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::NoRound(text) | Self::Broken(text) => text,
        }
    }
}

/// Program, arguments and environment of a process.
#[derive(Clone, Copy)]
pub(crate) struct Started<'p> {
    pub(crate) program: &'p Path,
    /// The bytes added to its environment.
    pub(crate) padding: usize,
    /// Other variables in its environment.
    pub(crate) variable: Option<(&'static str, &'p Path)>,
}

/// Starts a program for a request in its own process, and waits for its end. Calls `started` once it has been started.
pub(crate) fn ask(
    how: &Started<'_>,
    asked: &Ask,
    interrupted: &AtomicBool,
    started: impl FnOnce(),
    mut progress: impl FnMut(SheetProgress<'_>),
) -> Answer {
    let mut answer = Answer::default();
    let program = how.program;
    let mut child = match start(how, asked) {
        Ok(child) => child,
        Err(error) => {
            answer.failed = Some(Failed::NoRound(format!("{} does not start: {error}", program.display())));
            return answer;
        }
    };
    started();
    let (said, complained) = (child.stdout.take(), child.stderr.take());
    let (mut protocol, mut ended) = (None, false);
    std::thread::scope(|scope| {
        let (lines, heard) = channel();
        scope.spawn(move || {
            for line in said.into_iter().flat_map(|said| BufReader::new(said).lines().map_while(Result::ok)) {
                drop(lines.send(line));
            }
        });
        let complaint = scope.spawn(move || complained.map(std::io::read_to_string));
        loop {
            match heard.recv_timeout(LOOK).map(|line| serde_json::from_str(&line)) {
                Ok(Ok(Say::Hello { protocol: spoken })) => protocol = Some(spoken),
                Ok(Ok(Say::Declared { build, chapters })) => {
                    (answer.declared, ended) = (Some((build, chapters)), true);
                }
                Ok(Ok(Say::Progress { measuring, done_ns, total_ns })) => {
                    let (done, total) = (Nanos::new(done_ns), Nanos::new(total_ns));
                    progress(SheetProgress { measuring: &measuring, done, total });
                }
                Ok(Ok(Say::Part(part))) => answer.parts.push(*part),
                Ok(Ok(Say::Failed(text))) => answer.failed = Some(Failed::Broken(text)),
                Ok(Ok(Say::Ended)) => ended = true,
                Ok(Err(_)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            // Relaxed: a plain flag that publishes no other data.
            if interrupted.load(Ordering::Relaxed) {
                drop(child.stdin.take());
            }
        }
        drop(child.stdin.take());
        let how = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let complaint = complaint.join().ok().flatten().and_then(Result::ok).unwrap_or_default();
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty());
        let how = last.map_or(how.clone(), |last| format!("{how}: {last}"));
        if protocol != Some(PROTOCOL) {
            let text = format!("{} is not a build that measures in rounds of this kind ({how})", program.display());
            answer.failed = Some(Failed::NoRound(text));
        } else if !ended && answer.failed.is_none() {
            answer.failed = Some(Failed::Broken(format!("its process ended early ({how})")));
        }
    });
    answer
}

fn start(how: &Started<'_>, asked: &Ask) -> std::io::Result<Child> {
    let mut child = Command::new(how.program)
        .arg(COMMAND)
        .env(PADDING, "-".repeat(how.padding))
        .envs(how.variable)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(input) = &mut child.stdin {
        let mut line = serde_json::to_string(asked)?;
        line.push('\n');
        // A program that does not read its input reports its own error.
        drop(input.write_all(line.as_bytes()));
    }
    Ok(child)
}
