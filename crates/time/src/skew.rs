//! [`Skew`]: how far apart the counters of two CPUs are.
//!
//! Two pinned threads pass a word back and forth. Each stamps when it sends and when it receives. The offset follows as
//! in NTP. With `t1` sent and `t4` back on one CPU, `t2` received and `t3` answered on the other,
//! `offset = ((t2 − t1) + (t3 − t4)) / 2`. Its error is at most half of the round trip `(t4 − t1) − (t3 − t2)`. The
//! measurement keeps the round with the shortest trip.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use hairspring_machine::{Clock, Cpu, CpuSet, Machine, Nanos, Refused, Ticks};

use crate::timebase::Timebase;

/// Rounds by default: thousands, so that one of them is undisturbed.
pub(crate) const ROUNDS: u32 = 4_000;
/// The longest wait for the other thread. A CPU that does not answer runs something of higher priority.
const PATIENCE: Nanos = Nanos::from_millis(200);
/// Looks at the word between looks at the clock.
const LOOKS: u32 = 1_000;

/// The offset between two CPUs' counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// The counter of the second CPU minus that of the first.
    pub offset: Nanos,
    /// The largest possible error of the offset: half of the shortest round trip.
    pub uncertainty: Nanos,
    /// Rounds taken.
    pub rounds: u32,
}

/// Why the skew could not be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkewError {
    /// A thread could not be pinned.
    Refused(Refused),
    /// The other CPU did not answer in time.
    NoAnswer(Cpu),
    /// Both numbers name the same CPU, which has one counter. Two threads on it would wait a scheduler's turn for each
    /// other in every round.
    SameCpu(Cpu),
}

impl std::fmt::Display for SkewError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::SameCpu(cpu) => write!(f, "measure the skew of CPU {} against itself: name two CPUs", cpu.0),
            Self::NoAnswer(cpu) => write!(f, "measure the skew: CPU {} did not answer within {PATIENCE}", cpu.0),
        }
    }
}

impl std::error::Error for SkewError {}

/// The four stamps of one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) sent: Ticks,
    pub(crate) received: Ticks,
    pub(crate) answered: Ticks,
    pub(crate) back: Ticks,
}

impl Round {
    fn trip(&self) -> i64 {
        self.back.since(self.sent) - self.answered.since(self.received)
    }

    fn offset(&self) -> i64 {
        i64::midpoint(self.received.since(self.sent), self.answered.since(self.back))
    }
}

impl Skew {
    /// Measures the skew between two CPUs with two threads of its own, which end before it returns. Takes a few ms.
    ///
    /// # Errors
    /// A CPU does not exist or does not answer, or both are the same.
    pub fn measure<M: Machine + Sync>(timebase: &Timebase<M>, first: Cpu, second: Cpu) -> Result<Self, SkewError> {
        if first == second {
            return Err(SkewError::SameCpu(first));
        }
        let exchange = Exchange::default();
        let best = std::thread::scope(|scope| {
            let answering = scope.spawn(|| exchange.answer(timebase, second));
            let asking = scope.spawn(|| exchange.ask(timebase, first, second));
            let asked = asking.join().unwrap_or(Err(SkewError::NoAnswer(first)));
            let answered = answering.join().unwrap_or(Err(SkewError::NoAnswer(second)));
            answered.and(asked)
        })?;
        Ok(Self::of(timebase, best, ROUNDS))
    }

    pub(crate) fn of<M: Machine>(timebase: &Timebase<M>, best: Round, rounds: u32) -> Self {
        Self {
            offset: timebase.nanos(best.offset()),
            uncertainty: timebase.nanos(best.trip() / 2 + 1) + Nanos::new(1),
            rounds,
        }
    }

    /// The largest skew that this measurement allows for.
    pub fn bound(&self) -> Nanos {
        let offset = if self.offset.is_negative() { -self.offset } else { self.offset };
        offset + self.uncertainty
    }
}

/// The words that the two threads share. Each word has its own cache line, so that the stamps time only the hand-over.
#[derive(Default)]
struct Exchange {
    asked: Line,
    answered: Line,
    received_at: Line,
    answered_at: Line,
}

#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// Written in place of a round's number by a side that gives up.
const GIVEN_UP: u64 = u64::MAX;

impl Exchange {
    fn ask<M: Machine>(&self, timebase: &Timebase<M>, own: Cpu, other: Cpu) -> Result<Round, SkewError> {
        let outcome = self.ask_rounds(timebase, own, other);
        if outcome.is_err() {
            self.asked.0.store(GIVEN_UP, Ordering::Release);
        }
        outcome
    }

    fn ask_rounds<M: Machine>(&self, timebase: &Timebase<M>, own: Cpu, other: Cpu) -> Result<Round, SkewError> {
        timebase.machine().set_affinity(&CpuSet(vec![own])).map_err(SkewError::Refused)?;
        let mut best: Option<Round> = None;
        for number in 1..=u64::from(ROUNDS) {
            let sent = timebase.stamp_ordered();
            // Release pairs with the Acquire in `wait` of the answering side.
            self.asked.0.store(number, Ordering::Release);
            wait(timebase, &self.answered, number).ok_or(SkewError::NoAnswer(other))?;
            let back = timebase.stamp_ordered();
            let stamp = |line: &Line| Ticks::new(line.0.load(Ordering::Relaxed));
            // Relaxed: both were stored before the Release of `answered`, which `wait` has acquired.
            let (received, answered) = (stamp(&self.received_at), stamp(&self.answered_at));
            let round = Round { sent, received, answered, back };
            best = best.into_iter().chain([round]).min_by_key(Round::trip);
        }
        best.ok_or(SkewError::NoAnswer(other))
    }

    fn answer<M: Machine>(&self, timebase: &Timebase<M>, own: Cpu) -> Result<(), SkewError> {
        let pinned = timebase.machine().set_affinity(&CpuSet(vec![own]));
        if let Err(refused) = pinned {
            self.answered.0.store(GIVEN_UP, Ordering::Release);
            return Err(SkewError::Refused(refused));
        }
        for number in 1..=u64::from(ROUNDS) {
            // The asking side reports its own failure; here it is enough to stop.
            if wait(timebase, &self.asked, number).is_none() {
                return Ok(());
            }
            let received = timebase.stamp_ordered();
            self.received_at.0.store(received.raw(), Ordering::Relaxed);
            let answered = timebase.stamp_ordered();
            self.answered_at.0.store(answered.raw(), Ordering::Relaxed);
            fence(Ordering::SeqCst);
            // Release pairs with the Acquire in `wait` of the asking side.
            self.answered.0.store(number, Ordering::Release);
        }
        Ok(())
    }
}

/// Polls until the word holds `number`; none if the other side gave up or does not answer.
fn wait<M: Machine>(timebase: &Timebase<M>, line: &Line, number: u64) -> Option<()> {
    let machine = timebase.machine();
    let until = machine.read(Clock::Monotonic) + PATIENCE;
    loop {
        for _ in 0..LOOKS {
            // Acquire pairs with the Release store of the other side.
            match line.0.load(Ordering::Acquire) {
                GIVEN_UP => return None,
                value if value == number => return Some(()),
                _ => machine.relax(),
            }
        }
        if machine.read(Clock::Monotonic) > until {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use hairspring_machine::Sim;
    use hairspring_machine::sim::Script;

    use super::*;

    /// The other counter is 40 ticks ahead, and 20 ticks pass on the way. That is 10 ns for each tick.
    #[test]
    fn a_round_states_the_offset_in_its_middle_and_is_wrong_by_half_its_way_at_most() {
        let [sent, received, answered, back] = [1_000, 1_050, 1_060, 1_030].map(Ticks::new);
        let round = Round { sent, received, answered, back };
        assert_eq!((round.trip(), round.offset()), (20, 40));
        let timebase = Timebase::calibrate(Sim::new(Script { rate_hz: 100_000_000, ..Script::default() }));
        let skew = Skew::of(&timebase.expect("it advances"), round, 7);
        assert!((399..=400).contains(&skew.offset.count()) && skew.rounds == 7, "{skew:?}");
        // Half the way, a tick that had not passed, and the rounding of both.
        assert!((110..=111).contains(&skew.uncertainty.count()), "{skew:?}");
    }

    #[test]
    fn a_side_waits_until_the_other_answers_or_gives_up_and_not_longer_than_its_patience() {
        let sim = Sim::new(Script::default());
        let timebase = Timebase::calibrate(sim.clone()).expect("it advances");
        let waits = |word: u64| {
            let before = sim.true_time();
            let answered = wait(&timebase, &Line(AtomicU64::new(word)), 7).is_some();
            (answered, sim.true_time() - before)
        };
        let soon = Nanos::from_micros(10);
        assert!(matches!(waits(7), (true, time) if time < soon));
        assert!(matches!(waits(GIVEN_UP), (false, time) if time < soon), "{:?}", waits(GIVEN_UP));
        let (answered, time) = waits(6);
        assert!(!answered && time > PATIENCE && time < PATIENCE + Nanos::from_millis(1), "{time}");
    }
}
