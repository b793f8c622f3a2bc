//! A trace as lanes: for each task, timer, interrupt procedure and resource, the stretches of time with one state.
//!
//! The exports draw the lanes. A stretch of no length is left out: a task that is readied and runs at once has no ready
//! stretch.

use hairspring_machine::{Instant, Nanos};
use std::collections::BTreeMap;

use hairspring_exec_core::{By, Call, CallStatus, TaskId, TimerId, Waiting};

use super::{ReplayMismatch, Trace, TraceEvent, TraceEventKind, TraceRecord};

/// State of a task within a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doing {
    /// The task is ready, but a more urgent one runs.
    Ready,
    /// The task is first. On several CPUs the next ready tasks run as well.
    Run,
    /// The task waits for this.
    Wait(Waiting),
    /// The task was suspended.
    Suspended,
}

/// A stretch of time with one state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretch<W> {
    pub(super) from: Instant,
    pub(super) to: Instant,
    pub(super) what: W,
}

/// The caller that caused an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Whose {
    /// A task's, by index.
    Task(usize),
    /// The procedure of a timer, by index.
    Timer(usize),
    /// An interrupt procedure's.
    Interrupt(u16),
    /// The kernel task when it served time.
    Kernel,
    /// The program around the executive.
    Outside,
}

/// One task.
#[derive(Default, Debug)]
pub(super) struct TaskLane {
    pub(super) stretches: Vec<Stretch<Doing>>,
    /// Its priorities, each with the time from which it held; the first is the initial priority.
    pub(super) priorities: Vec<(Instant, u8)>,
    /// The caller that readied it, the time of that, and the time of the run that followed.
    pub(super) readied: Vec<(Whose, Instant, Instant)>,
}

/// The runs of procedures, by caller, in order.
pub(super) type Procedures = BTreeMap<Whose, Vec<Stretch<()>>>;

/// A whole trace.
#[derive(Debug)]
pub(super) struct Lanes {
    pub(super) begin: Instant,
    pub(super) end: Instant,
    /// By index.
    pub(super) tasks: Vec<TaskLane>,
    /// Owners of each resource by its index: which task, by index.
    pub(super) resources: Vec<Vec<Stretch<usize>>>,
    /// The runs of procedures; of an interrupt procedure only the time from its first to its last call is known.
    pub(super) procedures: Procedures,
    /// Every event, each with the number of its record.
    pub(super) events: Vec<(usize, TraceEvent)>,
    /// The caller of each call, by the number of its record.
    pub(super) callers: Vec<Whose>,
}

/// A lane while it is drawn.
#[derive(Default)]
struct Pen {
    lane: TaskLane,
    open: Option<(Instant, Doing)>,
    /// The caller that readied it, until it runs.
    called: Option<(Whose, Instant)>,
}

impl Pen {
    fn turn(&mut self, at: Instant, to: Option<Doing>) {
        if let Some((from, what)) = self.open.take() {
            if to == Some(what) {
                self.open = Some((from, what));
                return;
            }
            if from < at {
                self.lane.stretches.push(Stretch { from, to: at, what });
            }
        }
        self.open = to.map(|doing| (at, doing));
    }
}

/// The lanes during drawing.
#[derive(Default)]
struct Drawing {
    tasks: Vec<Pen>,
    resources: Vec<Owned>,
}

/// A resource during drawing: its past owners, and the present owner with the time of its beginning.
#[derive(Default)]
struct Owned {
    stretches: Vec<Stretch<usize>>,
    open: Option<(Instant, usize)>,
}

impl Drawing {
    fn task(&mut self, task: TaskId) -> &mut Pen {
        reach(&mut self.tasks, task.index())
    }

    fn event(&mut self, caller: Whose, TraceEvent { at, what }: TraceEvent) {
        match what {
            TraceEventKind::Ready(task) => {
                let pen = self.task(task);
                pen.turn(at, Some(Doing::Ready));
                pen.called = (caller != Whose::Task(task.index())).then_some((caller, at));
            }
            TraceEventKind::Run(task) => {
                let pen = self.task(task);
                pen.turn(at, Some(Doing::Run));
                if let Some((whose, when)) = pen.called.take() {
                    pen.lane.readied.push((whose, when, at));
                }
            }
            TraceEventKind::Preempt(task) => self.task(task).turn(at, Some(Doing::Ready)),
            TraceEventKind::Wait(task, waiting) => self.task(task).turn(at, Some(Doing::Wait(waiting))),
            TraceEventKind::Halt(task) => self.task(task).turn(at, Some(Doing::Suspended)),
            TraceEventKind::End(task, _) => self.task(task).turn(at, None),
            TraceEventKind::Priority(task, priority) => self.task(task).lane.priorities.push((at, priority.number())),
            TraceEventKind::Own(resource, owner) => {
                let owned = reach(&mut self.resources, resource.index());
                if let Some((from, what)) = owned.open.take().filter(|&(from, _)| from < at) {
                    owned.stretches.push(Stretch { from, to: at, what });
                }
                owned.open = owner.map(|task| (at, task.index()));
            }
            TraceEventKind::Start(_)
            | TraceEventKind::TimeOut(_)
            | TraceEventKind::Expire(_)
            | TraceEventKind::Overrun(..)
            | TraceEventKind::Idle => {}
        }
    }
}

/// The entry with this number; makes it if it does not exist.
fn reach<T: Default>(places: &mut Vec<T>, number: usize) -> &mut T {
    if places.len() <= number {
        places.resize_with(number + 1, T::default);
    }
    &mut places[number]
}

/// The shortest stretch that can be drawn; events without length get this length.
/// Where an empty trace begins.
pub(super) const BEGINNING: Instant = Instant::from_monotonic(Nanos::ZERO);

const NARROW: Nanos = Nanos::new(1);

/// The runs of procedures, and the caller of each call: timer procedures run from the moment the kernel task asks which
/// is next until it asks again.
fn procedures(records: &[TraceRecord]) -> (Procedures, Vec<Whose>) {
    let mut procedures = Procedures::new();
    let mut serving: Option<(Instant, usize)> = None;
    let mut callers = Vec::with_capacity(records.len());
    let mut before = None;
    for record in records {
        let whose = match record.by {
            By::Task(task) => Whose::Task(task.index()),
            By::Interrupt(number) => Whose::Interrupt(number),
            By::Outside => Whose::Outside,
            By::Kernel => {
                if let Call::NextTimer = record.call {
                    if let Some((from, timer)) = serving.take() {
                        let run = Stretch { from, to: record.at.max(from + NARROW), what: () };
                        procedures.entry(Whose::Timer(timer)).or_default().push(run);
                    }
                    if record.reply.status == CallStatus::Ok {
                        serving = Some((record.at, TimerId::from_number(record.reply.value).index()));
                    }
                    Whose::Kernel
                } else {
                    serving.map_or(Whose::Kernel, |(_, timer)| Whose::Timer(timer))
                }
            }
        };
        if let Whose::Interrupt(_) | Whose::Outside = whose {
            let to = record.at + NARROW;
            let runs = procedures.entry(whose).or_default();
            match runs.last_mut().filter(|_| before == Some(whose)) {
                Some(run) => run.to = to,
                None => runs.push(Stretch { from: record.at, to, what: () }),
            }
        }
        before = Some(whose);
        callers.push(whose);
    }
    (procedures, callers)
}

impl Lanes {
    /// Plays the trace and draws it.
    pub(super) fn of(trace: &Trace) -> Result<Self, ReplayMismatch> {
        let begin = trace.records.first().map_or(BEGINNING, |record| record.at);
        let end = trace.records.last().map_or(BEGINNING, |record| record.at) + NARROW;
        let (procedures, callers) = procedures(&trace.records);
        let mut drawing = Drawing::default();
        let mut events = Vec::new();
        let mut made = 0;
        trace.play(|place, event| {
            drawing.make(&trace.records[made..=place]);
            made = place + 1;
            drawing.event(callers[place], event);
            events.push((place, event));
        })?;
        drawing.make(&trace.records[made..]);
        let finish = |mut pen: Pen| {
            pen.turn(end, None);
            pen.lane
        };
        let owned = |Owned { mut stretches, open }: Owned| {
            stretches.extend(open.map(|(from, what)| Stretch { from, to: end, what }));
            stretches
        };
        Ok(Self {
            begin,
            end,
            tasks: drawing.tasks.into_iter().map(finish).collect(),
            resources: drawing.resources.into_iter().map(owned).collect(),
            procedures,
            events,
            callers,
        })
    }

    /// The last moment, not after `at`, at which this caller ran: a call that hands the CPU over ends its caller's
    /// stretch.
    pub(super) fn ran_at(&self, whose: Whose, at: Instant) -> Option<Instant> {
        fn last<W>(stretches: &[Stretch<W>], at: Instant, runs: impl Fn(&W) -> bool) -> Option<Instant> {
            let begun = stretches.partition_point(|stretch| stretch.from <= at);
            let stretch = stretches[..begun].iter().rev().take(2).find(|stretch| runs(&stretch.what))?;
            let inside = (stretch.to - NARROW).max(stretch.from);
            (at <= stretch.to).then_some(at.min(inside))
        }
        match whose {
            Whose::Task(index) => last(&self.tasks.get(index)?.stretches, at, |&doing| doing == Doing::Run),
            _ => last(self.procedures.get(&whose)?, at, |()| true),
        }
    }

    /// Nanoseconds from the beginning of the trace.
    pub(super) fn since(&self, at: Instant) -> u64 {
        (at - self.begin).count().max(0).cast_unsigned()
    }
}

impl Drawing {
    /// Notes the tasks and resources that were made in these records.
    fn make(&mut self, records: &[TraceRecord]) {
        for record in records.iter().filter(|record| record.reply.status == CallStatus::Ok) {
            match record.call {
                Call::CreateTask { priority, .. } => {
                    let pen = self.task(TaskId::from_number(record.reply.value));
                    pen.lane.priorities.push((record.at, priority.number()));
                }
                Call::CreateResource { .. } => {
                    let index = (record.reply.value & 0xffff) as usize;
                    reach(&mut self.resources, index);
                }
                _ => {}
            }
        }
    }
}
