//! What the samples of an array stand for, as JSON for formats that have a place for it: first frame, rate, channels, time of frame 0.

use serde_json::{Map, Value, json};

use hairspring_machine::Nanos;
use hairspring_ring::units::Frames;

use hairspring_record::recording::Recording;
use hairspring_record::sigmf::About;

/// The facts of an array that begins with this frame: `first_frame`, `sample_rate_hz`, `layout`, `hardware`, `channels` as in the metadata of the recording, and the
/// interval in which frame 0 was taken. What is not known is not there.
pub(super) fn facts(recording: &Recording, first: Frames) -> Map<String, Value> {
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

/// The facts as text, for formats that have no attributes.
pub(super) fn text(recording: &Recording, first: Frames) -> String {
    Value::Object(facts(recording, first)).to_string()
}

/// When frame 0 was taken, in nanoseconds since 1970: at the earliest and at the latest.
pub(super) fn frame0(about: &About) -> Option<[i64; 2]> {
    let within = about.started_within?;
    Some([about.started_realtime - within, about.started_realtime].map(Nanos::count))
}
