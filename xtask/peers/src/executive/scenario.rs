//! What every executive is put through, written once against the suite's port.
//!
//! Each scenario makes an executive, lets one batch of rounds run for a given time and gives the time of a round. Whoever
//! measures is the least urgent task. Each round carries a proof: a count that the more urgent task raises and the measuring
//! one reads when its call has returned. On an executive that cannot preempt its caller, the measuring task gives the CPU
//! away (a cooperative one) or polls (one with several CPUs) until the proof is there, and that is part of the round.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hairspring_machine::{Clock, Host, Machine};
use hairspring_sheet::Absent;
use hairspring_suite::executive::port::{Ability, Calls, Message, Place, Port, Urgency};
use hairspring_time::{Nanos, Timebase};

/// The urgency of the task that answers.
pub(crate) const HIGH: Urgency = 16;
/// The urgency of the task that measures.
pub(crate) const LOW: Urgency = 48;
/// Rounds between two looks at the clock.
pub(crate) const CHUNK: u64 = 512;
/// Tasks of a chain of messages.
pub(crate) const LINKS: u8 = 16;
/// Tasks of Thread-Metric's tests.
const FIVE: usize = 5;
/// How often whoever cannot preempt asks for a proof before it gives up.
const PATIENCE: u32 = 20_000_000;
/// How often whoever should have been preempted looks whether the other has caught up.
const CATCH_UP_MOST: u32 = 1_000_000;
/// Above this share of rounds without proof there is no result.
const UNPROVEN_MOST: f64 = 0.001;

/// Where and how long to measure.
#[derive(Clone, Debug)]
pub(crate) struct Stand {
    pub(crate) place: Place,
    pub(crate) timebase: Timebase,
    /// How long a batch lasts.
    pub(crate) span: Nanos,
    /// What a pair of ordered stamps shows with nothing between.
    pub(crate) pair_ns: f64,
}

/// One batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// Wall time of a round.
    pub(crate) wall_ns: f64,
    /// CPU time of the process for a round: what is left of the wall time if others load the machine.
    pub(crate) cpu_ns: Option<f64>,
    pub(crate) rounds: u64,
    pub(crate) unproven: u64,
}

/// What came of one scenario on one executive, once.
pub(crate) type Outcome = Result<Batch, Absent>;

/// The scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    WakeWait,
    FourTs,
    SendRun,
    SendRunEnd,
    Cooperative,
    Preemptive,
    Messages,
    Synchronisation,
}

impl Scenario {
    pub(crate) const ALL: [Self; 8] = [
        Self::WakeWait,
        Self::FourTs,
        Self::SendRun,
        Self::SendRunEnd,
        Self::Cooperative,
        Self::Preemptive,
        Self::Messages,
        Self::Synchronisation,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WakeWait => "wake + wait, two switches",
            Self::FourTs => "T1 + T2 + T3 + T4",
            Self::SendRun => "mailbox: send → run",
            Self::SendRunEnd => "mailbox: send → run → back",
            Self::Cooperative => "cooperative",
            Self::Preemptive => "preemptive",
            Self::Messages => "message",
            Self::Synchronisation => "synchronisation",
        }
    }

    /// Operations that Thread-Metric counts in a round; none: it is no test of Thread-Metric.
    pub(crate) fn counted(self) -> Option<f64> {
        match self {
            Self::Cooperative | Self::Preemptive => Some(FIVE as f64),
            Self::Messages | Self::Synchronisation => Some(1.0),
            _ => None,
        }
    }

    fn needs(self) -> &'static [Ability] {
        match self {
            Self::WakeWait | Self::Preemptive => &[Ability::Wake],
            Self::FourTs => &[Ability::Trigger, Ability::Wake],
            Self::SendRun | Self::SendRunEnd | Self::Messages => &[Ability::Mail],
            Self::Cooperative => &[Ability::Yield],
            Self::Synchronisation => &[Ability::Semaphore],
        }
    }

    /// Runs it once on an executive.
    pub(crate) fn run<P: Port>(self, stand: &Stand) -> Outcome {
        if let Some(absent) = self.needs().iter().find_map(|&ability| P::unable(ability)) {
            return Err(absent);
        }
        match self {
            Self::WakeWait => wake_wait::<P>(stand, u64::MAX),
            Self::FourTs => four_ts::<P>(stand),
            Self::SendRun => send_run::<P>(stand),
            Self::SendRunEnd => send_run_end::<P>(stand),
            Self::Cooperative => cooperative::<P>(stand),
            Self::Preemptive => preemptive::<P>(stand),
            Self::Messages => messages::<P>(stand),
            Self::Synchronisation => synchronisation::<P>(stand),
        }
    }
}

/// A count in a cache line of its own, shared by two tasks.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// The next. Release pairs with the Acquire in `now`.
    #[inline(always)]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// After a call that returned before the more urgent task ran: lets it catch up, so that one such round does not spoil the
/// rest. False: the round has no proof.
#[cold]
#[inline(never)]
pub(crate) fn catch_up(count: &Count, number: u64) -> bool {
    for _ in 0..CATCH_UP_MOST {
        if count.now() == number {
            break;
        }
        Host.relax();
    }
    false
}

/// Times one batch.
pub(crate) struct Meter {
    began: (Nanos, Nanos),
    end: Nanos,
    rounds: u64,
    unproven: u64,
}

impl Meter {
    pub(crate) fn start(span: Nanos) -> Self {
        let cpu = Host.read(Clock::ProcessCpu);
        let wall = Host.read(Clock::Monotonic);
        Self { began: (wall, cpu), end: wall + span, rounds: 0, unproven: 0 }
    }

    /// Whether there is time for another chunk.
    #[inline]
    pub(crate) fn goes_on(&self) -> bool {
        Host.read(Clock::Monotonic) < self.end
    }

    #[inline(always)]
    pub(crate) fn round(&mut self, proven: bool) {
        self.rounds += 1;
        self.unproven += u64::from(!proven);
    }

    pub(crate) fn finish(self) -> Batch {
        let (wall, cpu) = (Host.read(Clock::Monotonic), Host.read(Clock::ProcessCpu));
        let per_round = |span: Nanos| span.count() as f64 / self.rounds.max(1) as f64;
        let (wall_ns, cpu_ns) = (per_round(wall - self.began.0), per_round(cpu - self.began.1));
        Batch { wall_ns, cpu_ns: Some(cpu_ns), rounds: self.rounds, unproven: self.unproven }
    }
}

/// Where the measuring task leaves its batch.
#[derive(Clone, Default)]
pub(crate) struct Tray(Arc<Mutex<Option<Batch>>>);

impl Tray {
    pub(crate) fn put(&self, batch: Batch) {
        if let Ok(mut tray) = self.0.lock() {
            *tray = Some(batch);
        }
    }

    /// What was left, if it is to be believed.
    pub(crate) fn take(&self) -> Outcome {
        let batch = self.0.lock().ok().and_then(|mut tray| tray.take());
        batch.ok_or_else(|| Absent::final_("the run came to no end")).and_then(Batch::believed)
    }
}

impl Batch {
    /// This, if enough of it is proven.
    pub(crate) fn believed(self) -> Outcome {
        let batch = self;
        if batch.unproven as f64 > batch.rounds as f64 * UNPROVEN_MOST {
            let reason =
                format!("no result: {} of {} rounds without proof of the switch", batch.unproven, batch.rounds);
            return Err(Absent::final_(reason));
        }
        Ok(batch)
    }
}

/// Runs, and believes what is proven.
fn conclude<P: Port>(mut port: P, stand: &Stand, tray: &Tray) -> Outcome {
    let outcome = port.run(stand.span.times(4) + Nanos::from_secs(2));
    if let Some(void) = outcome.void {
        return Err(void);
    }
    tray.take()
}

/// Short, so that caches and predictors are warm, and then in earnest.
pub(crate) fn spans(stand: &Stand) -> [Nanos; 2] {
    [Nanos::new(stand.span.count() / 8), stand.span]
}

/// Gives way or polls until the proof is there. A function of its own, so that nothing of it is in the loops of those that
/// preempt their caller; for them it only brings the counts together again.
async fn overtaken<P: Port>(calls: &P::Calls<'_>, count: &Count, number: u64) -> bool {
    for _ in 0..PATIENCE {
        calls.preempt_point().await;
        if count.now() == number {
            return true;
        }
    }
    false
}

/// Whether the proof is there when a call has returned; there is time for it only where the caller is not preempted. In the
/// body of the task itself, for a call between two switches costs more than the switches.
macro_rules! proven {
    ($port:ty, $calls:expr, $count:expr, $number:expr, $preempts:expr) => {
        $count.now() == $number || (overtaken::<$port>($calls, &$count, $number).await && !$preempts)
    };
}

fn preempts<P: Port>() -> bool {
    P::unable(Ability::PreemptsCaller).is_none()
}

/// B wakes A, which waits again. At most so many rounds.
pub(crate) fn wake_wait<P: Port>(stand: &Stand, most: u64) -> Outcome {
    let mut port = P::make(stand.place)?;
    let (count, tray, preempts) = (Arc::new(Count::default()), Tray::default(), preempts::<P>());
    let own = Arc::clone(&count);
    let high = port.spawn("A", HIGH, async move |calls| {
        let mut number = 0;
        loop {
            calls.wait().await;
            number += 1;
            own.set(number);
        }
    })?;
    let (put, spans) = (tray.clone(), spans(stand));
    let low = port.spawn("B", LOW, async move |calls| {
        let mut number = 0;
        for span in spans {
            let mut meter = Meter::start(span);
            while meter.rounds < most && meter.goes_on() {
                for _ in 0..CHUNK.min(most - meter.rounds) {
                    number += 1;
                    calls.wake(high).await;
                    meter.round(proven!(P, calls, count, number, preempts));
                }
            }
            put.put(meter.finish());
        }
        calls.stop().await;
    })?;
    port.start(high)?;
    port.start(low)?;
    conclude(port, stand, &tray)
}

/// B triggers A, which waits; B wakes it; it ends.
fn four_ts<P: Port>(stand: &Stand) -> Outcome {
    let mut port = P::make(stand.place)?;
    let (count, tray, preempts) = (Arc::new(Count::default()), Tray::default(), preempts::<P>());
    let own = Arc::clone(&count);
    let mut number = 0;
    let high = port.spawn("A", HIGH, async move |calls| {
        number += 1;
        own.set(number);
        calls.wait().await;
        number += 1;
        own.set(number);
    })?;
    let (put, spans) = (tray.clone(), spans(stand));
    let low = port.spawn("B", LOW, async move |calls| {
        let mut number = 0;
        for span in spans {
            let mut meter = Meter::start(span);
            while meter.goes_on() {
                for _ in 0..CHUNK {
                    number += 1;
                    calls.trigger(high).await;
                    let started = proven!(P, calls, count, number, preempts);
                    number += 1;
                    calls.wake(high).await;
                    let woken = proven!(P, calls, count, number, preempts);
                    meter.round(started & woken);
                }
            }
            put.put(meter.finish());
        }
        calls.stop().await;
    })?;
    port.start(low)?;
    conclude(port, stand, &tray)
}

/// A message of 12 bytes down a chain of tasks, each more urgent than the last: from before the first send until the last
/// task runs with its copy, for each link.
fn send_run<P: Port>(stand: &Stand) -> Outcome {
    let mut port = P::make(stand.place)?;
    let (count, tray, preempts) = (Arc::new(Count::default()), Tray::default(), preempts::<P>());
    let reached = Arc::new(Count::default());
    let mut next: Option<P::Mail> = None;
    for link in 0..LINKS {
        let (own, mark, timebase) = (Arc::clone(&count), Arc::clone(&reached), stand.timebase.clone());
        next = Some(port.spawn_mail("A", HIGH + link, async move |calls, _, message: Message| {
            if let Some(next) = next {
                calls.send(next, message).await;
            } else {
                mark.set(timebase.stamp_ordered().raw());
                own.set(u64::from(message[0]));
            }
        })?);
    }
    let Some(first) = next else { return Err(Absent::final_("a chain has no links")) };
    let (put, spans, timebase, pair_ns) = (tray.clone(), spans(stand), stand.timebase.clone(), stand.pair_ns);
    let low = port.spawn("B", LOW, async move |calls| {
        let rate_ghz = timebase.calibration().rate_hz * 1e-9;
        let mut number = 0_u32;
        for span in spans {
            let mut meter = Meter::start(span);
            let mut ticks = 0;
            while meter.goes_on() {
                for _ in 0..CHUNK {
                    number = number.wrapping_add(1);
                    let before = timebase.stamp_ordered().raw();
                    calls.send(first, [number, 2, 3]).await;
                    let proven = proven!(P, calls, count, u64::from(number), preempts);
                    meter.round(proven);
                    if proven {
                        ticks += reached.now().wrapping_sub(before);
                    }
                }
            }
            let batch = meter.finish();
            let chain_ns = ticks as f64 / rate_ghz / (batch.rounds - batch.unproven).max(1) as f64;
            put.put(Batch { wall_ns: (chain_ns - pair_ns) / f64::from(LINKS), cpu_ns: None, ..batch });
        }
        calls.stop().await;
    })?;
    port.start(low)?;
    conclude(port, stand, &tray)
}

/// B sends A a message; A runs with it and ends; B goes on.
fn send_run_end<P: Port>(stand: &Stand) -> Outcome {
    let mut port = P::make(stand.place)?;
    let (count, tray, preempts) = (Arc::new(Count::default()), Tray::default(), preempts::<P>());
    let own = Arc::clone(&count);
    let high = port.spawn_mail("A", HIGH, async move |_, _, message: Message| own.set(u64::from(message[0])))?;
    let (put, spans) = (tray.clone(), spans(stand));
    let low = port.spawn("B", LOW, async move |calls| {
        let mut number = 0_u32;
        for span in spans {
            let mut meter = Meter::start(span);
            while meter.goes_on() {
                for _ in 0..CHUNK {
                    number = number.wrapping_add(1);
                    calls.send(high, [number, 2, 3]).await;
                    meter.round(proven!(P, calls, count, u64::from(number), preempts));
                }
            }
            put.put(meter.finish());
        }
        calls.stop().await;
    })?;
    port.start(low)?;
    conclude(port, stand, &tray)
}

/// Thread-Metric, cooperative: five tasks of one priority give way to each other and count.
fn cooperative<P: Port>(stand: &Stand) -> Outcome {
    let mut port = P::make(stand.place)?;
    let counts: Arc<[Count; FIVE]> = Arc::default();
    let tray = Tray::default();
    let (own, put, spans) = (Arc::clone(&counts), tray.clone(), spans(stand));
    let mut tasks = vec![port.spawn("0", LOW, async move |calls| {
        let mut number = 0;
        for span in spans {
            let mut meter = Meter::start(span);
            while meter.goes_on() {
                for _ in 0..CHUNK {
                    number += 1;
                    own[0].set(number);
                    calls.yield_now().await;
                    // Thread-Metric's own condition: the counts agree within one.
                    let agree = own[1..].iter().all(|count| count.now().abs_diff(number) <= 1);
                    meter.round(agree);
                }
            }
            put.put(meter.finish());
        }
        calls.stop().await;
    })?];
    for index in 1..FIVE {
        let own = Arc::clone(&counts);
        tasks.push(port.spawn("n", LOW, async move |calls| {
            let mut number = 0;
            loop {
                number += 1;
                own[index].set(number);
                calls.yield_now().await;
            }
        })?);
    }
    for task in tasks {
        port.start(task)?;
    }
    conclude(port, stand, &tray)
}

/// Thread-Metric, preemptive: the least urgent of five tasks wakes the next, which wakes the next; each counts and waits.
/// (Thread-Metric says resume and suspend.)
fn preemptive<P: Port>(stand: &Stand) -> Outcome {
    let mut port = P::make(stand.place)?;
    let counts: Arc<[Count; FIVE]> = Arc::default();
    let (tray, preempts) = (Tray::default(), preempts::<P>());
    let mut others: Vec<P::Task> = Vec::new();
    for index in (1..FIVE).rev() {
        let (own, next) = (Arc::clone(&counts), others.last().copied());
        let urgency = LOW - 8 * index as Urgency;
        others.push(port.spawn("n", urgency, async move |calls| {
            let mut number = 0;
            loop {
                calls.wait().await;
                if let Some(next) = next {
                    calls.wake(next).await;
                }
                number += 1;
                own[index].set(number);
            }
        })?);
    }
    let (put, spans) = (tray.clone(), spans(stand));
    for &task in &others {
        port.start(task)?;
    }
    let Some(&first) = others.last() else { return Err(Absent::final_("a chain has no links")) };
    let low = port.spawn("0", LOW, async move |calls| {
        let mut number = 0;
        for span in spans {
            let mut meter = Meter::start(span);
            while meter.goes_on() {
                for _ in 0..CHUNK {
                    number += 1;
                    calls.wake(first).await;
                    let top = proven!(P, calls, counts[FIVE - 1], number, preempts);
                    let first = proven!(P, calls, counts[1], number, preempts);
                    meter.round(top & first);
                }
            }
            put.put(meter.finish());
        }
        calls.stop().await;
    })?;
    port.start(low)?;
    conclude(port, stand, &tray)
}

/// Thread-Metric, message: one task sends to its own mailbox and receives; the contents are the proof.
fn messages<P: Port>(stand: &Stand) -> Outcome {
    let mut port = P::make(stand.place)?;
    let tray = Tray::default();
    let (put, spans) = (tray.clone(), spans(stand));
    let task = port.spawn_mail("M", LOW, async move |calls, own, _| {
        let mut number = 0_u32;
        for span in spans {
            let mut meter = Meter::start(span);
            while meter.goes_on() {
                for _ in 0..CHUNK {
                    number = number.wrapping_add(1);
                    calls.send(own, [number, 2, 3]).await;
                    meter.round(calls.receive(own).await == [number, 2, 3]);
                }
            }
            put.put(meter.finish());
        }
        calls.stop().await;
    })?;
    let starter = port.spawn("S", LOW + 1, async move |calls| calls.send(task, [0; 3]).await)?;
    port.start(starter)?;
    conclude(port, stand, &tray)
}

/// Thread-Metric, synchronisation: one task takes a semaphore and gives it back. It would hang if that did not work.
fn synchronisation<P: Port>(stand: &Stand) -> Outcome {
    let mut port = P::make(stand.place)?;
    let semaphore = port.semaphore(1)?;
    let tray = Tray::default();
    let (put, spans) = (tray.clone(), spans(stand));
    let task = port.spawn("S", LOW, async move |calls| {
        for span in spans {
            let mut meter = Meter::start(span);
            while meter.goes_on() {
                for _ in 0..CHUNK {
                    calls.take(semaphore).await;
                    calls.give(semaphore).await;
                    meter.round(true);
                }
            }
            put.put(meter.finish());
        }
        calls.stop().await;
    })?;
    port.start(task)?;
    conclude(port, stand, &tray)
}
