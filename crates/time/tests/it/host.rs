//! Promises of the time base on this machine, tried very often. No figure here depends on how fast the machine is.

use hairspring_machine::CpuSet;
use hairspring_time::{Host, LongDelay, Machine, Nanos, Timebase};
use testing::skip;

use super::{micros, millis};

fn calibrated() -> Timebase {
    Timebase::calibrate(Host).expect("this machine has a counter or a clock")
}

/// Checks often that our time lies between two readings of the kernel's clock, give or take the stated bound.
#[track_caller]
fn check_sandwich(timebase: &Timebase, times: u32) {
    for _ in 0..times {
        let before = Host.monotonic();
        let now = timebase.now_ordered();
        let after = Host.monotonic();
        let bound = timebase.offset_bound(now);
        assert!(before - bound <= now && now <= after + bound, "{now} not in {before}..={after}, bound {bound}");
    }
}

#[test]
fn our_time_lies_between_two_readings_of_the_kernels_clock() {
    let mut timebase = calibrated();
    check_sandwich(&timebase, 20_000);
    for _ in 0..10 {
        Host.sleep_until(Host.monotonic() + millis(20));
        check_sandwich(&timebase, 5_000);
        timebase = timebase.refine().timebase;
        check_sandwich(&timebase, 5_000);
    }
}

#[test]
fn the_bound_shrinks_as_the_time_base_ages() {
    let timebase = calibrated();
    Host.sleep_until(Host.monotonic() + millis(100));
    let refined = timebase.refine().timebase;
    let (young, old) = (timebase.calibration(), refined.calibration());
    assert!(old.baseline > young.baseline);
    // A twenty-fifth by the baseline; a disturbed bracket may be ten times wider than the first one was.
    assert!(old.bound_ppm < young.bound_ppm || young.bound_ppm == 0.0, "{young:?} {old:?}");
    let apart = (young.rate_hz / old.rate_hz - 1.0).abs() * 1e6;
    assert!(apart <= young.bound_ppm + old.bound_ppm, "two calibrations contradict each other: {young:?} {old:?}");
}

#[test]
fn now_never_goes_back_across_moves_between_cpus_and_refinements() {
    // On a thread of its own, because it moves from CPU to CPU.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let cpus = Host.affinity().0;
            if cpus.len() < 2 {
                skip("host::now_never_goes_back_across_moves_between_cpus_and_refinements", "there is one CPU only");
            }
            let mut timebase = calibrated();
            let mut last = timebase.now_ordered();
            for round in 0..2_000 {
                Host.set_affinity(&CpuSet(vec![cpus[round % cpus.len()]])).expect("our own CPU");
                for _ in 0..100 {
                    let now = timebase.now_ordered();
                    assert!(now.since(last).expect("one epoch") >= Nanos::ZERO, "went back in round {round}");
                    last = now;
                }
                if round % 200 == 199 {
                    timebase = timebase.refine().timebase;
                }
            }
        });
    });
}

/// Delays of 0–5 µs on one CPU, each checked by stamps and by the kernel's clock around it. Returns how many.
fn delays_on(cpu: hairspring_time::Cpu, timebase: &Timebase, span: Nanos) -> u64 {
    Host.set_affinity(&CpuSet(vec![cpu])).expect("our own CPU");
    let until = Host.monotonic() + span;
    let mut count = 0_u64;
    // Every request once at the least, however slow it goes.
    while Host.monotonic() < until || count < 5_000 {
        for request in (count.cast_signed() % 7..5_000).step_by(7).map(Nanos::new) {
            let kernel_before = Host.monotonic();
            let before = timebase.stamp_ordered();
            let report = timebase.delay(request).expect("short");
            let after = timebase.stamp_ordered();
            let kernel = Host.monotonic() - kernel_before;
            let stamped = timebase.nanos(after.since(before));
            assert!(stamped >= request && kernel >= request, "{request}: {stamped} stamped, {kernel} by the kernel");
            assert!(report.late >= Nanos::ZERO && report.actual <= stamped, "{report:?}");
            count += 1;
        }
    }
    count
}

/// Some hundred thousand delays per CPU and 3 s where no other program wants it; the proof `never-early` makes ten
/// million.
#[test]
fn no_delay_of_up_to_five_microseconds_is_early_on_any_cpu_of_this_machine() {
    let timebase = calibrated();
    Host.sleep_until(Host.monotonic() + millis(100));
    let timebase = timebase.refine().timebase;
    let cpus = Host.affinity().0;
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let timebase = &timebase;
        let run = |cpu| scope.spawn(move || delays_on(cpu, timebase, Nanos::from_secs(3)));
        let threads: Vec<_> = cpus.iter().take(2).map(|cpu| run(*cpu)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no delay was early")).collect()
    });
    // Every request once, whatever else runs here: 7 rounds of 715 requests.
    assert!(counts.iter().all(|count| *count >= 5_000), "hardly anything was tried: {counts:?}");
}

#[test]
fn delay_until_and_long_delays_are_never_early_on_this_machine() {
    let timebase = calibrated();
    let mut long = LongDelay::new(&timebase);
    for request in (0..60).map(|n| micros(n * n)) {
        let before = Host.monotonic();
        let report = long.delay(request).expect("in bounds");
        assert!(Host.monotonic() - before >= request && report.late >= Nanos::ZERO, "{report:?}");
        for polled in [true, false] {
            let deadline = timebase.now() + request;
            let report = if polled { timebase.delay_until(deadline) } else { long.delay_until(deadline) };
            let report = report.expect("this epoch");
            assert!(timebase.now_ordered().since(deadline).expect("one epoch") >= Nanos::ZERO, "{report:?}");
            assert!(report.late >= Nanos::ZERO, "{report:?}");
        }
    }
}

#[test]
fn a_spent_budget_is_slept_out_on_this_machine() {
    let timebase = calibrated();
    for request in [micros(60), millis(1), millis(20)] {
        let before = Host.monotonic();
        let report = timebase.delay_polling(request, micros(5)).expect("in bounds");
        assert!(Host.monotonic() - before >= request && report.late >= Nanos::ZERO, "{report:?}");
        // A preemption can take the whole request; else the budget ends the poll.
        assert!(report.verdict.budget_spent || report.verdict.lost() > Nanos::ZERO, "{report:?}");
    }
}
