//! The commands about recordings: plan, make, check, play, export, repair and join them.

pub(crate) mod account;
pub(crate) mod clock;
pub(crate) mod compress;
pub(crate) mod data_path;
pub(crate) mod export;
pub(crate) mod join;
pub(crate) mod keep;
pub(crate) mod maxrate;
pub(crate) mod plan;
pub(crate) mod play;
#[expect(clippy::module_inception, reason = "each command has a file with its name in the folder of its group")]
pub(crate) mod record;
pub(crate) mod recording;
pub(crate) mod recover;
pub(crate) mod target;
pub(crate) mod verify;

use hairspring_recording::RecordingVerdict;
use hairspring_ring::Frames;

use crate::exit::Exit;
use crate::page::commands;

/// The files of a recording, for the manual.
const FILES: [(&str, &str); 3] = [
    ("NAME.sigmf-data", "the samples as the card delivered them"),
    ("NAME.sigmf-meta", "SigMF metadata, with gaps and verdict"),
    ("NAME.hairspring-journal", "a checksum for every block, for `verify` and `recover`"),
];

commands! { "Record":
    Plan(plan),
    Maxrate(maxrate),
    Record(record),
    Verify(verify),
    Play(play),
    Export(export),
    Recover(recover),
    Join(join),
    Keep(keep),
    Compress(compress),
}

impl From<RecordingVerdict> for Exit {
    fn from(verdict: RecordingVerdict) -> Self {
        match verdict {
            RecordingVerdict::Complete | RecordingVerdict::Stopped => Self::Success,
            RecordingVerdict::Incomplete => Self::Loss,
            RecordingVerdict::Unaccounted => Self::Unreadable,
        }
    }
}

/// Reads a number of frames.
fn frames(text: &str) -> Result<Frames, String> {
    let number = text.replace('_', "").parse();
    number.map(Frames).map_err(|_| "write a whole number of frames, like 1000000".to_owned())
}
