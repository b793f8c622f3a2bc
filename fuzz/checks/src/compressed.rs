//! Compressed data: any bytes stand in place of the compressed file of a closed recording. It is opened, verified and
//! restored. A restored recording is as sound as it was compressed: no block that was proven is lost.

use std::path::Path;

use hairspring_record::compress::restore;
use hairspring_recording::testing::Spec;
use hairspring_recording::verify::{VerifyOptions, verify};
use hairspring_recording::{Files, Recording};
use hairspring_store::compressed::{CompressedReads, compressed_path};
use hairspring_store::scripted::{DiskScript, Image, Pace, ScriptedDisk};

/// The recording with these bytes as its compressed data: two blocks and a half, so that inputs are short.
fn image(bytes: &[u8], data: &Path) -> Image {
    let whole = Spec { block: 1024, stored: 2560, ..Spec::plain() }.make();
    let mut image = Image::default();
    for path in whole.paths().filter(|path| *path != data) {
        image.put(path, &whole.read(path).unwrap_or_default());
    }
    image.put(compressed_path(data), bytes);
    image
}

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let base = Spec::base(0);
    let script = DiskScript { pace: Pace::Leaping, ..DiskScript::default() };
    let disk = ScriptedDisk::with(script, image(bytes, &Files::of(&base).data));
    let mut store = CompressedReads::above(disk.store(4));
    let paths = [base];
    let Ok(recording) = Recording::open_in(&mut store, &paths) else { return };
    let before = verify(&mut store, &recording, VerifyOptions::default(), &mut |_| ());
    let Ok(restored) = restore(&mut store, &recording, &mut |_| {}) else { return };
    let before = before.expect("what is restored was read before");
    let recording = Recording::open_in(&mut store, &paths).expect("what was restored is opened");
    let after = verify(&mut store, &recording, VerifyOptions::default(), &mut |_| ()).expect("and read");
    // Data that do not decompress as a whole are recovered: the damaged blocks become gaps that are declared.
    if restored.damaged.is_empty() {
        assert_eq!((after.damaged, after.missing, &after.faults), (before.damaged, before.missing, &before.faults));
    } else {
        assert_eq!((after.damaged, after.missing, after.bytes), (0, before.missing, before.bytes));
    }
}
