//! CPU, policy and timer slack of the carrier of fibers, beside other wishes for its thread.

use std::any::Any;
use std::cell::RefCell;
use std::sync::mpsc::channel;

use hairspring_exec::{Backend, ExecConfig};
use hairspring_machine::sim::Script;
use hairspring_machine::{CpuSet, Held, Host, Machine, Nanos, Policy, Sim, Wish};

use crate::backends::{Bench, LIMIT, alone, priority, skip};

/// Settings of a thread: its policy, its CPUs, and its slack if its policy has one.
type Settings = (Policy, CpuSet, Option<Nanos>);

thread_local! {
    /// Wishes that outlive the task that took them.
    static HELD: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

fn settings<M: Machine>(machine: &M) -> Settings {
    let policy = machine.policy();
    let has_slack = policy == Policy::Other;
    (policy, machine.affinity(), has_slack.then(|| machine.timer_slack()))
}

/// Takes these wishes; an error if one is refused.
fn take<M: Machine + 'static>(machine: &'static M, wishes: &[Wish]) -> Result<(), String> {
    for wish in wishes {
        let held = Held::take(machine, wish.clone()).map_err(|refused| refused.to_string())?;
        HELD.with_borrow_mut(|all| all.push(Box::new(held)));
    }
    Ok(())
}

fn release() {
    // The most recent first, and not while the list is borrowed.
    while let Some(held) = HELD.with_borrow_mut(Vec::pop) {
        drop(held);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
enum When {
    Before,
    Inside,
    After,
}
use When::{After, Before, Inside};

/// Runs one task on a carrier with the settings `carrier`. The wishes are taken at `taken` and released at `released`,
/// in a thread that otherwise has the settings `ordinary`.
fn run<M: Machine + Sync + 'static>(
    machine: &'static M,
    backend: Backend,
    carrier: &Settings,
    [taken, released]: [When; 2],
    wishes: &'static [Wish],
) -> Result<(), String> {
    machine.set_timer_slack(Nanos::new(1_234));
    let ordinary = settings(machine);
    // The settings without wishes, overlaid with the wishes.
    let over = |(mut policy, mut cpus, mut slack): Settings| {
        for wish in wishes {
            match wish {
                Wish::Policy(wished) => policy = *wished,
                Wish::Affinity(wished) => cpus = wished.clone(),
                Wish::TimerSlack(wished) => slack = Some(*wished),
                Wish::MemoryLock | Wish::Idle(_) => {}
            }
        }
        (policy, cpus, slack.filter(|_| policy == Policy::Other))
    };
    let story = format!("taken {taken:?}, released {released:?}");
    if taken == Before {
        take(machine, wishes)?;
        assert_eq!(settings(machine), over(ordinary.clone()), "{story}: before the run");
    }
    let mut bench = Bench::new(backend, &ExecConfig { watchdog: Nanos::ZERO, ..ExecConfig::default() });
    let (tell, told) = channel();
    bench.start("task", 20, move |_, _| {
        tell.send(Ok(settings(machine))).expect("it is received");
        if taken == Inside {
            tell.send(take(machine, wishes).map(|()| settings(machine))).expect("it is received");
        }
        if released == Inside {
            release();
            tell.send(Ok(settings(machine))).expect("it is received");
        }
    });
    let finish = bench.executive.run(LIMIT);
    if let Some(refused) = finish.refused.first() {
        return Err(refused.to_string());
    }
    let seen = told.try_iter().collect::<Result<Vec<Settings>, String>>()?;
    let mut expected = vec![carrier.clone()];
    if taken == Inside {
        expected.push(over(carrier.clone()));
    }
    if released == Inside {
        expected.push(carrier.clone());
    }
    assert_eq!(seen, expected, "{story}: in the run");
    let after = if released == After { over(ordinary.clone()) } else { ordinary.clone() };
    assert_eq!(settings(machine), after, "{story}: after the run");
    release();
    assert_eq!(settings(machine), ordinary, "{story}: at the end");
    Ok(())
}

const TIMES: [[When; 2]; 4] = [[Before, Inside], [Before, After], [Inside, Inside], [Inside, After]];
const WISHES: [Wish; 2] = [Wish::Policy(Policy::Fifo(12)), Wish::TimerSlack(Nanos::new(7_000))];

#[test]
fn a_wish_and_a_run_end_in_any_order_on_the_simulated_machine() {
    // Symptom: a guard that was released in a run was in force again after it, and one that was taken in a run was not
    // any more. The run restored what it had found.
    for times in TIMES {
        for wishes in [&WISHES[..], &WISHES[1..]] {
            let sim: &'static Sim = Box::leak(Box::new(Sim::new(Script::default())));
            let carrier = (Policy::Other, sim.affinity(), Some(Nanos::new(1)));
            assert_eq!(run(sim, Backend::Sim(sim.clone()), &carrier, times, wishes), Ok(()));
        }
    }
}

#[test]
fn a_wish_and_a_run_end_in_any_order_on_this_machine() {
    // Symptom besides: a carrier that had been real-time kept another slack than it had before, on Linux 6.12 and
    // later.
    let _alone = alone();
    for times in TIMES {
        for wishes in [&WISHES[..], &WISHES[1..], &[]] {
            for policy in [Policy::Other, Policy::Fifo(10)] {
                let outcome = std::thread::spawn(move || {
                    let all = Host.affinity();
                    let cpu = *all.0.last().expect("it runs on one");
                    let slack = Some(Nanos::new(1)).filter(|_| policy == Policy::Other);
                    let carrier = (policy, CpuSet(vec![cpu]), slack);
                    run(&Host, Backend::Fiber { cpu: Some(cpu), policy }, &carrier, times, wishes)
                });
                match outcome.join() {
                    Ok(Ok(())) => {}
                    Ok(Err(refused)) => return skip(&refused),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        }
    }
}

#[test]
fn on_threads_a_policy_that_a_task_wishes_for_lasts_until_its_priority_changes() {
    // The executive sets how the threads of its tasks are scheduled. This is the documented effect of a wish beside it.
    let _alone = alone();
    let mut bench = Bench::new(Backend::thread_up(), &ExecConfig::default());
    let (tell, told) = channel();
    bench.start("task", 20, move |ctx, _| {
        let see = |what| tell.send((what, Host.policy())).expect("it is received");
        see("at first");
        let Ok(held) = Held::take(&Host, Wish::Policy(Policy::Fifo(65))) else { return };
        ctx.yield_now();
        see("wished");
        ctx.set_priority(ctx.id(), priority(30)).expect("it exists");
        see("changed");
        drop(held);
        see("as found");
        ctx.set_priority(ctx.id(), priority(25)).expect("it exists");
        see("changed again");
    });
    let finish = bench.executive.run(LIMIT);
    if let Some(refused) = finish.refused.first() {
        return skip(&refused.to_string());
    }
    let fifo = [("at first", 60), ("wished", 65), ("changed", 50), ("as found", 60), ("changed again", 55)];
    let expected: Vec<_> = fifo.into_iter().map(|(what, priority)| (what, Policy::Fifo(priority))).collect();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), expected);
}
