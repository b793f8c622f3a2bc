//! What was found, for people and for programs.

use hairspring_stream::ByteRate;
use hairspring_stream::maxrate::{Found, Probe, Purpose};
use serde_json::{Value, json};

use super::Answer;
use crate::account::amount;
use crate::listing::{Listing, span};
use crate::record;
use crate::table::{Side, table};

/// The answer first, then what it rests on, then every recording.
pub(super) fn text(answer: &Answer, width: usize) -> String {
    let mut listing = Listing::new(width);
    listing.heading(&match &answer.found {
        None => format!("interrupted after {} recordings: nothing was confirmed", answer.probes.len()),
        Some(Found { lossless: None, .. }) => "at no rate was nothing lost".to_owned(),
        Some(Found { lossless: Some(rate), at_ceiling, .. }) => {
            let more = if *at_ceiling { "; no higher one was tried" } else { "" };
            format!("nothing was lost at {rate}{more}")
        }
    });
    listing.fact("card", &answer.card);
    listing.fact("folders", &answer.folders.join(", "));
    if let Some(found) = &answer.found {
        conclusions(&mut listing, answer, found);
    }
    listing.fact(
        "unpaced",
        &format!("{}: the first recording, of a card that waits; the search began at half of it", answer.unpaced),
    );
    listing.fact("buffer", &format!("{} in blocks of {}", answer.buffer, answer.notify));
    record::text::ways(&mut listing, &answer.ladder, answer.direct, answer.block);
    listing.fact(
        "written",
        &format!("{} in {} recordings, which were removed", amount(written(answer)), answer.probes.len()),
    );
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
        let proof = if read_back { "every byte read back and right" } else { "not read back" };
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
                false => format!("{rate}: 95 % of it"),
                true => format!("{rate}: 95 % of the highest rate at which the buffer was never more than half full"),
            },
        );
    } else if found.lossless.is_some() {
        let more = "the buffer was more than half full at every rate: give it more (--buffer)";
        listing.fact("recommended", &format!("nothing; {more}"));
    }
    if let Some(bound) = found.losses_per_hour_below {
        listing.fact(
            "sure of",
            &format!(
                "fewer than {bound:.0} losses an hour, with 95 % confidence (rule of three); watch longer to be sure of fewer: \
                 three hours together for one an hour"
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
            (true, Some(_)) => "nothing lost, read back and right".to_owned(),
            (true, None) => "nothing lost".to_owned(),
        },
    ]
}

/// Why something was lost.
fn why(probe: &Probe) -> String {
    probe.lost.map_or_else(|| "what was read back is not what was written".to_owned(), |cause| cause.to_string())
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
        "ladder": answer.ladder.iter().map(record::json::rung).collect::<Vec<_>>(),
        "direct_io_proven": answer.direct == hairspring_stream::store::Direct::Proven,
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
        "lost": probe.lost.map(hairspring_stream::gap::Cause::name),
        "high_water_promille": probe.high_water_promille,
        "worst_stall_ns": probe.worst_stall.count(),
        "read_back": probe.read_back,
    })
}
