//! Tables *Who took the time*: the culprits of gaps and of late wake-ups, by name, from the kernel's own records.
//!
//! The loop polls in blocks. The kernel writes records in half of the blocks: those with records show the culprits, and
//! the difference to those without is the overhead of tracing. Closing the tracepoints takes the kernel up to a second,
//! so that one round of the sheet measures all rows.

mod incident;

use std::collections::BTreeMap;

use hairspring_culprit::host::{Tracer, TracerSettings, Untraced};
use hairspring_culprit::{
    Blame, CpuHistory, Culprit, CulpritKind, KernelEvent, KernelRecord, LostTime, Tally, Terms, Toll, blame,
};
use hairspring_machine::{Host, Machine, Nanos};
use hairspring_sheet::statistics::t_interval;
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_time::{RealTime, Timebase};

use incident::incident;

use crate::lost_time::{polled, slept};
use crate::probe::{
    Class, Context, Probes, Reading, Row, SAMPLES_MOST, Setting, Slot, TableSlot, Taken, policy_refused,
};

/// Shares of the chapter's time, all of it in one round.
const GAPS_SHARE: f64 = 0.18;
const WAKEUP_SHARE: f64 = 0.06;
/// A block with records or without. Long enough for some ticks of the slowest kernel.
const BLOCK: Nanos = Nanos::from_millis(50);
/// From one wake-up to the next.
const PERIOD: Nanos = Nanos::from_millis(1);
/// Culprits that are named below the tables.
const NAMED: usize = 5;
/// Number of gaps and of late wake-ups that are kept with all their events.
const INCIDENTS: usize = 5;

/// The rows of one table.
struct Culprits {
    named: Slot,
    kinds: Vec<(CulpritKind, Slot, Slot)>,
}

impl Culprits {
    fn slots(&self) -> impl Iterator<Item = Slot> + use<'_> {
        self.kinds.iter().flat_map(|(_, share, length)| [*share, *length]).chain([self.named])
    }
}

/// Declares the tables and their probe.
pub(crate) fn declare<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) {
    let table = probes.table(
        "disturbance.culprits",
        "Who took the time of a polling loop",
        "blocks of 50 ms with and without the kernel's records, in turns, in one round of the sheet; gaps of 1 µs and more",
    );
    let gaps = rows(probes, table, "gap of a polling loop under SCHED_OTHER", |kind| {
        // The thread is pinned.
        !matches!(kind, CulpritKind::IdleExit | CulpritKind::Frequency | CulpritKind::Migration)
    });
    let cost = Row::new(
        "watching",
        "time lost to the watching itself",
        Unit::Ratio,
        Method::Derived,
        "the part of its time that the loop loses in a block with the kernel's records, less the part that it loses in the block beside \
         it without: the mean of all pairs, with its 95 % interval",
    );
    let cost = probes.row(table, cost);
    let table = probes.table(
        "disturbance.wakeup_culprits",
        "Who made wake-ups late, SCHED_FIFO",
        "all of the lateness of every wake-up of a period of 1 ms; in one round of the sheet",
    );
    let wakeups = rows(probes, table, "late wake-up under SCHED_FIFO", |kind| kind != CulpritKind::Migration);
    let slots: Vec<Slot> = gaps.slots().chain([cost]).chain(wakeups.slots()).collect();
    probes.several(Setting::Class(Class::Other), slots.clone(), move |context| {
        let Some(timebase) = &context.host_timebase() else {
            let why = Absent::new("a simulated machine has no kernel to read from", "take the sheet on a real machine");
            return context.absent_all(slots, &why);
        };
        if context.turns(1) == 0 {
            return context.elsewhere(slots);
        }
        context.say("who takes the time");
        match Watching::begin(context, timebase) {
            Ok(mut watching) => {
                let pairs = watching.poll(context, timebase);
                watching.enter(context, &gaps, "gaps");
                context.enter(cost, watching_cost(&pairs));
                match watching.wake(context, timebase) {
                    Ok(()) => watching.enter(context, &wakeups, "late wake-ups"),
                    Err(absent) => context.absent_all(wakeups.slots(), &absent),
                }
            }
            Err(untraced) => {
                let absent = Absent { reason: untraced.reason, remedy: untraced.remedy };
                context.absent_all(slots, &absent);
            }
        }
    });
}

fn rows<M: Machine + Clone + Sync + 'static>(
    probes: &mut Probes<M>,
    table: TableSlot,
    what: &str,
    has: impl Fn(CulpritKind) -> bool,
) -> Culprits {
    let mut kinds = Vec::new();
    for kind in CulpritKind::ALL.into_iter().filter(|&kind| has(kind)) {
        let (name, people, meaning) = (kind.name(), kind.people(), meaning(kind));
        let share = Row::new(
            format!("{name}.share"),
            format!("{people}, share"),
            Unit::Ratio,
            Method::Derived,
            format!("the part that this took of all that was lost, per {what}: {meaning}"),
        );
        let length = Row::new(
            format!("{name}.length"),
            format!("{people}, length"),
            Unit::Ns,
            Method::Stamp,
            format!("what this took of each {what} in which it took anything: {meaning}"),
        );
        kinds.push((kind, probes.row(table, share), probes.row(table, length)));
    }
    let named = Row::new(
        "named",
        "with a name",
        Unit::Ratio,
        Method::Derived,
        format!(
            "how many of all had a culprit, per {what}; the rest is unexplained, because records of the kernel were lost"
        ),
    );
    Culprits { named: probes.row(table, named), kinds }
}

fn meaning(kind: CulpritKind) -> &'static str {
    match kind {
        CulpritKind::Timer => "the interrupt of the CPU's own timer, with its delivery",
        CulpritKind::Interrupt => "the handler of a device's interrupt",
        CulpritKind::FunctionCall => {
            "another CPU had this one call a function, for instance to forget a page's translation"
        }
        CulpritKind::Reschedule => "another CPU asked this one to look for a task",
        CulpritKind::OtherVector => "a thermal, error or non-maskable interrupt",
        CulpritKind::Softirq => "work that interrupts leave for later: network, blocks, timers, RCU",
        CulpritKind::Task => "another program had the CPU",
        CulpritKind::Worker => "a worker of the kernel had the CPU",
        CulpritKind::PageFault => "the thread touched memory that was not there",
        CulpritKind::OwnCall => "the thread was in a call of its own, or on its way out of one",
        CulpritKind::Throttling => "the thread could have run and its CPU was idle",
        CulpritKind::Migration => "the kernel moved the thread to another CPU",
        CulpritKind::IdleExit => {
            "the CPU had nothing to do and took this long to begin again; on a guest the host's part is in it"
        }
        CulpritKind::Frequency => "the CPU changed its frequency",
        CulpritKind::Hypervisor => {
            "the kernel says that the thread ran, and on a guest nobody else can have had the CPU"
        }
        CulpritKind::Firmware => "the kernel says that the thread ran, and there is no hypervisor",
        CulpritKind::Unexplained => "records of the kernel were lost",
    }
}

/// The kernel's records of one CPU, and the time that a thread lost there.
struct Watching {
    tracer: Tracer,
    history: CpuHistory,
    lost: Vec<LostTime>,
    watched: Nanos,
    guest: bool,
}

impl Watching {
    fn begin<M: Machine + Clone + Sync>(context: &Context<'_, M>, timebase: &Timebase<Host>) -> Result<Self, Untraced> {
        let guest = timebase.trust().guest;
        let settings = TracerSettings { rare_vectors: !guest, ..TracerSettings::of_cpus([context.cpu]) };
        let mut tracer = Tracer::open(&settings)?;
        tracer.self_test()?;
        Ok(Self { tracer, history: CpuHistory::new(), lost: Vec::new(), watched: Nanos::ZERO, guest })
    }

    /// Polls in pairs of blocks, one of them with records. Returns the part of its time that each lost: with, without.
    fn poll<M: Machine + Clone + Sync>(
        &mut self,
        context: &Context<'_, M>,
        timebase: &Timebase<Host>,
    ) -> Vec<[f64; 2]> {
        let machine = timebase.machine();
        let all = Nanos::new((context.effort.chapter_budget().count() as f64 * GAPS_SHARE) as i64);
        let count = (all.count() / (BLOCK.count() * 2)).max(1);
        let mut pairs = Vec::new();
        for turn in 0..count {
            if context.stopped() || self.lost.len() >= SAMPLES_MOST {
                break;
            }
            let mut pair = [0.0; 2];
            // ABBA: drift affects both alike.
            for place in 0..2 {
                let with = (place == 0) == (turn % 2 == 0);
                if with && !self.resume(machine) {
                    return pairs;
                }
                let gaps = polled(BLOCK, SAMPLES_MOST);
                let lost: Nanos = gaps.iter().map(|gap| gap.to - gap.from).sum();
                pair[usize::from(!with)] = lost.count() as f64 / BLOCK.count() as f64;
                if with {
                    self.pause();
                    self.lost.extend(gaps);
                    self.watched += BLOCK;
                }
            }
            pairs.push(pair);
        }
        pairs
    }

    /// Sleeps to the end of each period.
    fn wake<M: Machine + Clone + Sync>(
        &mut self,
        context: &Context<'_, M>,
        timebase: &Timebase<Host>,
    ) -> Result<(), Absent> {
        let machine = timebase.machine();
        let guard = RealTime { slack: Some(Nanos::new(1)), ..context.settings(Class::Fifo) }.apply(machine);
        if let Some(absent) = policy_refused(&guard) {
            return Err(absent);
        }
        if !self.resume(machine) {
            return Err(Absent::final_("the kernel did not go on with its records"));
        }
        let span = Nanos::new((context.effort.chapter_budget().count() as f64 * WAKEUP_SHARE) as i64);
        let begin = machine.monotonic();
        self.lost = slept(PERIOD, span, || context.stopped());
        self.watched = machine.monotonic() - begin;
        self.pause();
        Ok(())
    }

    /// Goes on with records. The history knows from the next change of tasks on, which this makes.
    fn resume(&mut self, machine: &Host) -> bool {
        let hole = KernelRecord { at: machine.monotonic(), event: KernelEvent::Lost };
        self.history.push(hole);
        let resumed = self.tracer.resume().is_ok();
        machine.sleep_until(machine.monotonic() + Nanos::from_micros(1));
        resumed
    }

    /// Stops the records and takes those that there are.
    fn pause(&mut self) {
        let history = &mut self.history;
        let until = self.tracer.drain(|_, record| history.push(record));
        history.known_until(until);
        // A tracer that cannot be stopped goes on: its records belong to a block that is not evaluated.
        let _ = self.tracer.pause();
        self.tracer.drain(|_, _| ());
    }

    /// Assigns all lost time to culprits, and fills the rows.
    fn enter<M: Machine + Clone + Sync>(&self, context: &mut Context<'_, M>, rows: &Culprits, what: &str) {
        let terms = if self.guest { Terms::guest() } else { Terms::bare_metal() };
        let terms = terms.learned(&self.lost, &self.history);
        let mut tally = Tally::new();
        let mut lengths = BTreeMap::<CulpritKind, Vec<f64>>::new();
        let mut blames: Vec<Blame> = self.lost.iter().map(|lost| blame(lost, &self.history, &terms)).collect();
        for blame in &blames {
            tally.add(blame);
            for (kind, time) in by_kind(blame) {
                lengths.entry(kind).or_default().push(time.count() as f64);
            }
        }
        for (kind, share, length) in &rows.kinds {
            context.put(*length, Reading::watched(lengths.remove(kind).unwrap_or_default(), self.watched));
            match tally.share_of_kind(*kind) {
                Some(value) => context.put(*share, Reading::single(value)),
                None => context.absent(*share, Absent::final_(format!("no such event in {}", self.watched))),
            }
        }
        let (count, unexplained) = (tally.whole().gaps, tally.of_kind(CulpritKind::Unexplained).gaps);
        if count > 0 {
            context.put(rows.named, Reading::single(1.0 - unexplained as f64 / count as f64));
        } else {
            context.absent(rows.named, Absent::final_(format!("no such event in {}", self.watched)));
        }
        let redact = context.redact;
        let told = |culprit: &Culprit| told(culprit, redact);
        if let Some(text) = who(what, &tally, told) {
            context.remark(text);
        }
        blames.sort_by_key(|blame| std::cmp::Reverse(blame.time()));
        let worst = blames.iter().filter(|blame| blame.time() > Nanos::ZERO).take(INCIDENTS);
        context.incidents.extend(worst.map(|blame| incident(blame, &self.history, context.cpu, told)));
        context.remark(format!(
            "Of {what} an interrupt's delivery counts up to {}, the way back from it up to {}, that from another task up to {}: twice what is \
             usual on this machine. What is longer was taken from below the kernel.",
            terms.delivery, terms.way_back, terms.way_out
        ));
    }
}

/// Time that each kind of culprit took of one gap.
fn by_kind(blame: &Blame) -> BTreeMap<CulpritKind, Nanos> {
    let mut kinds = BTreeMap::<CulpritKind, Nanos>::new();
    for share in blame.shares() {
        *kinds.entry(share.culprit.kind()).or_default() += share.time;
    }
    kinds
}

/// The greatest culprits of all, by name.
fn who(what: &str, tally: &Tally, told: impl Fn(&Culprit) -> String) -> Option<String> {
    let whole = tally.whole().total.count();
    let named = |(culprit, toll): &(&Culprit, Toll)| {
        let percent = 100.0 * toll.total.count() as f64 / whole as f64;
        format!("{} ({percent:.1} %, {} {what}, at most {})", told(culprit), toll.gaps, toll.longest)
    };
    let names: Vec<String> = tally.culprits().iter().take(NAMED).map(named).collect();
    (whole > 0).then(|| format!("Who took the time of {what}: {}.", names.join("; ")))
}

/// A culprit by its name; another program without one if names are left out.
fn told(culprit: &Culprit, redact: bool) -> String {
    match culprit {
        Culprit::Task(task) if redact => format!("another task, {}", task.scheduling()),
        _ => culprit.to_string(),
    }
}

/// Overhead of the records themselves, from pairs of blocks with and without.
fn watching_cost(pairs: &[[f64; 2]]) -> Taken {
    let differences: Vec<f64> = pairs.iter().map(|[with, without]| with - without).collect();
    let limits = t_interval(&differences, None).ok_or_else(|| Absent::final_("fewer than two pairs of blocks"))?;
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    Ok(Reading::estimate(differences.len() as u64, mean, limits))
}
