//! The acts: commands of Hairspring and of a user on one recording, each as something that is begun, killed and waited
//! for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::hairspring;

/// Time limit of an act, only against hanging.
const PATIENCE: Duration = Duration::from_secs(60);
/// Frames of a recorder.
pub(super) const FRAMES: u64 = 12_000;

/// Layout of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    One,
    Stripe,
    Series,
    StripedSeries,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::One, Self::Stripe, Self::Series, Self::StripedSeries];

    pub(super) fn is_series(self) -> bool {
        matches!(self, Self::Series | Self::StripedSeries)
    }

    /// The folders of the members below that of the recording.
    pub(super) fn members(self) -> &'static [&'static str] {
        if matches!(self, Self::One | Self::Series) { &["d1"] } else { &["d1", "d2"] }
    }
}

/// Act of a command or of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Act {
    Record,
    Resume,
    Recover,
    RecoverAll,
    Verify,
    Compress,
    Undo,
    Join,
    Keep,
    Retention,
    Export,
    Play,
    Follow,
    Copy,
    CopyLinked,
    Remove,
    Move,
    Truncate,
}

use Act::*;

impl Act {
    pub(super) const ALL: [Self; 18] = [
        Record, Resume, Recover, RecoverAll, Verify, Compress, Undo, Join, Keep, Retention, Export, Play, Follow, Copy,
        CopyLinked, Remove, Move, Truncate,
    ];

    /// Whether the act exists for this layout.
    pub(super) fn fits(self, kind: Kind) -> bool {
        kind.is_series() || !matches!(self, Resume | Keep | Retention)
    }

    pub(super) fn records(self) -> bool {
        matches!(self, Record | Resume | Retention)
    }

    /// Whether a user takes something away.
    pub(super) fn destroys(self) -> bool {
        matches!(self, Remove | Move | Truncate)
    }

    /// Whether nothing of the recording changes.
    pub(super) fn only_reads(self) -> bool {
        matches!(self, Verify | Join | Export | Play | Follow | Copy | CopyLinked)
    }
}

/// Folders of a pair.
pub(super) struct Place {
    /// The recording's folder, which the user names.
    pub(super) named: PathBuf,
    /// Folder for copies, exports and moved files.
    pub(super) out: PathBuf,
    pub(super) kind: Kind,
}

impl Place {
    /// The recording, as a command's argument.
    pub(super) fn target(&self) -> String {
        let bases = self.kind.members().iter().map(|member| self.named.join(member).join("x").display().to_string());
        bases.collect::<Vec<_>>().join(",")
    }

    /// The first member, by which the others are found.
    fn first(&self) -> PathBuf {
        self.named.join(self.kind.members()[0]).join("x")
    }
}

/// An act that runs. One that a user makes at once is over when it has begun.
pub(super) struct Doing {
    pub(super) act: Act,
    child: Option<Child>,
    pub(super) output: Option<Output>,
    pub(super) ended: Option<Instant>,
    pub(super) was_killed: bool,
    /// The file that an export, a join, play or follow writes.
    pub(super) made: PathBuf,
}

impl Doing {
    /// Begins an act. `number` distinguishes the acts of a pair: their seeds and the names of their output.
    pub(super) fn begin(act: Act, place: &Place, number: u64) -> Self {
        let ending = if act == Export { ".npy" } else { "" };
        let made = place.out.join(format!("{number}-{act:?}{ending}"));
        let mut doing = Self { act, child: None, output: None, ended: None, was_killed: false, made };
        match command(act, place, number, &doing.made) {
            Some(mut command) => {
                command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
                doing.child = Some(command.spawn().expect("it can be started"));
            }
            None => {
                by_hand(act, place, &doing.made);
                doing.ended = Some(Instant::now());
            }
        }
        doing
    }

    /// Whether it still runs.
    pub(super) fn runs(&mut self) -> bool {
        let Some(child) = &mut self.child else { return false };
        let runs = child.try_wait().expect("it can be asked").is_none();
        if !runs {
            self.ended.get_or_insert_with(Instant::now);
        }
        runs
    }

    /// Waits until a moment, or until it has ended.
    pub(super) fn until(&mut self, moment: Instant) {
        while Instant::now() < moment && self.runs() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Kills it, if it runs.
    pub(super) fn kill(&mut self) {
        if self.runs() {
            self.was_killed = true;
            let _ = self.child.as_mut().map(Child::kill);
        }
        self.finish();
    }

    /// Waits for its end. `false`, and killed, if it does not come.
    pub(super) fn finish(&mut self) -> bool {
        let mut came = true;
        self.until(Instant::now() + PATIENCE);
        if let Some(mut child) = self.child.take() {
            if child.try_wait().expect("it can be asked").is_none() {
                came = self.was_killed;
                let _ = child.kill();
            }
            self.output = child.wait_with_output().ok();
            self.ended.get_or_insert_with(Instant::now);
        }
        came
    }

    /// The exit code; `None` for an act by hand, or after a signal.
    pub(super) fn code(&self) -> Option<i32> {
        self.output.as_ref().and_then(|output| output.status.code())
    }

    pub(super) fn says(&self) -> String {
        let Some(output) = &self.output else { return String::new() };
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        format!("{out}{err}")
    }

    pub(super) fn report(&self) -> Value {
        self.output.as_ref().and_then(|output| serde_json::from_slice(&output.stdout).ok()).unwrap_or_default()
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The command of an act; `None` if a user does it by hand.
fn command(act: Act, place: &Place, number: u64, made: &Path) -> Option<Command> {
    let (target, first, made) = (place.target(), place.first(), made.display().to_string());
    let first = first.display().to_string();
    let json = |arguments: &[&str]| {
        let mut command = hairspring(arguments);
        command.args(["--format", "json"]);
        Some(command)
    };
    match act {
        Record | Resume | Retention => {
            let mut command = recorder(&target, place.kind, number);
            if act != Record {
                command.arg("--resume");
            }
            if act == Retention {
                command.args(["--keep", "1"]);
            }
            Some(command)
        }
        Recover => json(&["recover", "--quiet", &first]),
        RecoverAll => json(&["recover", "--quiet", "--all", &first]),
        Verify => json(&["verify", "--quiet", &first]),
        Compress => json(&["compress", "--quiet", &first]),
        Undo => json(&["compress", "--undo", "--quiet", &first]),
        Join => json(&["join", "--quiet", &first, "--to", &made]),
        Keep => json(&["keep", &format!("{first}-000000")]),
        Export => json(&["export", "--quiet", &first, "--out", &made]),
        Play => {
            json(&["play", "--quiet", &first, "--gaps", "skip", "--buffer", "1MiB", "--to", &format!("file:{made}")])
        }
        Follow => {
            let mut command = Command::new(python().expect("asked before"));
            command.args(["-c", FOLLOW, &first, &made]);
            Some(command)
        }
        Copy | CopyLinked => {
            let mut command = Command::new("cp");
            command.arg(if act == Copy { "-a" } else { "-al" }).arg(&place.named).arg(made);
            Some(command)
        }
        Remove | Move | Truncate => None,
    }
}

/// A recorder of a virtual card, which takes 60 ms.
pub(super) fn recorder(target: &str, kind: Kind, seed: u64) -> Command {
    let card = format!("virtual:2ch,16bit,200kS/s,data=noise:{seed},frames={FRAMES}");
    let mut command = hairspring(&["record", "--quiet", "--format", "json", "--card", &card, "--to", target]);
    command.args(["--buffer", "1MiB", "--notify", "4KiB", "--pages", "small", "--sync", "20ms"]);
    if kind.is_series() {
        command.args(["--segment", "20ms"]);
    }
    command
}

/// Whether a file is one of the recording, by its name.
pub(super) fn is_of_it(path: &Path) -> bool {
    const OURS: [&str; 7] =
        ["sigmf-meta", "sigmf-data", "hairspring-journal", "hairspring-series", "sigmf-collection", "keep", "cut"];
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(rest) = name.strip_prefix('.').unwrap_or(name).strip_prefix('x') else { return false };
    let rest = match rest.strip_prefix('-') {
        Some(number) if number.len() > 6 && number.as_bytes()[..6].iter().all(u8::is_ascii_digit) => &number[6..],
        _ => rest,
    };
    rest.strip_prefix('.').is_some_and(|ending| OURS.iter().any(|ours| ending.starts_with(ours)))
}

/// Acts of a user by hand, file by file.
fn by_hand(act: Act, place: &Place, made: &Path) {
    for member in place.kind.members() {
        let files = fs::read_dir(place.named.join(member)).into_iter().flatten().flatten().map(|entry| entry.path());
        if act == Move {
            fs::create_dir_all(made.join(member)).expect("the test's own folder");
        }
        for path in files.filter(|path| is_of_it(path)) {
            let is_data = path.to_string_lossy().contains(".sigmf-data");
            // Files come and go meanwhile.
            let _ = match act {
                Remove => fs::remove_file(&path),
                Move => fs::rename(&path, made.join(member).join(path.file_name().expect("a name"))),
                _ if is_data => {
                    let file = fs::OpenOptions::new().write(true).open(&path);
                    file.and_then(|file| file.set_len(file.metadata()?.len() / 2))
                }
                _ => Ok(()),
            };
        }
    }
}

/// Follows a recording: writes each piece as its first frame, its count, and its samples.
const FOLLOW: &str = "
import struct, sys, hairspring
with open(sys.argv[2], 'wb') as file:
    for first, rows in hairspring.open_recording(sys.argv[1]).follow(gaps='split', timeout=1, poll=0.02):
        file.write(struct.pack('<QQ', first, len(rows)) + rows.tobytes())
";

/// The Python that has the package; `None` if there is none.
pub(super) fn python() -> Option<&'static str> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let python = std::env::var("HAIRSPRING_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let works = crate::works(Command::new(&python).args(["-c", "import hairspring, numpy"]));
        works.then_some(python)
    });
    found.as_deref()
}
