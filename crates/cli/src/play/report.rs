//! What became of playing, for people and for programs.

use hairspring_stream::player::{Played, Track};
use hairspring_stream::source::End;
use hairspring_stream::{ByteRate, Verdict};
use serde_json::{Value, json};

use crate::account::amount;
use crate::listing::{Listing, grouped, percent, span};

/// Underruns and damaged blocks that are listed one by one for people.
const SHOWN: usize = 10;

fn reason(played: &Played) -> String {
    let mut reasons = Vec::new();
    if played.unaccounted_frames != 0 {
        reasons.push(format!("{} frames are unaccounted for", played.unaccounted_frames));
    }
    if played.counters.missing_frames > 0 {
        let missing = grouped(played.counters.missing_frames);
        let runs = played.counters.underruns;
        let runs = if runs == 1 { "1 hole".to_owned() } else { format!("{} holes", grouped(runs)) };
        reasons.push(format!("{missing} frames were not there when they were due, in {runs}"));
    }
    if played.bad_frames.0 > 0 {
        reasons.push(format!("{} frames are in blocks that are damaged", grouped(played.bad_frames.0)));
    }
    match played.end {
        End::Failed(errno) => reasons.push(format!("the output failed: {}", std::io::Error::from_raw_os_error(errno))),
        End::Stopped => reasons.push("ended by its user".to_owned()),
        End::Finished | End::Overrun => {}
    }
    if reasons.is_empty() {
        reasons.push("every frame was played in its place".to_owned());
    }
    reasons.join("; ")
}

fn wanted(played: &Played, track: &Track) -> Option<ByteRate> {
    played.wanted.map(|rate| track.layout.byte_rate(rate))
}

pub(super) fn text(played: &Played, track: &Track, width: usize) -> String {
    let mut listing = Listing::new(width);
    let counters = &played.counters;
    listing.heading(&format!("{}: {}", played.verdict.name(), reason(played)));
    let frames = grouped(counters.recorded_frames);
    listing.fact(
        "played",
        &format!("{frames} frames in {}, after filling the buffer for {}", span(played.elapsed), span(played.preroll)),
    );
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
            "{} frames at byte {} of {}: the block {}",
            grouped(bad.frames.0),
            grouped(bad.offset),
            bad.file.display(),
            bad.why
        );
        listing.fact(if number == 0 { "damaged" } else { "" }, &text);
    }
    let buffer = format!("{} on {}", played.granted.size, played.granted.pages);
    listing.fact(
        "buffer",
        &match played.low_water {
            Some(low) => format!("{buffer}, {} full at least", percent(low.0, played.ring.capacity.0)),
            None => buffer,
        },
    );
    listing.fact("read", &amount(played.read.0));
    let core = |cpu: hairspring_time::Nanos| {
        percent(cpu.count().unsigned_abs(), (played.elapsed + played.preroll).count().unsigned_abs())
    };
    listing.fact(
        "processor",
        &format!(
            "{} of one core to read and check, {} to serve the output",
            core(played.reader_cpu),
            core(played.sink_cpu)
        ),
    );
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
                "found_ns": underrun.found.count(),
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
    let ladder: Vec<Value> = played
        .ladder
        .iter()
        .map(|rung| json!({ "name": rung.name, "used": rung.refused.is_none(), "refused": rung.refused }))
        .collect();
    let mut value = json!({
        "schema": "hairspring.played/1",
        "verdict": played.verdict.name(),
        "reason": reason(played),
        "is_sound": matches!(played.verdict, Verdict::Complete | Verdict::Stopped),
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
        "ladder": ladder,
        "reader_cpu_ns": played.reader_cpu.count(),
        "sink_cpu_ns": played.sink_cpu.count(),
    });
    crate::account::append(&mut value, more);
    format!("{value:#}\n")
}
