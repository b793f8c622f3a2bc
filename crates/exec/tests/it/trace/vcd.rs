//! The Value Change Dump, read by the crate `vcd`.

use std::collections::BTreeMap;

use hairspring_exec::trace::Trace;
use vcd::{Command, IdCode, Parser, ScopeItem, SimulationCommand, Value};

use super::{little, programs_everywhere};

/// A dump as another reader sees it.
struct Dump {
    /// Full name of each variable.
    names: BTreeMap<IdCode, String>,
    /// Time and value, by name; real numbers as text.
    changes: BTreeMap<String, Vec<(u64, String)>>,
    end: u64,
    comments: Vec<String>,
}

#[track_caller]
fn read(text: &str) -> Dump {
    let mut parser = Parser::new(text.as_bytes());
    let header = parser.parse_header().expect("the header is understood");
    assert_eq!(header.timescale, Some((1, vcd::TimescaleUnit::NS)));
    let mut names = BTreeMap::new();
    let mut comments = Vec::new();
    let mut open: Vec<(String, &[ScopeItem])> = vec![(String::new(), &header.items)];
    while let Some((path, items)) = open.pop() {
        for item in items {
            match item {
                ScopeItem::Scope(scope) => open.push((format!("{path}{}.", scope.identifier), &scope.items)),
                ScopeItem::Var(var) => {
                    let name = format!("{path}{}", var.reference);
                    assert!(names.insert(var.code, name).is_none(), "two variables with one code");
                }
                ScopeItem::Comment(text) => comments.push(text.clone()),
                other => panic!("{other:?} is nothing that we write"),
            }
        }
    }
    let mut unique: Vec<&String> = names.values().collect();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), names.len(), "two variables with one name");

    let mut changes: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    let (mut now, mut dumping, mut dumped) = (None, false, 0);
    for command in parser {
        let mut change = |id: IdCode, value: String| {
            dumped += usize::from(dumping);
            changes.entry(names[&id].clone()).or_default().push((now.expect("a time comes first"), value));
        };
        match command.expect("every command is understood") {
            Command::Timestamp(at) => {
                assert!(now.is_none_or(|before| before < at), "time goes on: {now:?}, {at}");
                now = Some(at);
            }
            Command::ChangeScalar(id, value) => {
                assert!(matches!(value, Value::V0 | Value::V1));
                change(id, value.to_string());
            }
            Command::ChangeReal(id, value) => change(id, value.to_string()),
            Command::Begin(SimulationCommand::Dumpvars) => dumping = true,
            Command::End(SimulationCommand::Dumpvars) => dumping = false,
            other => panic!("{other:?} is nothing that we write"),
        }
    }
    assert_eq!(dumped, names.len(), "every variable has a value from the beginning");
    Dump { names, changes, end: now.expect("there is a time"), comments }
}

impl Dump {
    /// The times in which a wire was high.
    fn high(&self, name: &str) -> Vec<(u64, u64)> {
        let mut times = Vec::new();
        for (at, value) in &self.changes[name] {
            match (value.as_str(), times.last_mut()) {
                ("1", _) => times.push((*at, self.end)),
                ("0", Some((_, to))) => *to = *at,
                _ => {}
            }
        }
        times
    }

    fn wires(&self, ending: &str) -> Vec<&String> {
        self.names.values().filter(|name| name.starts_with("tasks.") && name.ends_with(ending)).collect()
    }
}

/// Asserts that no two of these times overlap.
#[track_caller]
fn check_apart(mut times: Vec<(u64, u64)>, what: &str) {
    times.sort_unstable();
    assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{what}");
}

/// Invariants of every dump.
#[track_caller]
fn check(trace: &Trace, what: &str) -> Dump {
    let dump = read(&trace.to_vcd().expect("it replays"));
    for (name, changes) in &dump.changes {
        assert!(changes.windows(2).all(|pair| pair[0].1 != pair[1].1), "{what}: {name} changes to what it is");
    }
    assert_eq!(dump.wires("_run").len(), trace.tasks.len(), "{what}");
    for run in dump.wires("_run") {
        let stem = run.strip_suffix("run").expect("found by it");
        let states = ["run", "ready", "wait"].map(|state| dump.high(&format!("{stem}{state}")));
        check_apart(states.concat(), &format!("{what}: {stem} is in two states at once"));
    }
    let running = dump.wires("_run").into_iter().flat_map(|name| dump.high(name)).collect();
    check_apart(running, &format!("{what}: two are first"));
    dump
}

#[test]
fn the_dump_is_as_reviewed() {
    insta::assert_snapshot!(little().to_vcd().expect("it replays"));
}

#[test]
fn a_dump_is_understood_by_another_reader_and_a_task_is_in_one_state_at_a_time() {
    check(&little(), "little");
    for (what, trace) in programs_everywhere() {
        check(&trace, &what);
    }
}

#[test]
fn names_become_legal_and_the_originals_stand_in_comments() {
    let dump = check(&little(), "little");
    assert!(dump.names.values().any(|name| name == "tasks.low___slow.low___slow_run"), "{:?}", dump.names);
    let originals: Vec<&String> = dump.comments.iter().filter(|comment| comment.contains("stands for")).collect();
    assert_eq!(originals.len(), 2, "{originals:?}");
    assert!(originals.iter().any(|comment| comment.contains("low & slow")), "{originals:?}");
}

#[test]
fn an_inheritance_is_seen_as_a_priority_and_an_owner() {
    let dump = check(&little(), "little");
    let priorities: Vec<&str> =
        dump.changes["tasks.low___slow.low___slow_priority"].iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(priorities, ["30", "10", "30"]);
    let owners: Vec<&String> = dump.names.values().filter(|name| name.starts_with("resources.R0.")).collect();
    assert_eq!(owners.len(), 2, "{owners:?}");
    check_apart(owners.into_iter().flat_map(|name| dump.high(name)).collect(), "two owners");
}

#[test]
fn timers_and_interrupts_are_marks() {
    let dump = check(&little(), "little");
    assert!(dump.high("timers.tick.tick_expired").len() > 10);
    assert_eq!(dump.high("interrupts.edge.edge_procedure").len(), 1);
}
