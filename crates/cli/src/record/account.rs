//! The account of a recording, as text and as JSON: the stored bytes, and the missing ones.

use hairspring_recording::Ledger;
use hairspring_recording::MissingFrames;
use hairspring_ring::{Bytes, Frames, Gap, Layout};
use serde_json::{Value, json};

use crate::listing::{Listing, grouped};

/// Most gaps to list one by one in text; the journal has all of them.
const GAPS_SHOWN: usize = 10;

/// Lists the missing frames, or that there are none.
pub(crate) fn text(listing: &mut Listing, ledger: &Ledger, gaps: &[Gap], layout: Layout) {
    if gaps.is_empty() && ledger.lost_bytes == 0 {
        listing.fact("lost", "nothing");
    } else {
        let (frames, bytes) = (lost(ledger, gaps, layout), amount(ledger.lost_bytes));
        let samples = grouped(layout.samples_of(frames).0);
        listing.fact("lost", &format!("{} frames, {samples} samples, {bytes}", grouped(frames.0)));
    }
    let shown = gaps.iter().take(GAPS_SHOWN).map(|Gap { first, frames, cause, .. }| {
        format!("{} frames from frame {} on: {cause}", grouped(frames.0), grouped(first.0))
    });
    let more = gaps.len().saturating_sub(GAPS_SHOWN);
    listing.facts("gaps", shown.chain((more > 0).then(|| format!("and {} more", grouped(more as u64)))));
    let unaccounted = ledger.unaccounted_bytes();
    if unaccounted != 0 {
        listing.fact("unaccounted", &format!("{unaccounted} bytes"));
    }
    if ledger.durable_bytes != ledger.stored_bytes {
        let [durable, stored] = [ledger.durable_bytes, ledger.stored_bytes].map(amount);
        listing.fact("durable", &format!("{durable} of {stored} would survive a power cut"));
    }
}

/// The account as members of a JSON object.
pub(crate) fn json(ledger: &Ledger, gaps: &[Gap], layout: Layout) -> Value {
    json!({
        "produced_bytes": ledger.produced_bytes,
        "stored_bytes": ledger.stored_bytes,
        "durable_bytes": ledger.durable_bytes,
        "lost_bytes": ledger.lost_bytes,
        "lost_samples": layout.samples_of(lost(ledger, gaps, layout)).0,
        "left_out_bytes": ledger.left_out_bytes,
        "dropped_bytes": ledger.dropped_bytes,
        "unaccounted_bytes": i64::try_from(ledger.unaccounted_bytes()).unwrap_or(i64::MAX),
        "gaps": gaps.iter().map(gap).collect::<Vec<_>>(),
    })
}

/// Frames that a recording lacks.
pub(crate) fn missing_frames(one: &MissingFrames) -> Value {
    json!({
        "first_frame": one.first.0,
        "frames": one.frames.0,
        "cause": one.cause.name(),
        "bounds": one.bounds.map(|bounds| [bounds.least.0, bounds.most.0]),
    })
}

pub(crate) fn gap(gap: &Gap) -> Value {
    json!({
        "first_frame": gap.first.0,
        "frames": gap.frames.0,
        "cause": gap.cause.name(),
        "found_ns": gap.found.as_monotonic().count(),
    })
}

/// The lost frames: those in gaps, and those of damaged blocks, which no gap declares yet.
fn lost(ledger: &Ledger, gaps: &[Gap], layout: Layout) -> Frames {
    let in_gaps = gaps.iter().fold(0, |sum: u64, gap| sum.saturating_add(gap.frames.0));
    Frames(in_gaps).max(layout.frames_in(Bytes(ledger.lost_bytes)))
}

/// An amount of bytes; from a million on in MB and MiB.
pub(crate) fn amount(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} bytes", grouped(bytes)),
        1_000_000..10_000_000_000 => {
            format!("{:.1} MB ({:.1} MiB)", bytes as f64 / 1e6, bytes as f64 / Bytes::mib(1).0 as f64)
        }
        _ => format!("{:.1} GB ({:.1} GiB)", bytes as f64 / 1e9, bytes as f64 / Bytes::gib(1).0 as f64),
    }
}

/// Appends the members of one JSON object to another.
pub(crate) fn append(value: &mut Value, more: Value) {
    if let (Value::Object(value), Value::Object(more)) = (value, more) {
        value.extend(more);
    }
}
