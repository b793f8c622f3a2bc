//! The facts of a Linux machine, read from recorded trees of files and from the machine that runs the tests.
//!
//! Included by `host::linux_facts` as its unit tests, because what it tests is not public.

mod container;
mod counters;
mod cpu_list;
mod heat;
mod live;
mod malformed;
mod threads;
mod tree;
mod virtual_machine;
mod workstation;

use crate::facts::{Facts, Unread};
use tree::Tree;

/// Expected value of a fact, or the reason why there is none, with the tree's own path left out.
type Expected = Result<&'static str, &'static str>;

/// Reads the facts of `tree` and compares all of them with `expected`.
#[track_caller]
fn check(tree: &Tree, expected: &[(&str, Expected)]) {
    let facts = super::read(&tree.root());
    let read: Vec<(&str, Result<String, String>)> = facts
        .facts
        .iter()
        .map(|fact| (fact.id, fact.value.clone().map_err(|unread| tree.without_path(&unread.reason))))
        .collect();
    for (id, value) in &read {
        let expected = expected.iter().find(|(expected, _)| expected == id);
        let expected = expected.map(|(_, value)| value.map(str::to_owned).map_err(str::to_owned));
        assert_eq!(Some(value), expected.as_ref(), "{id}");
    }
    assert_eq!(read.len(), expected.len(), "a fact is expected that is not there");
    check_form(&facts);
}

/// Checks what holds for the facts of every machine.
#[track_caller]
fn check_form(facts: &Facts) {
    let mut ids: Vec<&str> = facts.facts.iter().map(|fact| fact.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), facts.facts.len(), "an id is there twice");
    for fact in &facts.facts {
        let segments: Vec<&str> = fact.id.split('.').collect();
        let is_word =
            |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_lowercase() || b"_0123456789".contains(&b));
        assert!(segments.len() == 2 && segments.iter().all(|s| is_word(s)), "{} is not `group.name`", fact.id);
        assert!(!fact.label.is_empty(), "{} has no label", fact.id);
        let said = match &fact.value {
            Ok(value) => value,
            Err(Unread { reason, .. }) => reason,
        };
        assert!(!said.trim().is_empty(), "{} says nothing", fact.id);
        assert!(!said.chars().any(|c| c.is_control() && c != '\t'), "{} would steer a terminal: {said:?}", fact.id);
    }
}

#[test]
fn host_name_and_command_line_are_private_and_nothing_else_is() {
    let facts = super::read(&workstation::tree().root());
    let private: Vec<&str> = facts.facts.iter().filter(|fact| fact.private).map(|fact| fact.id).collect();
    assert_eq!(private, ["host.name", "kernel.command_line"]);
}

#[test]
fn no_public_fact_tells_the_host_name_or_a_user() {
    let tree = workstation::tree()
        .file("proc/self/cgroup", "0::/user.slice/user-1000.slice/secret.scope\n")
        .file("sys/fs/cgroup/user.slice/user-1000.slice/secret.scope/cpu.max", "garbage\n");
    let facts = super::read(&tree.root());
    for fact in facts.facts.iter().filter(|fact| !fact.private) {
        let said = format!("{:?}", fact.value);
        for word in ["balance", "user-1000", "secret"] {
            assert!(!said.contains(word), "{}: {said}", fact.id);
        }
    }
}
