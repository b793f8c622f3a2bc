//! [`FORMS`]: the kinds of files that `export` writes. An entry has all that the command knows about a kind.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use hairspring_play::export::{
    ArrayCut, Csv, Cut, ExportError, ExportUnits, ExportedPiece, GapChoice, csv, flac, hdf5, hdf5_copy, npy, wav, zarr,
};
use hairspring_recording::Recording;
use hairspring_recording::verify::ReadProgress;
use hairspring_ring::Frames;
use hairspring_store::Store;
use serde_json::{Value, json};

use super::{Arguments, GapName};
use crate::listing::grouped;
use crate::record::account::amount;

/// The kinds, in the order of the help.
pub(super) const FORMS: &[&Form] = &[
    &Form {
        name: "hdf5",
        help: "HDF5 view; the samples stay in the recording's files",
        endings: &["h5", "hdf5"],
        is_array: false,
        write: |request| if request.arguments.scaled { copy(request) } else { view(request) },
    },
    &Form { name: "npy", help: "NumPy array", endings: &["npy"], is_array: true, write: |request| array(request, npy) },
    &Form {
        name: "wav",
        help: "WAV; beyond 4 GiB RF64",
        endings: &["wav", "rf64", "bw64"],
        is_array: true,
        write: |request| array(request, wav),
    },
    &Form {
        name: "flac",
        help: "FLAC, for integers",
        endings: &["flac"],
        is_array: true,
        write: |request| array(request, flac),
    },
    &Form {
        name: "zarr",
        help: "Folder of Zarr version 3: shards of chunks, compressed by zstd",
        endings: &["zarr"],
        is_array: true,
        write: |request| array(request, zarr),
    },
    &Form { name: "csv", help: "Text, for short cuts", endings: &["csv"], is_array: false, write: text },
];

/// A kind of file.
#[derive(Debug)]
pub(super) struct Form {
    /// The name in options and JSON.
    pub(super) name: &'static str,
    help: &'static str,
    /// Endings of files that mean this kind; errors name the first.
    pub(super) endings: &'static [&'static str],
    /// Whether it is one array, which cannot mark a gap.
    pub(super) is_array: bool,
    /// Writes the file.
    pub(super) write: fn(&mut Request<'_>) -> Result<Summary, ExportError>,
}

impl ValueEnum for &'static Form {
    fn value_variants<'a>() -> &'a [Self] {
        FORMS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name).help(self.help))
    }
}

/// What is exported, and where to.
pub(super) struct Request<'r> {
    pub(super) arguments: &'r Arguments,
    pub(super) store: &'r mut dyn Store,
    pub(super) recorded: &'r Recording,
    pub(super) progress: &'r mut dyn FnMut(ReadProgress),
}

impl Request<'_> {
    fn cut(&self) -> Cut {
        let Arguments { from, frames, .. } = self.arguments;
        Cut { first: from.unwrap_or(Frames(0)), frames: frames.unwrap_or(Frames(u64::MAX)) }
    }

    fn units(&self) -> ExportUnits {
        if self.arguments.scaled { ExportUnits::Channels } else { ExportUnits::Codes }
    }
}

/// The written piece, described for people and for programs.
pub(super) struct Summary {
    pub(super) told: String,
    pub(super) value: Value,
    pub(super) exported: ExportedPiece,
}

impl Summary {
    /// The rows of a piece.
    fn of(exported: ExportedPiece) -> Self {
        let (first, frames) = (exported.first.0, exported.frames.0);
        let told = format!("{} frames from frame {} on", grouped(frames), grouped(first));
        Self { told, value: json!({ "first_frame": first, "frames": frames }), exported }
    }
}

/// The names of the kinds that are arrays, in a sentence.
pub(super) fn arrays() -> String {
    listed(FORMS.iter().filter(|form| form.is_array).map(|form| form.name.to_owned()), "and")
}

/// `a, b and c`.
pub(super) fn listed(names: impl Iterator<Item = String>, word: &str) -> String {
    let names: Vec<String> = names.collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {word} {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// The writer of an array.
type WriteArray = fn(
    &mut dyn Store,
    &Recording,
    ArrayCut,
    &std::path::Path,
    &mut dyn FnMut(ReadProgress),
) -> Result<ExportedPiece, ExportError>;

fn array(request: &mut Request<'_>, write: WriteArray) -> Result<Summary, ExportError> {
    let Arguments { gaps, fill, scaled, out, .. } = request.arguments;
    let gaps = match gaps {
        GapName::Refuse => GapChoice::Refuse,
        GapName::Skip => GapChoice::LeaveOut,
        GapName::Fill => GapChoice::Fill(fill.unwrap_or(if *scaled { f64::NAN } else { 0.0 })),
    };
    let piece = ArrayCut { cut: request.cut(), gaps, units: request.units() };
    write(request.store, request.recorded, piece, out, request.progress).map(Summary::of)
}

fn text(request: &mut Request<'_>) -> Result<Summary, ExportError> {
    // An explicit number may exceed the usual limit.
    let usual = Csv::of(request.cut());
    let most_frames = usual.most_frames.max(request.arguments.frames.unwrap_or(Frames(0)));
    let piece = Csv { most_frames, units: request.units(), ..usual };
    csv(request.store, request.recorded, piece, &request.arguments.out, request.progress).map(Summary::of)
}

fn view(request: &mut Request<'_>) -> Result<Summary, ExportError> {
    if request.arguments.from.is_some() || request.arguments.frames.is_some() {
        return Err(ExportError::Unsuitable(
            "an HDF5 view shows the whole recording: leave out --from and --frames, export an array (--as npy), or a copy (--scaled)"
                .to_owned(),
        ));
    }
    let view = hdf5(request.recorded, &request.arguments.out)?;
    let told = format!(
        "view of {} in the recording's own files ({} pieces, {} datasets); keep these files together",
        amount(request.recorded.stored_bytes()),
        view.pieces,
        view.datasets
    );
    let value = json!({ "datasets": view.datasets, "pieces": view.pieces, "kind": "view" });
    Ok(Summary { told, value, exported: view.exported })
}

fn copy(request: &mut Request<'_>) -> Result<Summary, ExportError> {
    let cut = request.cut();
    let copy = hdf5_copy(request.store, request.recorded, cut, &request.arguments.out, request.progress)?;
    let value = json!({ "datasets": copy.datasets, "pieces": copy.pieces, "kind": "copy" });
    Ok(Summary { value, ..Summary::of(copy.exported) })
}
