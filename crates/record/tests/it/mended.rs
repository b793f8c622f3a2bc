//! Recordings of any run, mended and proven: `recover` makes each a recording in which every byte is the one
//! that was produced, and destroys no data.

use std::path::PathBuf;

use hairspring_record::recover;
use hairspring_record::recover::{Recovered, recover};
use hairspring_recording::Recording;
use hairspring_recording::verify;
use hairspring_recording::verify::{Verified, verify};
use hairspring_store::scripted::{DiskScript, Image, Pace, ScriptedDisk};

/// Recovers the recording in an image, which must have at least `least` bytes. Returns the outcome, and the
/// verification of the result.
///
/// # Panics
/// If anything is wrong.
#[track_caller]
pub(crate) fn check(image: &Image, names: &[&str], least: u64) -> (Recovered, Verified) {
    let disk = ScriptedDisk::with(DiskScript { pace: Pace::Leaping, ..DiskScript::default() }, image.clone());
    let paths: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    let mut store = disk.store(8);
    let recovered = recover(&mut store, &paths, recover::RecoverOptions::default(), &mut |_| {});
    let recovered = recovered.unwrap_or_else(|error| panic!("not recovered: {error}"));
    let again = recover(&mut store, &paths, recover::RecoverOptions::default(), &mut |_| {}).expect("recovered again");
    assert_eq!(again.changed, Vec::<String>::new(), "what is mended needs no mending");
    let recording = Recording::open_in(&mut store, &paths).and_then(Recording::whole).expect("opens");
    let options = verify::VerifyOptions { counters: true, sha512: false };
    let verified = verify(&mut store, &recording, options, &mut |_| {}).expect("verified");
    assert_eq!((&verified.faults[..], verified.damaged), (&[] as &[String], 0));
    assert_eq!((verified.mismatch, verified.missing.0), (None, 0));
    assert_eq!(verified.verdict, recovered.verdict, "{recovered:?}");
    assert!(verified.bytes.0 >= least, "{} bytes are left of {least}: {recovered:?}", verified.bytes.0);
    (recovered, verified)
}
