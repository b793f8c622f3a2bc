//! The arguments of the commands about recordings.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use hairspring_stream::card::Card;
use hairspring_stream::memory::Pages;
use hairspring_stream::recorder::{MOST_DEPTH, Placement};
use hairspring_stream::sink::Gaps;
use hairspring_stream::source::OnOverrun;
use hairspring_stream::trigger::{Shots, Trigger};
use hairspring_stream::{ByteRate, Bytes, Frames, SampleRate};
use hairspring_time::Nanos;

use crate::arguments::{Plain, duration};
use crate::play::{Rounds, Speed, Target};
use crate::record::card::AnyCard;

#[derive(Args, Debug)]
pub(crate) struct RecordArguments {
    /// What to record, for instance virtual:4ch,14bit,40MS/s or comedi:/dev/comedi0,2ch,10kS/s; again for further cards,
    /// which become recordings of their own: x-card0, x-card1, ...
    #[arg(long = "card", value_name = "CARD", required = true, value_parser = parsed::<AnyCard>)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) cards: Vec<AnyCard>,
    /// Name of the recording in an existing folder, without an ending; several folders make a stripe
    #[arg(long, value_name = "DIR/NAME,...", value_delimiter = ',', required = true)]
    pub(crate) to: Vec<PathBuf>,
    /// How long, from the first data on [default: until the card ends, or Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) length: Option<Nanos>,
    /// How long to wait for a sender's first data at most [default: until Ctrl-C]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) wait: Option<Nanos>,
    /// How many frames of each card, a frame being one sample of every channel
    #[arg(long, value_name = "N", value_parser = frames, conflicts_with = "length", allow_hyphen_values = true)]
    pub(crate) frames: Option<Frames>,
    /// Keep only what a trigger asks for: level:ch0>0.5, level:ch0<-0.5, rising:ch0@0.5, falling:ch0@0.5~0.1, or
    /// external, which is the signal USR1
    #[arg(long, value_name = "TRIGGER", value_parser = parsed::<Trigger>, allow_hyphen_values = true)]
    #[arg(requires = "post")]
    pub(crate) trigger: Option<Trigger>,
    /// Frames kept before each trigger [default: 0]
    #[arg(long, value_name = "N", value_parser = frames, requires = "trigger", allow_hyphen_values = true)]
    pub(crate) pre: Option<Frames>,
    /// Frames kept from each trigger on
    #[arg(long, value_name = "N", value_parser = frames, requires = "trigger", allow_hyphen_values = true)]
    pub(crate) post: Option<Frames>,
    /// How many shots: single, repeated, or a number [default: single]
    #[arg(long, value_name = "N", value_parser = parsed::<Shots>, requires = "trigger", allow_hyphen_values = true)]
    pub(crate) shots: Option<Shots>,
    /// What to do when the disks are too slow and the buffer is full
    #[arg(long, value_enum, default_value_t = OverrunName::Stop)]
    pub(crate) on_overrun: OverrunName,
    #[command(flatten)]
    pub(crate) way: Way,
    /// Show the level of every channel, too
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) monitor: bool,
    /// Show nothing until the end
    #[arg(long)]
    pub(crate) quiet: bool,
    /// The format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}

/// How data go from a card to the disks.
#[derive(Args, Debug)]
pub(crate) struct Way {
    /// Memory between each card and the disks [default: 256MiB, and at most a quarter of what is free]
    #[arg(long, value_name = "SIZE", value_parser = parsed::<Bytes>, allow_hyphen_values = true)]
    pub(crate) buffer: Option<Bytes>,
    /// How much comes together before it is written; must divide the buffer [default: 4MiB, less for slow cards]
    #[arg(long, value_name = "SIZE", value_parser = parsed::<Bytes>, allow_hyphen_values = true)]
    pub(crate) notify: Option<Bytes>,
    /// The pages of the buffer; weaker ones are taken, and named, where these are not to be had
    #[arg(long, value_enum, default_value_t = PagesName::Huge2m)]
    pub(crate) pages: PagesName,
    /// Writes under way at once
    #[arg(long, value_name = "N", default_value_t = 8, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=MOST_DEPTH as i64))]
    pub(crate) depth: u16,
    /// Which folder of a stripe gets the next block
    #[arg(long, value_enum, default_value_t = PlacementName::LeastLoaded)]
    pub(crate) placement: PlacementName,
    /// How to write; the plain way is taken, and named, where io_uring is not to be had
    #[arg(long, value_enum, default_value_t = EngineName::IoUring)]
    pub(crate) engine: EngineName,
    /// Write through the page cache
    #[arg(long)]
    pub(crate) no_direct: bool,
    /// Time between two syncs: what is older survives a power cut
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1s", allow_hyphen_values = true)]
    pub(crate) sync: Nanos,
}

#[derive(Args, Debug)]
pub(crate) struct MaxrateArguments {
    /// Record into this existing folder, and remove it again; several folders make a stripe
    #[arg(long, value_name = "DIR,...", value_delimiter = ',', required = true)]
    pub(crate) to: Vec<PathBuf>,
    /// The card whose highest rate is searched; the rate it is written with does not matter
    #[arg(long, value_name = "CARD", value_parser = parsed::<Card>, default_value = "virtual:4ch,16bit,1MS/s")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) card: Card,
    /// How long each recording lasts at least
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, default_value = "10s")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) length: Nanos,
    /// The most that one recording of the search may write, of which there are some twenty, each removed again; a shorter one
    /// is made where that is less [default: half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = parsed::<Bytes>, allow_hyphen_values = true)]
    pub(crate) volume: Option<Bytes>,
    /// Try no rate above this [default: four times what a first recording of a waiting card reaches]
    #[arg(long, value_name = "RATE", value_parser = parsed::<ByteRate>, allow_hyphen_values = true)]
    pub(crate) limit: Option<ByteRate>,
    /// Search until the rates that did and did not work differ by no more than this, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0, allow_negative_numbers = true)]
    pub(crate) resolution: f64,
    /// Recordings without loss, each read back and compared, that the answer rests on
    #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) confirmations: u32,
    #[command(flatten)]
    pub(crate) way: Way,
    /// Show nothing until the end
    #[arg(long)]
    pub(crate) quiet: bool,
    /// The format
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArguments {
    /// The recording, with or without an ending; parts of a stripe that were moved are named as well
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recording: Vec<PathBuf>,
    /// Print the SHA-512 of each data file, too
    #[arg(long)]
    pub(crate) sha512: bool,
    /// Do not compare the data with the generator that made them, where it is known
    #[arg(long)]
    pub(crate) no_counters: bool,
    /// Show nothing until the end
    #[arg(long)]
    pub(crate) quiet: bool,
    /// The format
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}

#[derive(Args, Debug)]
pub(crate) struct RecoverArguments {
    /// The recording, with or without an ending; parts of a stripe that were moved are named as well
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recording: Vec<PathBuf>,
    /// Change nothing, and say what would be changed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Read every block, also those that a sync covers
    #[arg(long)]
    pub(crate) all: bool,
    /// Give up what stands behind damage in the middle of a journal
    #[arg(long)]
    pub(crate) cut_journal: bool,
    /// Show nothing until the end
    #[arg(long)]
    pub(crate) quiet: bool,
    /// The format
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}

#[derive(Args, Debug)]
pub(crate) struct JoinArguments {
    /// The recording, with or without an ending; parts that were moved are named as well
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recording: Vec<PathBuf>,
    /// Name of the new recording in an existing folder, without an ending
    #[arg(long, value_name = "DIR/NAME")]
    pub(crate) to: PathBuf,
    /// Let missing parts and damaged blocks become gaps, instead of refusing
    #[arg(long)]
    pub(crate) declare_gaps: bool,
    /// Show nothing until the end
    #[arg(long)]
    pub(crate) quiet: bool,
    /// The format
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}

#[derive(Args, Debug)]
pub(crate) struct PlayArguments {
    /// The recording, with or without an ending; parts of a stripe that were moved are named as well
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recording: Vec<PathBuf>,
    /// Where to: null, file:PATH, stdout, or virtual:fifo=4MiB, which has a clock
    #[arg(long, value_name = "OUTPUT", value_parser = parsed::<Target>)]
    pub(crate) to: Target,
    /// Frames per second, for instance 40MS/s [default: as fast as the output takes them; of a virtual one, as recorded]
    #[arg(long, value_name = "RATE", value_parser = parsed::<SampleRate>, allow_hyphen_values = true)]
    pub(crate) rate: Option<SampleRate>,
    /// So many times as fast as it was recorded
    #[arg(long, value_name = "FACTOR", value_parser = parsed::<Speed>, conflicts_with = "rate")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) speed: Option<Speed>,
    /// What is played where the recording has a gap: zero, hold (the last frame), or skip
    #[arg(long, value_name = "WHAT", value_parser = parsed::<Gaps>, default_value = "zero")]
    pub(crate) gaps: Gaps,
    /// How often, or forever
    #[arg(long = "loop", value_name = "N", value_parser = parsed::<Rounds>, default_value = "1")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) rounds: Rounds,
    /// How full the buffer must be before the clock starts, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 100, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) preroll: u8,
    /// Memory between the disks and the output [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = parsed::<Bytes>, allow_hyphen_values = true)]
    pub(crate) buffer: Option<Bytes>,
    /// The pages of the buffer
    #[arg(long, value_enum, default_value_t = PagesName::Huge2m)]
    pub(crate) pages: PagesName,
    /// Reads under way at once
    #[arg(long, value_name = "N", default_value_t = 8, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=MOST_DEPTH as i64))]
    pub(crate) depth: u16,
    /// Show nothing until the end
    #[arg(long)]
    pub(crate) quiet: bool,
    /// The format of the report; it goes to the standard error if the samples go to the standard output
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArguments {
    /// The recording, with or without an ending; parts of a stripe that were moved are named as well
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recording: Vec<PathBuf>,
    /// Write this new file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The form [default: by the ending of --out]
    #[arg(long = "as", value_enum)]
    pub(crate) form: Option<FormName>,
    /// The first frame, counted as the card produced them
    #[arg(long, value_name = "N", value_parser = frames, allow_hyphen_values = true)]
    pub(crate) from: Option<Frames>,
    /// How many frames [default: all; of CSV at most a million]
    #[arg(long, value_name = "N", value_parser = frames, allow_hyphen_values = true)]
    pub(crate) frames: Option<Frames>,
    /// In an array, let frames on both sides of a gap become neighbours
    #[arg(long)]
    pub(crate) leave_out_gaps: bool,
    /// Show nothing until the end
    #[arg(long)]
    pub(crate) quiet: bool,
    /// The format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}

/// The forms of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormName {
    /// A view for HDF5; the samples stay where they are
    Hdf5,
    /// An array for NumPy
    Npy,
    /// Text, for small cuts
    Csv,
}

impl FormName {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hdf5 => "hdf5",
            Self::Npy => "npy",
            Self::Csv => "csv",
        }
    }
}

/// What becomes of data that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverrunName {
    /// End at the first loss; everything before it is kept
    Stop,
    /// Drop the newest, declare the gap, go on
    Gap,
    /// Drop the oldest, declare the gap, go on
    Overwrite,
    /// Make the card wait; refused for one with a clock
    Block,
}

impl From<OverrunName> for OnOverrun {
    fn from(name: OverrunName) -> Self {
        match name {
            OverrunName::Stop => Self::Stop,
            OverrunName::Gap => Self::Gap,
            OverrunName::Overwrite => Self::Overwrite,
            OverrunName::Block => Self::Block,
        }
    }
}

/// The pages of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PagesName {
    /// The machine's ordinary ones
    Small,
    /// Transparent huge pages
    Thp,
    /// 2 MiB pages that were set aside
    Huge2m,
    /// 1 GiB pages that were set aside
    Huge1g,
}

impl From<PagesName> for Pages {
    fn from(name: PagesName) -> Self {
        match name {
            PagesName::Small => Self::Small,
            PagesName::Thp => Self::Transparent,
            PagesName::Huge2m => Self::Huge2M,
            PagesName::Huge1g => Self::Huge1G,
        }
    }
}

/// Which folder gets a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlacementName {
    /// The one with the least under way
    LeastLoaded,
    /// Each in turn
    Static,
}

impl From<PlacementName> for Placement {
    fn from(name: PlacementName) -> Self {
        match name {
            PlacementName::LeastLoaded => Self::LeastLoaded,
            PlacementName::Static => Self::Static,
        }
    }
}

/// How to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// Many writes at once through io_uring
    #[value(name = "io_uring")]
    IoUring,
    /// One plain call after the other
    Pwrite,
}

/// Reads what knows itself how it is written.
pub(crate) fn parsed<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Reads a number of frames.
fn frames(text: &str) -> Result<Frames, String> {
    let number = text.replace('_', "").parse();
    number.map(Frames).map_err(|_| "write a whole number of frames, like 1000000".to_owned())
}
