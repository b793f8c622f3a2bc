//! Kernel cost of an exchange, compared with bare threads that do the same with a futex on the same CPU: switches from
//! one thread to another, of which each costs more than all else. Its time is for the sheet, on a quiet machine.

use std::sync::atomic::AtomicU32;

use hairspring_machine::{Host, Machine, Policy};

use super::*;
use crate::calls::{Limit, Services};
use crate::system::futex::{sleep_while, wake_one};

const EXCHANGES: u64 = 5_000;
/// Switches by others: the watchdog, the kernel's own threads. In hundredths of the exchanges.
const OTHERS_PERCENT: u64 = 10;

/// How often the calling thread gave up the CPU, and how often it lost it.
fn switches() -> (u64, u64) {
    let usage = Host.usage();
    (usage.voluntary_switches.expect("Linux tells"), usage.involuntary_switches.expect("Linux tells"))
}

/// Involuntary switches of the waking thread and voluntary ones of the waiting thread, over all exchanges.
type Switches = (u64, u64);

fn place(fifo: u8) {
    let cpus = CpuSet(Host.affinity().0.last().copied().into_iter().collect());
    Host.set_affinity(&cpus).expect("a CPU of ours");
    Host.set_policy(Policy::Fifo(fifo)).expect("granted to the executive");
}

/// A thread wakes a more urgent one, which runs and sleeps again.
fn bare() -> Switches {
    let word = Arc::new(AtomicU32::new(1));
    let end = Arc::new(AtomicU32::new(0));
    let (go, over) = (Arc::clone(&word), Arc::clone(&end));
    let high = std::thread::spawn(move || {
        place(70);
        let before = switches();
        while over.load(Ordering::Acquire) == 0 {
            go.store(0, Ordering::Relaxed);
            while go.load(Ordering::Acquire) == 0 {
                sleep_while(&go, 0, None);
            }
        }
        switches().0 - before.0
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
        let before = switches();
        (0..EXCHANGES).for_each(|_| exchange());
        let after = switches();
        end.store(1, Ordering::Release);
        exchange();
        after.0 - before.0 + after.1 - before.1
    });
    (low.join().expect("no panic"), high.join().expect("no panic"))
}

fn executive(threads: &Threads) -> Switches {
    let [gave_up, lost] = [Count::default(), Count::default()];
    let mine = gave_up.clone();
    let high = start(threads, "high", 10, move |ctx| {
        let before = switches();
        loop {
            ctx.wait(Limit::Forever).expect("a wake");
            mine.set(switches().0 - before.0);
        }
    });
    let mine = lost.clone();
    start(threads, "low", 20, move |ctx| {
        let before = switches();
        for _ in 0..EXCHANGES {
            ctx.wake(high).expect("it waits");
        }
        let after = switches();
        mine.set(after.0 - before.0 + after.1 - before.1);
        ctx.stop();
    });
    threads.run(LIMIT);
    (lost.get(), gave_up.get())
}

#[test]
fn a_wake_and_a_wait_switch_as_often_as_the_bare_futex_and_no_more() {
    let threads =
        Threads::new(&ExecConfig { watchdog: SECOND, ..ExecConfig::default() }, ThreadProfile::Up { cpu: None });
    let threads = threads.expect("an executive");
    if !strict(&threads, "a_wake_and_a_wait_switch_as_often_as_the_bare_futex_and_no_more") {
        return;
    }
    let (ours, theirs) = (executive(&threads), bare());
    assert!(ours.0 >= EXCHANGES && ours.1 >= EXCHANGES, "an exchange that did not switch: {ours:?}");
    let most = |bare: u64| bare + EXCHANGES * OTHERS_PERCENT / 100;
    assert!(ours.0 <= most(theirs.0) && ours.1 <= most(theirs.1), "{ours:?} against {theirs:?}");
}
