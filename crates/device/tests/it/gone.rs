//! Shared memory that is revoked, or shared with a stranger: in processes of their own, because a mistake kills the
//! process.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hairspring_device::{Device, Guarded, Lines, LockFile, Lockable, Protocol, Scope, VirtualBoard};
use hairspring_machine::{Host, Nanos};
use hairspring_time::Timebase;
use testing::process::Other;
use testing::skip;

use crate::{board, timebase};

fn truncate(path: &Path) {
    File::options().write(true).open(path).and_then(|file| file.set_len(0)).expect("truncated");
}

#[track_caller]
fn is_told<T>(result: Result<T, hairspring_device::DeviceError>, of: &str) {
    let error = result.err().unwrap_or_else(|| panic!("{of}: no error")).to_string();
    assert!(error.contains("truncated"), "{of}: {error}");
}

/// Any process with write permission on the file of a board or a lock could end all its users by truncating the file,
/// with the outputs of all their devices as they were: the next access was a bus error.
#[test]
fn a_truncated_file_is_an_error_for_all_its_users_and_ends_none() {
    for protocol in Protocol::ALL {
        let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
        let device = folder.path().join("device");
        std::fs::create_dir(&device).expect("a folder");
        Other::start("survive", folder.path(), protocol).finish();
        assert_eq!(
            board(&device, protocol, &timebase).outputs().0,
            Lines(0),
            "{protocol}: safe, though its lock is lost"
        );
    }
}

/// The process of the test above.
pub(crate) fn survive(folder: &Path, protocol: Protocol, timebase: &Timebase<Host>) {
    let lock_file = folder.join("lock");
    let mut shared = board(folder, protocol, timebase);
    shared.init().expect("initialised");
    // A device that is not truncated, but whose lock is.
    let real = board(&folder.join("device"), protocol, timebase);
    let guarded = Guarded::new(Box::new(real), Box::new(LockFile::open(&lock_file, protocol).expect("a lock")));
    guarded.lock().and_then(|mut held| held.device().init()).expect("initialised");
    guarded.lock().and_then(|mut held| held.device().write(Lines(1), Lines(1))).expect("written");
    let (observed, waited) = (board(folder, protocol, timebase), board(folder, protocol, timebase));
    let (watching, is_told_to_stop) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let observer = scope.spawn(|| {
            let scope = Scope { span: Nanos::from_secs(60), most_edges: 8 };
            watching.store(true, Ordering::Release);
            scope.watch(&observed, timebase, &is_told_to_stop)
        });
        let guard = observed.lock().lock().expect("the lock");
        let waiting = scope.spawn(|| is_told(waited.lock().lock(), "a thread that waits for the lock"));
        while !watching.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        // Most threads sleep now; one that arrives later finds the file truncated.
        std::thread::sleep(Duration::from_millis(30));
        for file in [&folder.join("board"), &lock_file] {
            truncate(file);
        }
        is_told(shared.read(), "a read");
        is_told(shared.write(Lines(1), Lines(1)), "a write");
        is_told(shared.init(), "an initialisation");
        drop(guard);
        is_told(shared.lock().lock(), "the lock of a board");
        is_told(guarded.lock(), "the lock of a device");
        assert!(observer.join().expect("no panic").board_gone, "the scope goes on");
        waiting.join().expect("told");
    });
    // The list of mutexes of this thread is sound.
    let another = LockFile::open(&folder.join("another"), protocol).expect("a lock");
    drop(another.lock().lock().expect("the lock"));
    drop((shared, guarded));
    drop(another.lock().lock().expect("the lock"));
}

/// A guard may be leaked safely. The lock's memory was unmapped nevertheless, and the thread's list of robust mutexes
/// pointed into it: its next lock wrote there.
#[test]
fn a_guard_that_is_forgotten_leaves_no_address_into_nothing() {
    for protocol in Protocol::ALL {
        let folder = tempfile::tempdir().expect("a folder");
        Other::start("forget", folder.path(), protocol).finish();
    }
}

/// The process of the test above.
pub(crate) fn forget(folder: &Path, protocol: Protocol) {
    let open = |name: &str| LockFile::open(&folder.join(name), protocol).expect("a lock");
    // Map the second before the first goes, so that it gets another address.
    let (forgotten, second) = (open("first"), open("second"));
    std::mem::forget(forgotten.lock().lock().expect("the lock"));
    drop(forgotten);
    drop(second.lock().lock().expect("the lock"));
}

/// A ticket lock checked by its thread number whether its owner lived. In another PID namespace, as in a container that
/// shares /dev/shm, no thread had that number: the process there took the lock as well. With the other protocols a
/// number of both namespaces can be the same.
#[test]
fn a_lock_of_another_pid_namespace_is_refused() {
    const TEST: &str = "a_lock_of_another_pid_namespace_is_refused";
    let allowed = Command::new("unshare").args(["--pid", "--fork", "true"]).output();
    match allowed {
        Ok(output) if output.status.success() => {}
        Ok(output) => return skip(TEST, String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => return skip(TEST, format!("unshare: {error}")),
    }
    for protocol in Protocol::ALL {
        let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
        let board = board(folder.path(), protocol, &timebase);
        let _guard = board.lock().lock().expect("the lock");
        Other::start_in_another_namespace("stranger", folder.path(), protocol).finish();
    }
}

/// The process of the test above.
pub(crate) fn stranger(board: &VirtualBoard<'_, Host>) {
    // Longer than the detection of a dead owner takes.
    let begun = Instant::now();
    let taken = board.lock().lock_unless(&mut || begun.elapsed() > Duration::from_secs(1));
    let error = taken.expect_err("not ours to judge").to_string();
    assert!(error.contains("another PID namespace"), "{error}");
}
