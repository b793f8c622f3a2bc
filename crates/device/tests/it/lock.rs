//! The lock of a device, between threads and processes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hairspring_device::{Device, DeviceError, Guarded, Lines, Lockable, Protocol, VirtualBoard};
use hairspring_machine::{Host, Machine, Policy};
use testing::process::Other;
use testing::skip;

use crate::{board, timebase};

const PATIENCE: Duration = Duration::from_secs(60);

#[track_caller]
fn wait_until(what: &str, mut happens: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happens() {
        assert!(begun.elapsed() < PATIENCE, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A field of this process's thread in /proc, counted as in proc(5).
fn field(thread: u32, number: usize) -> String {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    // Field 3 follows the name, which may contain any characters.
    let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    rest.split(' ').nth(number - 3).unwrap_or_default().to_owned()
}

fn own_thread() -> u32 {
    let link = std::fs::read_link("/proc/thread-self").expect("proc is mounted");
    link.file_name().and_then(|name| name.to_str()?.parse().ok()).expect("a number")
}

#[test]
fn threads_and_processes_exclude_each_other() {
    for protocol in Protocol::ALL {
        let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
        let mut mine = board(folder.path(), protocol, &timebase);
        mine.init().expect("initialised");
        let others = [(); 2].map(|()| Other::start("count", folder.path(), protocol));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| count(&mut board(folder.path(), protocol, &timebase), 3000));
            }
        });
        others.into_iter().for_each(Other::finish);
        assert_eq!(mine.inputs().0, 4 * 3000, "{protocol}");
    }
}

#[test]
fn the_death_of_an_owner_is_told_until_somebody_has_repaired_what_it_left() {
    for protocol in Protocol::ALL {
        let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
        let board = board(folder.path(), protocol, &timebase);
        for _ in 0..3 {
            Other::start("hold", folder.path(), protocol).kill();
            for _ in 0..2 {
                assert!(board.lock().lock().expect("the lock").owner_died(), "{protocol}");
            }
            board.lock().lock().expect("the lock").repaired();
            assert!(!board.lock().lock().expect("the lock").owner_died(), "{protocol}");
        }
    }
}

#[test]
fn a_device_whose_owner_died_is_initialised_before_anybody_uses_it() {
    for protocol in Protocol::ALL {
        let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
        let open = || board(folder.path(), protocol, &timebase);
        let device = Guarded::new(Box::new(open()), Box::new(open()));
        device.lock().and_then(|mut held| held.device().init()).expect("initialised");
        device.lock().and_then(|mut held| held.device().write(Lines(1), Lines(1))).expect("written");
        Other::start("hold", folder.path(), protocol).kill();
        assert_eq!((open().outputs().0, device.recovered()), (Lines(1), 0), "as the dead one left it");
        drop(device.lock().expect("the lock"));
        assert_eq!((open().outputs().0, device.recovered()), (Lines(0), 1), "{protocol}: as after power-on");
        drop(device.lock().expect("the lock"));
        assert_eq!(device.recovered(), 1, "{protocol}: told once");
    }
}

#[test]
fn a_panic_leaves_the_device_in_its_safe_state_and_the_lock_free() {
    let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
    let open = || board(folder.path(), Protocol::Inherit, &timebase);
    let panicked = std::panic::catch_unwind(|| {
        let device = Guarded::new(Box::new(open()), Box::new(open()));
        let mut held = device.lock().expect("the lock");
        held.device().init().expect("initialised");
        held.device().write(Lines(1), Lines(1)).expect("written");
        assert_eq!(open().outputs().0, Lines(1));
        panic!("in the middle of an action");
    });
    assert!(panicked.is_err());
    assert_eq!(open().outputs().0, Lines(0), "safe");
    assert!(!open().lock().lock().expect("the lock").owner_died());
}

#[test]
fn who_waits_when_the_owner_dies_gets_the_lock() {
    for protocol in Protocol::ALL {
        let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
        let board = board(folder.path(), protocol, &timebase);
        let owner = Other::start("hold", folder.path(), protocol);
        let waiter = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                waiter.store(own_thread(), Ordering::Release);
                board.lock().lock().expect("the lock").owner_died()
            });
            wait_until("the waiting", || field(waiter.load(Ordering::Acquire), 3) == "S");
            owner.kill();
            assert!(waiting.join().expect("no panic"), "{protocol}");
        });
    }
}

#[test]
fn in_order_means_in_the_order_of_coming() {
    let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
    let board = board(folder.path(), Protocol::Fifo, &timebase);
    let order = Mutex::new(Vec::new());
    let threads = [const { AtomicU32::new(0) }; 6];
    std::thread::scope(|scope| {
        let guard = board.lock().lock().expect("the lock");
        for (number, thread) in threads.iter().enumerate() {
            let (board, order) = (&board, &order);
            scope.spawn(move || {
                thread.store(own_thread(), Ordering::Release);
                let _guard = board.lock().lock().expect("the lock");
                order.lock().expect("no panic").push(number);
            });
            // It sleeps only when it has its ticket.
            wait_until("the waiting", || field(thread.load(Ordering::Acquire), 3) == "S");
        }
        drop(guard);
    });
    assert_eq!(order.into_inner().expect("no panic"), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn the_owner_runs_at_the_priority_of_the_most_urgent_waiter_only_where_it_inherits() {
    const TEST: &str = "the_owner_runs_at_the_priority_of_the_most_urgent_waiter_only_where_it_inherits";
    for (protocol, expected) in [(Protocol::Inherit, Some("-34")), (Protocol::None, None), (Protocol::Fifo, None)] {
        let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
        let board = board(folder.path(), protocol, &timebase);
        let urgent = AtomicU32::new(0);
        // A nice value is in it.
        let usual = field(own_thread(), 18);
        let refused = std::thread::scope(|scope| {
            let guard = board.lock().lock().expect("the lock");
            let waiting = scope.spawn(|| {
                let set = Host.set_policy(Policy::Fifo(33));
                urgent.store(own_thread(), Ordering::Release);
                drop(board.lock().lock().expect("the lock"));
                set.err()
            });
            wait_until("the waiting", || field(urgent.load(Ordering::Acquire), 3) == "S");
            // A real-time priority p is shown as −1 − p.
            let shown = field(own_thread(), 18);
            drop(guard);
            let refused = waiting.join().expect("no panic");
            if refused.is_none() {
                assert_eq!(shown, expected.unwrap_or(&usual), "{protocol}");
                assert_eq!(field(own_thread(), 18), usual, "{protocol}: afterwards it is as before");
            }
            refused
        });
        if let Some(refused) = refused {
            return skip(TEST, format!("{}: {}", refused.attempted, refused.said));
        }
    }
}

#[test]
fn a_thread_that_has_the_lock_is_not_made_to_wait_for_itself() {
    for protocol in Protocol::ALL {
        let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
        let board = board(folder.path(), protocol, &timebase);
        let _guard = board.lock().lock().expect("the lock");
        let error = board.lock().lock().expect_err("not again");
        assert!(error.to_string().contains("release it first"), "{error}");
    }
}

#[test]
fn who_gives_up_waiting_keeps_nobody_waiting() {
    for protocol in Protocol::ALL {
        let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
        let board = board(folder.path(), protocol, &timebase);
        let (thread, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let guard = board.lock().lock().expect("the lock");
            let first = scope.spawn(|| {
                thread.store(own_thread(), Ordering::Release);
                let given = board.lock().lock_unless(&mut || is_over.load(Ordering::Acquire)).expect("no error");
                given.is_some()
            });
            wait_until("the waiting", || field(thread.load(Ordering::Acquire), 3) == "S");
            let second = scope.spawn(|| board.lock().lock().is_ok_and(|guard| !guard.owner_died()));
            is_over.store(true, Ordering::Release);
            assert!(!first.join().expect("no panic"), "{protocol}: it was had all the time");
            drop(guard);
            assert!(second.join().expect("no panic"), "{protocol}");
        });
        // The lock is free again.
        assert!(board.lock().lock_unless(&mut || true).is_ok_and(|guard| guard.is_some()), "{protocol}");
    }
}

/// A board whose first initialisations fail: as many as the number.
struct Stubborn<'t>(VirtualBoard<'t, Host>, u32);

impl Device for Stubborn<'_> {
    fn name(&self) -> String {
        self.0.name()
    }

    fn init(&mut self) -> Result<(), DeviceError> {
        if self.1 > 0 {
            self.1 -= 1;
            let (attempted, said) = ("initialise".to_owned(), "not now".to_owned());
            return Err(DeviceError { attempted, said, remedy: "try again" });
        }
        self.0.init()
    }

    fn write(&mut self, mask: Lines, value: Lines) -> Result<(), DeviceError> {
        self.0.write(mask, value)
    }

    fn read(&mut self) -> Result<Lines, DeviceError> {
        self.0.read()
    }

    fn output_lines(&self) -> Lines {
        self.0.output_lines()
    }

    fn safe_state(&self) -> Lines {
        self.0.safe_state()
    }
}

/// A device that could not be initialised after its owner's death was handed out as it was to the next owner, in any
/// process: the lock had reported the death already.
#[test]
fn a_device_that_cannot_be_initialised_after_its_owners_death_is_had_by_nobody() {
    for protocol in Protocol::ALL {
        let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
        let open = || board(folder.path(), protocol, &timebase);
        let guarded = |fails| Guarded::new(Box::new(Stubborn(open(), fails)), Box::new(open()));
        open().init().expect("initialised");
        open().write(Lines(1), Lines(1)).expect("written");
        Other::start("hold", folder.path(), protocol).kill();
        let (device, another) = (guarded(2), guarded(0));
        for _ in 0..2 {
            let refused = device.lock().map(drop).expect_err("as long as it fails");
            assert!(refused.to_string().contains("not now"), "{refused}");
        }
        assert_eq!((open().outputs().0, device.recovered()), (Lines(1), 0), "{protocol}");
        drop(another.lock().expect("this one can"));
        assert_eq!((open().outputs().0, another.recovered()), (Lines(0), 1), "{protocol}");
        drop(device.lock().expect("it is in order"));
        assert_eq!(device.recovered(), 0, "{protocol}");
    }
}

/// Dropping a device wrote to it without its lock, once more when it was safe already: a pulse of another process, up
/// at that moment, was cut short, and its report did not show it.
#[test]
fn who_goes_does_not_touch_what_another_has() {
    for protocol in Protocol::ALL {
        let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
        let open = || board(folder.path(), protocol, &timebase);
        let guarded = || Guarded::new(Box::new(open()), Box::new(open()));
        let (going, safe, idle, staying) = (guarded(), guarded(), guarded(), guarded());
        for device in [&going, &safe] {
            device.lock().and_then(|mut held| held.device().init()).expect("initialised");
        }
        assert_eq!(safe.make_safe(), Ok(()));
        let mut held = staying.lock().expect("the lock");
        held.device().write(Lines(1), Lines(1)).expect("written");
        let writes = open().outputs().1;
        drop((safe, idle));
        assert_eq!(open().outputs(), (Lines(1), writes), "{protocol}: safe already, and never used");
        // Waits until the lock is released, if that is soon enough.
        let error =
            std::thread::scope(|scope| scope.spawn(|| going.make_safe()).join()).expect("no panic").expect_err("had");
        assert!(error.to_string().contains("another thread or process held its lock"), "{error}");
        assert_eq!(open().outputs(), (Lines(1), writes), "{protocol}");
        drop(held);
        drop(going);
        assert_eq!(open().outputs(), (Lines(0), writes + 1), "{protocol}: made safe under the lock");
    }
}

#[test]
fn a_wait_for_a_device_is_ended_by_its_flag() {
    for protocol in Protocol::ALL {
        let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
        let (open, stop) = (|| board(folder.path(), protocol, &timebase), AtomicBool::new(false));
        let device = Guarded::new(Box::new(open()), Box::new(open())).cancelled_by(&stop);
        let (lock, thread) = (open(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            let guard = lock.lock().lock().expect("the lock");
            let waiting = scope.spawn(|| {
                thread.store(own_thread(), Ordering::Release);
                (device.lock().map(drop), device.lock_or_stop().map(|held| held.is_none()))
            });
            wait_until("the waiting", || field(thread.load(Ordering::Acquire), 3) == "S");
            stop.store(true, Ordering::Release);
            let (refused, nothing) = waiting.join().expect("no panic");
            assert!(refused.is_err_and(|error| error.to_string().contains("told to stop")), "{protocol}");
            assert_eq!(nothing, Ok(true), "{protocol}");
            drop(guard);
        });
        // A set flag does not prevent taking a free lock.
        assert!(device.lock().is_ok(), "{protocol}");
    }
}

/// The process that keeps the lock until it is killed.
pub(crate) fn hold(board: &VirtualBoard<'_, Host>, ready: &dyn Fn()) {
    let _guard = board.lock().lock().expect("the lock");
    ready();
    std::thread::sleep(Duration::from_secs(600));
}

/// Counts in the input register, in steps that concurrent accesses would break.
pub(crate) fn count(board: &mut VirtualBoard<'_, Host>, times: u32) {
    for _ in 0..times {
        let now = {
            let _guard = board.lock().lock().expect("the lock");
            let now = board.inputs();
            std::hint::spin_loop();
            board.connect(Lines(now.0 + 1));
            now
        };
        assert!(now.0 < u32::MAX);
    }
}
