//! Replays a trace through a fresh core, which reports what happened when.

use hairspring_exec_core::{Call, Core, Ending, Observer, Priority, Reply, ResourceId, TaskId, TimerId, Waiting};
use hairspring_machine::Instant;

use super::{Trace, TraceRecord};

/// Something that happened in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceEvent {
    /// When.
    pub at: Instant,
    /// The event.
    pub what: TraceEventKind,
}

/// The kinds of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceEventKind {
    /// An idle task was started.
    Start(TaskId),
    /// A task may run from now on.
    Ready(TaskId),
    /// A task is first from now on: it runs (one CPU), or runs at the latest from its next call on (threads).
    Run(TaskId),
    /// A task was first, is still ready, and is not first any more.
    Preempt(TaskId),
    /// A task waits for this.
    Wait(TaskId, Waiting),
    /// A task lost the right to run: suspended, or its run is over.
    Halt(TaskId),
    /// A task's wait ended by time.
    TimeOut(TaskId),
    /// A task's run is over.
    End(TaskId, Ending),
    /// A task runs at this priority from now on.
    Priority(TaskId, Priority),
    /// A resource has a new owner, or none.
    Own(ResourceId, Option<TaskId>),
    /// A timer expired.
    Expire(TimerId),
    /// A timer had passed this many periods unserved.
    Overrun(TimerId, u64),
    /// No task can run.
    Idle,
}

/// The core answered a call differently than the recorded one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayMismatch {
    /// The number of the record, from 0.
    pub record: usize,
    /// The record in the trace.
    pub recorded: TraceRecord,
    /// The core's answer in the replay.
    pub replayed: Reply,
}

impl std::fmt::Display for ReplayMismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { record, recorded, replayed } = self;
        write!(f, "call {record} ({:?}) came out as {:?}, replayed as {replayed:?}", recorded.call, recorded.reply)
    }
}

impl std::error::Error for ReplayMismatch {}

/// Collects the events that the core reports.
#[derive(Default)]
struct Collector(Vec<TraceEventKind>);

impl Observer for Collector {
    fn readied(&mut self, task: TaskId) {
        self.0.push(TraceEventKind::Ready(task));
    }

    fn started(&mut self, task: TaskId) {
        self.0.push(TraceEventKind::Start(task));
    }

    fn stopped(&mut self, task: TaskId, waiting: Waiting) {
        self.0.push(if waiting == Waiting::Nothing {
            TraceEventKind::Halt(task)
        } else {
            TraceEventKind::Wait(task, waiting)
        });
    }

    fn timed_out(&mut self, task: TaskId) {
        self.0.push(TraceEventKind::TimeOut(task));
    }

    fn ended(&mut self, task: TaskId, how: Ending) {
        self.0.push(TraceEventKind::End(task, how));
    }

    fn priority(&mut self, task: TaskId, effective: Priority) {
        self.0.push(TraceEventKind::Priority(task, effective));
    }

    fn owned(&mut self, resource: ResourceId, owner: Option<TaskId>) {
        self.0.push(TraceEventKind::Own(resource, owner));
    }

    fn expired(&mut self, timer: TimerId, missed: u64) {
        self.0.push(TraceEventKind::Expire(timer));
        if missed > 0 {
            self.0.push(TraceEventKind::Overrun(timer, missed));
        }
    }
}

impl Trace {
    /// Makes the recorded calls again on a new core, and returns all events, in order.
    ///
    /// # Errors
    /// The core answers some call differently than the recorded one: the back-end and the core disagree, or the
    /// beginning of the trace is missing.
    pub fn replay(&self) -> Result<Vec<TraceEvent>, ReplayMismatch> {
        let mut events = Vec::new();
        self.play(|_, event| events.push(event))?;
        Ok(events)
    }

    /// Replays and reports each event with the number of its record.
    pub(super) fn play(&self, mut tell: impl FnMut(usize, TraceEvent)) -> Result<(), ReplayMismatch> {
        let mut core = Core::new(self.envelopes, Collector::default());
        let mut first = None;
        for (place, &recorded) in self.records.iter().enumerate() {
            let replayed = core.apply(recorded.by, recorded.call);
            if replayed != recorded.reply {
                return Err(ReplayMismatch { record: place, recorded, replayed });
            }
            if let Call::NextTimer = recorded.call {
                core.take_expiry(TimerId::from_number(replayed.value));
            }
            let mut tell = |what| tell(place, TraceEvent { at: recorded.at, what });
            // A task whose next run follows the last at once stays first, and yet begins to run.
            let now_first = core.first();
            let again = now_first.is_some_and(|first| core.observer.0.contains(&TraceEventKind::Ready(first)));
            core.observer.0.drain(..).for_each(&mut tell);
            if again || now_first != first {
                if let Some(before) = first.filter(|&before| now_first != Some(before) && core.may_run(before)) {
                    tell(TraceEventKind::Preempt(before));
                }
                tell(now_first.map_or(TraceEventKind::Idle, TraceEventKind::Run));
                first = now_first;
            }
        }
        Ok(())
    }
}
