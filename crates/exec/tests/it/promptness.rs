//! Whatever is due is served before a call, or the end of a task's run, returns to a less urgent task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hairspring_exec::{Backend, Config, Misfortune, RunLimit, Services, Stopped};
use hairspring_machine::Nanos;

use crate::backends::{Bench, LIMIT, micros};

/// What a spinning task saw: laps after which something was due before its call and had not been served when the call
/// returned, and laps in all.
#[derive(Clone, Default)]
struct Laps(Arc<(AtomicU64, AtomicU64)>);

impl Laps {
    fn count(&self, late: bool) {
        self.0.0.fetch_add(u64::from(late), Ordering::Relaxed);
        self.0.1.fetch_add(1, Ordering::Relaxed);
    }

    fn seen(&self) -> (u64, u64) {
        (self.0.0.load(Ordering::Relaxed), self.0.1.load(Ordering::Relaxed))
    }
}

/// Computes until the executive's clock shows this.
fn compute(ctx: &impl Services, span: Nanos) -> u64 {
    let end = ctx.now().after_nanos(span.count().cast_unsigned());
    loop {
        let now = ctx.now();
        if now >= end {
            return now.as_nanos();
        }
    }
}

/// The most urgent task delays, again and again, beside one that computes between calls. Its deadline lies in `due`; it is
/// served when the deadline has been taken away.
fn delays_beside(backend: Backend, config: &Config, delay: Nanos, stretch: Nanos) -> (u64, u64) {
    let mut bench = Bench::new(backend, config);
    let due = Arc::new(AtomicU64::new(u64::MAX));
    let laps = Laps::default();
    let deadline = Arc::clone(&due);
    bench.start("urgent", 5, move |ctx, _| {
        for _ in 0..20 {
            let until = ctx.now().after_nanos(delay.count().cast_unsigned());
            deadline.store(until.as_nanos(), Ordering::Relaxed);
            ctx.delay_until(until).expect("nobody kills it");
            deadline.store(u64::MAX, Ordering::Relaxed);
        }
        ctx.stop();
    });
    let seen = laps.clone();
    bench.start("spins", 30, move |ctx, _| {
        loop {
            let before = compute(ctx, stretch);
            let waited_for = due.load(Ordering::Relaxed);
            ctx.yield_now();
            seen.count(waited_for <= before && due.load(Ordering::Relaxed) == waited_for);
        }
    });
    let finish = bench.executive.run(LIMIT);
    assert_eq!(finish.stopped, Stopped::Asked);
    laps.seen()
}

#[test]
fn a_delay_is_over_at_the_first_call_after_its_end_whatever_runs_beside_it() {
    // Symptom: a delay of 5 ms of the most urgent task took 27 to 31 ms beside a task that computed 1 ms and yielded. Fibers
    // looked at the clock at each sixteenth call.
    let (late, laps) = delays_beside(Backend::fiber(), &Config::default(), micros(700), micros(150));
    assert!(laps > 20, "{laps}");
    assert_eq!(late, 0, "of {laps} calls returned before a delay that was over");
}

#[test]
fn the_end_of_a_run_serves_what_is_due() {
    // Symptom: a mail task whose body makes no calls emptied its mailbox blind: its delays, interrupts and the limit of the run
    // waited for 600 messages of 2 ms each, and the watchdog told of a runaway that was none.
    for traced in [false, true] {
        let config = Config { watchdog: Nanos::from_millis(100), trace: traced.then_some(4096), ..Config::default() };
        let mut bench = Bench::new(Backend::fiber(), &config);
        let due = Arc::new(AtomicU64::new(u64::MAX));
        let laps = Laps::default();
        let (deadline, seen) = (Arc::clone(&due), laps.clone());
        let mailbox = bench.mail_task::<u64>("drains", 20, [600, 0, 0, 0], move |_, _, _, _| {
            // Not late if the deadline was still to come when the run before ended: looked at here, where no call is made.
            let begun = std::time::Instant::now();
            let waited_for = deadline.load(Ordering::Relaxed);
            seen.count(waited_for < hairspring_machine_now() - 200_000 - 2_000_000);
            while begun.elapsed() < std::time::Duration::from_millis(2) {}
        });
        let deadline = Arc::clone(&due);
        bench.start("urgent", 5, move |ctx, _| {
            for _ in 0..600 {
                ctx.send(mailbox, crate::backends::urgency(0), 0).expect("there is room");
            }
            loop {
                let until = ctx.now().after_nanos(3_000_000);
                deadline.store(until.as_nanos(), Ordering::Relaxed);
                ctx.delay_until(until).expect("nobody kills it");
            }
        });
        let finish = bench.executive.run(RunLimit::For(Nanos::from_millis(400)));
        let (late, laps) = laps.seen();
        assert_eq!(finish.stopped, Stopped::TimeUp);
        assert!(laps < 600, "the limit of the run was not looked at between {laps} messages");
        assert_eq!(late, 0, "of {laps} messages");
        assert!(!finish.mishaps.iter().any(|it| matches!(it.what, Misfortune::RanAway(_))), "{:?}", finish.mishaps);
    }
}

fn hairspring_machine_now() -> u64 {
    use hairspring_machine::{Clock, Host, Machine};
    Host.read(Clock::Monotonic).count().cast_unsigned()
}
