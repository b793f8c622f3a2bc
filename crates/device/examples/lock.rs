//! A device lock: two users of one board write all lines at once, and neither sees a mixed value.
//!
//! The users are threads here, each with a device and a lock of its own, as two processes would have them.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_device::{AccessTimes, Device as _, DeviceError, Guarded, Lines, LockFile, Protocol, VirtualBoard};
use hairspring_time::{Host, Timebase};

const WRITES: u32 = 1_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate(Host)?;
    let folder = tempfile::tempdir()?;
    let (file, lock) = (folder.path().join("board"), folder.path().join("lock"));
    let open = || VirtualBoard::open(&file, AccessTimes::FESA, Lines(0), Protocol::Inherit, &timebase);
    open()?.init()?;
    let user = |lines: Lines| -> Result<u32, DeviceError> {
        // The holder of this file's lock has the board; the kernel lets the holder run at the priority of the most
        // urgent waiter.
        let guarded = Guarded::new(Box::new(open()?), Box::new(LockFile::open(&lock, Protocol::Inherit)?));
        let mut mixed = 0;
        for _ in 0..WRITES {
            let mut held = guarded.lock()?;
            held.device().write(Lines(0xff), lines)?;
            // No other process has written in between.
            mixed += u32::from(open()?.outputs().0 != lines);
        }
        Ok(mixed)
    };
    let [low, high] = [Lines(0x0f), Lines(0xf0)];
    let mixed = std::thread::scope(|scope| {
        let other = scope.spawn(|| user(high));
        user(low).and_then(|mixed| other.join().map_or(Ok(mixed), |theirs| theirs.map(|theirs| mixed + theirs)))
    })?;
    println!("2 users, {WRITES} writes each, {mixed} of them mixed");
    Ok(())
}
