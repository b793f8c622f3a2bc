//! What an exchange costs beside bare threads that do the same with a futex, on the same CPU, in the same run.

use std::sync::atomic::AtomicU32;

use hairspring_machine::{Host, Machine, Policy};

use super::*;
use crate::context::{Limit, Services};
use crate::interrupt::monotonic;
use crate::park::{sleep_while, wake_one};

/// Exchanges in the shorter of two loops whose difference is taken.
const EXCHANGES: u64 = if cfg!(debug_assertions) { 2_000 } else { 20_000 };
const ROUNDS: usize = 11;
/// How much more than the bare exchange is allowed here. The goal, 1.1, is for the sheet, on a quiet machine.
const MOST_RATIO: f64 = 2.0;

/// The time of one exchange: the median over rounds of the difference of two loops.
fn per_exchange(mut exchanges: impl FnMut(u64) -> u64) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let short = exchanges(EXCHANGES);
            let long = exchanges(2 * EXCHANGES);
            (long as f64 - short as f64) / EXCHANGES as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn timed(count: u64, mut once: impl FnMut()) -> u64 {
    let begun = monotonic();
    (0..count).for_each(|_| once());
    monotonic().as_nanos() - begun.as_nanos()
}

/// A thread wakes a more urgent one, which runs and sleeps again.
fn bare() -> f64 {
    let word = Arc::new(AtomicU32::new(1));
    let end = Arc::new(AtomicU32::new(0));
    let place = |fifo: u8| {
        let cpus = CpuSet(Host.affinity().0.last().copied().into_iter().collect());
        Host.set_affinity(&cpus).expect("a CPU of ours");
        Host.set_policy(Policy::Fifo(fifo)).expect("granted to the executive");
    };
    let (go, over) = (Arc::clone(&word), Arc::clone(&end));
    let high = std::thread::spawn(move || {
        place(70);
        while over.load(Ordering::Acquire) == 0 {
            go.store(0, Ordering::Relaxed);
            while go.load(Ordering::Acquire) == 0 {
                sleep_while(&go, 0, None);
            }
        }
    });
    let low = std::thread::spawn(move || {
        // The other sleeps first, or it would never get the CPU.
        while word.load(Ordering::Acquire) != 0 {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        place(60);
        let exchange = || {
            word.store(1, Ordering::Release);
            wake_one(&word);
        };
        let cost = per_exchange(|count| timed(count, exchange));
        end.store(1, Ordering::Release);
        exchange();
        cost
    });
    let cost = low.join().expect("no panic");
    high.join().expect("no panic");
    cost
}

fn executive(threads: &Threads) -> f64 {
    let cost = Count::default();
    let high = start(threads, "high", 10, |ctx| {
        loop {
            ctx.wait(Limit::Forever).expect("a wake");
        }
    });
    let mine = cost.clone();
    start(threads, "low", 20, move |ctx| {
        let measured = per_exchange(|count| {
            timed(count, || {
                let _ = ctx.wake(high);
            })
        });
        mine.set(measured.to_bits());
        ctx.stop();
    });
    threads.run(LIMIT);
    f64::from_bits(cost.get())
}

#[test]
fn a_wake_and_a_wait_cost_little_more_than_the_bare_futex() {
    let threads = Threads::new(&Config { watchdog: SECOND, ..Config::default() }, Profile::Up { cpu: None });
    let threads = threads.expect("an executive");
    if !strict(&threads, "a_wake_and_a_wait_cost_little_more_than_the_bare_futex") {
        return;
    }
    let (ours, theirs) = (executive(&threads), bare());
    assert!(ours < MOST_RATIO * theirs, "{ours:.0} ns against {theirs:.0} ns, {:.3} times", ours / theirs);
}
