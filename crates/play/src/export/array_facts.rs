//! Facts about the samples of an array, as JSON for formats that have a place for it: first frame, rate, channels, time
//! of frame 0.

use serde_json::{Map, Value, json};

use hairspring_machine::Nanos;
use hairspring_ring::units::Frames;

use super::ExportUnits;
use super::rows::Rows;
use hairspring_recording::Recording;
use hairspring_recording::channels::Justified;
use hairspring_recording::sigmf::About;

/// The most runs of missing frames that are listed in a comment of a sound file.
const MOST_LISTED: usize = 1000;

/// Whether a channel has its bits at the top of its samples, so that these need more bits than the card has.
pub(super) fn is_shifted(about: &About) -> bool {
    about.channels.iter().any(|channel| channel.justified == Some(Justified::High))
}

/// The facts of a recording that begins with this frame: `first_frame`, `sample_rate_hz`, `layout`, `hardware`,
/// `channels` as in the metadata of the recording, and the interval in which frame 0 was taken. Unknown facts are left
/// out.
fn of_recording(recording: &Recording, first: Frames) -> Map<String, Value> {
    let about = recording.about();
    let mut facts = Map::new();
    facts.insert("recording".to_owned(), json!(about.id.to_string()));
    facts.insert("first_frame".to_owned(), json!(first.0));
    facts.insert("layout".to_owned(), json!(about.layout.to_string()));
    facts.insert("hardware".to_owned(), json!(about.hardware));
    if let Some(rate) = about.rate {
        let (frames, seconds) = rate.as_fraction();
        facts.insert("sample_rate_hz".to_owned(), json!(rate.as_hz()));
        facts.insert("sample_rate_fraction".to_owned(), json!([frames, seconds]));
    }
    if about.channels.iter().any(|channel| !channel.is_empty()) {
        facts.insert("channels".to_owned(), json!(about.channels));
    }
    if let Some([earliest, latest]) = frame0(about) {
        facts.insert("frame0_earliest_ns".to_owned(), json!(earliest));
        facts.insert("frame0_latest_ns".to_owned(), json!(latest));
    }
    facts
}

/// The facts of an array, for formats that have a place for them: those of the recording, the missing frames, and the
/// unit of the numbers.
pub(super) fn facts(recording: &Recording, rows: &Rows) -> Map<String, Value> {
    let mut facts = of_recording(recording, rows.first);
    let name = match rows.units {
        ExportUnits::Codes => "codes",
        ExportUnits::Channels => "units",
    };
    facts.insert("values".to_owned(), json!(name));
    let missing = &rows.piece.missing;
    if !missing.is_empty() && !rows.is_filled() {
        // Rows then have no frame numbers.
        facts.insert("gaps_left_out".to_owned(), json!(true));
    }
    if let Some(frame) = rows.piece.unknown_from() {
        facts.insert("unknown_from_frame".to_owned(), json!(frame.0));
    }
    facts.insert("end_frame".to_owned(), json!(rows.piece.range.end));
    facts.insert(
        "gaps".to_owned(),
        missing.iter().map(|it| json!([it.first.0, it.frames.0, it.cause.name()])).collect(),
    );
    facts
}

/// The facts as text, for formats without attributes. Of very many gaps only the first are listed.
pub(super) fn text(recording: &Recording, rows: &Rows) -> String {
    let mut facts = facts(recording, rows);
    if let Some(Value::Array(gaps)) = facts.get_mut("gaps")
        && gaps.len() > MOST_LISTED
    {
        gaps.truncate(MOST_LISTED);
        facts.insert("more_gaps".to_owned(), json!(rows.piece.missing.len() - MOST_LISTED));
    }
    Value::Object(facts).to_string()
}

/// When frame 0 was taken, in nanoseconds since 1970: at the earliest and at the latest.
pub(super) fn frame0(about: &About) -> Option<[i64; 2]> {
    let within = about.started_within?;
    Some([about.started_realtime - within, about.started_realtime].map(Nanos::count))
}
