//! Segments are compressed beside the recorder of their series.

use hairspring_record::compress::{USUAL_LEVEL, compress};
use hairspring_record::series::collection::renew_sums;
use hairspring_store::compressed::CompressedReads;

use super::*;

#[test]
fn segments_are_compressed_while_the_series_is_recorded_and_deleted_as_before() {
    let retention = Retention { segments: Some(3), ..Retention::default() };
    let case = Case { frames: 120_000, retention, ..Case::default() };
    let compressed = std::cell::RefCell::new(std::collections::BTreeSet::new());
    let Run { disk, ended, .. } = run(&case, Image::default(), |disk, number| {
        // The segment before the last one is closed.
        let Some(number) = number.checked_sub(2).filter(|number| compressed.borrow_mut().insert(*number)) else {
            return;
        };
        let mut store = CompressedReads::above(disk.store(8));
        let base = segment_base(Path::new("a/x"), number);
        let recording = Recording::open_in(&mut store, &[base]).expect("closed");
        compress(&mut store, &recording, USUAL_LEVEL, &mut |_| {}).expect("compressed");
        assert!(renew_sums(&mut store, Path::new("a/x")).expect("renewed"), "segment {number}");
    });
    let (outcome, summary) = ended.expect("recorded");
    assert_eq!((outcome.verdict, &summary.troubles[..]), (RecordingVerdict::Complete, &[] as &[String]));
    assert_eq!((summary.segments, summary.kept, summary.dropped_segments), (10, 3, 7), "{summary:?}");
    let image = disk.image_after_power_cut(0);
    let names: Vec<String> = image.paths().map(|path| path.display().to_string()).collect();
    let data: Vec<&String> = names.iter().filter(|name| name.contains("data")).collect();
    assert_eq!(data, ["a/x-000007.sigmf-data.zst", "a/x-000008.sigmf-data", "a/x-000009.sigmf-data"]);
    // The recorder has taken over the sums of compressed segments from the collection.
    let collection = String::from_utf8(image.read("a/x.sigmf-collection").expect("a collection")).expect("text");
    assert_eq!(collection.matches("\"hash\"").count(), 3, "{collection}");
    assert!(!renew_sums(&mut disk.store(8), Path::new("a/x")).expect("read"), "{collection}");
    let mut store = CompressedReads::above(disk.store(8));
    let recording = Recording::open_in(&mut store, &["a/x".into()]).expect("a series");
    let whole =
        verify(&mut store, &recording, VerifyOptions { counters: true, sha512: false }, &mut |_| {}).expect("read");
    assert_eq!((whole.bytes.0, &whole.faults[..]), (outcome.ledger.stored_bytes, &[] as &[String]));
    assert!(whole.mismatch.is_none() && whole.damaged == 0 && whole.ledger.holds());
    let disk = disk.clone();
    let stores: StoreMaker = Box::new(move || Box::new(CompressedReads::above(disk.store(64))) as Box<dyn Store>);
    let options = RecoverOptions { all: true, ..RecoverOptions::default() };
    let recovered =
        recover_series(stores, Path::new("a/x"), options, &mut |_| {}).expect("in order").expect("a series");
    assert_eq!(recovered.changed, Vec::<String>::new());
}
