//! Due work is served before a call, or the end of a task's run, returns to a less urgent task: on both back-ends of
//! this crate's own switching, with any kind of counter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hairspring_exec::{
    Backend, Create, ExecConfig, Finish, InterruptSource, Misfortune, RunLimit, Services, StopReason,
};
use hairspring_machine::sim::{Disturbance, Script};
use hairspring_machine::{Clock, Host, Machine, Nanos, Sim};
use proptest::prelude::*;

use crate::backends::{Bench, LIMIT, micros, urgency};

/// A machine as a task sees it that makes no calls of the executive.
trait Beside: Clone + Send + 'static {
    fn backend(&self) -> Backend;
    fn now_ns(&self) -> u64;
    fn compute(&self, span: Nanos);
}

impl Beside for Host {
    fn backend(&self) -> Backend {
        Backend::fiber()
    }
    fn now_ns(&self) -> u64 {
        self.read(Clock::Monotonic).count().cast_unsigned()
    }
    fn compute(&self, span: Nanos) {
        let end = self.read(Clock::Monotonic) + span;
        while self.read(Clock::Monotonic) < end {}
    }
}

impl Beside for Sim {
    fn backend(&self) -> Backend {
        Backend::Sim(self.clone())
    }
    fn now_ns(&self) -> u64 {
        self.read(Clock::Monotonic).count().cast_unsigned()
    }
    fn compute(&self, span: Nanos) {
        self.work(span);
    }
}

/// A number that tasks share with the test.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU64>);

impl Count {
    fn add(&self, more: u64) -> u64 {
        self.0.fetch_add(more, Ordering::Relaxed) + more
    }
    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// No deadline.
const NONE: u64 = u64::MAX;

/// The most urgent task delays again and again beside one that computes between calls. Returns the longest lateness in
/// nanoseconds of a delay at the return of the first call that found it over, and the number of laps.
fn delays_beside<B: Beside>(machine: &B, delay: Nanos, stretch: Nanos) -> (u64, u64) {
    let mut bench = Bench::new(machine.backend(), &ExecConfig::default());
    let (due, most_late, laps) = (Count::default(), Count::default(), Count::default());
    let deadline = due.clone();
    bench.start("urgent", 5, move |ctx, _| {
        for _ in 0..20 {
            let until = ctx.now() + delay;
            deadline.set(until.as_monotonic().count().cast_unsigned());
            ctx.delay_until(until).expect("nobody kills it");
            deadline.set(NONE);
        }
        ctx.stop();
    });
    let (late, count, machine) = (most_late.clone(), laps.clone(), machine.clone());
    bench.start("computes", 30, move |ctx, _| {
        loop {
            machine.compute(stretch);
            let (before, waited_for) = (machine.now_ns(), due.get());
            ctx.yield_now();
            if waited_for <= before && due.get() == waited_for {
                late.set(late.get().max(before - waited_for + 1));
            }
            count.add(1);
        }
    });
    let finish = bench.executive.run(LIMIT);
    assert_eq!(finish.stopped, StopReason::Asked);
    (most_late.get(), laps.get())
}

#[test]
fn a_delay_is_over_at_the_first_call_after_its_end_whatever_runs_beside_it() {
    // Symptom: a delay of 5 ms of the most urgent task took 27 to 31 ms beside a task that computed 1 ms and yielded.
    // Fibers looked at the clock at each sixteenth call. The second is watched by the alarm for most of its time.
    for (delay, stretch) in [(micros(700), micros(150)), (micros(8_000), micros(20))] {
        let (late_ns, laps) = delays_beside(&Host, delay, stretch);
        assert_eq!(
            late_ns, 0,
            "the longest time for which a call had returned before a delay that was over, of {laps}"
        );
        assert!(laps >= 20, "{laps}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::backends::proof(64, 20_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_delay_is_over_at_the_first_call_after_its_end_whatever_the_counter_is_like(
        delay_ns in 1_000..5_000_000_i64,
        stretch_ns in 100..3_000_000_i64,
        rate_hz in prop_oneof![1_000_000..50_000_000_u64, 50_000_000..5_000_000_000_u64],
        step_ns in 0..100_u64,
        drift_ppb in -100_000_000..100_000_000_i64,
        other_drift_ppb in -100_000_000..100_000_000_i64,
        changes_at_us in 0..20_000_i64,
        counter_trusted in any::<bool>(),
    ) {
        // The executive looks at the clock only when the counter demands it. How often that is depends on all of these.
        let script = Script {
            rate_hz,
            counter_step: (rate_hz / 1_000 * step_ns / 1_000_000).max(1),
            kernel_drift_ppb: drift_ppb,
            counter_trusted,
            ..Script::default()
        };
        let script = script.with(micros(changes_at_us), Disturbance::Drift(other_drift_ppb));
        let (late_ns, laps) = delays_beside(&Sim::new(script), Nanos::new(delay_ns), Nanos::new(stretch_ns));
        prop_assert_eq!(late_ns, 0, "the longest time for which a call had returned before a delay that was over, of {}", laps);
    }
}

#[test]
fn a_counter_that_changes_its_rate_makes_nothing_early_and_no_delay_late_by_more_than_a_stretch_without_a_look() {
    for (at_us, rate_hz) in [(1_234, 1_300_000_000), (3_456, 26_000_000), (2_345, 5_200_000_000)] {
        let script = Script::default().with(micros(at_us), Disturbance::CounterRate(rate_hz));
        let (late_ns, _) = delays_beside(&Sim::new(script), micros(900), micros(30));
        // The longest stretch is 0.75 ms of the old rate.
        let slower = (2_600_000_000 / rate_hz).max(1);
        assert!(late_ns <= 1_000_000 * slower, "{late_ns} ns at {rate_hz} Hz");
    }
}

/// Runs a task whose body makes no calls once for each message or start. Returns how many of its runs began although a
/// delay of a more urgent task was over, how many although an interrupt had come, before the end of the run before; and
/// the number of all runs.
fn runs_on_and_on<B: Beside>(machine: &B, config: &ExecConfig, by_mail: bool) -> (u64, u64, u64, Finish) {
    const RUNS: u16 = 600;
    let mut bench = Bench::new(machine.backend(), config);
    let [due, served, posted, ended, late, unserved, runs]: [Count; 7] = std::array::from_fn(|_| Count::default());
    let count = served.clone();
    let isp = bench.executive.attach("software", InterruptSource::Software, move |_, _| {
        count.add(1);
    });
    let isp = isp.expect("software needs nothing");
    let (deadline, beside) = (due.clone(), machine.clone());
    let (late_ones, unserved_ones, all) = (late.clone(), unserved.clone(), runs.clone());
    let body = move || {
        late_ones.add(u64::from(deadline.get() <= ended.get()));
        unserved_ones.add(u64::from(served.get() != posted.get()));
        all.add(1);
        beside.compute(micros(500));
        isp.post().expect("the ring is empty");
        posted.add(1);
        ended.set(beside.now_ns());
    };
    let mailbox = by_mail.then(|| {
        let body = body.clone();
        bench.mail_task::<u64>("drains", 20, [RUNS, 0, 0, 0], move |_, _, _, _| body())
    });
    let task = bench.task("runs", 20, move |_, _| body());
    bench.start("urgent", 5, move |ctx, _| {
        due.set(NONE);
        for number in 0..RUNS {
            match mailbox {
                Some(mailbox) => ctx.send(mailbox, urgency(0), number.into()).expect("there is room"),
                None => ctx.trigger(task).expect("starts are counted"),
            }
        }
        loop {
            let until = ctx.now() + Nanos::new(1_300_000);
            due.set(until.as_monotonic().count().cast_unsigned());
            ctx.delay_until(until).expect("it unwinds with the run");
        }
    });
    let finish = bench.executive.run(RunLimit::For(Nanos::from_millis(200)));
    (late.get(), unserved.get(), runs.get(), finish)
}

#[track_caller]
fn check_runs<B: Beside>(machine: &B, config: &ExecConfig) {
    for by_mail in [true, false] {
        let (late, unserved, runs, finish) = runs_on_and_on(machine, config, by_mail);
        assert_eq!((late, unserved), (0, 0), "delays and interrupts, of {runs} runs");
        assert_eq!(finish.stopped, StopReason::TimeUp);
        assert!(runs <= 401, "the limit of the run came after 400 runs, not {runs}");
        assert!(!finish.mishaps.iter().any(|it| matches!(it.what, Misfortune::RanAway(_))), "{:?}", finish.mishaps);
        assert_eq!(finish.interrupts_lost, 0);
    }
}

#[test]
fn the_end_of_a_run_serves_what_is_due() {
    // Symptom: a mail task whose body makes no calls emptied its mailbox blind. Delays, interrupts and the limit of the
    // run waited for 600 messages of 2 ms, and the watchdog reported a runaway that was none. With a trace this did not
    // happen.
    let plain = ExecConfig { watchdog: Nanos::from_millis(50), ..ExecConfig::default() };
    let traced = ExecConfig { trace: Some(8192), ..plain.clone() };
    let measured = ExecConfig { measure_latency: true, ..plain.clone() };
    for config in [plain, traced, measured] {
        check_runs(&Sim::new(Script::default()), &config);
        check_runs(&Host, &config);
    }
}

#[test]
fn the_longest_time_without_a_look_is_that_of_the_tasks_own_code() {
    // Symptom: the end of a run was not measured, and taking a message looked only where it was: the figure described
    // another executive than the one without measurement.
    let config = ExecConfig { measure_latency: true, ..ExecConfig::default() };
    for by_mail in [true, false] {
        let (.., finish) = runs_on_and_on(&Sim::new(Script::default()), &config, by_mail);
        let longest = finish.longest_unpolled.expect("it was measured");
        assert!((micros(500)..micros(502)).contains(&longest), "{longest}");
    }
}

#[test]
fn a_procedure_that_keeps_becoming_due_is_served_in_turns_and_the_tasks_have_theirs() {
    // Symptom: a procedure that posted to its own source was served for ever; neither tasks nor the limit of the run
    // were.
    for backend in crate::backends::sim_and_fiber() {
        let name = backend.name();
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let itself = Arc::new(std::sync::OnceLock::<hairspring_exec::Isp>::new());
        let (again, runs) = (Arc::clone(&itself), Count::default());
        let count = runs.clone();
        let isp = bench.isp(move |_, _| {
            count.add(1);
            again.get().expect("it is attached").post().expect("the ring is empty");
        });
        isp.post().expect("the ring is empty");
        itself.set(isp).expect("once");
        let timer = bench.executive.timer("each nanosecond", |_, _| {}).expect("few objects");
        let soon = bench.executive.now();
        bench.executive.start_periodic(timer, soon, Nanos::new(1)).expect("a sensible period");
        bench.start("calls", 20, |ctx, log| {
            (0..10).for_each(|_| ctx.yield_now());
            log.note("calls");
        });
        // On the host other programs may take the CPU for as long as ten calls take.
        let limit = Nanos::from_millis(if name == "sim" { 20 } else { 500 });
        let finish = bench.run_for(RunLimit::For(limit));
        assert_eq!(bench.log.text(), "calls = TimeUp", "on {name}");
        assert!(finish.floods > 0 && runs.get() > 10, "on {name}: {} floods, {} runs", finish.floods, runs.get());
    }
}

#[test]
fn procedures_that_make_others_due_are_all_served_before_the_task_goes_on() {
    for backend in crate::backends::sim_and_fiber() {
        let name = backend.name();
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let last = bench.isp(|_, log| log.note("last"));
        let middle = bench.isp(move |_, log| {
            log.note("middle");
            last.post().expect("the ring is empty");
        });
        let first = bench.isp(move |_, log| {
            log.note("first");
            middle.post().expect("the ring is empty");
        });
        bench.start("task", 20, move |ctx, log| {
            first.post().expect("the ring is empty");
            ctx.yield_now();
            log.note("task");
            ctx.stop();
        });
        let finish = bench.run();
        assert_eq!((bench.log.text().as_str(), finish.floods), ("first middle last task = Asked", 0), "on {name}");
    }
}

#[test]
fn a_wait_that_is_over_as_it_begins_tells_so() {
    // Symptom, on the way here: a wait whose limit had passed when the call looked at the clock came out as `Blocked`.
    for backend in crate::backends::sim_and_fiber() {
        let name = backend.name();
        let mut bench = Bench::new(backend, &ExecConfig::default());
        bench.start("waits", 20, move |ctx, log| {
            for _ in 0..1_000 {
                let outcome = ctx.wait(hairspring_exec::Limit::For(Nanos::new(1)));
                assert_eq!(outcome, Err(hairspring_exec::errors::WaitError::TimedOut));
            }
            log.note("done");
        });
        bench.run();
        assert_eq!(bench.log.text(), "done = Finished", "on {name}");
    }
}
