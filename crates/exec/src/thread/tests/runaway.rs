//! Tasks that do not make calls: the machine stays usable, runs end, and the culprit is named. No loop here is longer
//! than two seconds, whatever the watchdog does.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::*;
use crate::calls::Limit;
use crate::report::{Misfortune, StopReason};

/// One at a time: each takes a CPU for itself.
static ALONE: Mutex<()> = Mutex::new(());
/// The bound of every loop without calls.
const MOST: Duration = Duration::from_secs(2);

fn spin(until: impl Fn() -> bool) {
    let begun = Instant::now();
    while !until() && begun.elapsed() < MOST {}
}

fn ran_away(finish: &Finish) -> Vec<&str> {
    let away = finish.mishaps.iter().filter(|mishap| matches!(mishap.what, Misfortune::RanAway(_)));
    away.map(|mishap| mishap.name.as_str()).collect()
}

#[test]
fn a_runaway_loses_its_priority_and_others_run() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let threads = up();
    if !strict(&threads, "a_runaway_loses_its_priority_and_others_run") {
        return;
    }
    let others = Count::default();
    let mine = others.clone();
    // Less urgent: it runs only if the runaway is demoted.
    let low = make(&threads, "low", 40, move |_| {
        mine.add();
    });
    let (seen, freed) = (others.clone(), Count::default());
    let mine = freed.clone();
    start(&threads, "runaway", 5, move |ctx| {
        use crate::calls::Services;
        ctx.trigger(low).expect("it is idle");
        spin(|| seen.get() > 0);
        mine.set(seen.get());
        // Its next call is an ordinary one.
        ctx.wake_reset();
    });
    let begun = Instant::now();
    let finish = threads.run(LIMIT);
    assert_eq!((freed.get(), ran_away(&finish), finish.stopped), (1, vec!["runaway"], StopReason::Finished));
    assert!(!finish.strict);
    assert!(begun.elapsed() < MOST);
    // The next run is strict again.
    assert!(threads.run(LIMIT).strict);
}

#[test]
fn the_limit_ends_a_run_whose_task_spins_and_its_thread_is_left_behind() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    both(|threads| {
        let (go, called, unwound) = (Count::default(), Count::default(), Count::default());
        let begins = Count::default();
        let (end, mine, mark, began) = (go.clone(), called.clone(), unwound.clone(), begins.clone());
        let spins = make(&threads, "spins", 5, move |ctx| {
            struct Gone(Count);
            impl Drop for Gone {
                fn drop(&mut self) {
                    self.0.add();
                }
            }
            let _gone = Gone(mark.clone());
            began.add();
            spin(|| end.get() > 0);
            ctx.wake_reset();
            mine.add();
        });
        // On a busy machine the limit may come before the task does.
        let run = |_| {
            trigger(&threads, spins);
            Some(threads.run(RunLimit::For(Nanos::from_millis(20)))).filter(|_| begins.get() > 0)
        };
        let finish = (0..50).find_map(run).expect("it begins once");
        assert_eq!((finish.stopped, ran_away(&finish)), (StopReason::TimeUp, vec!["spins"]), "{finish:?}");
        // A second run works beside it, and it unwinds when it makes a call after all.
        let others = Count::default();
        let mine = others.clone();
        start(&threads, "other", 20, move |_| {
            mine.add();
        });
        assert_eq!(threads.run(LIMIT).stopped, StopReason::Finished);
        assert_eq!(others.get(), 1);
        go.set(1);
        spin(|| unwound.get() > 0);
        assert_eq!((unwound.get(), called.get()), (1, 0), "it did not come back from its call");
    });
}

#[test]
fn a_task_that_sleeps_in_the_system_does_not_hold_the_run_up_for_ever() {
    both(|threads| {
        let (begins, wakes) = (Count::default(), Count::default());
        let (began, woke) = (begins.clone(), wakes.clone());
        let sleeps = make(&threads, "sleeps", 5, move |_| {
            began.add();
            std::thread::sleep(Duration::from_millis(1_500));
            woke.add();
        });
        // On a busy machine the limit may come before the task does.
        let run = |_| {
            trigger(&threads, sleeps);
            Some(threads.run(RunLimit::For(Nanos::from_millis(20)))).filter(|_| begins.get() > 0)
        };
        let finish = (0..50).find_map(run).expect("it begins once");
        assert_eq!((finish.stopped, ran_away(&finish)), (StopReason::TimeUp, vec!["sleeps"]));
        assert_eq!(wakes.get(), 0, "it still sleeps");
    });
}

#[test]
fn many_calls_are_no_runaway() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let config = ExecConfig { watchdog: Nanos::from_millis(40), ..config() };
    let threads = Threads::new(&config, ThreadProfile::Up { cpu: None }).expect("an executive");
    start(&threads, "calls", 5, |ctx| {
        for _ in 0..120 {
            ctx.work(Nanos::from_millis(1));
            let _ = ctx.wait(Limit::NoWait);
        }
    });
    let finish = threads.run(LIMIT);
    clean(&threads, &finish);
}
