//! Recordings of older versions stay readable: files that those versions wrote, opened, verified and joined.

use std::path::PathBuf;

use hairspring_recording::Recording;
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_recording::verify::{VerifyOptions, verify};
use hairspring_ring::units::Frames;
use hairspring_store::{Ways, best};

#[test]
fn a_recording_of_version_1_0_is_read_as_it_was() {
    let base: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/fixtures/version-1-0"].iter().collect();
    let mut store = best(4, Ways::ALL);
    let recording = Recording::open_in(&mut *store, &[base]).expect("opens");
    assert_eq!((recording.faults(), recording.about().series.as_ref()), (&[][..], None));
    assert_eq!(recording.timeline().frame_at(0), Frames(0));
    let verified = verify(&mut *store, &recording, VerifyOptions { counters: true, sha512: false }, &mut |_| {});
    let verified = verified.expect("verified");
    assert_eq!((verified.verdict, verified.bytes.0), (RecordingVerdict::Complete, 10_000));
    assert_eq!((verified.faults, verified.mismatch), (Vec::new(), None));
}
