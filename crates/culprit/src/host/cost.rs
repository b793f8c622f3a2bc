//! Cost of the kernel's records: two threads wake each other on one CPU, alternating with and without records.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::Thread;

use hairspring_machine::{Cpu, CpuSet, Host, Machine, Nanos};

use super::{Tracer, Untraced};

/// Wake-ups of a block: each wakes, is woken and changes tasks.
const WAKEUPS: u32 = 1_000;
/// Pairs of a block with records and one without.
const PAIRS: usize = 16;
/// On a busy CPU each wake-up waits for others: after the first two pairs, none begins after this time.
const LONGEST: Nanos = Nanos::from_secs(1);

/// A block with records, and the one without beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostPair {
    /// Duration of the block with records.
    pub with: Nanos,
    /// Duration of the same block without records.
    pub without: Nanos,
    /// Number of records.
    pub records: u64,
}

impl CostPair {
    /// Cost of one record in nanoseconds; negative if the block without records happened to take longer.
    pub fn record_ns(&self) -> f64 {
        (self.with - self.without).count() as f64 / self.records.max(1) as f64
    }
}

impl Tracer {
    /// Lets two threads of one watched CPU wake each other, alternating with and without records (ABBA). Drops the
    /// records read before. Blocks for some tens of milliseconds, about a second on a busy CPU. The second thread ends
    /// within the call, which restores the caller's CPU set.
    ///
    /// # Errors
    /// The system refuses to pin, to stop the records or to go on.
    pub fn cost(&mut self, cpu: Cpu) -> Result<Vec<CostPair>, Untraced> {
        let untraced = |what: &str, error: &dyn std::fmt::Display| Untraced {
            reason: format!("failed to {what}: {error}"),
            remedy: None,
        };
        let before = Host.affinity();
        Host.set_affinity(&CpuSet(vec![cpu])).map_err(|error| untraced("pin the probe", &error))?;
        let (turn, own) = (AtomicU32::new(0), std::thread::current());
        let pairs = std::thread::scope(|scope| {
            let partner = scope.spawn(|| answer(&turn, &own));
            let end = Host.monotonic() + LONGEST;
            let numbers = (0..PAIRS).take_while(|number| *number < 2 || Host.monotonic() < end);
            let pairs = numbers.map(|number| self.pair(number, cpu, &turn, partner.thread())).collect();
            turn.store(END, Ordering::Release);
            partner.thread().unpark();
            pairs
        });
        let restored = Host.set_affinity(&before);
        restored.map_err(|error| untraced("go back to the CPUs from before", &error))?;
        pairs
    }
}

/// Whose turn it is: the caller's is even, the partner's odd, and this is the end.
const END: u32 = u32::MAX;

impl Tracer {
    fn pair(&mut self, number: usize, cpu: Cpu, turn: &AtomicU32, partner: &Thread) -> Result<CostPair, Untraced> {
        let refused = |what: &str, error: std::io::Error| Untraced {
            reason: format!("failed to {what} the kernel's records: {error}"),
            remedy: None,
        };
        let (mut with, mut without, mut records) = (Nanos::ZERO, Nanos::ZERO, 0);
        for place in 0..2 {
            if (place == 0) == number.is_multiple_of(2) {
                self.drain(|_, _| ());
                with = block(turn, partner);
                self.drain(|on, _| records += u64::from(on == cpu));
            } else {
                self.pause().map_err(|error| refused("stop", error))?;
                without = block(turn, partner);
                self.resume().map_err(|error| refused("go on with", error))?;
            }
        }
        Ok(CostPair { with, without, records })
    }
}

/// Duration of the wake-ups of a block.
fn block(turn: &AtomicU32, partner: &Thread) -> Nanos {
    let begin = Host.monotonic();
    for _ in 0..WAKEUPS / 2 {
        // Release, so that the partner's Acquire sees the turn that it is woken for.
        let next = turn.load(Ordering::Acquire) + 1;
        turn.store(next, Ordering::Release);
        partner.unpark();
        while turn.load(Ordering::Acquire) == next {
            std::thread::park();
        }
    }
    Host.monotonic() - begin
}

/// The partner: gives each turn back.
fn answer(turn: &AtomicU32, caller: &Thread) {
    loop {
        // Acquire pairs with the caller's Release.
        match turn.load(Ordering::Acquire) {
            END => return,
            now if now % 2 == 1 => {
                turn.store(now + 1, Ordering::Release);
                caller.unpark();
            }
            _ => std::thread::park(),
        }
    }
}
