//! The index of a series: of records with right checksums, and of any bytes, a reader gets at least the content of a
//! shortened index.

use hairspring_recording::series::index::{INDEX_RECORD_BYTES, IndexRecord, SeriesIndex};

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let Some((seal, bytes)) = bytes.split_first() else { return };
    let mut file = bytes.to_vec();
    if seal & 1 == 1 {
        let start =
            IndexRecord::Series { id: Default::default(), members: 1, started: hairspring_machine::Nanos::ZERO };
        file = [&start.encode(0)[..], bytes].concat();
        crate::seal(&mut file, *b"hsS1");
    }
    let index = SeriesIndex::read(&file);
    assert!(index.records as usize * INDEX_RECORD_BYTES <= file.len());
    assert!(index.id.is_none() || index.records > 0);
    if index.id.is_none() {
        return;
    }
    let short = SeriesIndex::read(&SeriesIndex::encoded(&index.shortened()));
    assert_eq!((&short.segments, short.epoch), (&index.segments, index.epoch));
    assert_eq!((short.dropped_segments, short.dropped_bytes), (index.dropped_segments, index.dropped_bytes));
    assert_eq!(short.next, index.next);
}
