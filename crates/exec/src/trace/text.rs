//! A trace as text: names, calls and events in words, and a table of them.

use hairspring_machine::Instant;
use std::fmt::Write;

use hairspring_exec_core::{Call, CallStatus, Ending, TaskId, TimerId, Waiting};

use super::lanes::{BEGINNING, Lanes, Whose};
use super::{ReplayMismatch, Trace, TraceEvent, TraceEventKind, TraceRecord};

/// A line of the table.
struct Line {
    at: Instant,
    who: String,
    what: String,
}

impl Trace {
    /// The name of a task, or its id if it has none.
    pub(crate) fn task_name(&self, index: usize) -> String {
        self.tasks.get(index).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| format!("T{index}"))
    }

    /// The name of a timer, or its id if it has none.
    pub(crate) fn timer_name(&self, index: usize) -> String {
        self.timers.get(index).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| format!("C{index}"))
    }

    /// The name of an interrupt service procedure, or its number if it has none.
    pub(crate) fn isp_name(&self, number: u16) -> String {
        let name = self.isps.get(usize::from(number)).filter(|name| !name.is_empty());
        name.cloned().unwrap_or_else(|| format!("I{number}"))
    }

    /// The name of a caller.
    fn caller_name(&self, whose: Whose) -> String {
        match whose {
            Whose::Task(index) => self.task_name(index),
            Whose::Timer(index) => self.timer_name(index),
            Whose::Interrupt(number) => self.isp_name(number),
            Whose::Kernel => "kernel".to_owned(),
            Whose::Outside => "program".to_owned(),
        }
    }

    /// The trace as a table: one line for each call and each event, with its time since the first call and its owner.
    ///
    /// # Errors
    /// As [`replay`](Self::replay).
    pub fn to_text(&self) -> Result<String, ReplayMismatch> {
        let begin = self.records.first().map_or(BEGINNING, |record| record.at);
        let lines = self.lines()?;
        let names = lines.iter().map(|line| line.who.chars().count());
        let width = names.max().unwrap_or(0).clamp(4, 24);
        let mut text = format!("{:>16}  {:<width$}  what\n", "time in µs", "who");
        for Line { at, who, what } in &lines {
            let since = (*at - begin).count().max(0);
            // Writing to a String does not fail.
            let _ = writeln!(text, "{:>12}.{:03}  {who:<width$}  {what}", since / 1_000, since % 1_000);
        }
        if self.lost > 0 {
            let _ = writeln!(text, "The trace was full: {} calls after this are missing.", self.lost);
        }
        Ok(text)
    }

    /// Builds the lines. A call and its effect on the caller share one line, and obvious events are left out.
    fn lines(&self) -> Result<Vec<Line>, ReplayMismatch> {
        let lanes = Lanes::of(self)?;
        let mut lines = Vec::new();
        let mut told = 0;
        for (place, (record, &caller)) in self.records.iter().zip(&lanes.callers).enumerate() {
            let ahead = &lanes.events[told..];
            let events = &ahead[..ahead.iter().take_while(|(of, _)| *of == place).count()];
            told += events.len();
            let from = lines.len();
            let mut say = |who: &str, what: String| {
                let (who, what) = (in_line(who), in_line(&what));
                match lines[from..].last_mut().filter(|line: &&mut Line| line.who == who) {
                    Some(line) => line.what = format!("{}, {what}", line.what),
                    None => lines.push(Line { at: record.at, who, what }),
                }
            };
            // The wait follows below.
            let waits = record.reply.status == CallStatus::Blocked && !matches!(record.call, Call::SendWait { .. });
            if is_service(&record.call) && !waits {
                let failed = !matches!(record.reply.status, CallStatus::Ok | CallStatus::Blocked);
                let status = if failed { format!(": {}", record.reply.status) } else { String::new() };
                say(&self.caller_name(caller), format!("{}{status}", self.call_words(record)));
            }
            for (place, (_, event)) in events.iter().enumerate() {
                let before = place.checked_sub(1).map(|before| events[before].1.what);
                let next = events.get(place + 1).map(|(_, next)| next.what);
                let goes_without_saying = match event.what {
                    // A started task is ready, a running task was ready, and an ended task stops.
                    TraceEventKind::Ready(task) => {
                        before == Some(TraceEventKind::Start(task)) || next == Some(TraceEventKind::Run(task))
                    }
                    TraceEventKind::Halt(task) => matches!(next, Some(TraceEventKind::End(other, _)) if other == task),
                    _ => false,
                };
                if !goes_without_saying {
                    let (who, what) = self.words(event);
                    say(&who, what);
                }
            }
        }
        Ok(lines)
    }

    /// The owner of an event, and the event in words.
    fn words(&self, event: &TraceEvent) -> (String, String) {
        let task = |task: TaskId| self.task_name(task.index());
        let timer = |timer: TimerId| self.timer_name(timer.index());
        match event.what {
            TraceEventKind::Start(who) => (task(who), "is started".to_owned()),
            TraceEventKind::Ready(who) => (task(who), "is ready".to_owned()),
            TraceEventKind::Run(who) => (task(who), "runs".to_owned()),
            TraceEventKind::Preempt(who) => (task(who), "is preempted".to_owned()),
            TraceEventKind::Wait(who, waiting) => (task(who), format!("waits for {}", waits_for(waiting))),
            TraceEventKind::Halt(who) => (task(who), "is suspended".to_owned()),
            TraceEventKind::TimeOut(who) => (task(who), "has its time".to_owned()),
            TraceEventKind::End(who, how) => (task(who), ending(how).to_owned()),
            TraceEventKind::Priority(who, priority) => (task(who), format!("has priority {} now", priority.number())),
            TraceEventKind::Own(resource, Some(owner)) => (task(owner), format!("owns {resource:?}")),
            TraceEventKind::Own(resource, None) => (format!("{resource:?}"), "is free".to_owned()),
            TraceEventKind::Expire(who) => (timer(who), "goes off".to_owned()),
            TraceEventKind::Overrun(who, missed) => (timer(who), format!("missed {missed} periods")),
            TraceEventKind::Idle => ("-".to_owned(), "nobody can run".to_owned()),
        }
    }

    /// A call in words; the objects by name.
    pub(super) fn call_words(&self, record: &TraceRecord) -> String {
        let task = |task: &TaskId| self.task_name(task.index());
        let made = (record.reply.value & 0xffff) as usize;
        match &record.call {
            Call::CreateTask { .. } => format!("create task {}", self.task_name(made)),
            Call::CreateTimer => format!("create timer {}", self.timer_name(made)),
            Call::Trigger { task: whom } => format!("trigger {}", task(whom)),
            Call::End { how } => ending(*how).to_owned(),
            Call::Suspend { task: whom } => format!("suspend {}", task(whom)),
            Call::Resume { task: whom } => format!("resume {}", task(whom)),
            Call::SetPriority { task: whom, priority } => {
                format!("set priority {} of {}", priority.number(), task(whom))
            }
            Call::SetThreshold { priority } => format!("set threshold {}", priority.number()),
            Call::Kill { task: whom } => format!("kill {}", task(whom)),
            Call::DeleteTask { task: whom } => format!("delete {}", task(whom)),
            Call::Cancel { task: whom } => format!("cancel the wait of {}", task(whom)),
            Call::Join { task: whom, .. } => format!("wait for the end of {}", task(whom)),
            Call::Wait { .. } => "wait for a wake".to_owned(),
            Call::Wake { task: whom } => format!("wake {}", task(whom)),
            Call::Delay { .. } => "delay".to_owned(),
            Call::Signal { task: whom, bits } => format!("signal {} {bits:#x}", task(whom)),
            Call::WaitSignals { .. } => "wait for signals".to_owned(),
            Call::Send { task: whom, .. } => format!("send to {}", task(whom)),
            Call::SendWait { task: whom, .. } => format!("send to {} and wait", task(whom)),
            Call::Receive { .. } => "receive".to_owned(),
            Call::Acknowledge { value } => format!("acknowledge {value}"),
            Call::Post { exchange, .. } => format!("post to {exchange:?}"),
            Call::Fetch { exchange, .. } => format!("fetch from {exchange:?}"),
            Call::WaitSemaphore { semaphore, .. } => format!("wait for {semaphore:?}"),
            Call::SignalSemaphore { semaphore } => format!("signal {semaphore:?}"),
            Call::Reserve { resource, .. } => format!("reserve {resource:?}"),
            Call::Release { resource } => format!("release {resource:?}"),
            Call::SignalEvents { events, bits } => format!("signal {events:?} {bits:#x}"),
            Call::ClearEvents { events, bits } => format!("clear {events:?} {bits:#x}"),
            Call::WaitEvents { events, .. } => format!("wait for {events:?}"),
            Call::StartTimer { timer, .. } => format!("start {}", self.timer_name(timer.index())),
            Call::StopTimer { timer } => format!("stop {}", self.timer_name(timer.index())),
            Call::DeleteTimer { timer } => format!("delete {}", self.timer_name(timer.index())),
            Call::DeleteSemaphore { semaphore } => format!("delete {semaphore:?}"),
            Call::DeleteResource { resource } => format!("delete {resource:?}"),
            Call::DeleteEvents { events } => format!("delete {events:?}"),
            Call::DeleteExchange { exchange } => format!("delete {exchange:?}"),
            Call::DeletePool { pool } => format!("delete {pool:?}"),
            Call::CreateHeap { units, .. } => format!("create heap of {units} units"),
            Call::GetBlock { heap, units } => format!("get {units} units of {heap:?}"),
            Call::WaitBlock { heap, units, .. } => format!("wait for {units} units of {heap:?}"),
            Call::FreeBlock { heap, first } => format!("free {heap:?} from {first} on"),
            Call::DeleteHeap { heap } => format!("delete {heap:?}"),
            // The name of the variant is the text.
            other => {
                let debug = format!("{other:?}");
                let name = debug.split([' ', '{']).next().unwrap_or_default();
                let mut words = String::new();
                for letter in name.chars() {
                    if letter.is_uppercase() && !words.is_empty() {
                        words.push(' ');
                    }
                    words.extend(letter.to_lowercase());
                }
                words
            }
        }
    }
}

/// Whether this is a call of its own for people, and not a part of one.
pub(super) fn is_service(call: &Call) -> bool {
    !matches!(call, Call::Take | Call::TakeBlock | Call::NextTimer | Call::Tick { .. } | Call::End { .. })
}

/// A name for one line: characters that would break the line are escaped.
pub(super) fn in_line(name: &str) -> String {
    name.chars().flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] }).collect()
}

/// How a run ended.
fn ending(how: Ending) -> &'static str {
    match how {
        Ending::Returned => "ends",
        Ending::Killed => "is killed",
        Ending::Panicked => "panicked",
    }
}

/// The object of a wait, in words.
pub(super) fn waits_for(waiting: Waiting) -> String {
    match waiting {
        Waiting::Nothing => "nothing".to_owned(),
        Waiting::Wake => "a wake".to_owned(),
        Waiting::Delay => "time".to_owned(),
        Waiting::Signals(_) => "signals".to_owned(),
        Waiting::Mail(_) => "mail".to_owned(),
        Waiting::Acknowledgement(_) => "an acknowledgement".to_owned(),
        Waiting::Semaphore(slot) => format!("S{slot}"),
        Waiting::Resource(slot) => format!("R{slot}"),
        Waiting::Events(slot, ..) => format!("E{slot}"),
        Waiting::Exchange(slot) => format!("X{slot}"),
        Waiting::Block(slot, units) => format!("{units} units of H{slot}"),
        Waiting::End(slot) => format!("the end of T{slot}"),
    }
}
