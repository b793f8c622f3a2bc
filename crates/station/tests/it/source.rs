//! Event sources on this machine: every event has a number, and none is lost silently.

use std::io::Write;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use hairspring_machine::{Host, Machine, Nanos, Policy};
use hairspring_station::signal::PLACES;
use hairspring_station::source::{Counter, Datagrams, Each, PreciseTimer, Readable, Timer};
use hairspring_station::{
    Activation, Counts, Event, EventSource, Poller, SchedulingUnit, Signal, Sleeper, Stages, Stamped, Stop,
};
use hairspring_time::Timebase;
use testing::skip;

use crate::timebase;

/// The next event, which must exist.
#[track_caller]
fn next(source: &mut dyn EventSource<Host>) -> Event {
    source.wait().expect("it works").expect("an event")
}

#[track_caller]
fn check_stops(source: &mut dyn EventSource<Host>, stop: &Stop) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            stop.set();
        });
        while source.wait().expect("it works").is_some() {}
    });
    assert_eq!(source.wait(), Ok(None), "it stays stopped");
}

#[test]
fn timers_keep_to_their_multiples_and_are_never_early() {
    let (timebase, stop) = (timebase(), Stop::new().expect("a stop"));
    let period = Nanos::from_millis(2);
    let mut timer = Timer::new(period, &timebase, &stop).expect("a timer");
    let mut precise = PreciseTimer::new(period, &timebase, &stop).expect("a timer");
    for source in [&mut timer as &mut dyn EventSource<Host>, &mut precise] {
        let first = next(source);
        let mut last = first.sequence;
        for round in 0..20 {
            if round == 10 {
                std::thread::sleep(Duration::from_millis(11));
            }
            let event = next(source);
            assert_eq!(event.sequence, last + 1 + event.missed, "{event:?}");
            assert!(round != 10 || event.missed >= 4, "what passed while nobody waited is counted: {event:?}");
            last = event.sequence;
            let since_first = event.at.since(first.at).expect("one epoch").count();
            assert_eq!(since_first, period.count() * (event.sequence - first.sequence).cast_signed());
            // The kernel's clock and ours agree within the bound of the calibration.
            let bound = timebase.offset_bound(event.wake);
            assert!(event.wake.since(event.at).is_ok_and(|late| late >= Nanos::ZERO - bound), "{event:?}");
        }
    }
    check_stops(&mut timer, &stop);
    check_stops(&mut precise, &stop);
    let short = Timer::new(Nanos::new(9_999), &timebase, &stop).expect_err("too short");
    assert!(short.to_string().contains("choose a longer one"), "{short}");
}

#[test]
fn an_eventfd_counts_what_is_merged() {
    let (timebase, stop) = (timebase(), Stop::new().expect("a stop"));
    let (mut counter, firing) = Counter::new(&timebase, &stop).expect("an eventfd");
    firing.fire().expect("fired");
    assert_eq!(next(&mut counter).sequence, 1);
    (0..5).for_each(|_| firing.fire().expect("fired"));
    let event = next(&mut counter);
    assert_eq!((event.sequence, event.missed), (6, 4));
    check_stops(&mut counter, &stop);
}

#[test]
fn lines_of_a_pipe_are_events_with_their_numbers_as_cycles() {
    let (timebase, stop) = (timebase(), Stop::new().expect("a stop"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trigger");
    let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
    assert!(made.success());
    let mut pipe = Readable::fifo(&path, &timebase, &stop).expect("a pipe");
    let mut writer = std::fs::OpenOptions::new().write(true).open(&path).expect("it opens");
    writer.write_all(b"go\n17\n\n12 of 20\n18446744073709551616\n").expect("written");
    // A line that arrives in two pieces.
    let cycles: Vec<Option<u64>> = (0..5).map(|_| next(&mut pipe).cycle).collect();
    assert_eq!(cycles, [None, Some(17), None, Some(12), None]);
    writer.write_all(b"4").expect("written");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(5));
            writer.write_all(b"2\n").expect("written");
        });
        let event = next(&mut pipe);
        assert_eq!((event.sequence, event.cycle, event.stamped), (6, Some(42), Stamped::Wake));
    });
    check_stops(&mut pipe, &stop);
    std::fs::write(folder.path().join("file"), "").expect("written");
    for (name, why) in [("file", "make one with mkfifo"), ("none", "check the name")] {
        let error = Readable::fifo(&folder.path().join(name), &timebase, &stop).expect_err("no pipe");
        assert!(error.to_string().contains(why), "{error}");
    }
}

/// Duration of an action below.
const ACTION: Nanos = Nanos::from_millis(2);

/// Runs a unit on a source until the given number of activations is over, each of which takes a while.
fn run<'t>(
    source: Box<dyn EventSource<Host> + 't>,
    timebase: &'t Timebase<Host>,
    stop: &'t Stop,
    mut act: impl FnMut(u64) + Send,
    most: u64,
) -> (Counts, Vec<Stages>) {
    let mut activations = 0;
    let action = |activation: &mut Activation<'_, '_, Host>| {
        activations += 1;
        act(activations);
        let done = activation.timebase().now() + ACTION;
        while activation.timebase().now().since(done).is_ok_and(|after| after < Nanos::ZERO) {}
        if activations == most {
            stop.set();
        }
        Ok(())
    };
    let (mut unit, log) = SchedulingUnit::new(source, Box::new(action), None, timebase, 64);
    unit = unit.late_after(ACTION);
    unit.run().expect("nothing fails");
    (unit.counts(), log.collect())
}

/// Lines written at once wait for each other's actions. If they were stamped at their turn, all would look prompt.
#[test]
fn lines_that_wait_for_the_action_before_are_overrun_and_late() {
    const LINES: u64 = 6;
    let (timebase, stop) = (timebase(), Stop::new().expect("a stop"));
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let source = Readable::new(OwnedFd::from(reader), "a pipe", Each::Line, &timebase, &stop);
    writer.write_all(&b"go\n".repeat(LINES as usize)).expect("written");
    let (counts, stages) = run(Box::new(source), &timebase, &stop, |_| (), LINES);
    let overrun = LINES - 1;
    // The first one may be, too, where this thread has lost its CPU.
    assert!(counts.overrun == overrun && (overrun..=LINES).contains(&counts.delayed), "{counts:?}");
    for (before, one) in (0..).zip(&stages) {
        let waited = one.wake.since(one.event).expect("one epoch");
        assert!(waited >= Nanos::new(ACTION.count() * before), "behind {before} others: {waited}");
    }
}

/// A buffer of lines, each with a long action, must not be acted upon after the end.
#[test]
fn lines_that_wait_are_not_acted_upon_after_the_stop() {
    let (timebase, stop) = (timebase(), Stop::new().expect("a stop"));
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let source = Readable::new(OwnedFd::from(reader), "a pipe", Each::Line, &timebase, &stop);
    writer.write_all(b"go\ngo\ngo\ngo\n").expect("written");
    let (counts, _) = run(Box::new(source), &timebase, &stop, |_| (), 2);
    assert_eq!((counts.activations, counts.holds()), (2, true), "{counts:?}");
}

/// Input that is read only after the previous action was there during it, but since when is unknown.
#[test]
fn what_comes_while_an_action_runs_is_overrun_though_nobody_stamped_it() {
    const PIECES: u64 = 4;
    let timebase = timebase();
    let stop = Stop::new().expect("a stop");
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let source = Readable::new(OwnedFd::from(reader), "a pipe", Each::Read, &timebase, &stop);
    let mut write = move |_| writer.write_all(b"go").expect("written");
    write(0);
    let (counts, _) = run(Box::new(source), &timebase, &stop, write, PIECES);
    assert_eq!((counts.activations, counts.overrun), (PIECES, PIECES - 1), "{counts:?}");
    let stop = Stop::new().expect("a stop");
    let (source, firing) = Counter::new(&timebase, &stop).expect("an eventfd");
    firing.fire().expect("fired");
    let fire = |_| (0..3).for_each(|_| firing.fire().expect("fired"));
    let (counts, _) = run(Box::new(source), &timebase, &stop, fire, PIECES);
    assert_eq!((counts.activations, counts.missed, counts.overrun), (PIECES, 2 * (PIECES - 1), PIECES - 1));
}

#[test]
fn a_readable_descriptor_ends_with_its_writer() {
    let (timebase, stop) = (timebase(), Stop::new().expect("a stop"));
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let mut source = Readable::new(OwnedFd::from(reader), "a pipe", Each::Read, &timebase, &stop);
    writer.write_all(b"anything").expect("written");
    assert_eq!(next(&mut source).sequence, 1);
    drop(writer);
    assert_eq!(source.wait(), Ok(None));
}

#[test]
fn datagrams_are_stamped_by_the_kernel_before_the_thread_wakes() {
    let (timebase, stop) = (timebase(), Stop::new().expect("a stop"));
    let local = "127.0.0.1:0".parse().expect("an address");
    let mut socket = Datagrams::listen(local, &timebase, &stop).expect("a socket");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    for cycle in ["7", "cycle 8", ""] {
        sender.send_to(cycle.as_bytes(), socket.address()).expect("sent");
    }
    // Time passes between the kernel and the thread, which the stamp excludes.
    std::thread::sleep(Duration::from_millis(5));
    let events = [next(&mut socket), next(&mut socket), next(&mut socket)];
    assert_eq!(events.map(|event| event.cycle), [Some(7), None, None]);
    assert_eq!(events.map(|event| (event.sequence, event.stamped)), [1, 2, 3].map(|n| (n, Stamped::Kernel)));
    let waited = events[0].wake.since(events[0].at).expect("one epoch");
    assert!(waited >= Nanos::from_millis(5), "{waited}");
    let taken = Datagrams::listen(socket.address(), &timebase, &stop).expect_err("it is in use");
    assert!(taken.to_string().contains("choose another one"), "{taken}");
    check_stops(&mut socket, &stop);
}

#[test]
fn a_storm_of_datagrams_is_counted_to_the_last() {
    let (timebase, stop) = (timebase(), Stop::new().expect("a stop"));
    let mut socket = Datagrams::listen("127.0.0.1:0".parse().expect("an address"), &timebase, &stop).expect("a socket");
    let to = socket.address();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            for n in 0_u64.. {
                // The receiver is gone when the test is over.
                if stop.is_set() || sender.send_to(&n.to_string().into_bytes(), to).is_err() {
                    break;
                }
            }
        });
        let mut missed = 0;
        for handed_out in 1..=5_000 {
            let event = next(&mut socket);
            missed += event.missed;
            // Each carries the count of those sent before it.
            assert_eq!((event.sequence, handed_out + missed), (event.cycle.expect("a number") + 1, event.sequence));
            if handed_out % 500 == 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        stop.set();
        assert!(missed > 0, "ten times five milliseconds of datagrams find no room");
    });
}

#[test]
fn a_group_is_heard_by_all_who_joined_it() {
    let (timebase, stop) = (timebase(), Stop::new().expect("a stop"));
    let group = "239.255.17.3:0".parse().expect("an address");
    let Ok(mut first) = Datagrams::listen(group, &timebase, &stop) else {
        return skip("a_group_is_heard_by_all_who_joined_it", "no interface takes part in multicast");
    };
    let mut second = Datagrams::listen(first.address(), &timebase, &stop).expect("the same port");
    let sender = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    if sender.send_to(b"5", first.address()).is_err() {
        return skip("a_group_is_heard_by_all_who_joined_it", "no route for multicast");
    }
    assert_eq!((next(&mut first).cycle, next(&mut second).cycle), (Some(5), Some(5)));
}

fn signal(folder: &tempfile::TempDir) -> Signal {
    Signal::open(&folder.path().join("signal")).expect("a signal")
}

#[test]
fn a_signal_reaches_everybody_with_its_stamp_and_cycle() {
    let (timebase, stop) = (timebase(), Stop::new().expect("a stop"));
    let folder = tempfile::tempdir().expect("a folder");
    let firing = signal(&folder);
    firing.fire(None, &timebase).expect("fired");
    let mut asleep = Sleeper::new(signal(&folder), &timebase, &stop);
    let mut also = Sleeper::new(signal(&folder), &timebase, &stop);
    let before = timebase.now_ordered();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(firing.fire(Some(9), &timebase), Ok(2));
        });
        for source in [&mut asleep, &mut also] {
            let event = next(source);
            assert_eq!((event.sequence, event.missed, event.cycle, event.stamped), (2, 0, Some(9), Stamped::Sender));
            assert!(event.at.since(before).is_ok_and(|after| after > Nanos::from_millis(4)), "{event:?}");
            assert!(event.wake.since(event.at).is_ok_and(|late| late >= Nanos::ZERO), "{event:?}");
        }
    });
    for _ in 0..PLACES + 100 {
        firing.fire(None, &timebase).expect("fired");
    }
    let event = next(&mut asleep);
    assert_eq!((event.missed, event.sequence), (100, 103), "the oldest that is still there");
    for round in 1..PLACES {
        assert_eq!((next(&mut asleep).sequence, event.missed), (103 + round, 100));
    }
    check_stops(&mut asleep, &stop);
}

/// Fires as fast as possible from two threads; a waiter gets each number or learns that it missed it.
fn storm<'t>(
    make: impl FnOnce(Signal, &'t Timebase<Host>, &'t Stop) -> Box<dyn EventSource<Host> + 't>,
    timebase: &'t Timebase<Host>,
    stop: &'t Stop,
) {
    let folder = tempfile::tempdir().expect("a folder");
    let firing = Arc::new(signal(&folder));
    let mut source = make(signal(&folder), timebase, stop);
    let each = 50_000_u64;
    std::thread::scope(|scope| {
        for number in [1, 2] {
            let firing = Arc::clone(&firing);
            scope.spawn(move || {
                for n in 0..each {
                    firing.fire(Some(number * each + n), timebase).expect("fired");
                    if n % 64 == 0 {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let (mut handed_out, mut missed, mut last, mut cycles) = (0, 0, 0, [0; 2]);
        while handed_out + missed < 2 * each {
            let event = next(&mut *source);
            assert_eq!(event.sequence, last + 1 + event.missed);
            // The cycle belongs to this event: the cycles of one thread increase.
            let cycle = event.cycle.expect("each has one");
            let thread = (cycle / each) as usize - 1;
            assert!(cycle > cycles[thread], "{cycle} after {}", cycles[thread]);
            (last, cycles[thread]) = (event.sequence, cycle);
            handed_out += 1;
            missed += event.missed;
        }
        assert_eq!(handed_out + missed, 2 * each);
    });
}

#[test]
fn a_storm_of_signals_is_counted_to_the_last() {
    let (timebase, stop) = (timebase(), Stop::new().expect("a stop"));
    storm(|signal, timebase, stop| Box::new(Sleeper::new(signal, timebase, stop)), &timebase, &stop);
    if Host.affinity().0.len() < 2 {
        return skip("a_storm_of_signals_is_counted_to_the_last", "polling takes two CPUs");
    }
    storm(|signal, timebase, stop| Box::new(Poller::new(signal, timebase, stop).expect("two CPUs")), &timebase, &stop);
}

#[test]
fn polling_with_a_real_time_priority_is_refused_while_the_kernel_throttles_it() {
    let name = "polling_with_a_real_time_priority_is_refused_while_the_kernel_throttles_it";
    if Host.affinity().0.len() < 2 {
        return skip(name, "polling takes two CPUs");
    }
    if Host.real_time_throttle().is_none_or(|(runtime, period)| runtime >= period) {
        return skip(name, "this kernel does not throttle real-time threads");
    }
    let (timebase, stop) = (timebase(), Stop::new().expect("a stop"));
    let folder = tempfile::tempdir().expect("a folder");
    let mut poller = Poller::new(signal(&folder), &timebase, &stop).expect("two CPUs");
    if Host.set_policy(Policy::Fifo(10)).is_err() {
        return skip(name, "no permission for real-time priorities");
    }
    let refused = poller.wait();
    Host.set_policy(Policy::Other).expect("back again");
    assert!(refused.is_err_and(|error| error.to_string().contains("poll without a priority")));
}
