//! A signal whose file is truncated: in a process of its own, because a mistake kills the process.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use hairspring_device::DeviceError;
use hairspring_machine::Host;
use hairspring_station::{EventSource, Poller, Signal, Sleeper, Stop};
use hairspring_time::Timebase;
use testing::process::Other;

#[track_caller]
fn is_told<T>(result: Result<T, DeviceError>, of: &str) {
    let error = result.err().unwrap_or_else(|| panic!("{of}: no error")).to_string();
    assert!(error.contains("truncated"), "{of}: {error}");
}

/// Any process with write permission on the file of a signal could end all its users by truncating the file: the next
/// access was a bus error.
#[test]
fn a_truncated_signal_is_an_error_for_all_its_users_and_ends_none() {
    let folder = tempfile::tempdir().expect("a folder");
    Other::start("survive", folder.path(), "plain").finish();
}

/// The process of the test above.
pub(crate) fn survive(folder: &Path, timebase: &Timebase<Host>) {
    let (stop, file) = (Stop::new().expect("a stop"), folder.join("signal"));
    let signal = || Signal::open(&file).expect("a signal");
    let firing = signal();
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| is_told(Sleeper::new(signal(), timebase, &stop).wait(), "a sleeper"));
        let poller = scope.spawn(|| {
            if let Ok(mut poller) = Poller::new(signal(), timebase, &stop) {
                is_told(poller.wait(), "a poller");
            }
        });
        // Both sleep or poll now; one that joins later finds the file truncated.
        std::thread::sleep(Duration::from_millis(30));
        File::options().write(true).open(&file).and_then(|file| file.set_len(0)).expect("truncated");
        is_told(firing.fire(None, timebase), "who fires");
        for thread in [sleeper, poller] {
            thread.join().expect("told");
        }
    });
}
