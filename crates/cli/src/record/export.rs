//! `hairspring export`: writes recordings for other programs.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hairspring_play::export::{
    ArrayCut, Csv, Cut, ExportError, ExportUnits, ExportedPiece, GapChoice, csv, flac, hdf5, hdf5_copy, npy, wav, zarr,
};
use hairspring_recording::verify::ReadProgress;
use hairspring_recording::{MissingFrames, Recording};
use hairspring_ring::Frames;
use hairspring_store::Store;
use serde_json::{Value, json};

use crate::arguments::Plain;
use crate::exit::{Exit, Failure};
use crate::listing::grouped;
use crate::output;
use crate::page::{Example, Page};
use crate::record::account::{amount, append, missing_frames};
use crate::record::frames;
use crate::record::recording::{self, ReadArguments, Reading};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    name: "export",
    examples: &[
        Example { does: "Make an array for NumPy", line: "hairspring export run1 --out run1.npy" },
        Example {
            does: "Make a WAV file, with silence where frames are missing",
            line: "hairspring export run1 --out run1.wav --gaps fill",
        },
        Example {
            does: "Write 500 frames as text",
            line: "hairspring export run1 --out cut.csv --from 1000 --frames 500",
        },
        Example {
            does: "Write values in the units of the channels, such as volts",
            line: "hairspring export run4 --out values.csv --frames 500 --scaled",
        },
        Example {
            does: "Make a view for HDF5, without copying the samples",
            line: "hairspring export run1 --out run1.h5",
        },
    ],
    files: &super::FILES,
    environment: &[],
};

/// Export a recording for other programs: HDF5, NumPy, CSV
///
/// What the exported piece lacks is listed. If data are lost in it, the exit code is 4.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// New file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Kind of file [default: by the ending of --out]
    #[arg(long = "as", value_name = "KIND", value_enum)]
    form: Option<FormName>,
    /// First frame, as the card counted them
    #[arg(long, value_name = "N", value_parser = frames, allow_hyphen_values = true)]
    from: Option<Frames>,
    /// Number of frames [default: all; for CSV at most a million]
    #[arg(long, value_name = "N", value_parser = frames, allow_hyphen_values = true)]
    frames: Option<Frames>,
    /// What becomes of missing frames in npy, wav, flac and zarr
    #[arg(long, value_name = "HOW", value_enum, default_value_t = GapName::Refuse)]
    gaps: GapName,
    /// The value of each missing sample with --gaps fill [default: 0; NaN with --scaled]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    fill: Option<f64>,
    /// Write values in the units of the channels, as 64-bit floats, instead of codes: npy, zarr, csv, and HDF5, which becomes a copy
    #[arg(long)]
    scaled: bool,
    #[command(flatten)]
    read: ReadArguments,
}

/// The kinds of export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormName {
    /// HDF5 view; the samples stay in the recording's files
    Hdf5,
    /// NumPy array
    Npy,
    /// WAV; beyond 4 GiB RF64
    Wav,
    /// FLAC, for integers
    Flac,
    /// Folder of Zarr version 3: shards of chunks, compressed by zstd
    Zarr,
    /// Text, for short cuts
    Csv,
}

impl FormName {
    /// The name in options and JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hdf5 => "hdf5",
            Self::Npy => "npy",
            Self::Wav => "wav",
            Self::Flac => "flac",
            Self::Zarr => "zarr",
            Self::Csv => "csv",
        }
    }

    /// Whether it is one array, which cannot mark a gap.
    fn is_array(self) -> bool {
        matches!(self, Self::Npy | Self::Wav | Self::Flac | Self::Zarr)
    }
}

/// What becomes of missing frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GapName {
    /// Nothing is exported
    Refuse,
    /// They are left out, so that the frames around a gap become neighbours
    Skip,
    /// Each missing sample gets the value of --fill
    Fill,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let form = form(arguments)?;
    let mut store = recording::store();
    let mut recorded = recording::open(&mut *store, &arguments.read.recording)?;
    let quiet = arguments.read.quiet;
    let exported = loop {
        match Reading::during(quiet, |progress| export(arguments, form, &mut *store, &recorded, progress)) {
            // Each time there are fewer segments.
            Err(ExportError::Deleted(blocks)) if !blocks.is_empty() => recorded.leave_out_deleted(&blocks),
            other => break other,
        }
    };
    let (told, value, exported) = exported.map_err(|error| refused(&error))?;
    let out = arguments.out.display().to_string();
    let owner = recorded.holder().map(|holder| holder.to_string());
    output::print(&match arguments.read.format {
        Plain::Text => {
            let owner = owner.map(|owner| format!("the recording {owner}: this is what was in the files\n"));
            format!("{out}: {told}\n{}{}", missing(&exported), owner.unwrap_or_default())
        }
        Plain::Json => {
            let mut whole =
                json!({ "schema": "hairspring.exported/1", "form": form.name(), "files": [out], "owner": owner });
            append(&mut whole, value);
            append(&mut whole, missing_json(&exported));
            format!("{whole:#}\n")
        }
    })?;
    Ok(if exported.lacks_data() { Exit::Loss } else { Exit::Success })
}

/// Most missing stretches to list one by one in text.
const SHOWN: usize = 10;

/// What the piece lacks, a line for each stretch; nothing if it is whole.
fn missing(exported: &ExportedPiece) -> String {
    let line = |one: &MissingFrames| {
        format!("missing: {} frames from frame {} on: {}\n", grouped(one.frames.0), grouped(one.first.0), one.cause)
    };
    let mut text: String = exported.missing.iter().take(SHOWN).map(line).collect();
    if let Some(more @ 1..) = exported.missing.len().checked_sub(SHOWN) {
        text.push_str(&format!("missing: and {} more stretches\n", grouped(more as u64)));
    }
    if let Some(frame) = exported.unknown_from {
        text.push_str(&format!(
            "not known: what came from frame {} on, because the recording has no end\n",
            grouped(frame.0)
        ));
    }
    text
}

fn missing_json(exported: &ExportedPiece) -> Value {
    let frames: u64 = exported.missing.iter().map(|one| one.frames.0).sum();
    json!({
        "missing_frames": frames,
        "missing": exported.missing.iter().map(missing_frames).collect::<Vec<_>>(),
        "unknown_from_frame": exported.unknown_from.map(|frame| frame.0),
    })
}

/// Writes the file; returns a summary, as text and as JSON.
fn export(
    arguments: &Arguments,
    form: FormName,
    store: &mut dyn Store,
    recorded: &Recording,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<(String, Value, ExportedPiece), ExportError> {
    let first = arguments.from.unwrap_or(Frames(0));
    let cut = Cut { first, frames: arguments.frames.unwrap_or(Frames(u64::MAX)) };
    let units = if arguments.scaled { ExportUnits::Channels } else { ExportUnits::Codes };
    let exported = match form {
        FormName::Hdf5 => {
            let (view, kind) = match units {
                ExportUnits::Codes => (hdf5(recorded, &arguments.out)?, "view"),
                ExportUnits::Channels => (hdf5_copy(store, recorded, cut, &arguments.out, progress)?, "copy"),
            };
            let told = match units {
                ExportUnits::Codes => format!(
                    "view of {} in the recording's own files ({} pieces, {} datasets); keep these files together",
                    amount(recorded.stored_bytes()),
                    view.pieces,
                    view.datasets
                ),
                ExportUnits::Channels => rows(&view.exported).0,
            };
            let value = json!({ "datasets": view.datasets, "pieces": view.pieces, "kind": kind });
            return Ok((told, value, view.exported));
        }
        FormName::Npy | FormName::Wav | FormName::Flac | FormName::Zarr => {
            let gaps = match arguments.gaps {
                GapName::Refuse => GapChoice::Refuse,
                GapName::Skip => GapChoice::LeaveOut,
                GapName::Fill => {
                    GapChoice::Fill(arguments.fill.unwrap_or(if arguments.scaled { f64::NAN } else { 0.0 }))
                }
            };
            let write = match form {
                FormName::Wav => wav,
                FormName::Flac => flac,
                FormName::Zarr => zarr,
                _ => npy,
            };
            write(store, recorded, ArrayCut { cut, gaps, units }, &arguments.out, progress)?
        }
        FormName::Csv => {
            // An explicit number may exceed the usual limit.
            let usual = Csv::of(cut);
            let most_frames = usual.most_frames.max(arguments.frames.unwrap_or(Frames(0)));
            csv(store, recorded, Csv { most_frames, units, ..usual }, &arguments.out, progress)?
        }
    };
    let (told, value) = rows(&exported);
    Ok((told, value, exported))
}

/// The rows of an export, as text and as JSON.
fn rows(exported: &ExportedPiece) -> (String, Value) {
    let (first, frames) = (exported.first.0, exported.frames.0);
    let told = format!("{} frames from frame {} on", grouped(frames), grouped(first));
    (told, json!({ "first_frame": first, "frames": frames }))
}

/// The kind, from --as or from the ending of the file.
fn form(arguments: &Arguments) -> Result<FormName, Failure> {
    let ending = arguments.out.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let by_ending = match ending.as_deref() {
        Some("h5" | "hdf5") => Some(FormName::Hdf5),
        Some("npy") => Some(FormName::Npy),
        Some("wav" | "rf64" | "bw64") => Some(FormName::Wav),
        Some("flac") => Some(FormName::Flac),
        Some("zarr") => Some(FormName::Zarr),
        Some("csv") => Some(FormName::Csv),
        _ => None,
    };
    let form = arguments.form.or(by_ending).ok_or_else(|| {
        Failure::bad_request(
            "--out does not tell the kind of file: name it .h5, .npy, .wav, .flac, .zarr or .csv, or add --as",
        )
    })?;
    if form == FormName::Hdf5 && !arguments.scaled && (arguments.from.is_some() || arguments.frames.is_some()) {
        return Err(Failure::bad_request(
            "an HDF5 view shows the whole recording: leave out --from and --frames, export an array (--as npy), or a copy (--scaled)",
        ));
    }
    if !form.is_array() && arguments.gaps != GapName::Refuse {
        return Err(Failure::bad_request(
            "--gaps is for npy, wav, flac and zarr: HDF5 views and CSV say themselves where frames are missing",
        ));
    }
    if arguments.fill.is_some() && arguments.gaps != GapName::Fill {
        return Err(Failure::bad_request("--fill is for --gaps fill"));
    }
    Ok(form)
}

fn refused(error: &ExportError) -> Failure {
    match error {
        ExportError::Recording(error) => recording::refused(error),
        ExportError::Unsuitable(why) => Failure::bad_request(why.clone()),
        ExportError::Damaged(why) => Failure { exit: Exit::Unreadable, text: why.clone() },
        ExportError::Deleted(_) => Failure::failed(format!("failed to export: {error}")),
        ExportError::Output(_, why) if why.kind() == ErrorKind::AlreadyExists => {
            Failure::bad_request(error.to_string())
        }
        ExportError::Output(_, why) => {
            let text = format!("failed to {error}; choose another file for --out");
            match why.kind() {
                ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::NotADirectory => {
                    Failure::bad_request(text)
                }
                ErrorKind::ReadOnlyFilesystem | ErrorKind::StorageFull => Failure::bad_request(text),
                _ => Failure::failed(format!("failed to {error}")),
            }
        }
    }
}
