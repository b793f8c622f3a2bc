//! [`ThreadWatch`]: wake-ups and preemptions of the threads of a program, from the kernel's records alone: their
//! durations and their culprits.
//!
//! It is a function of records, and needs neither the program's help nor its sources. A wake-up lasts from the call
//! that wakes a thread (`sched_waking`) until the thread has a CPU (`sched_switch`). A preemption lasts from the moment
//! at which a thread that could go on lost its CPU until it had one again; a thread that yields counts as well. Where
//! records were lost a case that had begun is dropped.

use std::collections::{BTreeMap, BTreeSet};

use hairspring_culprit::host::CostPair;
use hairspring_culprit::{
    CpuHistory, KernelEvent, KernelRecord, KernelTask, LeftAs, LostTime, Share, Tally, Terms, Wanted, blame,
};
use hairspring_machine::{Cpu, Instant, Nanos};
use hairspring_sheet::Histogram;
use hairspring_sheet::statistics::t_interval;

/// Lost time and culprits of the threads of a program.
#[derive(Debug)]
pub struct ThreadWatch {
    terms: Terms,
    histories: BTreeMap<Cpu, CpuHistory>,
    /// Records behind the time up to which those of all CPUs are known.
    waiting: Vec<(Cpu, KernelRecord)>,
    /// Its threads, by their numbers.
    pub threads: BTreeMap<u32, WatchedThread>,
    /// Culprits of the wake-ups.
    pub wakeups: Tally,
    /// Culprits of the preemptions.
    pub preemptions: Tally,
    /// The longest cases, the longest first.
    pub worst: Vec<WatchedCase>,
    /// Number of records read.
    pub records: u64,
    /// Number of times that records were lost.
    pub losses: u64,
}

/// One thread.
#[derive(Debug, Default)]
pub struct WatchedThread {
    /// Its name when it last ran.
    pub name: String,
    /// Durations of its wake-ups.
    pub wakeups: Spans,
    /// Durations of its preemptions.
    pub preemptions: Spans,
    runs: bool,
    /// When it was woken, or when it lost which CPU, if it has not run since.
    woken: Option<Instant>,
    preempted: Option<(Instant, Cpu)>,
}

/// Spans of time, with their distribution.
#[derive(Debug, Default)]
pub struct Spans {
    /// In nanoseconds.
    pub histogram: Histogram,
    /// All together.
    pub total: Nanos,
    /// The longest.
    pub worst: Nanos,
    fresh: Vec<f64>,
}

/// A wake-up or a preemption.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedCase {
    /// The lost interval, and whether the thread was running or waking.
    pub lost: LostTime,
    /// Culprits, the greatest share first.
    pub shares: Vec<Share>,
}

/// Cost of one record of the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordCost {
    /// The mean of all pairs of blocks, in nanoseconds.
    pub mean_ns: f64,
    /// The limits that hold it in 95 %.
    pub limits_ns: [f64; 2],
    /// Number of pairs.
    pub pairs: usize,
}

impl RecordCost {
    /// The mean of pairs, with its t interval; none of fewer than two.
    pub fn of(pairs: &[CostPair]) -> Option<Self> {
        let each: Vec<f64> = pairs.iter().map(CostPair::record_ns).collect();
        let limits_ns = t_interval(&each, None)?;
        Some(Self { mean_ns: each.iter().sum::<f64>() / each.len() as f64, limits_ns, pairs: each.len() })
    }
}

/// Number of longest cases that are kept.
pub const WATCHED_CASES_MOST: usize = 10;
/// Length of the history: a longer case has no culprit.
const HISTORY: Nanos = Nanos::from_secs(2);

impl ThreadWatch {
    /// An empty watch. `guest` is true if there is a hypervisor below the kernel.
    pub fn new(guest: bool) -> Self {
        Self {
            terms: if guest { Terms::guest() } else { Terms::bare_metal() },
            histories: BTreeMap::new(),
            waiting: Vec::new(),
            threads: BTreeMap::new(),
            wakeups: Tally::new(),
            preemptions: Tally::new(),
            worst: Vec::new(),
            records: 0,
            losses: 0,
        }
    }

    /// Takes records, of each CPU in their order, which are complete up to a time; and the numbers of the threads that
    /// are watched.
    pub fn take(
        &mut self,
        records: impl IntoIterator<Item = (Cpu, KernelRecord)>,
        until: Instant,
        threads: &BTreeSet<u32>,
    ) {
        self.waiting.extend(records);
        // Stable, so that each CPU's stay in their order.
        self.waiting.sort_by_key(|(_, record)| record.at);
        let later = self.waiting.split_off(self.waiting.partition_point(|(_, record)| record.at <= until));
        let mut cases = Vec::new();
        for (cpu, record) in std::mem::replace(&mut self.waiting, later) {
            self.records += 1;
            self.look(cpu, &record, threads, &mut cases);
            self.histories.entry(cpu).or_default().push(record);
        }
        for history in self.histories.values_mut() {
            history.known_until(until);
        }
        for (cpu, lost) in cases {
            self.enter(cpu, lost);
        }
        for history in self.histories.values_mut() {
            history.forget_before(until - HISTORY);
        }
        for thread in self.threads.values_mut() {
            thread.wakeups.settle();
            thread.preemptions.settle();
        }
    }

    fn look(&mut self, cpu: Cpu, record: &KernelRecord, threads: &BTreeSet<u32>, cases: &mut Vec<(Cpu, LostTime)>) {
        let at = record.at;
        match &record.event {
            KernelEvent::Waking { pid } if threads.contains(pid) => {
                let thread = self.threads.entry(*pid).or_default();
                if !thread.runs && thread.preempted.is_none() {
                    thread.woken.get_or_insert(at);
                }
            }
            KernelEvent::Switch { from, left_as, to } => {
                if threads.contains(&from.pid) {
                    let thread = self.threads.entry(from.pid).or_default();
                    // A program that was executed since it got the CPU has a new name.
                    thread.name = from.name();
                    (thread.runs, thread.woken) = (false, None);
                    thread.preempted = (*left_as == LeftAs::Runnable).then_some((at, cpu));
                }
                if threads.contains(&to.pid) {
                    cases.extend(self.runs(cpu, at, to));
                }
            }
            KernelEvent::Lost => {
                self.losses += 1;
                for thread in self.threads.values_mut() {
                    (thread.runs, thread.woken, thread.preempted) = (false, None, None);
                }
            }
            _ => {}
        }
    }

    /// Enters that a thread got a CPU: returns the case that this ends, and the CPU whose history shows it.
    fn runs(&mut self, cpu: Cpu, at: Instant, task: &KernelTask) -> Option<(Cpu, LostTime)> {
        let thread = self.threads.entry(task.pid).or_default();
        thread.name = task.name();
        thread.runs = true;
        let (woken, preempted) = (thread.woken.take(), thread.preempted.take());
        let of = |from, wanted| LostTime { thread: task.pid, from, to: at, wanted };
        match (woken, preempted) {
            (Some(from), _) => Some((cpu, of(from, Wanted::Wake))),
            (None, Some((from, before))) => Some((before, of(from, Wanted::Run))),
            (None, None) => None,
        }
    }

    fn enter(&mut self, cpu: Cpu, lost: LostTime) {
        let (Some(history), Some(thread)) = (self.histories.get(&cpu), self.threads.get_mut(&lost.thread)) else {
            return;
        };
        let blame = blame(&lost, history, &self.terms);
        let (spans, tally) = match lost.wanted {
            Wanted::Wake => (&mut thread.wakeups, &mut self.wakeups),
            Wanted::Run => (&mut thread.preemptions, &mut self.preemptions),
        };
        spans.push(blame.time());
        tally.add(&blame);
        if self.worst.len() < WATCHED_CASES_MOST
            || self.worst.last().is_some_and(|least| blame.time() > length(&least.lost))
        {
            let place = self.worst.partition_point(|other| length(&other.lost) >= blame.time());
            self.worst.insert(place, WatchedCase { lost, shares: blame.shares() });
            self.worst.truncate(WATCHED_CASES_MOST);
        }
    }
}

fn length(lost: &LostTime) -> Nanos {
    lost.to - lost.from
}

impl Spans {
    /// Number of spans.
    pub fn count(&self) -> u64 {
        self.histogram.count() + self.fresh.len() as u64
    }

    fn push(&mut self, span: Nanos) {
        self.fresh.push(span.count() as f64);
        self.total += span;
        self.worst = self.worst.max(span);
    }

    fn settle(&mut self) {
        self.fresh.sort_unstable_by(f64::total_cmp);
        self.histogram.merge(&Histogram::from_sorted(&self.fresh));
        self.fresh.clear();
    }
}

#[cfg(test)]
mod tests {
    use hairspring_culprit::Culprit;
    use proptest::prelude::*;

    use super::*;

    const CPU: Cpu = Cpu(1);

    fn us(at: i64) -> Nanos {
        Nanos::from_micros(at)
    }

    fn at_us(at: i64) -> Instant {
        Instant::BOOT + us(at)
    }

    fn task(pid: u32) -> KernelTask {
        match pid {
            0 => KernelTask::new(0, "swapper/1", 120),
            7 => KernelTask::new(7, "job", 120),
            _ => KernelTask::new(pid, "hog", 79),
        }
    }

    fn switch(at: i64, from: u32, left_as: LeftAs, to: u32) -> (Cpu, KernelRecord) {
        (CPU, KernelRecord { at: at_us(at), event: KernelEvent::Switch { from: task(from), left_as, to: task(to) } })
    }

    fn waking(at: i64, cpu: Cpu) -> (Cpu, KernelRecord) {
        (cpu, KernelRecord { at: at_us(at), event: KernelEvent::Waking { pid: 7 } })
    }

    /// A job that is woken while a hog runs, and that the hog preempts.
    fn story() -> Vec<(Cpu, KernelRecord)> {
        vec![
            switch(0, 0, LeftAs::Runnable, 9),
            waking(100, Cpu(0)),
            switch(400, 9, LeftAs::Blocked, 7),
            // Woken while it runs, which is nothing.
            waking(420, Cpu(0)),
            switch(500, 7, LeftAs::Runnable, 9),
            switch(1700, 9, LeftAs::Blocked, 7),
            switch(1800, 7, LeftAs::Blocked, 0),
            switch(1900, 0, LeftAs::Runnable, 9),
        ]
    }

    fn watched(parts: &[(Vec<(Cpu, KernelRecord)>, i64)]) -> ThreadWatch {
        let mut watch = ThreadWatch::new(false);
        for (records, until) in parts {
            watch.take(records.clone(), at_us(*until), &BTreeSet::from([7]));
        }
        watch
    }

    #[track_caller]
    fn is_told(watch: &ThreadWatch) {
        let job = &watch.threads[&7];
        assert_eq!((job.name.as_str(), job.wakeups.count(), job.preemptions.count()), ("job", 1, 1));
        assert_eq!((job.wakeups.worst, job.preemptions.worst), (us(300), us(1200)));
        let [first, second] = watch.worst.as_slice() else { panic!("{:?}", watch.worst) };
        assert_eq!((first.lost.wanted, second.lost.wanted), (Wanted::Run, Wanted::Wake));
        for (tally, time) in [(&watch.wakeups, us(300)), (&watch.preemptions, us(1200))] {
            let culprits = tally.culprits();
            assert_eq!(culprits[0].0, &Culprit::Task(task(9)), "{culprits:?}");
            assert_eq!(culprits[0].1.total, time);
        }
    }

    #[test]
    fn a_wake_up_and_a_preemption_have_their_culprit() {
        is_told(&watched(&[(story(), 2000)]));
    }

    #[test]
    fn where_records_were_lost_nothing_is_told() {
        for place in [2, 5] {
            let mut records = story();
            let at = records[place - 1].1.at + us(1);
            records.insert(place, (CPU, KernelRecord { at, event: KernelEvent::Lost }));
            let watch = watched(&[(records, 2000)]);
            assert_eq!((watch.losses, watch.wakeups.whole().gaps + watch.preemptions.whole().gaps), (1, 1), "{place}");
        }
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_records_are_handed_over(cuts in proptest::collection::vec(0_i64..2000, 0..5), early in 0_i64..300) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            cuts.push(2000);
            let mut left = story();
            let parts: Vec<_> = cuts
                .iter()
                .map(|&until| {
                    // A ring that was looked at later has some records more.
                    let late = at_us(until + early);
                    let rest = left.split_off(left.partition_point(|(_, record)| record.at <= late));
                    (std::mem::replace(&mut left, rest), until)
                })
                .collect();
            is_told(&watched(&parts));
        }
    }

    #[test]
    fn a_thread_has_the_name_that_it_got_when_its_program_was_executed() {
        let renamed = |at, left_as, name| {
            let from = KernelTask::new(7, name, 120);
            (CPU, KernelRecord { at: at_us(at), event: KernelEvent::Switch { from, left_as, to: task(9) } })
        };
        let records = vec![
            waking(100, Cpu(0)),
            switch(400, 9, LeftAs::Blocked, 7),
            // It got the CPU as `job`, and executed a program before it left.
            renamed(500, LeftAs::Blocked, "program"),
        ];
        assert_eq!(watched(&[(records, 2000)]).threads[&7].name, "program");
    }

    #[test]
    fn the_cost_of_a_record_is_what_pairs_of_blocks_differ_by() {
        let pair = |with: i64, records| CostPair { with: us(with), without: us(1000), records };
        let cost = RecordCost::of(&[pair(1200, 1000), pair(1400, 1000)]).expect("two pairs");
        assert_eq!((cost.mean_ns, cost.pairs), (300.0, 2));
        assert!(cost.limits_ns[0] < 300.0 && 300.0 < cost.limits_ns[1]);
        assert_eq!(RecordCost::of(&[pair(1200, 1000)]), None);
    }
}
