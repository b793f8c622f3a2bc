//! `hairspring verify`: checks every byte of a recording against its checksums, and names the blocks that differ.

use std::path::PathBuf;

use clap::Args;
use hairspring_recording::journal::RecordingId;
use hairspring_recording::verify::{Damage, Verified, VerifyOptions, verify};
use hairspring_recording::{Files, MissingCause, Recording};
use hairspring_store::Store;
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
        Example { does: "Check several, a line for each", line: "hairspring verify run1 run4 shots" },
        Example {
            does: "Check it and print SHA-512 sums, for programs",
            line: "hairspring verify run1 --sha512 --format json",
        },
    ],
    files: &super::FILES,
    environment: &[],
};

/// Check every byte of a recording against its checksums
///
/// Several recordings can be named: each gets a line, and the exit code is the highest one.
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
    let groups = several(&mut *store, &arguments.read.recording);
    if groups.len() > 1 {
        return each(arguments, &mut *store, &groups);
    }
    let (recorded, verified) = verified(arguments, &mut *store, &arguments.read.recording)?;
    output::print(&match arguments.read.format {
        Plain::Text => text(&recorded, &verified, output::style(false).width),
        Plain::Json => format!("{:#}\n", json(&recorded, &verified)),
    })?;
    Ok(verified.verdict.into())
}

/// Opens a recording and reads it.
fn verified(arguments: &Arguments, store: &mut dyn Store, paths: &[PathBuf]) -> Result<(Recording, Verified), Failure> {
    let mut recorded = recording::open(store, paths)?;
    let options = VerifyOptions { counters: !arguments.no_counters, sha512: arguments.sha512 };
    let quiet = arguments.read.quiet;
    let verified = Reading::during(quiet, |progress| verify(store, &recorded, options, progress));
    let verified = verified.map_err(|error| recording::refused(&error))?;
    recorded.leave_out_deleted(&verified.deleted);
    Ok((recorded, verified))
}

/// The named paths, put together where they are files or parts of one recording.
fn several(store: &mut dyn Store, paths: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let mut bases: Vec<PathBuf> = Vec::new();
    for path in paths {
        let base = Files::base_of(path);
        if !bases.contains(&base) {
            bases.push(base);
        }
    }
    if bases.len() == 1 {
        return vec![paths.to_vec()];
    }
    let mut groups: Vec<(Option<RecordingId>, Vec<PathBuf>)> = Vec::new();
    for base in bases {
        let id = Recording::open_in(store, std::slice::from_ref(&base)).ok().map(|recorded| recorded.about().id);
        let known = groups.iter_mut().find(|(known, _)| id.is_some() && *known == id);
        match known {
            // Two copies of one part are verified one by one.
            Some((_, group))
                if Recording::open_in(store, &[&group[..], std::slice::from_ref(&base)].concat()).is_ok() =>
            {
                group.push(base);
            }
            _ => groups.push((id, vec![base])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Verifies several recordings: a line for each, and the highest exit code.
fn each(arguments: &Arguments, store: &mut dyn Store, groups: &[Vec<PathBuf>]) -> Result<Exit, Failure> {
    let (mut worst, mut all) = (Exit::Success, Vec::new());
    for group in groups {
        let names: Vec<String> = group.iter().map(|path| path.display().to_string()).collect();
        let (exit, line, value) = match verified(arguments, store, group) {
            Ok((recorded, verified)) => {
                let line = format!("{}: {}", verified.verdict.name(), reason(&recorded, &verified));
                (verified.verdict.into(), line, json(&recorded, &verified))
            }
            Err(failure) => {
                let value = json!({ "schema": "hairspring.verified/1", "verdict": null, "reason": failure.text });
                (failure.exit, format!("not verified: {}", failure.text), value)
            }
        };
        if exit.code() > worst.code() {
            worst = exit;
        }
        match arguments.read.format {
            Plain::Text => {
                output::print(&format!("{}: {line}\n", names.join(", ")))?;
            }
            Plain::Json => {
                let mut named = json!({ "recording": names });
                append(&mut named, value);
                all.push(named);
            }
        }
    }
    if arguments.read.format == Plain::Json {
        let whole = json!({ "schema": "hairspring.verified-each/1", "recordings": all });
        output::print(&format!("{whole:#}\n"))?;
    }
    Ok(worst)
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
        let own =
            recorded.closing().filter(|closing| closing.verdict != hairspring_recording::RecordingVerdict::Complete);
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
    // Gaps are listed there.
    let missing = recorded.missing();
    let others: Vec<String> = missing
        .iter()
        .filter(|one| !matches!(one.cause, MissingCause::Gap(_)))
        .map(|one| format!("{} frames from frame {} on: {}", grouped(one.frames.0), grouped(one.first.0), one.cause))
        .collect();
    let count = others.len() as u64;
    listed(&mut listing, "missing", others.into_iter(), count);
    let damages = verified.damages.iter().map(|damage| damage_text(recorded, damage));
    listed(&mut listing, "damaged", damages, verified.damaged);
    listed(&mut listing, "faults", verified.faults.iter().cloned(), verified.faults.len() as u64);
    for (hash, member) in verified.sha512.iter().zip(recorded.members()) {
        if let Some(hash) = hash {
            listing.fact("SHA-512", &format!("{hash} {}", member.data().display()));
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
    recorded.member(member).map_or_else(String::new, |member| member.data().display().to_string())
}

fn json(recorded: &Recording, verified: &Verified) -> Value {
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
        "missing": recorded.missing().iter().map(account::missing_frames).collect::<Vec<_>>(),
        "faults": verified.faults,
        "generator": verified.pattern.map(|pattern| pattern.to_string()),
        "mismatch": verified.mismatch.map(|at| json!({ "frame": at.frame.0, "channel": at.channel })),
        "clock": clock::json(recorded.about()),
        "reference": clock::reference_json(recorded.about()),
        "sha512": verified.sha512,
        "files": recording::files(recorded),
    });
    append(&mut value, account::json(&verified.ledger, &recording::gaps(recorded), layout));
    value
}
