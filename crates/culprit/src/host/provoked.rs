//! Culprits provoked on purpose: each test takes the truth from its own stamps, and compares the blame with it.
//!
//! Stretches with other disturbances are left out by the provoker's own stamps, before any blame is examined. If nearly
//! all are left out, the test is skipped, and so are tests that need a permission which this process lacks; each prints
//! the reason. `HAIRSPRING_PROOF` multiplies the number of provocations.

mod interrupts;
mod limits;
mod rivals;

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hairspring_machine::{Cpu, CpuSet, Host, Instant, Machine, Nanos, Policy};
use testing::skip;

use super::tests::now;
use super::{Tracer, TracerSettings, own_thread};
use crate::{CpuHistory, Culprit, CulpritKind, LostTime, Tally, Terms, Wanted, blame};

/// Share of the provoked time that must have the right name.
const RIGHT_LEAST: f64 = 0.99;
/// `judge` leaves out at most one in this many stretches because the system's timer ticked there.
const MOST_TICKED: usize = 10;
/// Shortest gap of a polling loop that counts.
const GAP_LEAST: Nanos = Nanos::new(700);
/// Longest time between two readings of the clock.
const LOOK: Nanos = Nanos::from_micros(1);
/// Most time from the provoker's notice of an end to the true end of the provocation's effects.
const SOON: Nanos = Nanos::from_micros(50);
/// Provocations in a row, and the time from one to the next.
const BATCH: usize = 400;
const BETWEEN: Nanos = Nanos::from_millis(1);
/// Between two rows.
const PAUSE: Duration = Duration::from_millis(60);
/// Most gaps that are kept.
const GAPS_MOST: usize = 200_000;
/// A provoker that takes longer has failed.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// One provocation at a time, because two would disturb each other.
static ALONE: Mutex<()> = Mutex::new(());

/// A stretch of time: a loss, or the time within which a provocation fell.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: Instant,
    to: Instant,
}

/// The calling thread on its CPU, with the kernel's records of that CPU.
struct Watched {
    tracer: Tracer,
    _alone: MutexGuard<'static, ()>,
}

impl Watched {
    /// Puts the thread on this CPU under this policy and begins to read; if this process may not, prints the reason and
    /// returns `None`.
    fn open(test: &str, cpu: Cpu, policy: Policy) -> Option<Self> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        pin(cpu);
        let tracer = Tracer::open(&TracerSettings { rare_vectors: false, ..TracerSettings::of_cpus([cpu]) });
        let set = Host.set_policy(policy).map_err(|refused| refused.to_string());
        match tracer.map_err(|untraced| untraced.reason).and_then(|tracer| set.map(|()| tracer)) {
            Ok(tracer) => {
                // Cause a task switch, from which on the history is known.
                std::thread::sleep(Duration::from_millis(1));
                Some(Self { tracer, _alone: alone })
            }
            Err(why) => {
                skip(test, why);
                None
            }
        }
    }

    /// The history of the CPU up to now.
    fn history(&mut self) -> CpuHistory {
        let mut history = CpuHistory::new();
        let until = self.tracer.drain(|_, record| history.push(record));
        history.known_until(until);
        history
    }
}

/// The CPU of the calling thread.
fn cpu() -> Cpu {
    Cpu(u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0))
}

/// Another CPU from which this one can be disturbed; if there is none, prints the reason and returns `None`.
fn other(test: &str, cpu: Cpu) -> Option<Cpu> {
    let other = Host.affinity().0.into_iter().find(|&other| other != cpu);
    if other.is_none() {
        skip(test, "it takes a second CPU");
    }
    other
}

fn pin(cpu: Cpu) {
    Host.set_affinity(&CpuSet(vec![cpu])).expect("a thread may be pinned to a CPU of its own");
}

/// Number of provocations: `ordinary`, multiplied in a proof.
fn times(ordinary: usize) -> usize {
    let more: Option<usize> = std::env::var("HAIRSPRING_PROOF").ok().and_then(|times| times.parse().ok());
    ordinary * more.unwrap_or(1)
}

/// Polls until this holds. Returns the gaps.
fn poll(done: impl Fn(Instant) -> bool) -> Vec<Stretch> {
    // Touch it once, so that no page fault falls into the loop.
    let mut gaps = vec![Stretch { from: now(), to: now() }; GAPS_MOST];
    gaps.clear();
    let mut before = now();
    let end = before + PATIENCE;
    loop {
        let at = now();
        if at - before >= GAP_LEAST && gaps.len() < GAPS_MOST {
            gaps.push(Stretch { from: before, to: at });
        }
        before = at;
        if done(at) || at >= end {
            return gaps;
        }
    }
}

/// Polls while another thread, on CPU `from`, calls `deed` repeatedly, 1 ms apart. Returns the gaps, and the stretch of
/// each call.
fn provoke(from: Cpu, mut deed: impl FnMut() + Send) -> (Vec<Stretch>, Vec<Stretch>) {
    let (mut gaps, mut provocations) = (Vec::new(), Vec::new());
    for _ in 0..times(1) {
        let (done, ready) = (AtomicBool::new(false), Barrier::new(2));
        std::thread::scope(|scope| {
            let provoker = scope.spawn(|| {
                pin(from);
                // A priority above the poller's, whose policy this thread has inherited. A refusal shows as late
                // provocations.
                let _ = Host.set_policy(Policy::Fifo(2));
                ready.wait();
                let stretches = repeated(&mut deed);
                done.store(true, Ordering::Release);
                stretches
            });
            // This thread's CPU was the other one's, too, until then.
            ready.wait();
            gaps.extend(poll(|_| done.load(Ordering::Acquire)));
            provocations.extend(provoker.join().expect("the provoker ends"));
        });
        // A real-time thread that always polled would be throttled.
        std::thread::sleep(PAUSE);
    }
    (gaps, provocations)
}

fn repeated(deed: &mut impl FnMut()) -> Vec<Stretch> {
    let mut next = Host.monotonic();
    let stamped = (0..BATCH).map(|_| {
        next += BETWEEN;
        Host.sleep_until(next);
        let from = now();
        deed();
        Stretch { from, to: now() }
    });
    stamped.collect()
}

/// The gaps that were provoked for certain: each begins with its provocation and ends with it, is the only one there,
/// and has no other cause of its length.
fn certain(provocations: &[Stretch], gaps: &[Stretch]) -> Vec<Stretch> {
    let only = |provocation: &Stretch| {
        let first = gaps.partition_point(|gap| gap.to <= provocation.from);
        match gaps[first..].iter().take_while(|gap| gap.from < provocation.to).collect::<Vec<_>>()[..] {
            [gap] if gap.from + LOOK >= provocation.from && gap.to <= provocation.to + SOON => Some(*gap),
            _ => None,
        }
    };
    usual(provocations.iter().filter_map(only).collect())
}

/// Stretches that are not much longer than the shorter ones. A busy host makes some of them longer by time that it
/// takes from the guest, and no clock of the guest shows how much.
fn usual(mut stretches: Vec<Stretch>) -> Vec<Stretch> {
    let length = |stretch: &Stretch| stretch.to - stretch.from;
    let mut lengths: Vec<Nanos> = stretches.iter().map(length).collect();
    lengths.sort_unstable();
    let shorter = lengths.get(lengths.len() / 4).copied().unwrap_or(Nanos::ZERO);
    stretches.retain(|stretch| length(stretch) <= shorter * 5 / 4);
    stretches
}

/// The stretches about which the kernel lost no record.
fn explained(history: &CpuHistory, stretches: Vec<Stretch>) -> Vec<Stretch> {
    let known = |stretch: &Stretch| {
        let occupants = history.occupants(stretch.from, stretch.to);
        !occupants.iter().any(|(_, _, occupant)| matches!(occupant, crate::Occupant::Unknown(_)))
    };
    stretches.into_iter().filter(known).collect()
}

/// Terms of this kind of machine, refined by its gaps.
fn terms(gaps: &[Stretch], history: &CpuHistory) -> Terms {
    let terms = if Host.counter_evidence().hypervisor.is_some() { Terms::guest() } else { Terms::bare_metal() };
    let lost: Vec<LostTime> = gaps.iter().map(lost).collect();
    terms.learned(&lost, history)
}

fn lost(gap: &Stretch) -> LostTime {
    LostTime { thread: own_thread(), from: gap.from, to: gap.to, wanted: Wanted::Run }
}

fn say(figure: &str, value: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "figure: {figure}: {value}");
}

/// Culprits that count as right for a provocation.
struct Right<R, N> {
    /// Everything that it makes the kernel do, each with its own name.
    all: R,
    /// The culprit under test, which must have its part of each.
    named: N,
}

/// Compares the blame for provoked stretches with the truth. `of` is the number of provocations.
///
/// The system's timer ticks independently. Unless the tick was provoked, a few stretches with one are left out: see
/// [`MOST_TICKED`].
#[track_caller]
fn judge<R, N>(test: &str, history: &CpuHistory, terms: &Terms, provoked: &[Stretch], of: usize, right: &Right<R, N>)
where
    R: Fn(&Culprit) -> bool,
    N: Fn(&Culprit) -> bool,
{
    let (mut rightly, mut all, mut named, mut tally) = (Nanos::ZERO, Nanos::ZERO, 0, Tally::new());
    let (mut judged, mut ticked) = (0, 0);
    for stretch in provoked {
        let blame = blame(&lost(stretch), history, terms);
        let shares = blame.shares();
        let is_tick = |culprit: &Culprit| culprit.kind() == CulpritKind::Timer && !(right.all)(culprit);
        if ticked < provoked.len() / MOST_TICKED && shares.iter().any(|share| is_tick(&share.culprit)) {
            ticked += 1;
            continue;
        }
        judged += 1;
        all += blame.time();
        rightly += shares.iter().filter(|share| (right.all)(&share.culprit)).map(|share| share.time).sum();
        named += usize::from(shares.iter().any(|share| (right.named)(&share.culprit)));
        tally.add(&blame);
    }
    let part = |time: Nanos| time.count() as f64 / all.count().max(1) as f64;
    let (rightly, named) = (part(rightly), named as f64 / f64::from(judged.max(1)));
    let culprits: Vec<_> = tally
        .culprits()
        .into_iter()
        .map(|(culprit, toll)| format!("{culprit} {:.2} %", 100.0 * part(toll.total)))
        .collect();
    say(&format!("{test}, part with the right name"), format!("{rightly:.5}"));
    let undisturbed = format!("{:.3} ms in {} of {of} provocations", all.count() as f64 / 1e6, provoked.len());
    say(&format!("{test}, undisturbed"), undisturbed);
    say(&format!("{test}, by name"), culprits.iter().take(4).map(String::as_str).collect::<Vec<_>>().join("; "));
    assert!(rightly >= RIGHT_LEAST, "{test}: {rightly} of {all} in {} stretches: {culprits:#?}", provoked.len());
    assert!(named >= RIGHT_LEAST, "{test}: it has its part in {named} of {}: {culprits:#?}", provoked.len());
}

/// Judges the gaps that another CPU provoked; skips the test if nearly all of them had other disturbances.
#[track_caller]
fn judge_gaps<R, N>(test: &str, history: &CpuHistory, gaps: &[Stretch], provocations: &[Stretch], right: &Right<R, N>)
where
    R: Fn(&Culprit) -> bool,
    N: Fn(&Culprit) -> bool,
{
    let provoked = explained(history, certain(provocations, gaps));
    if provoked.len() < provocations.len() / 4 {
        return skip(test, busy(provoked.len(), provocations.len()));
    }
    judge(test, history, &terms(gaps, history), &provoked, provocations.len(), right);
}

fn busy(undisturbed: usize, of: usize) -> String {
    format!("the machine was too busy: {undisturbed} of {of} provocations were undisturbed")
}
