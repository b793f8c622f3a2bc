//! Pulses of a board, as an observer sees them.

use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_device::pulse::{CUT_LEAST, POLL_MOST, PulseError};
use hairspring_device::{
    AccessTimes, Device, DeviceError, Edge, Lines, Lockable, Protocol, Pulse, Scope, Traced, VirtualBoard,
};
use hairspring_machine::sim::{Disturbance, Script};
use hairspring_machine::{Cpu, CpuSet, Host, Machine, Nanos, Sim};
use hairspring_time::{LongDelay, Timebase};
use testing::skip;

use crate::{board, timebase};

#[test]
fn no_pulse_is_shorter_than_asked() {
    let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
    let mut board = board(folder.path(), Protocol::None, &timebase);
    board.init().expect("initialised");
    for width in [0, 1, 500, 5_000, 50_000, 400_000] {
        let pulse = Pulse { lines: Lines::one(3), width: Nanos::new(width) };
        for _ in 0..100 {
            let report = pulse.fire(&mut board, &timebase).expect("a pulse");
            assert!(report.at_least >= pulse.width && report.at_most >= report.at_least, "{report:?}");
            assert_eq!(board.outputs().0, Lines(0));
        }
    }
    // Two writes for each pulse, and one to be safe at the beginning.
    assert_eq!(board.outputs().1, 2 * 600 + 1);
}

/// A pulse of 10 ms was up for 14: its delay first measured how late the kernel wakes the thread, with the line up
/// already. In virtual time nothing else can lengthen a pulse.
#[test]
fn in_virtual_time_a_pulse_is_as_long_as_asked_whether_it_is_polled_or_slept_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let timebase = Timebase::calibrate_to(Sim::new(Script::default()), 0.1, Nanos::from_secs(1)).expect("a time base");
    let path = folder.path().join("board");
    let board = VirtualBoard::open(&path, AccessTimes::FESA, Lines(0), Protocol::None, &timebase);
    let mut board = board.expect("a board");
    board.init().expect("initialised");
    for width in [1, 199, 200, 201, 10_000, 1_000_000].map(Nanos::from_micros) {
        let pulse = Pulse { lines: Lines::one(1), width };
        let fired = pulse.fire(&mut board, &timebase).expect("a pulse");
        let period = width + Nanos::from_millis(1);
        let train = pulse.train(3, period, &mut board, &timebase, &AtomicBool::new(false)).expect("a train");
        assert_eq!((train.pulses.len(), train.left_out), (3, 0), "{width}");
        for report in train.pulses.iter().chain([&fired]) {
            assert!(report.at_least >= width && report.at_least < width + Nanos::from_micros(1), "{report:?}");
            // Two writes of 1.25 µs.
            assert!(report.at_most < width + Nanos::from_micros(5) && !report.is_disturbed(), "{report:?}");
        }
    }
}

/// A pulse whose thread was preempted within a write, or between one and the delay, was longer by that, and called
/// undisturbed.
#[test]
fn whenever_the_thread_is_preempted_no_pulse_is_short_and_a_long_one_says_so() {
    for width in [Nanos::from_micros(20), Nanos::from_millis(2)] {
        let begin = (0..4_000).step_by(100).map(Nanos::new);
        let end = (-3_000..5_000).step_by(100).map(|nanos| width + Nanos::new(nanos));
        for at in begin.chain(end) {
            let (folder, sim) = (tempfile::tempdir().expect("a folder"), Sim::new(Script::default()));
            let timebase = Timebase::calibrate_to(sim.clone(), 0.1, Nanos::from_secs(1)).expect("a time base");
            let path = folder.path().join("board");
            let board = VirtualBoard::open(&path, AccessTimes::FESA, Lines(0), Protocol::None, &timebase);
            let mut board = board.expect("a board");
            board.init().expect("initialised");
            let mut long = LongDelay::new(&timebase);
            sim.disturb(sim.true_time() + at, Disturbance::Preempt(Nanos::from_micros(200)));
            let pulse = Pulse { lines: Lines::one(1), width };
            let long = (width > POLL_MOST).then_some(&mut long);
            let report = pulse.fire_with(&mut board, &timebase, long).expect("a pulse");
            assert!(report.at_least >= width, "{at}: {report:?}");
            assert!(report.at_most <= width + Nanos::from_micros(6) || report.is_disturbed(), "{at}: {report:?}");
        }
    }
}

#[test]
fn a_train_keeps_to_its_times_and_leaves_out_what_has_passed() {
    let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
    let mut board = board(folder.path(), Protocol::None, &timebase);
    board.init().expect("initialised");
    let pulse = Pulse { lines: Lines::one(0), width: Nanos::from_micros(20) };
    let begun = timebase.now_ordered();
    let train =
        pulse.train(50, Nanos::from_millis(1), &mut board, &timebase, &AtomicBool::new(false)).expect("a train");
    let took = timebase.now_ordered().since(begun).expect("one epoch");
    assert_eq!(train.pulses.len() as u64 + train.left_out, 50);
    assert!(train.pulses.iter().all(|pulse| pulse.late >= Nanos::ZERO && pulse.late <= Nanos::from_millis(1)));
    // The last is due after 49 periods, and skipped pulses are due no earlier.
    assert!(took >= Nanos::from_millis(49), "{took}");
    let wrong = pulse
        .train(2, Nanos::from_micros(20), &mut board, &timebase, &AtomicBool::new(false))
        .expect_err("they would touch");
    assert!(wrong.to_string().contains("choose a longer one"), "{wrong}");
}

#[test]
fn a_train_that_is_stopped_says_so_and_leaves_the_line_down() {
    let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
    let mut board = board(folder.path(), Protocol::None, &timebase);
    board.init().expect("initialised");
    let stop = AtomicBool::new(false);
    let pulse = Pulse { lines: Lines::one(0), width: Nanos::from_micros(20) };
    let train = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(30));
            stop.store(true, Ordering::Release);
        });
        pulse.train(1_000_000, Nanos::from_secs(1), &mut board, &timebase, &stop).expect("a train")
    });
    assert_eq!((train.stopped, train.pulses.len(), board.outputs().0), (true, 1, Lines(0)));
}

/// A flag set while the line was up did not cut the pulse short, however wide: Ctrl-C had no effect for ten minutes.
#[test]
fn a_wide_pulse_is_cut_short_by_the_flag_and_told_apart() {
    let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
    let (mut driven, seen) =
        (board(folder.path(), Protocol::None, &timebase), board(folder.path(), Protocol::None, &timebase));
    driven.init().expect("initialised");
    let stop = AtomicBool::new(false);
    let pulse = Pulse { lines: Lines::one(0), width: Nanos::from_secs(3600) };
    let stopped_when_up = || {
        while seen.outputs().0 == Lines(0) {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Release);
    };
    let train = std::thread::scope(|scope| {
        scope.spawn(stopped_when_up);
        pulse.train(1, pulse.width + pulse.width, &mut driven, &timebase, &stop).expect("a train")
    });
    let cut = train.cut_short.expect("it was up");
    assert_eq!((train.stopped, train.pulses.len(), seen.outputs().0), (true, 0, Lines(0)));
    assert!(cut.at_most < cut.width && cut.at_least <= cut.at_most, "{cut:?}");
    // A single one, with a delay that a flag cancels.
    let mut long = LongDelay::new(&timebase).cancelled_by(&stop);
    let error = pulse.fire_with(&mut driven, &timebase, Some(&mut long)).expect_err("cut short");
    assert!(matches!(error, PulseError::CutShort(cut) if cut.at_most < cut.width), "{error}");
    assert_eq!(seen.outputs().0, Lines(0));
}

/// Lines of which one sets a flag when it goes up.
struct Stopping<'s> {
    stop: &'s AtomicBool,
    lines: Lines,
}

impl Device for Stopping<'_> {
    fn name(&self) -> String {
        "lines".to_owned()
    }

    fn init(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn write(&mut self, _: Lines, value: Lines) -> Result<(), DeviceError> {
        self.lines = value;
        self.stop.store(true, Ordering::Release);
        Ok(())
    }

    fn read(&mut self) -> Result<Lines, DeviceError> {
        Ok(self.lines)
    }

    fn output_lines(&self) -> Lines {
        Lines(u32::MAX)
    }

    fn safe_state(&self) -> Lines {
        Lines(0)
    }
}

#[test]
fn a_pulse_that_soon_ends_is_not_cut_short() {
    let sim = Sim::new(Script::default());
    let timebase = Timebase::calibrate(sim.clone()).expect("a time base");
    for (width, is_cut) in [(CUT_LEAST, false), (CUT_LEAST + Nanos::new(1), true)] {
        let pulse = Pulse { lines: Lines::one(0), width };
        let stop = AtomicBool::new(false);
        let mut device = Stopping { stop: &stop, lines: Lines(0) };
        let train = pulse.train(2, Nanos::from_secs(1), &mut device, &timebase, &stop).expect("a train");
        assert_eq!(
            (train.stopped, train.cut_short.is_some(), train.pulses.len()),
            (true, is_cut, usize::from(!is_cut))
        );
        assert_eq!(device.lines, Lines(0));
    }
}

#[test]
fn accesses_take_as_long_as_the_boards_do() {
    let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
    let path = folder.path().join("slow");
    let open = |times| VirtualBoard::open(&path, times, Lines(0b10), Protocol::Fifo, &timebase).expect("a board");
    let mut first = open(AccessTimes::FESA);
    // The second takes it as it is.
    let mut second = open(AccessTimes::ZERO);
    assert_eq!(
        (second.times(), second.lock().protocol(), second.safe_state()),
        (AccessTimes::FESA, Protocol::Fifo, Lines(0b10))
    );
    let error = second.read().expect_err("not initialised");
    assert!(error.to_string().contains("call init first"), "{error}");
    let span = |act: &mut dyn FnMut()| {
        let begun = timebase.stamp_ordered();
        act();
        timebase.nanos(timebase.stamp_ordered().since(begun))
    };
    assert!(span(&mut || first.init().expect("initialised")) >= Nanos::new(3750));
    assert!(span(&mut || second.write(Lines(1), Lines(1)).expect("written")) >= Nanos::new(1250));
    first.connect(Lines(77));
    assert!(span(&mut || assert_eq!(second.read(), Ok(Lines(77)))) >= Nanos::new(1250));
    assert_eq!(first.outputs().0, Lines(0b11));
    second.make_safe().expect("safe");
    assert_eq!(first.outputs().0, Lines(0b10));
}

#[test]
fn a_scope_sees_every_edge_or_counts_it() {
    const TEST: &str = "a_scope_sees_every_edge_or_counts_it";
    let cpus = Host.affinity().0;
    let [first, second, ..] = cpus[..] else { return skip(TEST, "a scope takes a CPU of its own") };
    let (folder, timebase) = (tempfile::tempdir().expect("a folder"), timebase());
    let pulse = Pulse { lines: Lines::one(5), width: Nanos::from_micros(20) };
    let mut board = board(folder.path(), Protocol::None, &timebase);
    board.init().expect("initialised");
    // If other tasks keep the observer's CPU busy it may see none at all; then repeat.
    for _ in 0..50 {
        let before = board.outputs().1;
        let seen = crate::board(folder.path(), Protocol::None, &timebase);
        let traced = watched(&seen, &mut board, &pulse, &timebase, [first, second]);
        let writes = u64::from(board.outputs().1 - before);
        assert_eq!(traced.edges.len() as u64 + traced.missed(), writes, "{traced:?}");
        let widths = traced.widths(5);
        assert!(widths.iter().all(|(_, at_most)| *at_most >= pulse.width), "{widths:?}");
        if !widths.is_empty() {
            return;
        }
    }
    panic!("no pulse was seen in 50 trains");
}

/// Result of a scope on the second CPU for 200 pulses made on the first.
fn watched(
    seen: &VirtualBoard<'_, Host>,
    board: &mut VirtualBoard<'_, Host>,
    pulse: &Pulse,
    timebase: &Timebase<Host>,
    cpus: [Cpu; 2],
) -> Traced {
    let (watching, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let before = Host.affinity();
    let traced = std::thread::scope(|scope| {
        let observer = scope.spawn(|| {
            let _ = Host.set_affinity(&CpuSet(vec![cpus[1]]));
            let scope = Scope { span: Nanos::from_secs(10), most_edges: 1000 };
            watching.store(true, Ordering::Release);
            scope.watch(seen, timebase, &stop)
        });
        let _ = Host.set_affinity(&CpuSet(vec![cpus[0]]));
        while !watching.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        pulse.train(200, Nanos::from_micros(200), board, timebase, &AtomicBool::new(false)).expect("a train");
        std::thread::sleep(std::time::Duration::from_millis(20));
        stop.store(true, Ordering::Release);
        observer.join().expect("no panic")
    });
    let _ = Host.set_affinity(&before);
    traced
}

#[test]
fn a_trace_is_written_as_a_value_change_dump() {
    let edge = |seen: i64, lines, missed| Edge {
        after: Nanos::new(seen - 5),
        seen: Nanos::new(seen),
        lines: Lines(lines),
        missed,
    };
    let traced = Traced {
        begin: Lines(0b100),
        edges: vec![edge(10, 0b101, 0), edge(40, 0b100, 0), edge(90, 0b101, 3), edge(95, 0b100, 0)],
        dropped: 0,
        span: Nanos::new(100),
        board_gone: false,
    };
    let expected = "$timescale 1 ns $end\n$scope module board $end\n$var wire 1 ! line0 $end\n$var event 1 ~ missed $end\n\
                    $upscope $end\n$enddefinitions $end\n#0\n0!\n#10\n1!\n#40\n0!\n#90\n1!\n1~\n#95\n0!\n#100\n";
    assert_eq!(traced.to_vcd(), expected);
    assert_eq!(traced.widths(0), [(Nanos::new(25), Nanos::new(35))], "the second began unseen");
    assert_eq!(traced.missed(), 3);
}
