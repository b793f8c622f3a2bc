//! `hairspring recover`: puts a recording in order after a crash, a power cut or damage.

use hairspring_stream::recording::Recording;
use hairspring_stream::recover::{Lost, Options, Recovered, recover};
use hairspring_stream::{Bytes, Layout};
use serde_json::{Value, json};

use crate::account::{self, amount, append};
use crate::arguments::{Plain, RecoverArguments};
use crate::exit::{Exit, Failure};
use crate::listing::Listing;
use crate::recording::Reading;
use crate::{output, recording};

pub(crate) fn run(arguments: &RecoverArguments) -> Result<Exit, Failure> {
    let mut store = recording::store();
    let before = recording::open(&mut *store, &arguments.recording)?;
    let options = Options { all: arguments.all, dry_run: arguments.dry_run, cut_journal: arguments.cut_journal };
    let mut reading = Reading::new(arguments.quiet);
    let recovered = recover(&mut *store, &arguments.recording, options, &mut |progress| reading.show(progress));
    reading.end();
    let recovered = recovered.map_err(|error| recording::refused(&error))?;
    output::print(&match arguments.format {
        Plain::Text => text(&before, &recovered, arguments.dry_run, output::style(false).width),
        Plain::Json => json(&before, &recovered, arguments.dry_run),
    })?;
    Ok(recovered.verdict.into())
}

fn reason(recovered: &Recovered, dry_run: bool) -> &'static str {
    match (recovered.changed.is_empty(), dry_run) {
        (true, _) => "it was in order already",
        (false, false) => "put in order",
        (false, true) => "this is what it would be; nothing was changed",
    }
}

fn text(before: &Recording, recovered: &Recovered, dry_run: bool, width: usize) -> String {
    let mut listing = Listing::new(width);
    let layout: Layout = before.about().layout;
    listing.heading(&format!("{}: {}", recovered.verdict.name(), reason(recovered, dry_run)));
    listing.fact("durable", &format!("{} had been covered by a sync", amount(recovered.durable.0)));
    listing.fact("proven", &format!("{} behind it match their checksums", amount(recovered.proven.0)));
    listing.fact(
        "lost then",
        &match recovered.lost {
            Lost::Known(Bytes(0)) => "nothing".to_owned(),
            Lost::Known(bytes) => amount(bytes.0),
            Lost::AtLeast(bytes) => {
                format!("{} at least; what the source produced after its last record nobody knows", amount(bytes.0))
            }
            Lost::Unknown => "unknown: the journal does not say what was produced".to_owned(),
        },
    );
    account::text(&mut listing, &recovered.ledger, &recovered.gaps, layout);
    for (number, change) in recovered.changed.iter().enumerate() {
        let label = if dry_run { "would change" } else { "changed" };
        listing.fact(if number == 0 { label } else { "" }, change);
    }
    for (number, file) in recording::files(before).iter().enumerate() {
        listing.fact(if number == 0 { "files" } else { "" }, file);
    }
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
        "files": recording::files(before),
    });
    append(&mut value, account::json(&recovered.ledger, &recovered.gaps, before.about().layout));
    format!("{value:#}\n")
}
