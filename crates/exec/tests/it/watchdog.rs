//! The watchdog over fibers: it names the task that computes too long without a call, and the carrier has its priority
//! back afterwards.

use std::time::{Duration, Instant};

use hairspring_exec::{Backend, ExecConfig, InterruptSource, Misfortune, Services};
use hairspring_machine::{Clock, Held, Host, Machine, Nanos, Policy, Refused, Wish};

use crate::backends::{Bench, LIMIT, micros, skip};

fn config() -> ExecConfig {
    ExecConfig { watchdog: Nanos::from_millis(100), ..ExecConfig::default() }
}

/// Computes without a call for half a second of CPU time, and then until `so` is true. The result stays the same on a
/// machine that keeps even the watchdog from the CPU for a while.
fn compute_until(so: impl Fn() -> bool) {
    let begun = Instant::now();
    let before = Host.read(Clock::ThreadCpu);
    while Host.read(Clock::ThreadCpu) - before < Nanos::from_millis(500) || !so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the watchdog has not come");
    }
}

fn run_away(policy: Policy) -> Option<Vec<Policy>> {
    let mut bench = Bench::new(Backend::Fiber { cpu: None, policy }, &config());
    let (tell, told) = std::sync::mpsc::channel();
    // The task that runs away readies it, and it is the first to make calls after the block: not to be blamed.
    let innocent = bench.task("innocent", 30, |ctx, _| (0..100).for_each(|_| ctx.yield_now()));
    let policies = tell.clone();
    bench.start("runs_away", 20, move |ctx, _| {
        policies.send(Host.policy()).expect("it is received");
        ctx.trigger(innocent).expect("it is idle");
        // The watchdog takes the priority as its last step, so wait for that; without real-time priority it cannot be
        // seen.
        compute_until(|| Host.policy() == Policy::Other);
        policies.send(Host.policy()).expect("it is received");
        let _ = ctx.wait(hairspring_exec::Limit::For(micros(100)));
        policies.send(Host.policy()).expect("it is received");
    });
    let finish = bench.executive.run(LIMIT);
    if !finish.refused.is_empty() {
        skip(&finish.refused[0].to_string());
        return None;
    }
    let [mishap] = &finish.mishaps[..] else { panic!("one, not {:?}", finish.mishaps) };
    assert_eq!(mishap.name, "runs_away");
    assert!(matches!(mishap.what, Misfortune::RanAway(span) if span >= Nanos::from_millis(100)), "{mishap:?}");
    Some(told.try_iter().collect())
}

#[test]
fn a_task_that_runs_away_is_named_and_the_one_that_calls_next_is_not() {
    run_away(Policy::Other).expect("nothing was asked for that could be refused");
}

#[test]
fn the_carrier_loses_its_real_time_priority_while_a_task_runs_away_and_has_it_back_after() {
    let policies = std::thread::spawn(|| run_away(Policy::Fifo(10))).join().expect("it does not panic");
    let Some(policies) = policies else { return };
    assert_eq!(policies, [Policy::Fifo(10), Policy::Other, Policy::Fifo(10)]);
}

#[test]
fn a_task_that_runs_away_has_the_policy_back_that_it_wished_for_and_no_wish_saves_it_from_the_watchdog() {
    // Symptom: it had the policy of the run back. A task that asked for a policy while it ran away kept that policy.
    let outcome = std::thread::spawn(|| {
        let mut bench = Bench::new(Backend::Fiber { cpu: None, policy: Policy::Fifo(10) }, &config());
        let (tell, told) = std::sync::mpsc::channel();
        bench.start("runs_away", 20, move |ctx, _| {
            let Ok(first) = Held::take(&Host, Wish::Policy(Policy::Fifo(12))) else { return };
            compute_until(|| Host.policy() == Policy::Other);
            let Ok(second) = Held::take(&Host, Wish::Policy(Policy::Fifo(13))) else { return };
            compute_until(|| Host.policy() == Policy::Other);
            let _ = ctx.wait(hairspring_exec::Limit::For(micros(100)));
            tell.send(Host.policy()).expect("it is received");
            drop(second);
            tell.send(Host.policy()).expect("it is received");
            drop(first);
            tell.send(Host.policy()).expect("it is received");
        });
        let finish = bench.executive.run(LIMIT);
        (finish.refused, finish.mishaps.len(), told.try_iter().collect::<Vec<_>>(), Host.policy())
    });
    let (refused, mishaps, policies, after) = outcome.join().expect("it does not panic");
    if let Some(refused) = refused.first() {
        return skip(&refused.to_string());
    }
    assert_eq!(mishaps, 1);
    assert_eq!(policies, [Policy::Fifo(13), Policy::Fifo(12), Policy::Fifo(10)]);
    assert_eq!(after, Policy::Other);
}

#[test]
fn a_carrier_that_was_real_time_before_the_run_is_real_time_after_it() {
    let after = std::thread::spawn(|| {
        Host.set_policy(Policy::Fifo(10)).ok()?;
        run_away(Policy::Fifo(10));
        Some(Host.policy())
    });
    match after.join().expect("it does not panic") {
        Some(after) => assert_eq!(after, Policy::Fifo(10)),
        None => skip("real-time priority is refused"),
    }
}

#[test]
fn a_task_that_waits_in_the_system_without_a_call_computes_nothing() {
    // Symptom: a blocking read of more than the watchdog's time was reported as a runaway. Cause: the watchdog measured
    // wall-clock time.
    let mut bench = Bench::new(Backend::fiber(), &config());
    bench.start("reads", 20, |_, _| std::thread::sleep(Duration::from_millis(400)));
    let finish = bench.executive.run(LIMIT);
    assert!(finish.clean(), "{:?}", finish.mishaps);
}

#[test]
fn a_procedure_that_runs_away_is_told_and_no_task_is_blamed_for_it() {
    // Symptom: the task in whose call the procedure came was named.
    let mut bench = Bench::new(Backend::fiber(), &config());
    let isp = bench.isp(|_, _| compute_until(|| true));
    bench.start("innocent", 20, move |ctx, _| {
        isp.post().expect("the ring is empty");
        (0..100).for_each(|_| ctx.yield_now());
        ctx.stop();
    });
    let finish = bench.executive.run(LIMIT);
    assert_eq!(finish.mishaps, []);
    assert!(finish.procedure_ran_away.is_some_and(|stretch| stretch >= Nanos::from_millis(100)), "{finish:?}");
    assert!(!finish.clean());
}

/// How the thread of a source is scheduled, as its raw procedure sees it.
fn policy_of_a_source(carrier: Policy) -> Result<Policy, Vec<Refused>> {
    let mut bench = Bench::new(Backend::Fiber { cpu: None, policy: carrier }, &config());
    let counter = crate::interrupts_descriptors::eventfd();
    let mut writer = std::fs::File::from(counter.try_clone().expect("a descriptor"));
    let (tell, told) = std::sync::mpsc::channel();
    let raw = move |_| tell.send(Host.policy()).expect("it is received");
    bench.executive.attach_raw("raw", InterruptSource::Counter(counter), raw).expect("a thread");
    bench.start("stops", 20, |ctx, _| ctx.stop());
    let finish = bench.executive.run(LIMIT);
    std::io::Write::write_all(&mut writer, &1_u64.to_ne_bytes()).expect("the counter is far from full");
    let policy = told.recv().expect("it runs");
    if finish.refused.is_empty() { Ok(policy) } else { Err(finish.refused) }
}

#[test]
fn sources_have_real_time_priority_only_where_the_carrier_has_and_then_more_than_it() {
    // Symptom: an ordinary program on fibers had threads at FIFO 88 and 95 if it was allowed to.
    assert_eq!(policy_of_a_source(Policy::Other), Ok(Policy::Other));
    let above = |carrier| std::thread::spawn(move || policy_of_a_source(carrier)).join().expect("it does not panic");
    match (above(Policy::Fifo(10)), above(Policy::Fifo(90))) {
        (Ok(low), Ok(high)) => assert_eq!((low, high), (Policy::Fifo(88), Policy::Fifo(91))),
        (Err(refused), _) | (_, Err(refused)) => skip(&refused[0].to_string()),
    }
}

#[test]
fn what_the_carrier_the_watchdog_and_the_sources_are_refused_is_told_of_each() {
    // Symptom: only the carrier's refusal was reported.
    match crate::interrupts_descriptors::unprivileged(|| policy_of_a_source(Policy::Fifo(10))) {
        Err(refused) => assert_eq!(refused.len(), 3, "{refused:?}"),
        Ok(_) => skip("real-time priority is granted to everybody here"),
    }
}

#[test]
fn tasks_that_wait_or_make_calls_for_longer_than_the_watchdog_are_left_in_peace() {
    let mut bench = Bench::new(Backend::fiber(), &config());
    bench.start("waits", 10, |ctx, _| ctx.delay(Nanos::from_millis(250)).expect("nobody kills it"));
    bench.start("calls", 20, |ctx, _| ctx.work(Nanos::from_millis(250)));
    let finish = bench.executive.run(LIMIT);
    assert!(finish.clean(), "{:?}", finish.mishaps);
}
