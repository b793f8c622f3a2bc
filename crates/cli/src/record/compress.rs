//! `hairspring compress`: compresses the data of closed recordings, and restores them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use hairspring_record::compress::{Compressed, USUAL_LEVEL, compress, restore};
use hairspring_record::series::collection::renew_sums;
use hairspring_recording::RecordingVerdict;
use hairspring_recording::series::open::{FoundSeries, find};
use hairspring_recording::series::segment_of;
use hairspring_recording::verify::ReadProgress;
use hairspring_recording::{Files, Recording};
use hairspring_store::Store;
use serde_json::json;

use crate::arguments::Plain;
use crate::exit::{Exit, Failure};
use crate::listing::Listing;
use crate::output;
use crate::page::{Example, Page};
use crate::record::account::amount;
use crate::record::record::text::shortened;
use crate::record::recording::{self, ReadArguments, Reading};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    name: "compress",
    examples: &[
        Example { does: "Compress a recording", line: "hairspring compress run1" },
        Example { does: "Restore its data file", line: "hairspring compress run1 --undo" },
    ],
    files: &[(
        "NAME.sigmf-data.zst",
        "the samples, compressed by zstd in frames of 1 MiB; `zstd --decompress` reads it",
    )],
    environment: &[],
};

/// Compress closed recordings without loss, or restore them
///
/// The data file is removed only when every byte of the compressed one was read back and compared. Every command and
/// Python read the recording as before; other programs need `--undo` first.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Restore the data files
    #[arg(long, conflicts_with = "level")]
    undo: bool,
    /// Effort of zstd: 1 is fast, 19 is small
    #[arg(long, value_name = "LEVEL", default_value_t = USUAL_LEVEL, value_parser = clap::value_parser!(i32).range(1..=19))]
    level: i32,
    #[command(flatten)]
    read: ReadArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut store = recording::store();
    let series = find(&mut *store, &arguments.read.recording[0]).map_err(|error| recording::refused(&error))?;
    let (done, passed_over) = Reading::during(arguments.read.quiet, |progress| match series {
        None => {
            let done = one(&mut *store, arguments, &arguments.read.recording, progress)?;
            renew(&mut *store, &done)?;
            Ok((done, Vec::new()))
        }
        Some(series) => all(&mut *store, arguments, &series, progress),
    })?;
    output::print(&match arguments.read.format {
        Plain::Text => text(arguments, &done, &passed_over),
        Plain::Json => {
            let value = json!({
                "schema": "hairspring.compressed/1",
                "did": did(arguments),
                "plain_bytes": done.plain.0,
                "compressed_bytes": done.packed.0,
                "files": done.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
                "passed_over": passed_over,
                "damaged": done.damaged.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
            });
            format!("{value:#}\n")
        }
    })?;
    Ok(if done.damaged.is_empty() { Exit::Success } else { RecordingVerdict::Incomplete.into() })
}

/// Compresses or restores the closed segments of a series. Also returns the numbers of the others.
fn all(
    store: &mut dyn Store,
    arguments: &Arguments,
    series: &FoundSeries,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<(Compressed, Vec<u32>), Failure> {
    let (mut done, mut passed_over) = (Compressed::default(), Vec::new());
    for segment in &series.segments {
        let found = Recording::open_in(store, &segment.bases);
        let is_closed = found.is_ok_and(|found| found.ended().is_some() && found.closing().is_some());
        match is_closed.then(|| one(store, arguments, &segment.bases, progress)) {
            Some(Ok(more)) => done.add(more),
            // It is being recorded.
            None => passed_over.push(segment.number),
            // Another process changes it.
            Some(Err(Failure { exit: Exit::Owned, .. })) => passed_over.push(segment.number),
            // Retention deletes it.
            Some(Err(_)) if is_dropped(store, &series.base, segment.number) => passed_over.push(segment.number),
            Some(Err(error)) => {
                // Those before it are done.
                drop(renew(store, &done));
                return Err(error);
            }
        }
    }
    renew(store, &done)?;
    Ok((done, passed_over))
}

/// Whether the index of a series no longer lists a segment.
fn is_dropped(store: &mut dyn Store, series: &Path, number: u32) -> bool {
    find(store, series).is_ok_and(|now| now.is_some_and(|now| now.segments.iter().all(|one| one.number != number)))
}

/// Lets the collections of a series state the metadata as they are now.
fn renew(store: &mut dyn Store, done: &Compressed) -> Result<(), Failure> {
    let series: BTreeSet<PathBuf> =
        done.files.iter().filter_map(|file| Some(segment_of(&Files::base_of(file))?.0)).collect();
    for base in series {
        renew_sums(store, &base).map_err(|error| recording::refused(&error))?;
    }
    Ok(())
}

/// Compresses or restores one recording.
fn one(
    store: &mut dyn Store,
    arguments: &Arguments,
    paths: &[PathBuf],
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Compressed, Failure> {
    let recorded = recording::open(store, paths)?;
    let done = match arguments.undo {
        true => restore(store, &recorded, progress),
        false => compress(store, &recorded, arguments.level, progress),
    };
    done.map_err(|error| recording::refused(&error))
}

fn did(arguments: &Arguments) -> &'static str {
    if arguments.undo { "restored" } else { "compressed" }
}

fn text(arguments: &Arguments, done: &Compressed, passed_over: &[u32]) -> String {
    let mut listing = Listing::new(output::style(false).width);
    let how = match done.damaged.is_empty() {
        true => "every byte was read back and compared",
        false => "what did not decompress is missing, and declared as gaps",
    };
    listing.heading(&format!("{}: {how}", did(arguments)));
    listing.fact("samples", &amount(done.plain.0));
    let part = done.packed.0 as f64 / done.plain.0.max(1) as f64 * 100.0;
    listing.fact("compressed", &format!("{} ({part:.0} %)", amount(done.packed.0)));
    let passed_over = passed_over
        .iter()
        .map(|number| format!("segment {number}: it is not closed, another process works on it, or it is gone"));
    listing.facts("passed over", passed_over);
    listing
        .facts("damaged", done.damaged.iter().map(|file| format!("the compressed file is kept in {}", file.display())));
    listing.facts("files", shortened(&done.files));
    listing.finish()
}
