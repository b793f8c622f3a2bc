//! Malformed files: every parser meets them, none panics, and no fact is empty.

use std::path::PathBuf;

use proptest::prelude::*;

use super::super::{clocksource, counters_steal_and_interrupts, cpu_flags};
use super::tree::Tree;
use super::{check_form, workstation};

/// One thread, so that its parser meets the same changes.
const STAT: &str =
    "9 (a name) S 1 1 1 0 -1 64 7 0 0 0 5 6 0 0 20 0 1 0 3 0 0 1 0 0 0 0 0 0 0 2 0 0 0 0 17 1 0 0 0 0 0 0\n";

/// Reads everything there is to read in `tree` and checks its form.
#[track_caller]
fn read_all(tree: &Tree) {
    let root = tree.root();
    check_form(&super::super::read(&root));
    for cpu in [0, 1, u32::MAX] {
        let _ = counters_steal_and_interrupts(&root, cpu);
    }
    let _ = clocksource(&root);
    let _ = cpu_flags(&root);
}

/// The workstation with one thread and all files changed by `change`.
fn changed(mut change: impl FnMut(&PathBuf, Vec<u8>) -> Vec<u8>) -> Tree {
    let tree = workstation::tree().file("proc/9/task/9/stat", STAT);
    for path in tree.paths() {
        let content = std::fs::read(&path).unwrap();
        std::fs::write(&path, change(&path, content)).unwrap();
    }
    tree
}

#[test]
fn empty_files_are_no_values() {
    let tree = changed(|_, _| Vec::new());
    let facts = super::super::read(&tree.root());
    check_form(&facts);
    // That a device can be opened does not depend on what is in it.
    let values: Vec<&str> = facts.facts.iter().filter(|fact| fact.value.is_ok()).map(|fact| fact.id).collect();
    assert_eq!(values, ["limits.cpu_dma_latency"]);
    read_all(&tree);
}

#[test]
fn blank_files_are_no_values_except_where_blank_is_an_answer() {
    let tree = changed(|_, _| b"\n".to_vec());
    let facts = super::super::read(&tree.root());
    check_form(&facts);
    let values: Vec<&str> = facts.facts.iter().filter(|fact| fact.value.is_ok()).map(|fact| fact.id).collect();
    assert_eq!(values, ["cpu.isolated", "cpu.nohz_full", "limits.cpu_dma_latency"]);
}

#[test]
fn an_option_of_the_kernel_without_a_value_is_no_empty_value() {
    let tree = workstation::tree().file("proc/cmdline", "rcu_nocbs= nohz_full=\n");
    let facts = super::super::read(&tree.root());
    check_form(&facts);
    let fact = facts.facts.iter().find(|fact| fact.id == "cpu.rcu_nocbs").unwrap();
    assert_eq!(fact.value.as_deref().ok(), Some("none"));
}

#[test]
fn huge_numbers_are_no_reason_to_panic() {
    for digits in ["4294967295", "9223372036854775807", "18446744073709551615", "99999999999999999999999999999999"] {
        read_all(&changed(|_, content| {
            let text = String::from_utf8(content).unwrap();
            let numbers = text.split_inclusive(|c: char| !c.is_ascii_digit()).map(|word| {
                let rest = word.trim_start_matches(|c: char| c.is_ascii_digit());
                if rest.len() < word.len() { format!("{digits}{rest}") } else { word.to_owned() }
            });
            numbers.collect::<String>().into_bytes()
        }));
    }
}

#[test]
fn missing_columns_are_no_reason_to_panic() {
    for columns in 0..9 {
        read_all(&changed(|_, content| {
            let text = String::from_utf8(content).unwrap();
            let lines = text.lines().map(|line| line.split(' ').take(columns).collect::<Vec<_>>().join(" ") + "\n");
            lines.collect::<String>().into_bytes()
        }));
    }
}

#[test]
fn directories_in_the_place_of_files_are_no_values() {
    let tree = Tree::empty()
        .file("proc/cpuinfo/x", "")
        .file("sys/devices/system/cpu/online/x", "")
        .file("sys/devices/system/cpu/vulnerabilities/meltdown/x", "");
    let facts = super::super::read(&tree.root());
    check_form(&facts);
    let reason = &facts.facts.iter().find(|fact| fact.id == "cpu.model").unwrap().value.as_ref().unwrap_err().reason;
    assert_eq!(tree.without_path(reason), "/proc/cpuinfo: is a directory");
}

/// A file that is cut in silence would be a wrong answer.
#[test]
fn a_file_beyond_the_limit_is_refused_and_not_cut() {
    const LIMIT: usize = 16 << 20;
    for (length, whole) in [(LIMIT - 1, true), (LIMIT, true), (LIMIT + 1, false), (LIMIT + 100, false)] {
        let tree = Tree::empty().file("proc/interrupts", vec![b'x'; length]);
        let read = super::super::root::bytes(&tree.root().proc.join("interrupts"));
        let read = read.map(|content| content.len()).map_err(|unread| tree.without_path(&unread.reason));
        let refused = || "/proc/interrupts: longer than 16 MiB".to_owned();
        assert_eq!(read, if whole { Ok(length) } else { Err(refused()) });
    }
}

#[test]
fn a_release_cannot_lead_out_of_the_boot_directory() {
    let tree = workstation::tree().file("proc/sys/kernel/osrelease", "/../../etc/os-release\n");
    let facts = super::super::read(&tree.root());
    let fact = facts.facts.iter().find(|fact| fact.id == "kernel.tick_rate").unwrap();
    let reason = tree.without_path(&fact.value.as_ref().unwrap_err().reason);
    assert_eq!(reason, "/proc/sys/kernel/osrelease: not a release");
}

/// A change to a file.
#[derive(Clone, Debug)]
enum Change {
    /// Replaced by bytes.
    Bytes(Vec<u8>),
    /// Replaced by words of the kind that parsers look for.
    Words(String),
    /// Cut at a share of its length.
    Cut(f64),
    /// One byte, at a share of its length, replaced.
    Byte(f64, u8),
    /// Left alone.
    None,
}

/// Changes, of which every file gets one.
fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..64).prop_map(Change::Bytes),
        "([0-9]{1,21}|-|,|:|=|/|cpu|CPU0|0|max|some|avg10|\\(|\\)|\\[|\\]| |\n|\t|MemTotal|K|flags|processor){0,24}"
            .prop_map(Change::Words),
        (0.0..1.0).prop_map(Change::Cut),
        (0.0..1.0, any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        Just(Change::None),
    ];
    proptest::collection::vec(change, 16..64)
}

/// The place at a share of a length.
fn place(content: &[u8], share: f64) -> usize {
    (content.len() as f64 * share) as usize
}

proptest! {
    // A case that fails is printed; a file of them would land among the sources.
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_content_of_the_files_makes_a_parser_panic(changes in changes()) {
        let mut next = changes.iter().cycle();
        read_all(&changed(|_, mut content| {
            match next.next() {
                Some(Change::Bytes(bytes)) => content.clone_from(bytes),
                Some(Change::Words(words)) => content = words.clone().into_bytes(),
                Some(Change::Cut(share)) => content.truncate(place(&content, *share)),
                Some(Change::Byte(share, byte)) => {
                    let at = place(&content, *share);
                    if let Some(old) = content.get_mut(at) {
                        *old = *byte;
                    }
                }
                Some(Change::None) | None => {}
            }
            content
        }));
    }
}
