//! The report of a recording as text: the verdict first, then the account. Normal facts appear only with `--verbose`.

use std::path::PathBuf;

use hairspring_record::series::SeriesSummary;
use hairspring_record::session::Recorded;
use hairspring_recording::Files;
use hairspring_ring::memory::Granted;
use hairspring_ring::{ByteRate, Bytes};
use hairspring_source::udp::MOST_PAUSE;
use hairspring_source::udp::window::{LONGEST, MOST_HELD};
use hairspring_store::{Direct, Fallback};
use hairspring_time::Nanos;

use super::request::Request;
use super::worst;
use crate::listing::{Listing, grouped, percent, span};
use crate::record::account::{self, amount};

/// The whole report.
pub(crate) fn report(recorded: &[Recorded], request: &Request, verbose: bool, width: usize) -> String {
    let mut listing = Listing::new(width);
    if let [only] = recorded {
        listing.heading(&format!("{}: {}", only.outcome.verdict.name(), only.outcome.reason));
        card(&mut listing, only, &request.card(0), verbose);
        return listing.finish();
    }
    listing.heading(&format!("{}: {} cards", worst(recorded).name(), recorded.len()));
    let sum = |rate: fn(&Recorded) -> Option<ByteRate>| {
        let rates = recorded.iter().filter_map(rate);
        ByteRate::new(rates.map(ByteRate::bytes_per_s).sum())
    };
    listing.fact("rate", &rates(sum(wanted), sum(Recorded::rate_reached)));
    let lost: u64 = recorded.iter().map(|card| card.outcome.ledger.lost_bytes).sum();
    listing.fact("lost", &if lost == 0 { "nothing".to_owned() } else { amount(lost) });
    for (number, one) in recorded.iter().enumerate() {
        listing.heading(&format!("card {number}, {}: {}", one.outcome.verdict.name(), one.outcome.reason));
        card(&mut listing, one, &request.card(number), verbose);
    }
    listing.finish()
}

/// The rate of a card's clock.
fn wanted(card: &Recorded) -> Option<ByteRate> {
    card.description.rate.map(|rate| card.description.layout.byte_rate(rate))
}

fn card(listing: &mut Listing, card: &Recorded, written: &str, verbose: bool) {
    let (outcome, ledger, layout) = (&card.outcome, &card.outcome.ledger, card.description.layout);
    if verbose {
        listing.fact("card", written);
    }
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
    if !outcome.triggers.is_empty() || ledger.left_out_bytes > ledger.earlier_bytes {
        let shots = outcome.triggers.len();
        let shots = if shots == 1 { "1 shot".to_owned() } else { format!("{shots} shots") };
        listing.fact("trigger", &format!("{shots}; {} between them left out", amount(ledger.left_out_bytes)));
    }
    let mut remarks = outcome.ignored.remarks();
    remarks.extend(outcome.missed.remarks());
    listing.facts("not used", &remarks);
    if card.pauses > 0 {
        let (times, pause) = (grouped(card.pauses), span(MOST_PAUSE));
        let told = format!(
            "fast, so {times} times datagrams were left in the kernel's buffer until several had come, for {pause} at most"
        );
        listing.fact("datagrams", &told);
    }
    if card.reordered > 0 {
        let count = grouped(card.reordered);
        let (most, longest) = (MOST_HELD, span(LONGEST));
        let told = format!(
            "{count} came after later ones and were put in their places, which wait for {longest} or {most} others at most"
        );
        listing.fact(if card.pauses > 0 { "" } else { "datagrams" }, &told);
    }
    account::text(listing, ledger, &outcome.gaps, layout);
    let full = percent(outcome.high_water.0, outcome.buffer.0);
    listing.fact("buffer", &format!("{full} full at most, of {}", pages(outcome.buffer, &card.granted)));
    if verbose {
        refusals(listing, &card.granted);
    }
    let stall = format!("{} for one write", span(outcome.worst_stall));
    let budget = wanted(card).and_then(|rate| rate.time_for(outcome.buffer));
    listing.fact(
        "worst stall",
        &match budget {
            Some(budget) => format!("{stall}; the buffer bridges {}", span(budget)),
            None => stall,
        },
    );
    if verbose {
        let cores =
            |cpu: Nanos| percent(cpu.count().max(0).unsigned_abs(), card.finished.count().max(1).unsigned_abs());
        let (writing, checksums, serving) =
            (cores(card.recorder_cpu), cores(outcome.checksum_time), cores(card.source_cpu));
        let told =
            format!("{writing} of one core to write, of which {checksums} for checksums; {serving} to serve the card");
        listing.fact("processor", &told);
    }
    ways(listing, &outcome.fallbacks, outcome.direct, outcome.block, verbose);
    super::threads::text(listing, &card.grants);
    if let Some(series) = &card.series {
        segments(listing, series, wanted(card));
    }
    listing.facts("files", shortened(&outcome.files));
}

/// Fate of the segments of a series.
fn segments(listing: &mut Listing, series: &SeriesSummary, rate: Option<ByteRate>) {
    let count = if series.segments == 1 { "1".to_owned() } else { grouped(series.segments.into()) };
    let (first, last) = (series.first_number, series.last_number);
    listing.fact(
        "segments",
        &format!("{count}, numbers {first:06} to {last:06}; {} are there now", grouped(series.kept as u64)),
    );
    if series.pinned > 0 {
        listing.fact("", &format!("{} pinned by the trigger: nothing deletes them", grouped(series.pinned as u64)));
    }
    if series.dropped_segments > 0 {
        let (dropped, bytes) = (grouped(series.dropped_segments.into()), amount(series.dropped_bytes));
        listing.fact("", &format!("{dropped} deleted, {bytes}, because no more were to be kept"));
    }
    if series.segments > 1 {
        let span = rate.and_then(|rate| rate.time_for(series.cut_high_water));
        let span = span.map_or_else(String::new, |time| format!(", {} of data", crate::listing::span(time)));
        listing.fact("", &format!("{} in the buffer at most after a cut{span}", amount(series.cut_high_water.0)));
    }
    if series.overdue_cuts > 0 {
        listing.fact(
            "",
            &format!("{} longer than asked for: the next files were not ready", grouped(series.overdue_cuts.into())),
        );
    }
    if let Some(least) = series.least_free {
        listing.fact("free space", &format!("{} at the least, less than twice the limit of --free", amount(least.0)));
    }
    listing.facts("troubles", &series.troubles);
}

/// A buffer's size and pages; "fallback" if other pages were asked for.
pub(crate) fn pages(size: Bytes, granted: &Granted) -> String {
    let fallback = if granted.refused.is_empty() { "" } else { " (fallback)" };
    format!("{size} on {}{fallback}", granted.pages)
}

/// Why the buffer has other pages than requested.
pub(crate) fn refusals(listing: &mut Listing, granted: &Granted) {
    listing.facts("refused", in_short(&granted.refused));
}

/// The refusals; those that differ only in size are merged, with the first and the last size.
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

/// Ways in which data were written to the disk. Without `verbose` only those that are not normal.
pub(crate) fn ways(listing: &mut Listing, fallbacks: &[Fallback], direct: Direct, block: Bytes, verbose: bool) {
    // The ring's own name has an underscore.
    let readable = |name: &str| name.replace('_', " ").replace("io uring", "io_uring");
    let fallback = fallbacks.iter().any(|fallback| fallback.refused.is_some());
    if verbose || fallback {
        let used =
            fallbacks.iter().filter(|fallback| fallback.refused.is_none()).map(|fallback| readable(fallback.name));
        let used = used.collect::<Vec<_>>().join(", ");
        let mark = if fallback { " (fallback)" } else { "" };
        listing.fact("written by", &format!("{used}{mark}, in blocks of {block}"));
    }
    if verbose {
        let refused = fallbacks.iter().filter_map(|fallback| Some((fallback.name, fallback.refused.as_ref()?)));
        listing.facts("", refused.map(|(name, why)| format!("{} refused: {why}", readable(name))));
    }
    let locks = fallbacks.iter().filter(|fallback| fallback.name == "locks");
    listing.facts("locks", locks.filter_map(|fallback| Some(format!("none: {}", fallback.refused.as_ref()?))));
    match direct {
        Direct::Proven if !verbose => {}
        Direct::Proven => {
            listing.fact("direct I/O", "proven: the file system states that the data bypassed the page cache");
        }
        Direct::Claimed => {
            listing.fact("direct I/O", "not proven: the file system accepts it, but does not state that it does it");
        }
        Direct::No => listing.fact("direct I/O", "no: the data went through the page cache"),
    }
}

/// One line per member: the first file, then the endings of the others.
pub(crate) fn shortened(files: &[PathBuf]) -> Vec<String> {
    let members = files.chunk_by(|one, next| Files::base_of(one) == Files::base_of(next));
    let line = |member: &[PathBuf]| {
        let endings =
            member.iter().skip(1).filter_map(|file| file.extension()).map(|ending| format!(", .{}", ending.display()));
        member.first().map_or_else(String::new, |first| format!("{}{}", first.display(), endings.collect::<String>()))
    };
    members.map(line).collect()
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

    #[test]
    fn the_files_of_a_member_stand_on_one_line() {
        let files =
            ["d1/x.sigmf-data", "d1/x.sigmf-meta", "d1/x.hairspring-journal", "d2/x.sigmf-data"].map(PathBuf::from);
        assert_eq!(shortened(&files), ["d1/x.sigmf-data, .sigmf-meta, .hairspring-journal", "d2/x.sigmf-data"]);
    }
}
