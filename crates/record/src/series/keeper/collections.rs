//! The collections of a series, as its keeper writes them.

use std::collections::VecDeque;

use super::{Keeper, PART};
use crate::series::collection::{self, CollectionEntry, MOST_STREAMS};
use hairspring_recording::series::{collection_of, segment_base};
use hairspring_recording::sync_io::{BlockingStore, MOST_META};
use hairspring_recording::verify::sha512;
use hairspring_recording::{Files, RecordingError};
use hairspring_ring::units::Frames;

impl Keeper {
    /// Adds a closed segment to the collections.
    pub(super) fn stream(&mut self, number: u32, first: Frames, end: Frames) -> Result<(), RecordingError> {
        let mut store = (self.stores)();
        self.stream_by(&mut BlockingStore::small(&mut *store)?, number, first, end)
    }

    pub(super) fn stream_by(
        &mut self,
        disk: &mut BlockingStore<'_>,
        number: u32,
        first: Frames,
        end: Frames,
    ) -> Result<(), RecordingError> {
        self.unwritten = self.unwritten.saturating_add(1);
        for (base, streams) in self.bases.iter().zip(&mut self.streams) {
            let segment = segment_base(base, number);
            let meta = disk.read_whole(&Files::of(&segment).meta, MOST_META)?;
            let name = segment.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let frames = end.0.saturating_sub(first.0);
            streams.push_back(CollectionEntry { name, number, first_frame: first.0, frames, hash: sha512(&meta) });
            if streams.len() > MOST_STREAMS {
                streams.pop_front();
            }
        }
        Ok(())
    }

    /// Takes a segment out of the collections.
    pub(super) fn take_streams(&mut self, number: u32) -> Vec<Option<CollectionEntry>> {
        self.unwritten = self.unwritten.saturating_add(1);
        let mut take = |streams: &mut VecDeque<CollectionEntry>| {
            let place = streams.binary_search_by_key(&number, |stream| stream.number).ok()?;
            streams.remove(place)
        };
        self.streams.iter_mut().map(&mut take).collect()
    }

    /// Brings it back.
    pub(super) fn bring_back_streams(&mut self, entries: Vec<Option<CollectionEntry>>) {
        for (streams, entry) in self.streams.iter_mut().zip(entries) {
            let Some(entry) = entry else { continue };
            if let Err(place) = streams.binary_search_by_key(&entry.number, |stream| stream.number) {
                streams.insert(place, entry);
            }
        }
        self.describe_now();
    }

    /// Writes the collections if enough has changed.
    pub(super) fn describe_when_due(&mut self) {
        if self.unwritten > self.streams.first().map_or(0, VecDeque::len) / PART {
            self.describe_now();
        }
    }

    /// Writes the collections if nothing has changed since this was called last.
    pub fn describe_if_quiet(&mut self) {
        if self.unwritten > 0 && self.unwritten == self.unwritten_before {
            self.describe_now();
        }
        self.unwritten_before = self.unwritten;
    }

    /// Writes the collections, if they lack anything.
    pub fn describe_now(&mut self) {
        if self.unwritten > 0 {
            let put = self.put_collections(true);
            self.note("describe the series", put);
        }
    }

    /// Puts the collections in place. With `adopt` it takes over the sums of segments that were compressed meanwhile:
    /// their metadata were changed, and the collection with them.
    pub(super) fn put_collections(&mut self, adopt: bool) -> Result<(), RecordingError> {
        let dropped = (self.index.dropped_segments, self.index.dropped_bytes);
        let id = self.index.id.unwrap_or_default();
        for (base, streams) in self.bases.iter().zip(&mut self.streams) {
            let mut store = (self.stores)();
            let _ownership = collection::own(&mut *store, base)?;
            if adopt {
                let mut stated = collection::stated_sums(&mut BlockingStore::small(&mut *store)?, base);
                for stream in &mut *streams {
                    if let Some(sum) = stated.remove(&stream.name) {
                        stream.hash = sum;
                    }
                }
            }
            store.put(&collection_of(base), &collection::render(id, &self.name, streams.iter(), dropped))?;
        }
        (self.unwritten, self.unwritten_before) = (0, 0);
        Ok(())
    }
}
