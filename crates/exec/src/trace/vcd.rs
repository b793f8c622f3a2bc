//! A trace as a Value Change Dump (IEEE 1364, section 18), which GTKWave, PulseView and sigrok-cli show as signals.
//!
//! One wire each for *run*, *ready* and *wait* of every task, for the owner of each resource, for timers that go off
//! and interrupt procedures that call; the priority of a task as a real number. Wires are what every viewer draws:
//! those that know neither real numbers nor scopes (sigrok before 0.6) leave out the priorities, and find the task in
//! the name of each wire.

use hairspring_machine::Instant;
use std::collections::BTreeSet;
use std::fmt::Write;

use super::lanes::{Doing, Lanes, Stretch, Whose};
use super::text::in_line;
use super::{ReplayMismatch, Trace, TraceEventKind};

/// The length of a mark without a length of its own.
const PULSE_NS: u64 = 1;

/// The value of a variable from some time on.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Value {
    Low,
    High,
    Number(u32),
}

/// One variable and its changes, in order of time.
struct Variable {
    name: String,
    /// Its first value is that before the first change.
    changes: Vec<(u64, Value)>,
}

/// Variables under one name.
struct Scope {
    name: String,
    variables: Vec<Variable>,
}

impl Trace {
    /// The trace as a VCD file. Time 0 is the first call; a comment states its time on the executive's clock.
    ///
    /// # Errors
    /// As [`replay`](Self::replay).
    pub fn to_vcd(&self) -> Result<String, ReplayMismatch> {
        let lanes = Lanes::of(self)?;
        let kinds = [
            ("interrupts", interrupts(self, &lanes)),
            ("timers", timers(self, &lanes)),
            ("tasks", tasks(self, &lanes)),
            ("resources", resources(self, &lanes)),
        ];
        Ok(written(self, &lanes, &kinds))
    }
}

fn tasks(trace: &Trace, lanes: &Lanes) -> Vec<Scope> {
    let mut names = Names::default();
    let scopes = lanes.tasks.iter().enumerate().map(|(index, lane)| {
        let name = names.legal(&trace.task_name(index));
        let wire = |what: &str, holds: fn(Doing) -> bool| {
            let times =
                lane.stretches.iter().filter(|stretch| holds(stretch.what)).map(|stretch| within(lanes, stretch));
            Variable { name: format!("{name}_{what}"), changes: wire(times) }
        };
        let mut variables = vec![
            wire("run", |doing| doing == Doing::Run),
            wire("ready", |doing| doing == Doing::Ready),
            wire("wait", |doing| matches!(doing, Doing::Wait(_))),
        ];
        if lane.stretches.iter().any(|stretch| stretch.what == Doing::Suspended) {
            variables.push(wire("suspended", |doing| doing == Doing::Suspended));
        }
        let priority = |&(at, priority): &(Instant, u8)| (lanes.since(at), Value::Number(u32::from(priority)));
        let changes = settled(lane.priorities.iter().map(priority).collect());
        variables.push(Variable { name: format!("{name}_priority"), changes });
        Scope { name, variables }
    });
    scopes.collect()
}

fn resources(trace: &Trace, lanes: &Lanes) -> Vec<Scope> {
    let scopes = lanes.resources.iter().enumerate().map(|(index, owned)| {
        let mut names = Names::default();
        let owners: BTreeSet<usize> = owned.iter().map(|stretch| stretch.what).collect();
        let variables = owners.into_iter().map(|owner| {
            let times = owned.iter().filter(|stretch| stretch.what == owner).map(|stretch| within(lanes, stretch));
            let name = names.legal(&format!("R{index}_held_by_{}", trace.task_name(owner)));
            Variable { name, changes: wire(times) }
        });
        Scope { variables: variables.collect(), name: format!("R{index}") }
    });
    scopes.filter(|scope| !scope.variables.is_empty()).collect()
}

fn timers(trace: &Trace, lanes: &Lanes) -> Vec<Scope> {
    let mut names = Names::default();
    let scopes = trace.timers.iter().enumerate().map(|(index, called)| {
        let name = names.legal(called);
        let marks = |is: &dyn Fn(TraceEventKind) -> bool| {
            let hits = lanes.events.iter().filter(|(_, event)| is(event.what)).map(|(_, event)| lanes.since(event.at));
            wire(hits.map(|at| (at, at + PULSE_NS)))
        };
        let expired = marks(&|what| matches!(what, TraceEventKind::Expire(timer) if timer.index() == index));
        let overrun = marks(&|what| matches!(what, TraceEventKind::Overrun(timer, _) if timer.index() == index));
        let variables = vec![
            Variable { name: format!("{name}_expired"), changes: expired },
            Variable { name: format!("{name}_overrun"), changes: overrun },
            Variable { name: format!("{name}_procedure"), changes: procedure(lanes, Whose::Timer(index)) },
        ];
        Scope { name, variables }
    });
    scopes.collect()
}

fn interrupts(trace: &Trace, lanes: &Lanes) -> Vec<Scope> {
    let mut names = Names::default();
    let scopes = trace.isps.iter().zip(0_u16..).map(|(called, number)| {
        let name = names.legal(called);
        let changes = procedure(lanes, Whose::Interrupt(number));
        Scope { variables: vec![Variable { name: format!("{name}_procedure"), changes }], name }
    });
    scopes.collect()
}

fn procedure(lanes: &Lanes, whose: Whose) -> Vec<(u64, Value)> {
    wire(lanes.procedures.get(&whose).into_iter().flatten().map(|run| within(lanes, run)))
}

fn within<W>(lanes: &Lanes, stretch: &Stretch<W>) -> (u64, u64) {
    (lanes.since(stretch.from), lanes.since(stretch.to))
}

/// The changes of a wire that is high in these times.
fn wire(times: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, Value)> {
    let mut changes = vec![(0, Value::Low)];
    for (from, to) in times {
        changes.extend([(from, Value::High), (to, Value::Low)]);
    }
    settled(changes)
}

/// Keeps the last value of each time, and only changes.
fn settled(changes: Vec<(u64, Value)>) -> Vec<(u64, Value)> {
    let mut settled: Vec<(u64, Value)> = Vec::with_capacity(changes.len());
    for (at, value) in changes {
        // Where one mark begins before the last one is over, they become one.
        let at = settled.last().map_or(at, |&(last, _)| at.max(last));
        settled.pop_if(|&mut (last, _)| last == at);
        if settled.last().is_none_or(|&(_, before)| before != value) {
            settled.push((at, value));
        }
    }
    settled
}

/// Names that a VCD may contain: letters, digits and underscores, each once.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn legal(&mut self, name: &str) -> String {
        let legal: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let legal = if legal.starts_with(|c: char| c.is_ascii_alphabetic()) { legal } else { format!("_{legal}") };
        let numbered = (2_u32..).map(|number| format!("{legal}_{number}"));
        let free = std::iter::once(legal.clone()).chain(numbered).find(|name| !self.0.contains(name));
        let name = free.unwrap_or(legal);
        self.0.insert(name.clone());
        name
    }
}

/// The short code of a variable: its number in the printable characters that a VCD allows for it.
fn code(mut number: usize) -> String {
    const FIRST: u8 = b'!';
    const COUNT: usize = 94;
    let mut code = String::new();
    loop {
        code.push(char::from(FIRST + (number % COUNT) as u8));
        number /= COUNT;
        if number == 0 {
            return code;
        }
        number -= 1;
    }
}

/// Text in a comment on one line; the word that would end the comment is broken up.
fn comment(text: &str) -> String {
    format!("$comment {} $end\n", in_line(text).replace("$end", "$ end"))
}

fn value(out: &mut String, value: Value, code: &str) {
    match value {
        Value::Low => writeln!(out, "0{code}"),
        Value::High => writeln!(out, "1{code}"),
        Value::Number(number) => writeln!(out, "r{number} {code}"),
    }
    .unwrap_or_default(); // Writing to a String does not fail.
}

fn written(trace: &Trace, lanes: &Lanes, kinds: &[(&str, Vec<Scope>)]) -> String {
    let mut out = comment(&format!("a run of the Hairspring executive, back-end {}", trace.backend));
    out.push_str(&comment(&format!("time 0 is {} ns on the executive's clock", lanes.begin.as_monotonic().count())));
    if trace.lost > 0 {
        out.push_str(&comment(&format!("the trace was full: {} calls at the end are missing", trace.lost)));
    }
    if trace.backend == "thread_smp" {
        out.push_str(&comment("run is the most urgent task; with more CPUs, the next ones that are ready run, too"));
    }
    let scopes = || kinds.iter().flat_map(|(_, scopes)| scopes);
    let called = [("interrupts", &trace.isps), ("timers", &trace.timers), ("tasks", &trace.tasks)];
    for (kind, called) in called {
        let found = kinds.iter().find(|(name, _)| *name == kind);
        for (scope, called) in found.into_iter().flat_map(|(_, scopes)| scopes).zip(called) {
            if scope.name != *called {
                out.push_str(&comment(&format!("{} stands for {called}", scope.name)));
            }
        }
    }
    out.push_str("$timescale 1 ns $end\n");
    let mut number = 0;
    for (kind, scopes) in kinds.iter().filter(|(_, scopes)| !scopes.is_empty()) {
        out.push_str(&format!("$scope module {kind} $end\n"));
        for scope in scopes {
            out.push_str(&format!("$scope module {} $end\n", scope.name));
            for variable in &scope.variables {
                let kind = match variable.changes.first() {
                    Some((_, Value::Number(_))) => "real 64",
                    _ => "wire 1",
                };
                out.push_str(&format!("$var {kind} {} {} $end\n", code(number), variable.name));
                number += 1;
            }
            out.push_str("$upscope $end\n");
        }
        out.push_str("$upscope $end\n");
    }
    out.push_str("$enddefinitions $end\n#0\n$dumpvars\n");
    let variables: Vec<&Variable> = scopes().flat_map(|scope| &scope.variables).collect();
    let mut changes = Vec::new();
    for (number, variable) in variables.iter().enumerate() {
        if let Some(&(_, first)) = variable.changes.first() {
            value(&mut out, first, &code(number));
        }
        changes.extend(variable.changes.iter().skip(1).map(|&(at, value)| (at, number, value)));
    }
    out.push_str("$end\n");
    changes.sort_by_key(|&(at, number, _)| (at, number));
    let mut now = 0;
    for (at, number, changed) in changes {
        if at > now {
            out.push_str(&format!("#{at}\n"));
            now = at;
        }
        value(&mut out, changed, &code(number));
    }
    let end = lanes.since(lanes.end);
    if end > now {
        out.push_str(&format!("#{end}\n"));
    }
    out
}
