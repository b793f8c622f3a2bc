//! Scripted records of a machine with one CPU.

use std::sync::Arc;

use hairspring_culprit::{
    Blame, Context, CpuHistory, KernelEvent, KernelRecord, KernelTask, LeftAs, LostTime, Softirq, Terms, Vector,
    Wanted, blame,
};
use hairspring_machine::{Instant, Nanos};

pub(crate) const POLLER: u32 = 100;

/// Times of scripts are in microseconds.
pub(crate) fn us(micros: f64) -> Nanos {
    Nanos::new((micros * 1e3).round() as i64)
}

/// This many microseconds after the beginning.
pub(crate) fn at_us(micros: f64) -> Instant {
    Instant::BOOT + us(micros)
}

pub(crate) fn task(pid: u32) -> KernelTask {
    match pid {
        0 => KernelTask::new(0, "swapper/1", 120),
        POLLER => KernelTask::new(POLLER, "poller", 120),
        200 => KernelTask::new(200, "backup", 120),
        201 => KernelTask::new(201, "rival", 98),
        400 => KernelTask::new(400, "migration/1", 0),
        300 => KernelTask::new(300, "kworker/1:2", 120),
        _ => KernelTask::new(pid, "other", 120),
    }
}

pub(crate) const TIMER: Context = Context::Vector(Vector::LocalTimer);
pub(crate) const RCU: Context = Context::Softirq(Softirq(9));

pub(crate) fn disk() -> Context {
    Context::Interrupt { irq: 36, name: Arc::from("virtio1-req.0") }
}

/// A CPU; the script pushes its records with their times.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) history: CpuHistory,
}

impl Script {
    /// The poller has the CPU from time 0 on.
    pub(crate) fn new() -> Self {
        Self { history: CpuHistory::new() }.switch(0.0, 200, LeftAs::Blocked, POLLER)
    }

    pub(crate) fn push(mut self, at: f64, event: KernelEvent) -> Self {
        self.history.push(KernelRecord { at: at_us(at), event });
        self
    }

    pub(crate) fn switch(self, at: f64, from: u32, left_as: LeftAs, to: u32) -> Self {
        self.push(at, KernelEvent::Switch { from: task(from), left_as, to: task(to) })
    }

    pub(crate) fn span(self, from: f64, to: f64, context: Context) -> Self {
        self.push(from, KernelEvent::Enter(context.clone())).push(to, KernelEvent::Exit(context))
    }

    /// The blame for a stretch in which the poller wanted to run or to wake.
    pub(crate) fn blame(mut self, from: f64, to: f64, wanted: Wanted) -> Blame {
        self.history.known_until(at_us(to + 1e6));
        blame(&LostTime { thread: POLLER, from: at_us(from), to: at_us(to), wanted }, &self.history, &Terms::guest())
    }
}

/// Compares a blame with the expected culprits and their microseconds, in order.
#[track_caller]
pub(crate) fn check(blame: &Blame, expected: &[(f64, &str)]) {
    let parts: Vec<(f64, String)> =
        blame.parts.iter().map(|part| ((part.to - part.from).count() as f64 / 1e3, part.culprit.to_string())).collect();
    let expected: Vec<(f64, String)> = expected.iter().map(|(time, name)| (*time, (*name).to_owned())).collect();
    assert_eq!(parts, expected);
}
