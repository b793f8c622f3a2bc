//! A trace in the Trace Event Format (JSON), which Perfetto and chrome://tracing show as tracks.
//!
//! One track for each interrupt procedure, timer, task and resource, and one for the program around the executive; the
//! most urgent task on top of the tasks. A task's track shows its states as slices and its calls as marks. An arrow
//! leads from the call that readied a task to the moment when it ran. Times are microseconds since the first call, with
//! nanoseconds as decimals.

use hairspring_machine::Instant;
use std::collections::BTreeMap;

use hairspring_exec_core::CallStatus;
use serde_json::{Value, json};

use super::lanes::{Doing, Lanes, Stretch, Whose};
use super::text::{is_service, waits_for};
use super::{ReplayMismatch, Trace, TraceEventKind};

/// The one process of the trace. Its tracks are numbered after it: a viewer takes an equal number for the main thread.
const PROCESS: usize = 1;

impl Trace {
    /// The trace as a JSON file in the Trace Event Format.
    ///
    /// # Errors
    /// As [`replay`](Self::replay).
    pub fn to_chrome(&self) -> Result<String, ReplayMismatch> {
        let lanes = Lanes::of(self)?;
        let tracks = Tracks::of(self, &lanes);
        let mut drawn = tracks.named(self);
        let described = drawn.len();
        let mut out = Out { lanes: &lanes, tracks: &tracks, drawn: &mut drawn };
        out.slices();
        out.arrows();
        out.calls(self);
        out.events();
        out.priorities(self);
        // Sorted by time; at the same time the longest first, so that a slice comes before its contents.
        drawn[described..].sort_by(|a, b| {
            let number = |event: &Value, field: &str| event[field].as_f64().unwrap_or(0.0);
            number(a, "ts").total_cmp(&number(b, "ts")).then(number(b, "dur").total_cmp(&number(a, "dur")))
        });
        // One event per line: can be read, searched and compared.
        let events: Vec<String> = drawn.iter().map(Value::to_string).collect();
        let mut about = json!({
            "backend": self.backend,
            "start_ns": lanes.begin.as_monotonic().count(),
            "calls_lost_at_the_end": self.lost,
        });
        if self.backend == "thread_smp" {
            about["run"] = "the most urgent task; with more CPUs, the next ones that are ready run, too".into();
        }
        let events = events.join(",\n");
        Ok(format!("{{\"displayTimeUnit\":\"ns\",\n\"otherData\":{about},\n\"traceEvents\":[\n{events}\n]}}\n"))
    }
}

/// The owner of a track.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Track {
    Of(Whose),
    Resource(usize),
}

/// The tracks from top to bottom, and the place of each.
struct Tracks(Vec<Track>, BTreeMap<Track, usize>);

impl Tracks {
    fn of(trace: &Trace, lanes: &Lanes) -> Self {
        let mut by_urgency: Vec<usize> = (0..lanes.tasks.len()).collect();
        by_urgency.sort_by_key(|&task| lanes.tasks[task].priorities.first().map(|&(_, priority)| priority));
        let interrupts = trace.isps.iter().zip(0..).map(|(_, number)| Whose::Interrupt(number));
        let timers = (0..trace.timers.len()).map(Whose::Timer);
        let tasks = by_urgency.into_iter().map(Whose::Task);
        let resources = (0..lanes.resources.len()).map(Track::Resource);
        let above = interrupts.chain(timers).chain(tasks).map(Track::Of);
        let tracks: Vec<Track> = above.chain(resources).chain([Track::Of(Whose::Outside)]).collect();
        let places = tracks.iter().zip(0..).map(|(&track, place)| (track, place)).collect();
        Self(tracks, places)
    }

    /// The number of a track; the kernel task has none.
    fn number(&self, track: Track) -> Option<usize> {
        self.1.get(&track).map(|place| PROCESS + 1 + place)
    }

    /// The events that name them and put them in order.
    fn named(&self, trace: &Trace) -> Vec<Value> {
        let process = format!("Hairspring executive ({})", trace.backend);
        let mut named = vec![json!({ "ph": "M", "pid": PROCESS, "name": "process_name", "args": { "name": process } })];
        for (place, &track) in self.0.iter().enumerate() {
            let name = match track {
                Track::Of(Whose::Task(index)) => trace.task_name(index),
                Track::Of(Whose::Timer(index)) => format!("timer {}", trace.timer_name(index)),
                Track::Of(Whose::Interrupt(number)) => format!("interrupt {}", trace.isp_name(number)),
                Track::Of(Whose::Kernel) => "kernel task".to_owned(),
                Track::Of(Whose::Outside) => "program".to_owned(),
                Track::Resource(index) => format!("resource R{index}"),
            };
            for (what, args) in
                [("thread_name", json!({ "name": name })), ("thread_sort_index", json!({ "sort_index": place }))]
            {
                named
                    .push(json!({ "ph": "M", "pid": PROCESS, "tid": PROCESS + 1 + place, "name": what, "args": args }));
            }
        }
        named
    }
}

/// The events of a trace while they are collected.
struct Out<'t> {
    lanes: &'t Lanes,
    tracks: &'t Tracks,
    drawn: &'t mut Vec<Value>,
}

impl Out<'_> {
    /// The moment in the format's unit.
    fn ts(&self, at: Instant) -> f64 {
        self.lanes.since(at) as f64 / 1_000.0
    }

    fn slice<W>(&mut self, track: Track, stretch: &Stretch<W>, name: &str, args: &Value) {
        let Some(tid) = self.tracks.number(track) else { return };
        // Of the difference in nanoseconds, so that two slices in a row meet without a rounding error between them.
        let dur = (self.lanes.since(stretch.to) - self.lanes.since(stretch.from)) as f64 / 1_000.0;
        let ts = self.ts(stretch.from);
        self.drawn.push(json!({
            "ph": "X", "pid": PROCESS, "tid": tid, "ts": ts, "dur": dur, "name": name, "args": args,
        }));
    }

    fn mark(&mut self, track: Track, at: Instant, name: &str, args: &Value) {
        let Some(tid) = self.tracks.number(track) else { return };
        let ts = self.ts(at);
        self.drawn.push(json!({
            "ph": "i", "s": "t", "pid": PROCESS, "tid": tid, "ts": ts, "name": name, "args": args,
        }));
    }

    fn slices(&mut self) {
        let lanes = self.lanes;
        for (index, lane) in lanes.tasks.iter().enumerate() {
            for stretch in &lane.stretches {
                let (name, args) = match stretch.what {
                    Doing::Ready => ("ready", json!({})),
                    Doing::Run => ("run", json!({})),
                    Doing::Wait(waiting) => ("wait", json!({ "for": waits_for(waiting) })),
                    Doing::Suspended => ("suspended", json!({})),
                };
                self.slice(Track::Of(Whose::Task(index)), stretch, name, &args);
            }
        }
        for (&whose, runs) in &lanes.procedures {
            let name = if whose == Whose::Outside { "calls" } else { "procedure" };
            runs.iter().for_each(|run| self.slice(Track::Of(whose), run, name, &json!({})));
        }
        for (index, owned) in lanes.resources.iter().enumerate() {
            for stretch in owned {
                let owner = self.tracks.number(Track::Of(Whose::Task(stretch.what)));
                self.slice(Track::Resource(index), stretch, "owned", &json!({ "owner_tid": owner }));
            }
        }
    }

    /// The arrows from the call that readied a task to its run.
    fn arrows(&mut self) {
        let lanes = self.lanes;
        let mut id = 0;
        for (index, lane) in lanes.tasks.iter().enumerate() {
            for &(whose, when, ran) in &lane.readied {
                // A run that took no time was not drawn.
                let (Some(from), Some(ran)) = (lanes.ran_at(whose, when), lanes.ran_at(Whose::Task(index), ran)) else {
                    continue;
                };
                let ends = [("s", whose, from), ("f", Whose::Task(index), ran)];
                for (ph, whose, at) in ends {
                    let Some(tid) = self.tracks.number(Track::Of(whose)) else { continue };
                    let ts = self.ts(at);
                    let mut end = json!({
                        "ph": ph, "pid": PROCESS, "tid": tid, "ts": ts, "id": id, "name": "readied", "cat": "readied",
                    });
                    if ph == "f" {
                        // Belongs to the slice around it, not to the next one.
                        end["bp"] = "e".into();
                    }
                    self.drawn.push(end);
                }
                id += 1;
            }
        }
    }

    /// The calls of tasks, procedures and the program.
    fn calls(&mut self, trace: &Trace) {
        for (record, &whose) in trace.records.iter().zip(&self.lanes.callers) {
            if !is_service(&record.call) {
                continue;
            }
            let mut args = json!({});
            if !matches!(record.reply.status, CallStatus::Ok | CallStatus::Blocked) {
                args["status"] = record.reply.status.text().into();
            }
            self.mark(Track::Of(whose), record.at, &trace.call_words(record), &args);
        }
    }

    /// The other events: neither slices nor calls.
    fn events(&mut self) {
        let none = json!({});
        for &(_, event) in &self.lanes.events {
            let at = event.at;
            match event.what {
                TraceEventKind::Preempt(task) => {
                    self.mark(Track::Of(Whose::Task(task.index())), at, "preempted", &none);
                }
                TraceEventKind::TimeOut(task) => {
                    self.mark(Track::Of(Whose::Task(task.index())), at, "its time has come", &none);
                }
                TraceEventKind::End(task, how) => {
                    let how = json!({ "how": format!("{how:?}").to_lowercase() });
                    self.mark(Track::Of(Whose::Task(task.index())), at, "end", &how);
                }
                TraceEventKind::Expire(timer) => {
                    self.mark(Track::Of(Whose::Timer(timer.index())), at, "goes off", &none);
                }
                TraceEventKind::Overrun(timer, missed) => {
                    let missed = json!({ "missed": missed });
                    self.mark(Track::Of(Whose::Timer(timer.index())), at, "overrun", &missed);
                }
                _ => {}
            }
        }
    }

    /// Priorities as curves, of those tasks whose priority changed.
    fn priorities(&mut self, trace: &Trace) {
        let lanes = self.lanes;
        for (index, lane) in lanes.tasks.iter().enumerate().filter(|(_, lane)| lane.priorities.len() > 1) {
            let name = format!("priority of {}", trace.task_name(index));
            for &(at, priority) in &lane.priorities {
                let ts = self.ts(at);
                self.drawn.push(
                    json!({ "ph": "C", "pid": PROCESS, "ts": ts, "name": name, "args": { "priority": priority } }),
                );
            }
        }
    }
}
