//! `hairspring verify`: checks every byte of a recording against its checksums, and names the blocks that differ.

use clap::Args;
use hairspring_record::recording::{Files, Recording};
use hairspring_record::verify::{Damage, Verified, VerifyOptions, verify};
use serde_json::{Value, json};

use crate::arguments::Plain;
use crate::exit::{Exit, Failure};
use crate::listing::{Listing, grouped};
use crate::output;
use crate::page::{Example, Page};
use crate::record::account::{self, amount, append};
use crate::record::clock;
use crate::record::recording::{self, ReadArguments, Reading};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    name: "verify",
    examples: &[
        Example { does: "Check a recording", line: "hairspring verify run1" },
        Example {
            does: "Check it and print SHA-512 sums, for programs",
            line: "hairspring verify run1 --sha512 --format json",
        },
    ],
    files: &super::FILES,
    environment: &[],
};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Print the SHA-512 of each data file, too
    #[arg(long)]
    sha512: bool,
    /// Do not compare the data with the generator of a virtual card
    #[arg(long)]
    no_counters: bool,
    #[command(flatten)]
    read: ReadArguments,
}

/// Most damaged blocks and faults to list one by one in text.
const SHOWN: usize = 10;

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut store = recording::store();
    let recorded = recording::open(&mut *store, &arguments.read.recording)?;
    let options = VerifyOptions { counters: !arguments.no_counters, sha512: arguments.sha512 };
    let quiet = arguments.read.quiet;
    let verified = Reading::during(quiet, |progress| verify(&mut *store, &recorded, options, progress));
    let verified = verified.map_err(|error| recording::refused(&error))?;
    output::print(&match arguments.read.format {
        Plain::Text => text(&recorded, &verified, output::style(false).width),
        Plain::Json => json(&recorded, &verified),
    })?;
    Ok(verified.verdict.into())
}

/// The reason of the verdict.
fn reason(recorded: &Recording, verified: &Verified) -> String {
    let mut reasons: Vec<String> = recorded.unfinished().into_iter().collect();
    if verified.damaged > 0 {
        let blocks = if verified.damaged == 1 { "block is" } else { "blocks are" };
        reasons.push(format!("{} {blocks} damaged", grouped(verified.damaged)));
    }
    if verified.missing.0 > 0 {
        reasons.push(format!("{} are in no file, and no gap declares them", amount(verified.missing.0)));
    }
    if let Some(mismatch) = verified.mismatch {
        reasons.push(mismatch.to_string());
    }
    let more = verified.faults.iter().find(|fault| !reasons.contains(fault));
    reasons.extend(more.cloned());
    if !verified.ledger_holds {
        reasons.push(format!("{} bytes are unaccounted for", verified.ledger.unaccounted_bytes()));
    }
    if reasons.is_empty() {
        reasons.push("every byte is as written".to_owned());
        let own = recorded.closing().filter(|closing| closing.verdict != hairspring_record::RecordingVerdict::Complete);
        reasons.extend(own.map(|closing| closing.reason.clone()));
    }
    reasons.join("; ")
}

fn text(recorded: &Recording, verified: &Verified, width: usize) -> String {
    let mut listing = Listing::new(width);
    let layout = recorded.about().layout;
    listing.heading(&format!("{}: {}", verified.verdict.name(), reason(recorded, verified)));
    listing.fact("proven", &format!("{} blocks, {}", grouped(verified.blocks), amount(verified.bytes.0)));
    match (verified.pattern, verified.mismatch) {
        // Without a block nothing was compared.
        (Some(_), None) if verified.blocks == 0 => {}
        (Some(pattern), None) => {
            listing.fact("data", &format!("every frame is what the generator ({pattern}) produced"));
        }
        (Some(pattern), Some(mismatch)) => listing.fact("data", &format!("{mismatch} by the generator ({pattern})")),
        (None, _) => {}
    }
    if let Some(line) = clock::line(recorded.about()) {
        listing.fact("clock", &line);
    }
    if let Some(line) = clock::reference(recorded.about()) {
        listing.fact("reference", &line);
    }
    match recorded.doubts() {
        [] => account::text(&mut listing, &verified.ledger, &recording::gaps(recorded), layout),
        _ => listing.fact("lost", "unknown: nothing proves what is in the files"),
    }
    let damages = verified.damages.iter().map(|damage| damage_text(recorded, damage));
    listed(&mut listing, "damaged", damages, verified.damaged);
    listed(&mut listing, "faults", verified.faults.iter().cloned(), verified.faults.len() as u64);
    for (hash, member) in verified.sha512.iter().zip(recorded.members()) {
        if let Some(hash) = hash {
            listing.fact("SHA-512", &format!("{hash} {}", Files::of(&member.base).data.display()));
        }
    }
    listing.finish()
}

fn listed(listing: &mut Listing, label: &str, items: impl Iterator<Item = String>, count: u64) {
    for (number, item) in items.take(SHOWN).enumerate() {
        listing.fact(if number == 0 { label } else { "" }, &item);
    }
    if count > SHOWN as u64 {
        listing.fact("", &format!("and {} more", grouped(count - SHOWN as u64)));
    }
}

fn damage_text(recorded: &Recording, damage: &Damage) -> String {
    let file = data_file(recorded, damage.block.member);
    format!("block {} at byte {} of {file}: {}", damage.block.index, grouped(damage.block.file_offset), damage.why)
}

fn data_file(recorded: &Recording, member: usize) -> String {
    recorded.member(member).map_or_else(String::new, |member| Files::of(&member.base).data.display().to_string())
}

fn json(recorded: &Recording, verified: &Verified) -> String {
    let layout = recorded.about().layout;
    let damages = verified.damages.iter().map(|damage| {
        json!({
            "block": damage.block.index,
            "file": data_file(recorded, damage.block.member),
            "file_offset_bytes": damage.block.file_offset,
            "length_bytes": damage.block.length,
            "why": damage.why.to_string(),
        })
    });
    let mut value = json!({
        "schema": "hairspring.verified/1",
        "verdict": verified.verdict.name(),
        "reason": reason(recorded, verified),
        "blocks": verified.blocks,
        "proven_bytes": verified.bytes.0,
        "damaged_blocks": verified.damaged,
        "damages": damages.collect::<Vec<Value>>(),
        "missing_bytes": verified.missing.0,
        "faults": verified.faults,
        "generator": verified.pattern.map(|pattern| pattern.to_string()),
        "mismatch": verified.mismatch.map(|at| json!({ "frame": at.frame.0, "channel": at.channel })),
        "clock": clock::json(recorded.about()),
        "reference": clock::reference_json(recorded.about()),
        "sha512": verified.sha512,
        "files": recording::files(recorded),
    });
    append(&mut value, account::json(&verified.ledger, &recording::gaps(recorded), layout));
    format!("{value:#}\n")
}
