//! Exposures in virtual time, with scripted disturbances and devices that fail, and on this machine with an instrument.

use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_device::exposure::{ExposureEnd, ExposureError};
use hairspring_device::instrument::Instrument;
use hairspring_device::instrument::simulator::{Manner, Simulator};
use hairspring_device::{Device, DeviceError, Exposure, ExposureReport, Lines, Protocol, Pulse};
use hairspring_machine::sim::{Disturbance, Script};
use hairspring_machine::{Cpu, Nanos, Sim};
use hairspring_time::{GAP_LEAST, LongDelay, Timebase};

use crate::instrument::{PATIENT, at_a_socket};
use crate::{board, timebase};

/// The shutter's line in these tests, and another that must not change.
const SHUTTER: Lines = Lines(0b100);
const OTHER: Lines = Lines(0b1000);

/// A shutter in virtual time, which records its true movements and can fail.
struct Shutter {
    sim: Sim,
    outputs: Lines,
    safe: Lines,
    /// True time of each write, and the lines after it.
    writes: Vec<(Nanos, Lines)>,
    /// The numbers of the writes that fail.
    failing: std::ops::Range<usize>,
}

impl Shutter {
    fn new(sim: &Sim) -> Self {
        Self { sim: sim.clone(), outputs: OTHER, safe: Lines(0), writes: Vec::new(), failing: 0..0 }
    }

    fn is_open(&self) -> bool {
        (self.outputs.0 ^ self.safe.0) & SHUTTER.0 != 0
    }

    /// True time for which it was open.
    fn was_open(&self) -> Nanos {
        let moved: Vec<Nanos> = self.writes.iter().map(|(at, _)| *at).collect();
        *moved.last().expect("closed") - moved[0]
    }
}

impl Device for Shutter {
    fn name(&self) -> String {
        "shutter".to_owned()
    }

    fn init(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn output_lines(&self) -> Lines {
        Lines(SHUTTER.0 | OTHER.0)
    }

    fn write(&mut self, mask: Lines, value: Lines) -> Result<(), DeviceError> {
        let number = self.writes.len();
        if !self.failing.contains(&number) {
            self.outputs = Lines(self.outputs.0 & !mask.0 | value.0 & mask.0);
        }
        self.writes.push((self.sim.true_time(), self.outputs));
        self.sim.work(Nanos::new(1250));
        if self.failing.contains(&number) {
            let remedy = "plug it in";
            return Err(DeviceError { attempted: format!("write {number}"), said: "unplugged".to_owned(), remedy });
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Lines, DeviceError> {
        Ok(self.outputs)
    }

    fn safe_state(&self) -> Lines {
        self.safe
    }
}

/// Checks properties of every exposure that was not stopped.
#[track_caller]
fn check<R: std::fmt::Debug>(report: &ExposureReport<R>) {
    assert!(report.at_least() >= report.asked, "{report:?}");
    assert!(report.at_most() >= report.at_least(), "{report:?}");
    let parts = report.parts;
    let sum = parts.open_write + parts.first_half + parts.reading + parts.rest + parts.close_write;
    assert_eq!(sum, report.at_most(), "{report:?}");
    assert_eq!(report.measured_exp_time, sum - parts.open_write - parts.close_write, "{report:?}");
    let all = [parts.open_write, parts.first_half, parts.reading, parts.rest, parts.close_write];
    assert!(all.iter().all(|part| *part >= Nanos::ZERO), "{report:?}");
    let too_long = matches!(report.end, ExposureEnd::ReadingTooLong(by) if by > Nanos::ZERO);
    assert!(too_long || report.end == ExposureEnd::OnTime, "{report:?}");
}

/// An exposure in virtual time; the reading takes `reading`, and `disturb` gets the time at which the exposure will
/// have begun.
fn exposed(time: Nanos, reading: Nanos, disturb: impl FnOnce(&Sim, Nanos)) -> (ExposureReport<&'static str>, Shutter) {
    exposed_with(time, reading, |sim, began, _| disturb(sim, began))
}

/// The same; `script` may change the shutter, too.
fn exposed_with(
    time: Nanos,
    reading: Nanos,
    script: impl FnOnce(&Sim, Nanos, &mut Shutter),
) -> (ExposureReport<&'static str>, Shutter) {
    let sim = Sim::new(Script::default());
    let timebase = Timebase::calibrate_to(sim.clone(), 0.1, Nanos::from_secs(1)).expect("a time base");
    let mut delay = LongDelay::new(&timebase);
    let mut shutter = Shutter::new(&sim);
    script(&sim, sim.true_time(), &mut shutter);
    let exposure = Exposure { lines: SHUTTER, time };
    let made = exposure.make(&mut shutter, &timebase, &mut delay, |left| {
        assert!(left <= time, "{left} of {time}");
        sim.work(reading);
        Ok("42 mW")
    });
    (made.expect("an exposure"), shutter)
}

#[test]
fn the_closing_write_of_a_long_exposure_is_rehearsed_and_moves_nothing() {
    for failing in [0..0, 1..2] {
        let time = Nanos::from_secs(10);
        let (report, shutter) = exposed_with(time, Nanos::from_millis(1), |_, _, shutter| shutter.failing = failing);
        check(&report);
        assert_eq!(shutter.writes.iter().map(|(_, lines)| lines.0).collect::<Vec<_>>(), [0b1100, 0b1100, 0b1000]);
        assert!(shutter.writes[1].0 - shutter.writes[0].0 < time, "{report:?}");
        assert!(shutter.was_open() >= time && shutter.was_open() < report.at_most(), "{report:?}");
        assert!(!report.is_disturbed(), "{report:?}");
    }
}

#[test]
fn an_undisturbed_exposure_is_exact_at_any_length() {
    for (time, reading) in [(1, 0), (3, 1), (100, 30), (5_000, 1_000), (1_000_000, 300_000), (10_000_000, 4_900_000)] {
        let (time, reading) = (Nanos::from_micros(time), Nanos::from_micros(reading));
        let (report, shutter) = exposed(time, reading, |_, _| ());
        check(&report);
        assert_eq!(
            (report.end, report.name(), &report.reading),
            (ExposureEnd::OnTime, "clean", &Some(Ok("42 mW"))),
            "{time}"
        );
        assert!(report.late() <= Nanos::from_micros(1), "{time}: {} late", report.late());
        assert!(report.parts.reading >= reading && report.parts.first_half >= Nanos::new(time.count() / 2));
        // The true time, which no program can see, lies between the bounds; allow 0.1 ppm for the error of the scale.
        let (truth, wrong) = (shutter.was_open(), Nanos::new(time.count() / 10_000_000 + 1));
        assert!((report.at_least() - wrong..=report.at_most() + wrong).contains(&truth), "{truth}: {report:?}");
        assert_eq!(shutter.writes.iter().map(|(_, lines)| lines.0).collect::<Vec<_>>(), [0b1100, 0b1000]);
    }
}

#[test]
fn what_disturbs_the_end_is_told_and_what_disturbs_the_rest_does_not_matter() {
    let (time, pause) = (Nanos::from_millis(20), Nanos::from_millis(3));
    let near_end = time - Nanos::from_micros(3);
    for (at, disturbance, name) in [
        (near_end, Disturbance::Preempt(pause), "preempted"),
        (near_end, Disturbance::Interrupt(pause), "interrupted"),
        (near_end, Disturbance::Preempt(Nanos::from_micros(50)), "preempted"),
        (Nanos::from_millis(11), Disturbance::LateWake(Nanos::from_millis(15)), "overslept"),
        (Nanos::from_millis(4), Disturbance::LateWake(pause), "clean"),
        (Nanos::from_micros(10_100), Disturbance::Preempt(pause), "clean"),
        (Nanos::from_millis(15), Disturbance::Migrate(Cpu(1)), "clean"),
    ] {
        let (report, _) = exposed(time, Nanos::from_millis(1), |sim, start| sim.disturb(start + at, disturbance));
        check(&report);
        assert_eq!(report.name(), name, "{disturbance:?} at {at}: {report:?}");
        assert_eq!(report.is_disturbed(), name != "clean", "{report:?}");
        assert_eq!(report.late() > Nanos::from_micros(10), report.is_disturbed(), "{report:?}");
    }
}

#[test]
fn whenever_the_thread_is_preempted_no_exposure_is_short_and_a_long_one_says_why() {
    // In steps that hit every part of both ends: the opening write, and from the last sleep to after the closing write.
    // The finest step is shorter than a reading of the counter. The time counts from the end of the opening write of
    // 1.25 µs.
    let time = Nanos::from_millis(2);
    let end = |nanos| time + Nanos::new(nanos);
    let coarse = (-10_000..1_000).step_by(100).chain((2_000..5_000).step_by(50));
    let fine = (1_000..2_000).step_by(5);
    for at in (0..3_000).step_by(50).map(Nanos::new).chain(coarse.chain(fine).map(end)) {
        let preempt = Disturbance::Preempt(Nanos::from_micros(200));
        let (report, shutter) = exposed(time, Nanos::from_micros(100), |sim, start| sim.disturb(start + at, preempt));
        check(&report);
        assert!(report.late() <= GAP_LEAST + GAP_LEAST || report.is_disturbed(), "{at}: {report:?}");
        // Two writes of 1.25 µs. The same for the truth: within a write the moment of the shutter's movement is
        // unknown.
        let most = time + Nanos::from_micros(5);
        assert!(report.at_most() <= most && shutter.was_open() <= most || report.is_disturbed(), "{at}: {report:?}");
        assert_eq!(report.is_disturbed(), report.name() != "clean", "{report:?}");
    }
}

#[test]
fn a_reading_that_takes_too_long_closes_the_shutter_at_once_and_is_told() {
    let (time, over) = (Nanos::from_millis(10), Nanos::from_millis(7));
    let (report, shutter) = exposed(time, Nanos::from_millis(5) + over, |_, _| ());
    check(&report);
    let ExposureEnd::ReadingTooLong(by) = report.end else { panic!("{report:?}") };
    assert!(by >= over && report.late() >= by && report.parts.rest < GAP_LEAST, "{report:?}");
    assert_eq!((report.name(), report.delay, shutter.is_open()), ("reading_too_long", None, false));
}

/// An exposure of 1 s with this shutter and this reading.
fn tried(
    shutter: &mut Shutter,
    stop: Option<&AtomicBool>,
    reading: impl FnOnce(Nanos) -> Result<u8, DeviceError>,
) -> Result<ExposureReport<u8>, ExposureError> {
    let timebase = Timebase::calibrate(shutter.sim.clone()).expect("a time base");
    let mut delay = LongDelay::new(&timebase);
    if let Some(stop) = stop {
        delay = delay.cancelled_by(stop);
    }
    Exposure { lines: SHUTTER, time: Nanos::from_millis(900) }.make(shutter, &timebase, &mut delay, reading)
}

#[test]
fn an_instrument_that_fails_changes_nothing_about_the_exposure() {
    let mut shutter = Shutter::new(&Sim::new(Script::default()));
    let broken = DeviceError { attempted: "read".to_owned(), said: "smoke".to_owned(), remedy: "open a window" };
    let report = tried(&mut shutter, None, |_| Err(broken.clone())).expect("an exposure");
    check(&report);
    assert_eq!((report.end, report.name(), report.reading), (ExposureEnd::OnTime, "clean", Some(Err(broken))));
}

#[test]
fn a_device_that_fails_is_told_to_go_to_its_safe_state() {
    // If the opening write fails, it is undone at once. If the closing write fails, it is repeated, then all lines are
    // set to the safe state.
    for (failing, error, writes) in
        [(0..1, "write 0", 2), (1..2, "write 1", 3), (1..3, "write 1", 4), (0..2, "write 0", 3)]
    {
        let mut shutter = Shutter::new(&Sim::new(Script::default()));
        shutter.failing = failing.clone();
        let refused = tried(&mut shutter, None, |_| Ok(1)).expect_err("the device fails");
        assert!(refused.to_string().contains(&format!("{error}: unplugged; plug it in")), "{refused}");
        assert_eq!((shutter.writes.len(), shutter.is_open()), (writes, false), "{failing:?}");
        let is_safe = shutter.outputs == shutter.safe;
        assert_eq!(is_safe, failing.len() > 1, "{failing:?}");
    }
}

#[test]
fn a_panic_in_the_reading_leaves_the_shutter_closed() {
    let mut shutter = Shutter::new(&Sim::new(Script::default()));
    let reading = std::panic::AssertUnwindSafe(&mut shutter);
    let panicked = std::panic::catch_unwind(move || {
        let reading = reading;
        tried(reading.0, None, |_| panic!("the reading's own"))
    });
    assert!(panicked.is_err() && !shutter.is_open());
    assert_eq!(shutter.writes.iter().map(|(_, lines)| lines.0).collect::<Vec<_>>(), [0b1100, 0b1000]);
}

#[test]
fn an_exposure_that_is_stopped_says_so_and_leaves_the_shutter_closed() {
    let stop = AtomicBool::new(false);
    let mut shutter = Shutter::new(&Sim::new(Script::default()));
    let report = tried(&mut shutter, Some(&stop), |_| {
        stop.store(true, Ordering::Relaxed);
        Ok(7)
    });
    let report = report.expect("an end");
    assert_eq!((report.end, report.name(), &report.reading), (ExposureEnd::Stopped, "stopped", &Some(Ok(7))));
    assert!(report.at_least() < report.asked && report.late().is_negative() && !shutter.is_open(), "{report:?}");
    // The flag is still set: it stops the first half as well.
    let report = tried(&mut shutter, Some(&stop), |_| panic!("not reached")).expect("an end");
    assert_eq!((report.end, report.reading, shutter.is_open()), (ExposureEnd::Stopped, None, false));
}

#[test]
fn closed_is_the_safe_state_whichever_level_that_is() {
    let mut shutter = Shutter { safe: SHUTTER, outputs: SHUTTER, ..Shutter::new(&Sim::new(Script::default())) };
    check(&tried(&mut shutter, None, |_| Ok(0)).expect("an exposure"));
    assert_eq!(shutter.writes.iter().map(|(_, lines)| lines.0).collect::<Vec<_>>(), [0, SHUTTER.0]);
}

#[test]
fn what_is_no_exposure_is_refused_and_moves_nothing() {
    let sim = Sim::new(Script::default());
    let timebase = Timebase::calibrate(sim.clone()).expect("a time base");
    let (mut delay, mut shutter) = (LongDelay::new(&timebase), Shutter::new(&sim));
    for (lines, time, hint) in
        [(SHUTTER, 0, "write a time like 10s"), (SHUTTER, -1, "cannot last"), (Lines(0), 9, "name one")]
    {
        let exposure = Exposure { lines, time: Nanos::new(time) };
        let refused = exposure.make(&mut shutter, &timebase, &mut delay, |_| Ok(0)).expect_err("refused");
        assert!(refused.to_string().contains(hint), "{refused}");
    }
    let exposure = Exposure { lines: Lines(SHUTTER.0 | 1 << 4), time: Nanos::new(9) };
    let refused = exposure.make(&mut shutter, &timebase, &mut delay, |_| Ok(0)).expect_err("no such line");
    assert!(refused.to_string().contains("line 4 of shutter: its outputs are lines 2 to 3"), "{refused}");
    let pulse = Pulse { lines: Lines(1), width: Nanos::new(9) };
    let refused = pulse.fire(&mut shutter, &timebase).expect_err("no such line").to_string();
    assert!(refused.contains("write to line 0"), "{refused}");
    let stop = AtomicBool::new(false);
    let refused = pulse.train(1, Nanos::from_secs(1), &mut shutter, &timebase, &stop).expect_err("no such line");
    assert!(refused.to_string().contains("write to line 0"), "{refused}");
    let absurd = Exposure { lines: SHUTTER, time: Nanos::MAX };
    let refused = absurd.make(&mut shutter, &timebase, &mut delay, |_| Ok(0)).expect_err("300 years");
    assert!(matches!(refused, ExposureError::Delay(_)) && shutter.writes.is_empty(), "{refused}");
}

#[test]
fn on_this_machine_no_exposure_is_short_whatever_the_instrument_does() {
    let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
    let mut board = board(folder.path(), Protocol::None, &timebase);
    board.init().expect("initialised");
    let address = at_a_socket(Simulator::default());
    let mut instrument = Instrument::open(&address, PATIENT, &timebase).expect("it opens");
    let mut delay = LongDelay::new(&timebase);
    let exposure = Exposure { lines: SHUTTER, time: Nanos::from_millis(60) };
    for manner in [Manner::Plain, Manner::Silent, Manner::Garbage, Manner::Hangup, Manner::Plain] {
        instrument.tell(&format!("SIM:NEXT {manner:?}"), PATIENT).expect("told");
        let report = exposure.make(&mut board, &timebase, &mut delay, |left| {
            instrument.query("MEAS:VOLT?", left - Nanos::from_millis(5))
        });
        let report = report.expect("an exposure");
        check(&report);
        let answer = report.reading.clone().expect("it was asked");
        // If other tasks keep this machine busy, even the plain answer can be late; but the manner alone cannot answer.
        assert!(manner == Manner::Plain || answer.is_err(), "{manner:?}: {answer:?}");
        let took = answer.map_or(Nanos::ZERO, |answer| answer.took);
        assert!(report.parts.reading >= took, "{report:?}");
        assert_eq!(board.outputs().0, Lines(0));
    }
    assert_eq!(board.outputs().1, 1 + 2 * 5);
}
