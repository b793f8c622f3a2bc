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

use clap::Subcommand;
use hairspring_recording::RecordingVerdict;
use hairspring_ring::Frames;

use crate::exit::{Exit, Failure};
use crate::page::Group;

/// Texts of the commands for help and manual.
pub(crate) const GROUP: Group = Group {
    heading: "Record",
    pages: &[
        plan::PAGE,
        maxrate::PAGE,
        record::PAGE,
        verify::PAGE,
        play::PAGE,
        export::PAGE,
        recover::PAGE,
        join::PAGE,
        keep::PAGE,
        compress::PAGE,
    ],
};

/// The files of a recording, for the manual.
const FILES: [(&str, &str); 3] = [
    ("NAME.sigmf-data", "the samples as the card delivered them"),
    ("NAME.sigmf-meta", "SigMF metadata, with gaps and verdict"),
    ("NAME.hairspring-journal", "a checksum for every block, for `verify` and `recover`"),
];

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say whether a set-up can carry a recording, and what limits it
    ///
    /// The plan also gives the sizes of the buffers and how long the disks and the memory last.
    Plan(plan::Arguments),
    /// Find the highest rate at which this machine loses no data
    ///
    /// Searches by recording at different rates, and confirms the answer by recordings that are read back and compared.
    Maxrate(Box<maxrate::Arguments>),
    /// Record cards to disk, and account for every byte
    ///
    /// The report gives the stored and the lost data, the causes of losses, and what would survive a power cut. Ctrl-C ends the
    /// recording in order.
    Record(Box<record::Arguments>),
    /// Check every byte of a recording against its checksums
    ///
    /// Several recordings can be named: each gets a line, and the exit code is the highest one.
    Verify(verify::Arguments),
    /// Play a recording, at its own rate or as fast as possible
    Play(Box<play::Arguments>),
    /// Export a recording for other programs: HDF5, NumPy, CSV
    ///
    /// What the exported piece lacks is listed. If data are lost in it, the exit code is 4.
    Export(export::Arguments),
    /// Repair a recording after a crash, a power cut or damage
    ///
    /// Keeps all data that a checksum proves, and turns the rest into declared gaps.
    Recover(recover::Arguments),
    /// Join the parts of a stripe or the segments of a series
    Join(join::Arguments),
    /// Keep segments of a series from being deleted, or release them
    Keep(keep::Arguments),
    /// Compress closed recordings without loss, or restore them
    ///
    /// The data file is removed only when every byte of the compressed one was read back and compared. Every command and Python read
    /// the recording as before; other programs need `--undo` first.
    Compress(compress::Arguments),
}

impl Command {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Record(arguments) => record::run(arguments),
            Self::Play(arguments) => play::run(arguments),
            Self::Verify(arguments) => verify::run(arguments),
            Self::Recover(arguments) => recover::run(arguments),
            Self::Join(arguments) => join::run(arguments),
            Self::Keep(arguments) => keep::run(arguments),
            Self::Compress(arguments) => compress::run(arguments),
            Self::Export(arguments) => export::run(arguments),
            Self::Plan(arguments) => plan::run(arguments),
            Self::Maxrate(arguments) => maxrate::run(arguments),
        }
    }
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
