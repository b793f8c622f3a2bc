//! `hairspring export`: writes recordings for other programs.

mod form;

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hairspring_play::export::{ExportError, ExportedPiece};
use hairspring_recording::MissingFrames;
use hairspring_ring::Frames;
use serde_json::{Value, json};

use crate::arguments::Plain;
use crate::exit::{Exit, Failure};
use crate::listing::grouped;
use crate::output;
use crate::page::{Example, Page};
use crate::record::account::{append, missing_frames};
use crate::record::frames;
use crate::record::recording::{self, ReadArguments, Reading};
use form::{FORMS, Form, Request, Summary, listed};

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
    form: Option<&'static Form>,
    /// First frame, as the card counted them
    #[arg(long, value_name = "N", value_parser = frames, allow_hyphen_values = true)]
    from: Option<Frames>,
    /// Number of frames [default: all; for CSV at most a million]
    #[arg(long, value_name = "N", value_parser = frames, allow_hyphen_values = true)]
    frames: Option<Frames>,
    #[arg(long, value_name = "HOW", value_enum, default_value_t = GapName::Refuse)]
    #[arg(help = format!("What becomes of missing frames in {}", form::arrays()))]
    gaps: GapName,
    /// The value of each missing sample with --gaps fill [default: 0; NaN with --scaled]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    fill: Option<f64>,
    /// Write values in the units of the channels, as 64-bit floats, instead of codes: npy, zarr, csv, and HDF5, which
    /// becomes a copy
    #[arg(long)]
    scaled: bool,
    #[command(flatten)]
    read: ReadArguments,
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
        match Reading::during(quiet, |progress| {
            let mut request = Request { arguments, store: &mut *store, recorded: &recorded, progress };
            (form.write)(&mut request)
        }) {
            // Each time there are fewer segments.
            Err(ExportError::Deleted(blocks)) if !blocks.is_empty() => recorded.leave_out_deleted(&blocks),
            other => break other,
        }
    };
    let Summary { told, value, exported } = exported.map_err(|error| refused(&error))?;
    let out = arguments.out.display().to_string();
    let owner = recorded.holder().map(|holder| holder.to_string());
    output::print(&match arguments.read.format {
        Plain::Text => {
            let owner = owner.map(|owner| format!("the recording {owner}: this is what was in the files\n"));
            format!("{out}: {told}\n{}{}", missing(&exported), owner.unwrap_or_default())
        }
        Plain::Json => {
            let mut whole =
                json!({ "schema": "hairspring.exported/1", "form": form.name, "files": [out], "owner": owner });
            append(&mut whole, value);
            append(&mut whole, missing_json(&exported));
            format!("{whole:#}\n")
        }
    })?;
    Ok(if exported.lacks_data() { Exit::Loss } else { Exit::Success })
}

/// Most missing stretches to list one by one in text.
const SHOWN: usize = 10;

/// Missing stretches of the piece, one line each; nothing if it is whole.
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

/// The kind, from --as or from the ending of the file.
fn form(arguments: &Arguments) -> Result<&'static Form, Failure> {
    let ending = arguments.out.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let has_ending = |form: &&Form| ending.as_deref().is_some_and(|ending| form.endings.contains(&ending));
    let form = arguments.form.or(FORMS.iter().copied().find(has_ending)).ok_or_else(|| {
        let endings = listed(FORMS.iter().map(|form| format!(".{}", form.endings[0])), "or");
        Failure::bad_request(format!("--out does not tell the kind of file: name it {endings}, or add --as"))
    })?;
    if !form.is_array && arguments.gaps != GapName::Refuse {
        let arrays = form::arrays();
        return Err(Failure::bad_request(format!(
            "--gaps is for {arrays}: HDF5 views and CSV say themselves where frames are missing"
        )));
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
