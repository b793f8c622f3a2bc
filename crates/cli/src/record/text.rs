//! The report of a recording for people: the verdict first, then what it rests on.

use hairspring_stream::session::Recorded;
use hairspring_stream::store::{Direct, Rung};
use hairspring_stream::{ByteRate, Bytes};
use hairspring_time::Nanos;

use super::request::Request;
use super::worst;
use crate::account::{self, amount};
use crate::listing::{Listing, grouped, percent, span};

/// The whole report.
pub(crate) fn report(recorded: &[Recorded], request: &Request, width: usize) -> String {
    let mut listing = Listing::new(width);
    if let [only] = recorded {
        listing.heading(&format!("{}: {}", only.outcome.verdict.name(), only.outcome.reason));
        card(&mut listing, only, &request.card(0));
        return listing.finish();
    }
    listing.heading(&format!("{}: {} cards", worst(recorded).name(), recorded.len()));
    let sum = |rate: fn(&Recorded) -> Option<ByteRate>| {
        let rates = recorded.iter().filter_map(rate);
        ByteRate::new(rates.map(ByteRate::bytes_per_s).sum())
    };
    listing.fact("rate", &rates(sum(wanted), sum(Recorded::rate_reached)));
    let lost: u64 = recorded.iter().map(|card| card.outcome.ledger.lost_bytes).sum();
    listing.fact("lost", &amount(lost));
    for (number, one) in recorded.iter().enumerate() {
        listing.heading(&format!("card {number}, {}: {}", one.outcome.verdict.name(), one.outcome.reason));
        card(&mut listing, one, &request.card(number));
    }
    listing.finish()
}

/// What one card's clock asked for.
fn wanted(card: &Recorded) -> Option<ByteRate> {
    card.description.rate.map(|rate| card.description.layout.byte_rate(rate))
}

fn card(listing: &mut Listing, card: &Recorded, written: &str) {
    let (outcome, ledger, layout) = (&card.outcome, &card.outcome.ledger, card.description.layout);
    listing.fact("card", written);
    let frames = layout.frames_in(Bytes(ledger.stored_bytes));
    listing.fact(
        "recorded",
        &format!(
            "{} frames, {} samples, {} in {}",
            grouped(frames.0),
            grouped(layout.samples_of(frames).0),
            amount(ledger.stored_bytes),
            span(card.elapsed)
        ),
    );
    listing.fact("rate", &rates(wanted(card), card.rate_reached()));
    if !outcome.triggers.is_empty() || ledger.left_out_bytes > 0 {
        let shots = outcome.triggers.len();
        let shots = if shots == 1 { "1 shot".to_owned() } else { format!("{shots} shots") };
        listing.fact("trigger", &format!("{shots}; {} between them were not wanted", amount(ledger.left_out_bytes)));
    }
    let mut remarks = outcome.ignored.remarks();
    remarks.extend(outcome.missed.remarks());
    for (number, remark) in remarks.iter().enumerate() {
        listing.fact(if number == 0 { "not used" } else { "" }, remark);
    }
    account::text(listing, ledger, &outcome.gaps, layout);
    buffer(listing, card);
    let stall = format!("{} for one write", span(outcome.worst_stall));
    let budget = wanted(card).and_then(|rate| rate.time_for(outcome.buffer));
    listing.fact(
        "worst stall",
        &match budget {
            Some(budget) => format!("{stall}; the buffer bridges {}", span(budget)),
            None => stall,
        },
    );
    let cores = |cpu: Nanos| percent(cpu.count().max(0).unsigned_abs(), card.finished.count().max(1).unsigned_abs());
    listing.fact(
        "processor",
        &format!(
            "{} of one core to move and write, of which {} for checksums; {} to serve the card",
            cores(card.recorder_cpu),
            cores(outcome.checksum_time),
            cores(card.source_cpu)
        ),
    );
    ways(listing, &outcome.ladder, outcome.direct, outcome.block);
    for (number, file) in outcome.files.iter().enumerate() {
        listing.fact(if number == 0 { "files" } else { "" }, &file.display().to_string());
    }
}

fn buffer(listing: &mut Listing, card: &Recorded) {
    let (outcome, granted) = (&card.outcome, &card.granted);
    let full = percent(outcome.high_water.0, outcome.buffer.0);
    listing.fact("buffer", &format!("{} on {}, {full} full at most", outcome.buffer, granted.pages));
    for refused in in_short(&granted.refused) {
        listing.fact("", &format!("not to be had: {refused}"));
    }
}

/// What was refused without the sizes between the first and the last, where only the size differs.
fn in_short(refused: &[String]) -> Vec<String> {
    let behind = |text: &str| text.split_once(" on ").map_or(String::new(), |(_, behind)| behind.to_owned());
    let alike = refused.chunk_by(|one, next| !behind(one).is_empty() && behind(one) == behind(next));
    let shortened = alike.map(|group| match group {
        [first, .., last] => {
            let sizes = [first, last].map(|text| text.split_once(" on ").map_or("", |(size, _)| size));
            format!("{} down to {} on {}", sizes[0], sizes[1], behind(first))
        }
        _ => group.concat(),
    });
    shortened.collect()
}

/// How the data went to the disk.
/// How data went to the disk.
pub(crate) fn ways(listing: &mut Listing, ladder: &[Rung], direct: Direct, block: Bytes) {
    let used: Vec<String> =
        ladder.iter().filter(|rung| rung.refused.is_none()).map(|rung| rung.name.replace('_', " ")).collect();
    // The ring's own name has an underscore.
    let used = used.join(", ").replace("io uring", "io_uring");
    listing.fact("written by", &format!("{used}, in blocks of {block}"));
    for rung in ladder {
        if let Some(why) = &rung.refused {
            let name = rung.name.replace('_', " ").replace("io uring", "io_uring");
            listing.fact("", &format!("not by {name}: {why}"));
        }
    }
    listing.fact(
        "direct I/O",
        match direct {
            Direct::Proven => "proven: the file system states that the data went past the page cache",
            Direct::Claimed => "not proven: the file system accepts it, but does not state that it does it",
            Direct::No => "no: the data went through the page cache",
        },
    );
}

fn rates(wanted: Option<ByteRate>, reached: Option<ByteRate>) -> String {
    let reached = reached.map_or_else(|| "none".to_owned(), |rate| rate.to_string());
    match wanted.filter(|rate| rate.bytes_per_s() > 0.0) {
        Some(wanted) => format!("wanted {wanted}, reached {reached}"),
        None => format!("reached {reached}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_was_halved_again_and_again_is_told_once() {
        let refused = [
            "8 MiB on 2 MiB pages: no",
            "4 MiB on 2 MiB pages: no",
            "2 MiB on 2 MiB pages: no",
            "8 MiB on small pages: others",
        ];
        let short = in_short(&refused.map(str::to_owned));
        assert_eq!(short, ["8 MiB down to 2 MiB on 2 MiB pages: no", "8 MiB on small pages: others"]);
        assert_eq!(in_short(&["odd".to_owned(), "odd".to_owned()]), ["odd", "odd"]);
    }
}
