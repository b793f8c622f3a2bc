//! The SigMF collection of a series: names its closed segments in one directory, so that every SigMF tool can open them
//! in order.
//!
//! A collection states SHA-512 of the metadata of each recording in it, so it names closed segments only, and is
//! replaced whole. To stay bounded it names at most [`MOST_STREAMS`], the newest; the index names all. `core:streams`
//! holds objects, as the text of the standard and its reader demand; its JSON schema asks for lists there.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hairspring_ring::units::Bytes;
use serde_json::{Value, json};

use hairspring_recording::journal::RecordingId;
use hairspring_recording::series::collection_of;
use hairspring_recording::sigmf::EXTENSION_VERSION;
use hairspring_recording::sync_io::{BlockingStore, MOST_META};
use hairspring_recording::verify::sha512;
use hairspring_recording::{Files, RecordingError};
use hairspring_store::Store;
use hairspring_store::owner::{OwnError, Ownership, Work};

/// The most segments in a collection.
pub const MOST_STREAMS: usize = 10_000;

/// Largest collection that is read.
pub(super) const MOST_COLLECTION: Bytes = Bytes::mib(64);

/// Attempts to own the collection while another process writes it, [`PAUSE`] apart: two seconds in all.
const MOST_TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

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
    text(&value)
}

/// Renders it.
fn text(value: &Value) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_else(|_| unreachable!("numbers, texts and lists"));
    text.push(b'\n');
    text
}

/// The collection of a series in one directory, as JSON; `None` if it cannot be read.
fn read(disk: &mut BlockingStore<'_>, series: &Path) -> Result<Option<Value>, RecordingError> {
    match disk.read_whole(&collection_of(series), MOST_COLLECTION) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(RecordingError::Store(error)) if error.errno.0 == libc::ENOENT => Ok(None),
        Err(error) => Err(error),
    }
}

fn streams(collection: &mut Value) -> impl Iterator<Item = &mut Value> {
    collection.pointer_mut("/collection/core:streams").and_then(Value::as_array_mut).into_iter().flatten()
}

/// The sums that a collection states, by the name of the segment; empty if it cannot be read.
pub(super) fn stated_sums(disk: &mut BlockingStore<'_>, series: &Path) -> BTreeMap<String, String> {
    let mut collection = read(disk, series).ok().flatten().unwrap_or_default();
    let one = |stream: &mut Value| Some((stream["name"].as_str()?.to_owned(), stream["hash"].as_str()?.to_owned()));
    streams(&mut collection).filter_map(one).collect()
}

/// Becomes the owner of the collection of a series in one directory, to read and replace it. Waits while another
/// process owns it, usually some milliseconds. `None` on a file system without locks.
///
/// # Errors
/// Another process holds it for too long.
pub(super) fn own(store: &mut dyn Store, series: &Path) -> Result<Option<Ownership>, RecordingError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match store.own(&[collection_of(series)], Work::Changes) {
            Ok(ownership) => return Ok(Some(ownership)),
            Err(OwnError::Owned(_)) if tries < MOST_TRIES => std::thread::sleep(PAUSE),
            Err(OwnError::Owned(owned)) => return Err(OwnError::Owned(owned).into()),
            // A process that may not open the file may still replace it.
            Err(_) => return Ok(None),
        }
    }
}

/// Renews the sums in the collection of a series in one directory, after metadata of its segments were changed. Returns
/// whether any sum differed. Without a collection there is nothing to do. Blocks, and waits while a recorder writes the
/// collection.
///
/// # Errors
/// A file cannot be read or written.
pub fn renew_sums(store: &mut dyn Store, series: &Path) -> Result<bool, RecordingError> {
    let _ownership = own(store, series)?;
    let mut disk = BlockingStore::small(store)?;
    let Some(mut collection) = read(&mut disk, series)? else { return Ok(false) };
    let mut changed = false;
    for stream in streams(&mut collection) {
        let Some(name) = stream["name"].as_str() else { continue };
        let sum = match disk.read_whole(&Files::of(&series.with_file_name(name)).meta, MOST_META) {
            Ok(meta) => sha512(&meta),
            Err(RecordingError::Store(error)) if error.errno.0 == libc::ENOENT => continue,
            Err(error) => return Err(error),
        };
        if stream["hash"].as_str() != Some(&sum) {
            stream["hash"] = sum.into();
            changed = true;
        }
    }
    if changed {
        disk.store.put(&collection_of(series), &text(&collection))?;
    }
    Ok(changed)
}
