//! `hairspring export`: writes recordings for other programs.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hairspring_play::export::{ArrayCut, Csv, Cut, ExportError, GapChoice, csv, flac, hdf5, npy, wav, zarr};
use hairspring_record::recording::Recording;
use hairspring_record::store::Store;
use hairspring_record::verify::ReadProgress;
use hairspring_ring::Frames;
use serde_json::{Value, json};

use crate::arguments::Plain;
use crate::exit::{Exit, Failure};
use crate::listing::grouped;
use crate::output;
use crate::page::{Example, Page};
use crate::record::account::{amount, append};
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
            does: "Make a view for HDF5, without copying the samples",
            line: "hairspring export run1 --out run1.h5",
        },
    ],
    files: &super::FILES,
    environment: &[],
};

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
    /// The value of each missing sample with --gaps fill
    #[arg(long, value_name = "CODE", default_value_t = 0.0, allow_hyphen_values = true)]
    fill: f64,
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
    let recorded = recording::open(&mut *store, &arguments.read.recording)?;
    let quiet = arguments.read.quiet;
    let exported = Reading::during(quiet, |progress| export(arguments, form, &mut *store, &recorded, progress));
    let (told, value) = exported.map_err(|error| refused(&error))?;
    let out = arguments.out.display().to_string();
    let owner = recorded.holder().map(|holder| holder.to_string());
    output::print(&match arguments.read.format {
        Plain::Text => {
            let owner = owner.map(|owner| format!("the recording {owner}: this is what was in the files\n"));
            format!("{out}: {told}\n{}", owner.unwrap_or_default())
        }
        Plain::Json => {
            let mut whole =
                json!({ "schema": "hairspring.exported/1", "form": form.name(), "files": [out], "owner": owner });
            append(&mut whole, value);
            format!("{whole:#}\n")
        }
    })?;
    Ok(Exit::Success)
}

/// Writes the file; returns a summary, as text and as JSON.
fn export(
    arguments: &Arguments,
    form: FormName,
    store: &mut dyn Store,
    recorded: &Recording,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<(String, Value), ExportError> {
    let first = arguments.from.unwrap_or(Frames(0));
    let cut = Cut { first, frames: arguments.frames.unwrap_or(Frames(u64::MAX)) };
    let rows = |first: Frames, frames: Frames| {
        let told = format!("{} frames from frame {} on", grouped(frames.0), grouped(first.0));
        (told, json!({ "first_frame": first.0, "frames": frames.0 }))
    };
    match form {
        FormName::Hdf5 => {
            let view = hdf5(recorded, &arguments.out)?;
            let bytes = amount(recorded.stored_bytes());
            let told = format!(
                "view of {bytes} in the recording's own files ({} pieces, {} datasets); keep these files together",
                view.pieces, view.datasets
            );
            Ok((told, json!({ "datasets": view.datasets, "pieces": view.pieces })))
        }
        FormName::Npy | FormName::Wav | FormName::Flac | FormName::Zarr => {
            let gaps = match arguments.gaps {
                GapName::Refuse => GapChoice::Refuse,
                GapName::Skip => GapChoice::LeaveOut,
                GapName::Fill => GapChoice::Fill(arguments.fill),
            };
            let write = match form {
                FormName::Wav => wav,
                FormName::Flac => flac,
                FormName::Zarr => zarr,
                _ => npy,
            };
            let (first, frames) = write(store, recorded, ArrayCut { cut, gaps }, &arguments.out, progress)?;
            Ok(rows(first, frames))
        }
        FormName::Csv => {
            // An explicit number may exceed the usual limit.
            let usual = Csv::of(cut);
            let most_frames = usual.most_frames.max(arguments.frames.unwrap_or(Frames(0)));
            let frames = csv(store, recorded, Csv { most_frames, ..usual }, &arguments.out, progress)?;
            Ok(rows(first, frames))
        }
    }
}

/// The kind, from --as or from the ending of the file.
fn form(arguments: &Arguments) -> Result<FormName, Failure> {
    let ending = arguments.out.extension().and_then(|ending| ending.to_str());
    let by_ending = match ending {
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
    if form == FormName::Hdf5 && (arguments.from.is_some() || arguments.frames.is_some()) {
        return Err(Failure::bad_request(
            "an HDF5 view shows the whole recording: leave out --from and --frames, or export an array (--as npy)",
        ));
    }
    if !form.is_array() && arguments.gaps != GapName::Refuse {
        return Err(Failure::bad_request(
            "--gaps is for npy, wav, flac and zarr: HDF5 views and CSV say themselves where frames are missing",
        ));
    }
    if arguments.fill != 0.0 && arguments.gaps != GapName::Fill {
        return Err(Failure::bad_request("--fill is for --gaps fill"));
    }
    Ok(form)
}

fn refused(error: &ExportError) -> Failure {
    match error {
        ExportError::Recording(error) => recording::refused(error),
        ExportError::Unsuitable(why) => Failure::bad_request(why.clone()),
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
