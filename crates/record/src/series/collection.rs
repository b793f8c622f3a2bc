//! The SigMF collection of a series: names its closed segments in one directory, so that every SigMF tool can open them in order.
//!
//! A collection states SHA-512 of the metadata of each recording in it, so it names closed segments only, and is replaced whole. To stay
//! bounded it names at most [`MOST_STREAMS`], the newest; the index names all. `core:streams` holds objects, as the text of the standard and
//! its reader demand; its JSON schema asks for lists there.

use serde_json::json;

use crate::journal::RecordingId;
use crate::sigmf::EXTENSION_VERSION;

/// The most segments in a collection.
pub const MOST_STREAMS: usize = 10_000;

/// A closed segment in one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionEntry {
    /// The name of its files.
    pub name: String,
    /// Its number.
    pub number: u32,
    /// Its first frame.
    pub first_frame: u64,
    /// How many frames from there to the next segment, missing ones included.
    pub frames: u64,
    /// SHA-512 of its metadata, in hexadecimal digits.
    pub hash: String,
}

/// Renders the collection of a directory.
pub fn render<'a>(
    id: RecordingId,
    name: &str,
    streams: impl Iterator<Item = &'a CollectionEntry>,
    (dropped_segments, dropped_bytes): (u32, u64),
) -> Vec<u8> {
    let streams: Vec<&CollectionEntry> = streams.collect();
    let named: Vec<_> = streams.iter().map(|one| json!({ "name": one.name, "hash": one.hash })).collect();
    let segments = streams.iter().map(
        |one| json!({ "name": one.name, "number": one.number, "first_frame": one.first_frame, "frames": one.frames }),
    );
    let value = json!({
        "collection": {
            "core:version": "1.2.5",
            "core:extensions": [{ "name": "hairspring", "version": EXTENSION_VERSION, "optional": true }],
            "core:streams": named,
            "hairspring:series": {
                "id": id.to_string(),
                "name": name,
                "segments": segments.collect::<Vec<_>>(),
                "dropped_segments": dropped_segments,
                "dropped_bytes": dropped_bytes,
            },
        },
    });
    let mut text = serde_json::to_vec_pretty(&value).unwrap_or_else(|_| unreachable!("numbers, texts and lists"));
    text.push(b'\n');
    text
}
