//! `hairspring recover`: repairs a recording after a crash, a power cut or damage.

use clap::Args;
use hairspring_record::recover::{Lost, RecoverOptions, Recovered, recover};
use hairspring_record::series::recover::recover_series_in;
use hairspring_recording::Recording;
use hairspring_ring::{Bytes, Layout};
use serde_json::{Value, json};

use crate::arguments::Plain;
use crate::exit::{Exit, Failure};
use crate::listing::Listing;
use crate::output;
use crate::page::{Example, Page};
use crate::record::account::{self, amount, append};
use crate::record::recording::{self, ReadArguments, Reading};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    name: "recover",
    examples: &[
        Example { does: "See what would change", line: "hairspring recover run1 --dry-run" },
        Example { does: "Put the recording in order", line: "hairspring recover run1" },
    ],
    files: &[
        super::FILES[0],
        super::FILES[1],
        super::FILES[2],
        ("NAME.cut-N", "what was cut off the samples, with N from 1; it is no part of the recording"),
    ],
    environment: &[],
};

/// Repair a recording after a crash, a power cut or damage
///
/// Keeps all data that a checksum proves, and turns the rest into declared gaps.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Print what would change, without changing it
    #[arg(long)]
    dry_run: bool,
    /// Read every block, even those that a sync covers
    #[arg(long)]
    all: bool,
    /// Give up everything after damage in the middle of a journal
    #[arg(long)]
    cut_journal: bool,
    /// Give up what is cut off, instead of keeping it in NAME.cut-1, NAME.cut-2, …
    #[arg(long)]
    discard: bool,
    #[command(flatten)]
    read: ReadArguments,
}

impl Arguments {
    fn options(&self) -> RecoverOptions {
        let &Self { all, dry_run, cut_journal, discard, .. } = self;
        RecoverOptions { all, dry_run, cut_journal, discard }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(exit) = series(arguments)? {
        return Ok(exit);
    }
    let mut store = recording::store();
    let before = recording::open(&mut *store, &arguments.read.recording)?;
    let recovered = Reading::during(arguments.read.quiet, |progress| {
        recover(&mut *store, &arguments.read.recording, arguments.options(), progress)
    });
    let recovered = recovered.map_err(|error| recording::refused(&error))?;
    output::print(&match arguments.read.format {
        Plain::Text => text(&before, &recovered, arguments.dry_run, output::style(false).width),
        Plain::Json => json(&before, &recovered, arguments.dry_run),
    })?;
    Ok(recovered.verdict.into())
}

/// Recovers a series; `None` if there is none of this name.
fn series(arguments: &Arguments) -> Result<Option<Exit>, Failure> {
    let found = Reading::during(arguments.read.quiet, |progress| {
        recover_series_in(Box::new(recording::store), &arguments.read.recording, arguments.options(), progress)
    });
    let Some(found) = found.map_err(|error| recording::refused(&error))? else { return Ok(None) };
    let why = match (found.changed.is_empty(), arguments.dry_run) {
        (true, _) => "the series was in order already",
        (false, false) => "the series is in order now",
        (false, true) => "the verdict after recovery; nothing was changed",
    };
    output::print(&match arguments.read.format {
        Plain::Text => {
            let mut listing = Listing::new(output::style(false).width);
            listing.heading(&format!("{}: {why}", found.verdict.name()));
            listing.fact("segments", &crate::listing::grouped(found.kept as u64));
            listing.facts(if arguments.dry_run { "would change" } else { "changed" }, &found.changed);
            listing.finish()
        }
        Plain::Json => {
            let value = json!({
                "schema": "hairspring.recovered/1",
                "verdict": found.verdict.name(),
                "reason": why,
                "dry_run": arguments.dry_run,
                "kept_segments": found.kept,
                "changed": found.changed,
                "segments": found.segments.iter().map(|(number, one)| json!({
                    "number": number,
                    "verdict": one.verdict.name(),
                    "stored_bytes": one.ledger.stored_bytes,
                    "lost_bytes": one.ledger.lost_bytes,
                    "changed": one.changed,
                    "cut_files": one.cut_files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
                })).collect::<Vec<Value>>(),
            });
            format!("{value:#}\n")
        }
    })?;
    Ok(Some(found.verdict.into()))
}

fn reason(recovered: &Recovered, dry_run: bool) -> &'static str {
    match (recovered.changed.is_empty(), dry_run) {
        (true, _) => "the recording was in order already",
        (false, false) => "the recording is in order now",
        (false, true) => "the verdict after recovery; nothing was changed",
    }
}

fn text(before: &Recording, recovered: &Recovered, dry_run: bool, width: usize) -> String {
    let mut listing = Listing::new(width);
    let layout: Layout = before.about().layout;
    listing.heading(&format!("{}: {}", recovered.verdict.name(), reason(recovered, dry_run)));
    if !recovered.changed.is_empty() {
        listing.fact("kept", &format!("{}, which a sync had covered", amount(recovered.durable.0)));
        listing.fact("", &format!("{} after it, which checksums prove", amount(recovered.proven.0)));
        let lost = match recovered.lost {
            Lost::Known(Bytes(0)) => "nothing".to_owned(),
            Lost::Known(bytes) => amount(bytes.0),
            Lost::AtLeast(bytes) => {
                format!("at least {}; the journal does not say what the source produced later", amount(bytes.0))
            }
            Lost::Unknown => "unknown: the journal does not say what the source produced".to_owned(),
        };
        listing.fact("crash lost", &lost);
    }
    account::text(&mut listing, &recovered.ledger, &recovered.gaps, layout);
    listing.facts(if dry_run { "would change" } else { "changed" }, &recovered.changed);
    listing.finish()
}

fn json(before: &Recording, recovered: &Recovered, dry_run: bool) -> String {
    let lost = match recovered.lost {
        Lost::Known(bytes) | Lost::AtLeast(bytes) => Some(bytes.0),
        Lost::Unknown => None,
    };
    let mut value: Value = json!({
        "schema": "hairspring.recovered/1",
        "verdict": recovered.verdict.name(),
        "reason": reason(recovered, dry_run),
        "dry_run": dry_run,
        "synced_bytes": recovered.durable.0,
        "proven_bytes": recovered.proven.0,
        "lost_then_bytes": lost,
        "lost_then_is_exact": matches!(recovered.lost, Lost::Known(_)),
        "damaged_blocks": recovered.damaged_blocks,
        "changed": recovered.changed,
        "cut_files": recovered.cut_files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
        "files": recording::files(before),
    });
    append(&mut value, account::json(&recovered.ledger, &recovered.gaps, before.about().layout));
    format!("{value:#}\n")
}
