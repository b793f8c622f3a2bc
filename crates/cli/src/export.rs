//! `hairspring export`: recordings for other programs.

use std::io::ErrorKind;

use hairspring_stream::Frames;
use hairspring_stream::export::{Csv, Cut, ExportError, Npy, csv, hdf5, npy};
use hairspring_stream::recording::Recording;
use hairspring_stream::store::Store;
use serde_json::{Value, json};

use crate::account::{amount, append};
use crate::arguments::{ExportArguments, FormName, Plain};
use crate::exit::{Exit, Failure};
use crate::listing::{Listing, grouped};
use crate::recording::Reading;
use crate::{output, recording};

pub(crate) fn run(arguments: &ExportArguments) -> Result<Exit, Failure> {
    let form = form(arguments)?;
    let mut store = recording::store();
    let recorded = recording::open(&mut *store, &arguments.recording)?;
    let mut reading = Reading::new(arguments.quiet);
    let exported = export(arguments, form, &mut *store, &recorded, &mut reading);
    reading.end();
    let (told, value) = exported.map_err(|error| refused(&error))?;
    let out = arguments.out.display().to_string();
    output::print(&match arguments.format {
        Plain::Text => {
            let mut listing = Listing::new(output::style(false).width);
            listing.heading(&format!("{out}: {told}"));
            listing.finish()
        }
        Plain::Json => {
            let mut whole = json!({ "schema": "hairspring.exported/1", "form": form.name(), "files": [out] });
            append(&mut whole, value);
            format!("{whole:#}\n")
        }
    })?;
    Ok(Exit::Success)
}

/// Writes it; what was written, for people and for programs.
fn export(
    arguments: &ExportArguments,
    form: FormName,
    store: &mut dyn Store,
    recorded: &Recording,
    reading: &mut Reading,
) -> Result<(String, Value), ExportError> {
    let first = arguments.from.unwrap_or(Frames(0));
    let cut = Cut { first, frames: arguments.frames.unwrap_or(Frames(u64::MAX)) };
    let mut progress = |progress| reading.show(progress);
    let rows = |first: Frames, frames: Frames| {
        let told = format!("{} frames from frame {} on", grouped(frames.0), grouped(first.0));
        (told, json!({ "first_frame": first.0, "frames": frames.0 }))
    };
    match form {
        FormName::Hdf5 => {
            let view = hdf5(recorded, &arguments.out)?;
            let bytes = amount(recorded.stored_bytes());
            let told = format!(
                "a view of {bytes} in {} pieces, {} datasets; the samples stay where they are, so keep them together",
                view.pieces, view.datasets
            );
            Ok((told, json!({ "datasets": view.datasets, "pieces": view.pieces })))
        }
        FormName::Npy => {
            let options = Npy { cut, leave_out_gaps: arguments.leave_out_gaps };
            let (first, frames) = npy(store, recorded, options, &arguments.out, &mut progress)?;
            Ok(rows(first, frames))
        }
        FormName::Csv => {
            // Who asks for a number of frames knows how many that are.
            let usual = Csv::of(cut);
            let most_frames = usual.most_frames.max(arguments.frames.unwrap_or(Frames(0)));
            let frames = csv(store, recorded, Csv { most_frames, ..usual }, &arguments.out, &mut progress)?;
            Ok(rows(first, frames))
        }
    }
}

/// The form, by its name or by the ending of the file.
fn form(arguments: &ExportArguments) -> Result<FormName, Failure> {
    let ending = arguments.out.extension().and_then(|ending| ending.to_str());
    let by_ending = match ending {
        Some("h5" | "hdf5") => Some(FormName::Hdf5),
        Some("npy") => Some(FormName::Npy),
        Some("csv") => Some(FormName::Csv),
        _ => None,
    };
    let form = arguments.form.or(by_ending).ok_or_else(|| {
        Failure::bad_request("which form is meant? name the file .h5, .npy or .csv, or say --as hdf5, npy or csv")
    })?;
    if form == FormName::Hdf5 && (arguments.from.is_some() || arguments.frames.is_some()) {
        return Err(Failure::bad_request(
            "a view shows the whole recording: leave out --from and --frames, or take npy",
        ));
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
