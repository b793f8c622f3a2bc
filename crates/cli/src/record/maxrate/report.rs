//! The report of the search, as text and as JSON.

use hairspring_plan::maxrate::{Found, Probe, Purpose};
use hairspring_ring::ByteRate;
use serde_json::{Value, json};

use super::Answer;
use crate::listing::{Listing, span};
use crate::record::account::amount;
use crate::record::record;
use crate::table::{Side, table};

/// The answer first, then its evidence, then every recording.
pub(super) fn text(answer: &Answer, verbose: bool, width: usize) -> String {
    let mut listing = Listing::new(width);
    listing.heading(&match &answer.found {
        None => format!("interrupted after {} recordings: no rate was confirmed", answer.probes.len()),
        Some(Found { lossless: None, .. }) => "data were lost at every rate".to_owned(),
        Some(Found { lossless: Some(rate), at_ceiling, .. }) => {
            let more = if *at_ceiling { "; no higher rate was tried" } else { "" };
            format!("no data were lost at {rate}{more}")
        }
    });
    if verbose {
        listing.fact("card", &answer.card);
        listing.fact("folders", &answer.folders.join(", "));
    }
    if let Some(found) = &answer.found {
        conclusions(&mut listing, answer, found);
    }
    if verbose {
        let unpaced =
            format!("{}, in a first recording of a card that waits; the search began at half of it", answer.unpaced);
        listing.fact("unpaced", &unpaced);
        listing.fact("buffer", &format!("{} in blocks of {}", answer.buffer, answer.notify));
    }
    record::text::ways(&mut listing, &answer.fallbacks, answer.direct, answer.block, verbose);
    if verbose {
        let recordings =
            format!("{} in {} recordings, which were removed", amount(written(answer)), answer.probes.len());
        listing.fact("written", &recordings);
    }
    let headings = [
        ("rate, MB/s", Side::Right),
        ("for", Side::Right),
        ("buffer", Side::Right),
        ("worst stall", Side::Right),
        ("result", Side::Left),
    ];
    let rows: Vec<_> = answer.probes.iter().map(row).collect();
    format!("{}\n{}", listing.finish(), table(&headings, &rows, width))
}

fn conclusions(listing: &mut Listing, answer: &Answer, found: &Found) {
    let confirming = || answer.probes.iter().filter(|probe| is_confirming(probe, found));
    if found.lossless.is_some() {
        let fullest = confirming().map(|probe| probe.high_water_promille).max().unwrap_or(0);
        let read_back = confirming().all(|probe| probe.read_back == Some(true));
        let proof = if read_back { "every byte read back and compared" } else { "not read back" };
        listing.fact(
            "confirmed",
            &format!(
                "by {} recordings, {} together, {proof}; buffer {} full at most",
                confirming().count(),
                span(found.watched),
                share(fullest)
            ),
        );
    }
    if let Some(failed) = &found.failed {
        let after = span(failed.elapsed);
        listing.fact("failed", &format!("{} after {after}: {}", failed.rate, why(failed)));
    }
    if let Some(rate) = found.recommended {
        listing.fact(
            "recommended",
            &match found.buffer_was_tight {
                false => format!("{rate}: 95 % of that rate"),
                true => format!("{rate}: 95 % of the highest rate at which the buffer was never more than half full"),
            },
        );
    } else if found.lossless.is_some() {
        listing
            .fact("recommended", "none: the buffer was more than half full at every rate; make it larger (--buffer)");
    }
    if let Some(bound) = found.losses_per_hour_below {
        listing.fact(
            "sure of",
            &format!(
                "fewer than {bound:.0} losses an hour, with 95 % confidence (rule of three); three hours of recordings prove fewer \
                 than one"
            ),
        );
    }
}

fn row(probe: &Probe) -> Vec<String> {
    vec![
        format!("{:.1}", probe.rate.bytes_per_s() / 1e6),
        span(probe.elapsed),
        share(probe.high_water_promille),
        span(probe.worst_stall),
        match (probe.is_lossless(), probe.read_back) {
            (false, _) => format!("LOST: {}", why(probe)),
            (true, Some(_)) => "no loss, read back and compared".to_owned(),
            (true, None) => "nothing lost".to_owned(),
        },
    ]
}

/// The cause of a loss.
fn why(probe: &Probe) -> String {
    probe.lost.map_or_else(|| "the data read back differ from the data written".to_owned(), |cause| cause.to_string())
}

fn share(promille: u64) -> String {
    format!("{:.1} %", promille as f64 / 10.0)
}

fn is_confirming(probe: &Probe, found: &Found) -> bool {
    probe.purpose == Purpose::Confirm && Some(probe.rate) == found.lossless
}

fn written(answer: &Answer) -> u64 {
    answer.probes.iter().map(|probe| probe.volume.0).sum()
}

/// `hairspring.maxrate/1`.
pub(super) fn json(answer: &Answer) -> String {
    let found = answer.found.as_ref();
    let rate = |rate: Option<ByteRate>| rate.map(ByteRate::bytes_per_s);
    let failed = found.and_then(|found| found.failed);
    let value = json!({
        "schema": "hairspring.maxrate/1",
        "card": answer.card,
        "folders": answer.folders,
        "interrupted": found.is_none(),
        "lossless_bytes_per_s": found.and_then(|found| rate(found.lossless)),
        "failed_bytes_per_s": rate(failed.map(|probe| probe.rate)),
        "recommended_bytes_per_s": found.and_then(|found| rate(found.recommended)),
        "unpaced_bytes_per_s": answer.unpaced.bytes_per_s(),
        "at_ceiling": found.map(|found| found.at_ceiling),
        "buffer_was_tight": found.map(|found| found.buffer_was_tight),
        "watched_ns": found.map(|found| found.watched.count()),
        "losses_per_hour_below": found.and_then(|found| found.losses_per_hour_below),
        "length_ns": answer.length.count(),
        "buffer_bytes": answer.buffer.0,
        "notify_bytes": answer.notify.0,
        "block_bytes": answer.block.0,
        "ladder": answer.fallbacks.iter().map(record::json::fallback).collect::<Vec<_>>(),
        "direct_io_proven": answer.direct == hairspring_store::Direct::Proven,
        "written_bytes": written(answer),
        "probes": answer.probes.iter().map(probe).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn probe(probe: &Probe) -> Value {
    json!({
        "rate_bytes_per_s": probe.rate.bytes_per_s(),
        "purpose": match probe.purpose {
            Purpose::Search => "search",
            Purpose::Confirm => "confirm",
        },
        "elapsed_ns": probe.elapsed.count(),
        "volume_bytes": probe.volume.0,
        "lost": probe.lost.map(hairspring_ring::gap::GapCause::name),
        "high_water_promille": probe.high_water_promille,
        "worst_stall_ns": probe.worst_stall.count(),
        "read_back": probe.read_back,
    })
}
