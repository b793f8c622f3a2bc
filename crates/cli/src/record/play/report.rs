//! The report of playing, as text and as JSON.

use hairspring_play::player::{Played, Track};
use hairspring_recording::RecordingVerdict;
use hairspring_ring::ByteRate;
use hairspring_ring::End;
use serde_json::{Value, json};

use crate::listing::{Listing, grouped, percent, span};
use crate::record::account::amount;
use crate::record::record::text::{pages, refusals};

/// Most underruns and damaged blocks to list one by one in text.
const SHOWN: usize = 10;

fn reason(played: &Played) -> String {
    let mut reasons = Vec::new();
    if played.unaccounted_frames != 0 {
        reasons.push(format!("{} frames are unaccounted for", played.unaccounted_frames));
    }
    if played.counters.missing_frames > 0 {
        let missing = grouped(played.counters.missing_frames);
        let runs = played.counters.underruns;
        let runs = if runs == 1 { "1 underrun".to_owned() } else { format!("{} underruns", grouped(runs)) };
        reasons.push(format!("{missing} frames came too late, in {runs}"));
    }
    if played.bad_frames.0 > 0 {
        reasons.push(format!("{} frames are in damaged blocks", grouped(played.bad_frames.0)));
    }
    match played.end {
        End::Failed(errno) => reasons.push(format!("the output failed: {}", std::io::Error::from_raw_os_error(errno))),
        End::Stopped => reasons.push("stopped by the user".to_owned()),
        End::Finished | End::Overrun => {}
    }
    if reasons.is_empty() {
        reasons.push("every frame was played".to_owned());
    }
    reasons.join("; ")
}

fn wanted(played: &Played, track: &Track) -> Option<ByteRate> {
    played.wanted.map(|rate| track.layout.byte_rate(rate))
}

pub(super) fn text(played: &Played, track: &Track, verbose: bool, width: usize) -> String {
    let mut listing = Listing::new(width);
    let counters = &played.counters;
    listing.heading(&format!("{}: {}", played.verdict.name(), reason(played)));
    let frames = grouped(counters.recorded_frames);
    listing.fact("played", &format!("{frames} frames in {}", span(played.elapsed)));
    if played.gap_frames.0 > 0 {
        let gaps = grouped(played.gap_frames.0);
        listing.fact(
            "gaps",
            &format!("{gaps} frames are missing in the recording; {} were filled", grouped(counters.filled_frames)),
        );
    }
    let reached = played.reached.map_or_else(|| "none".to_owned(), |rate| rate.to_string());
    listing.fact(
        "rate",
        &match wanted(played, track) {
            Some(wanted) => format!("wanted {wanted}, reached {reached}"),
            None => format!("reached {reached}"),
        },
    );
    for (number, underrun) in played.underruns.iter().take(SHOWN).enumerate() {
        let frames = grouped(underrun.frames.0);
        let text = format!(
            "{frames} frames from frame {} on: {}",
            grouped(underrun.first.0),
            underrun.late.name().replace('_', " ")
        );
        listing.fact(if number == 0 { "late" } else { "" }, &text);
    }
    if counters.underruns > SHOWN as u64 {
        listing.fact("", &format!("and {} more", grouped(counters.underruns - SHOWN as u64)));
    }
    for (number, bad) in played.bad.iter().take(SHOWN).enumerate() {
        let text = format!(
            "block of {} frames at byte {} of {}: {}",
            grouped(bad.frames.0),
            grouped(bad.offset),
            bad.file.display(),
            bad.why
        );
        listing.fact(if number == 0 { "damaged" } else { "" }, &text);
    }
    if let Some(low) = played.low_water {
        let full = percent(low.0, played.ring.capacity.0);
        listing.fact("buffer", &format!("{full} full at least, of {}", pages(played.granted.size, &played.granted)));
    } else if verbose {
        listing.fact("buffer", &pages(played.granted.size, &played.granted));
    }
    if verbose {
        refusals(&mut listing, &played.granted);
        listing.fact("filled", &format!("in {}, before the clock started", span(played.preroll)));
        listing.fact("read", &amount(played.read.0));
        let busy = (played.elapsed + played.preroll).count().unsigned_abs();
        let [reader, sink] = [played.reader_cpu, played.sink_cpu].map(|cpu| percent(cpu.count().unsigned_abs(), busy));
        listing.fact("processor", &format!("{reader} of one core to read and check, {sink} to serve the output"));
    }
    listing.finish()
}

pub(super) fn json(played: &Played, track: &Track) -> String {
    let counters = &played.counters;
    let underruns: Vec<Value> = played
        .underruns
        .iter()
        .map(|underrun| {
            json!({
                "first_frame": underrun.first.0,
                "frames": underrun.frames.0,
                "cause": underrun.late.name(),
                "found_ns": underrun.found.as_monotonic().count(),
            })
        })
        .collect();
    let bad: Vec<Value> = played
        .bad
        .iter()
        .map(|bad| {
            json!({
                "first_frame": bad.first.0,
                "frames": bad.frames.0,
                "file": bad.file.display().to_string(),
                "file_offset_bytes": bad.offset,
                "why": bad.why.to_string(),
            })
        })
        .collect();
    let fallbacks: Vec<Value> = played
        .fallbacks
        .iter()
        .map(|fallback| json!({ "name": fallback.name, "used": fallback.refused.is_none(), "refused": fallback.refused }))
        .collect();
    let mut value = json!({
        "schema": "hairspring.played/1",
        "verdict": played.verdict.name(),
        "reason": reason(played),
        "is_sound": matches!(played.verdict, RecordingVerdict::Complete | RecordingVerdict::Stopped),
        "length_frames": played.length.map(|length| length.0),
        "played_frames": counters.recorded_frames,
        "filled_frames": counters.filled_frames,
        "missing_frames": counters.missing_frames,
        "underruns": counters.underruns,
        "underruns_listed": underruns,
        "gap_frames": played.gap_frames.0,
        "damaged_frames": played.bad_frames.0,
        "damaged_blocks": played.bad_blocks,
        "damages": bad,
        "unaccounted_frames": i64::try_from(played.unaccounted_frames).unwrap_or(i64::MAX),
    });
    let more = json!({
        "read_bytes": played.read.0,
        "rate_wanted_bytes_per_s": wanted(played, track).map(ByteRate::bytes_per_s),
        "rate_reached_bytes_per_s": played.reached.map(ByteRate::bytes_per_s),
        "elapsed_ns": played.elapsed.count(),
        "preroll_ns": played.preroll.count(),
        "worst_lateness_ns": played.worst_lateness.count(),
        "buffer_low_water_bytes": played.low_water.map(|low| low.0),
        "buffer_bytes": played.granted.size.0,
        "pages": played.granted.pages.name(),
        "ladder": fallbacks,
        "reader_cpu_ns": played.reader_cpu.count(),
        "sink_cpu_ns": played.sink_cpu.count(),
    });
    crate::record::account::append(&mut value, more);
    format!("{value:#}\n")
}
