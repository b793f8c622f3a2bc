//! Sources and units follow their time base when it is refined. In virtual time, because only there a suspend can be
//! produced.

use hairspring_machine::sim::{Disturbance, Script};
use hairspring_machine::{Instant, Machine, Nanos, Sim};
use hairspring_station::source::{Counter, Datagrams, Each, PreciseTimer, Readable, Timer};
use hairspring_station::{Activation, Event, EventSource, Poller, SchedulingUnit, Signal, Sleeper, Stop};
use hairspring_time::Timebase;

const PERIOD: Nanos = Nanos::from_millis(1);

/// A time base, and its successor after a suspend.
fn suspended() -> (Timebase<Sim>, Timebase<Sim>) {
    let sim = Sim::new(Script::default());
    let timebase = Timebase::calibrate(sim.clone()).expect("a time base");
    sim.disturb(sim.true_time() + PERIOD, Disturbance::Suspend(Nanos::from_secs(5)));
    sim.sleep_until(sim.monotonic() + PERIOD * 2);
    let successor = timebase.refine().timebase;
    assert_ne!(successor.epoch(), timebase.epoch());
    (timebase, successor)
}

#[track_caller]
fn check(source: &mut dyn EventSource<Sim>, successor: &Timebase<Sim>, fire: impl Fn()) -> Event {
    source.adopt(successor.clone());
    fire();
    let event = source.wait().expect("it works").expect("an event");
    assert_eq!((event.at.epoch(), event.wake.epoch()), (successor.epoch(), successor.epoch()), "{}", source.name());
    event
}

#[test]
fn every_source_stamps_by_the_successor_that_it_adopted() {
    let ((timebase, successor), stop) = (suspended(), Stop::new().expect("a stop"));
    let (mut counter, writer) = Counter::new(&timebase, &stop).expect("an eventfd");
    check(&mut counter, &successor, || writer.fire().expect("fired"));
    let (reader, pipe) = rustix::pipe::pipe().expect("a pipe");
    let mut readable = Readable::new(reader, "pipe", Each::Read, &timebase, &stop);
    check(&mut readable, &successor, || assert_eq!(rustix::io::write(&pipe, b"x"), Ok(1)));
    let mut datagrams =
        Datagrams::listen("127.0.0.1:0".parse().expect("an address"), &timebase, &stop).expect("a port");
    let (to, socket) = (datagrams.address(), std::net::UdpSocket::bind("127.0.0.1:0").expect("a port"));
    check(&mut datagrams, &successor, || assert!(socket.send_to(b"7", to).is_ok()));
    let folder = tempfile::tempdir().expect("a folder");
    let signal = || Signal::open(&folder.path().join("signal")).expect("a signal");
    let fire = || assert!(signal().fire(None, &successor).is_ok());
    check(&mut Sleeper::new(signal(), &timebase, &stop), &successor, fire);
    check(&mut Poller::new(signal(), &timebase, &stop).expect("two CPUs"), &successor, fire);
}

/// A timer that kept its beginning in the old epoch would wait for an instant that the successor refuses.
#[test]
fn timers_go_on_in_a_new_epoch_a_period_after_they_adopt_it() {
    let ((timebase, successor), stop) = (suspended(), Stop::new().expect("a stop"));
    let mut timer = Timer::new(PERIOD, &timebase, &stop).expect("a timer");
    let mut precise = PreciseTimer::new(PERIOD, &timebase, &stop).expect("a timer");
    for source in [&mut timer as &mut dyn EventSource<Sim>, &mut precise] {
        let before = source.wait().expect("it works").expect("an event");
        let adopted = successor.now();
        let event = check(source, &successor, || {});
        let after = event.at.since(adopted).expect("one epoch");
        assert!(after >= PERIOD && after < PERIOD * 2, "{after}");
        assert_eq!((event.sequence, event.missed), (before.sequence + 1, 0));
    }
}

#[test]
fn timers_keep_their_multiples_when_the_epoch_stays() {
    let sim = Sim::new(Script::default());
    let timebase = Timebase::calibrate(sim.clone()).expect("a time base");
    let stop = Stop::new().expect("a stop");
    let mut precise = PreciseTimer::new(PERIOD, &timebase, &stop).expect("a timer");
    let before = precise.wait().expect("it works").expect("an event");
    sim.sleep_until(sim.monotonic() + PERIOD * 10);
    precise.adopt(timebase.refine().timebase);
    let event = precise.wait().expect("it works").expect("an event");
    let periods = (event.sequence - before.sequence).cast_signed();
    assert_eq!(event.at.since(before.at), Ok(PERIOD * periods));
}

#[test]
fn a_unit_hands_the_successor_to_its_source_and_stamps_by_it() {
    let ((timebase, successor), stop) = (suspended(), Stop::new().expect("a stop"));
    let timer = PreciseTimer::new(PERIOD, &timebase, &stop).expect("a timer");
    let action = |_: &mut Activation<'_, '_, Sim>| Ok(());
    let (mut unit, mut log) = SchedulingUnit::new(Box::new(timer), Box::new(action), None, &timebase, 8);
    assert_eq!(unit.step(), Ok(true));
    unit.adopt(successor.clone());
    assert_eq!(unit.step(), Ok(true));
    let epochs: Vec<_> =
        log.by_ref().map(|one| [one.event, one.wake, one.start, one.end].map(Instant::epoch)).collect();
    assert_eq!(epochs, [[timebase.epoch(); 4], [successor.epoch(); 4]]);
}
