//! The journal on a tree of ordinary files: killed at every moment, changed by others, found by a second process.

use super::*;
use proptest::prelude::*;

const FILES: [(&str, &str); 3] = [("a", "one"), ("b", "two"), ("c/x", "three")];

/// A tree of files with their old values, and a place for the journal.
struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("c")).expect("made");
        let tree = Self { folder };
        tree.put(&FILES.map(|(name, value)| (name.to_owned(), value.to_owned())));
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn journal(&self) -> PathBuf {
        self.path("run/undo.journal")
    }

    fn put(&self, values: &[(String, String)]) {
        for (name, value) in values {
            fs::write(self.path(name), value).expect("written");
        }
    }

    fn values(&self) -> Vec<(String, String)> {
        let read = |name: &str| fs::read_to_string(self.path(name)).expect("readable");
        FILES.map(|(name, _)| (name.to_owned(), read(name))).to_vec()
    }

    fn begin(&self) -> Result<(Changes, Vec<Restored>), ChangesError> {
        Changes::begin_at(self.folder.path(), &self.journal(), "test")
    }

    fn restore_leftovers(&self) -> Vec<Restored> {
        Changes::restore_leftovers_at(&self.journal(), FlockOperation::NonBlockingLockExclusive).expect("restored")
    }

    fn is_as_before(&self) -> bool {
        self.values().iter().zip(FILES).all(|((_, now), (_, old))| now == old)
    }
}

/// Drops changes as SIGKILL does: nothing is restored, the lock is gone, the journal stays.
fn kill(mut changes: Changes) {
    changes.steps.clear();
    let beside = changes.journal.path.with_extension("kept");
    fs::rename(&changes.journal.path, &beside).expect("moved");
    let path = changes.journal.path.clone();
    drop(changes);
    fs::rename(beside, path).expect("moved back");
}

#[test]
fn what_was_changed_is_restored_at_the_end() {
    let tree = Tree::new();
    let (mut changes, left) = tree.begin().expect("nobody else");
    assert!(left.is_empty());
    assert_eq!(changes.set("/a", "1").expect("set").len(), 1);
    assert_eq!(changes.set("/c/*", "3").expect("set"), [(tree.path("c/x"), "three".to_owned(), "3".to_owned())]);
    assert!(!tree.is_as_before());
    let restored = changes.restore();
    assert!(restored.iter().all(|restored| restored.outcome == RestoreOutcome::Done), "{restored:?}");
    assert_eq!(restored.len(), 2);
    assert!(tree.is_as_before());
    assert!(!tree.journal().exists());
}

#[test]
fn a_change_that_cannot_be_noted_is_not_made() {
    let tree = Tree::new();
    let (mut changes, _) = tree.begin().expect("nobody else");
    // A full disk.
    changes.journal.file = OpenOptions::new().write(true).open("/dev/full").expect("Linux has one");
    assert!(matches!(changes.set("/a", "1"), Err(ChangesError::Journal(..))));
    assert!(tree.is_as_before());
}

#[test]
fn changes_that_are_dropped_are_restored() {
    let tree = Tree::new();
    let (mut changes, _) = tree.begin().expect("nobody else");
    changes.set("/a", "1").expect("set");
    drop(changes);
    assert!(tree.is_as_before());
    assert!(!tree.journal().exists());
}

/// A process that restores `transparent_hugepage/enabled` and is killed in the kernel's write has set that value, and
/// not `min_free_kbytes`.
#[test]
fn a_file_that_shows_its_old_value_is_written_once_more() {
    let tree = Tree::new();
    let (mut changes, _) = tree.begin().expect("nobody else");
    changes.set("/a", "1").expect("set");
    kill(changes);
    fs::write(tree.path("a"), FILES[0].1).expect("written");
    let long_ago = std::time::UNIX_EPOCH;
    let file = OpenOptions::new().write(true).open(tree.path("a")).expect("there");
    file.set_modified(long_ago).expect("set");
    assert_eq!(tree.restore_leftovers()[0].outcome, RestoreOutcome::WasOld);
    assert!(file.metadata().and_then(|data| data.modified()).is_ok_and(|modified| modified > long_ago));
    assert!(tree.is_as_before());
}

#[test]
fn a_process_that_was_killed_is_cleaned_up_after() {
    let tree = Tree::new();
    let (mut changes, _) = tree.begin().expect("nobody else");
    changes.set("/a", "1").expect("set");
    changes.set("/a", "2").expect("set again");
    kill(changes);
    assert!(!tree.is_as_before());
    let (changes, left) = tree.begin().expect("its lock is gone");
    assert_eq!(left.len(), 2);
    assert!(tree.is_as_before());
    drop(changes);
    assert!(tree.is_as_before());
}

#[test]
fn a_second_process_is_refused_and_restores_nothing() {
    let tree = Tree::new();
    let (mut changes, _) = tree.begin().expect("nobody else");
    changes.set("/a", "1").expect("set");
    match tree.begin() {
        Err(ChangesError::Busy(pid, command)) => assert_eq!((pid, command.as_str()), (std::process::id(), "test")),
        other => panic!("{other:?}"),
    }
    assert!(tree.restore_leftovers().is_empty());
    assert_eq!(fs::read_to_string(tree.path("a")).expect("readable"), "1");
    drop(changes);
    assert!(tree.is_as_before());
}

#[test]
fn what_somebody_else_changed_is_left_alone() {
    let tree = Tree::new();
    let (mut changes, _) = tree.begin().expect("nobody else");
    changes.set("/a", "1").expect("set");
    changes.set("/b", "2").expect("set");
    tree.put(&[("a".to_owned(), "theirs".to_owned()), ("b".to_owned(), "two".to_owned())]);
    let outcomes: Vec<RestoreOutcome> = changes.restore().into_iter().map(|restored| restored.outcome).collect();
    assert_eq!(outcomes, [RestoreOutcome::WasOld, RestoreOutcome::ChangedByOthers("theirs".to_owned())]);
    assert_eq!(fs::read_to_string(tree.path("a")).expect("readable"), "theirs");
}

#[test]
fn a_file_that_vanished_is_reported() {
    let tree = Tree::new();
    let (mut changes, _) = tree.begin().expect("nobody else");
    changes.set("/a", "1").expect("set");
    fs::remove_file(tree.path("a")).expect("removed");
    let restored = changes.restore();
    assert!(matches!(restored[0].outcome, RestoreOutcome::Failed(_)), "{restored:?}");
    assert!(matches!(tree.begin().expect("free").0.set("/a", "1"), Err(ChangesError::NoSuchFile(_))));
}

#[test]
fn a_value_that_is_there_already_is_no_change() {
    let tree = Tree::new();
    let (mut changes, _) = tree.begin().expect("nobody else");
    changes.set("/a", "one").expect("set");
    tree.put(&[("a".to_owned(), "theirs".to_owned())]);
    assert!(changes.restore().is_empty());
}

#[test]
fn a_journal_of_another_boot_is_removed_unread() {
    let tree = Tree::new();
    let (mut changes, _) = tree.begin().expect("nobody else");
    changes.set("/a", "1").expect("set");
    kill(changes);
    let text = fs::read_to_string(tree.journal()).expect("readable");
    fs::write(tree.journal(), text.replace(&boot_id(), "another")).expect("written");
    assert!(tree.restore_leftovers().is_empty());
    assert_eq!(fs::read_to_string(tree.path("a")).expect("readable"), "1");
    assert!(!tree.journal().exists());
}

#[test]
fn a_file_whose_old_value_cannot_be_read_is_not_written() {
    let tree = Tree::new();
    fs::write(tree.path("a"), [0xff, 0xfe]).expect("written");
    let (mut changes, _) = tree.begin().expect("nobody else");
    assert!(matches!(changes.set("/a", "1"), Err(ChangesError::File(..))));
    assert!(changes.restore().is_empty());
    assert_eq!(fs::read(tree.path("a")).expect("readable"), [0xff, 0xfe]);
}

#[test]
fn a_value_comes_back_with_the_other_file_of_its_pair() {
    // The kernel's dirty_bytes ignores a 0; writing dirty_ratio ends it. On plain files both are simply written.
    let tree = Tree::new();
    for (name, value) in [("dirty_bytes", "0"), ("dirty_ratio", "20")] {
        fs::write(tree.path(name), value).expect("written");
    }
    let (mut changes, _) = tree.begin().expect("nobody else");
    changes.set("/dirty_bytes", "4096").expect("set");
    // As the kernel does.
    fs::write(tree.path("dirty_ratio"), "0").expect("written");
    kill(changes);
    assert_eq!(tree.restore_leftovers().len(), 2);
    let read = |name| fs::read_to_string(tree.path(name)).expect("readable");
    assert_eq!([read("dirty_bytes"), read("dirty_ratio")], ["0", "20"]);
}

/// All states that a kill can leave: after each operation, and with each part of the line that was being written.
fn states(changes: &[(usize, String)]) -> Vec<(String, Vec<(String, String)>)> {
    let tree = Tree::new();
    let mut states = Vec::new();
    let mut journal = format!(
        "{}\n",
        serde_json::to_string(&Line::Header { format: FORMAT, boot_id: boot_id(), pid: 1, command: "test".to_owned() })
            .expect("text")
    );
    let grow = |journal: &mut String, line: &Line, values: &[(String, String)], states: &mut Vec<_>| {
        let text = format!("{}\n", serde_json::to_string(line).expect("text"));
        // A line that is cut off anywhere is void, so few cuts stand for all.
        for end in [0, 1, text.len() / 2, text.len() - 1, text.len()] {
            states.push((format!("{journal}{}", &text[..end]), values.to_vec()));
        }
        journal.push_str(&text);
    };
    for (file, value) in changes {
        let (name, _) = FILES[*file];
        let mut values = tree.values();
        let old = values[*file].1.clone();
        if old == *value {
            continue;
        }
        let step = Line::Step { path: PathBuf::from(name), old, new: value.clone() };
        grow(&mut journal, &step, &values, &mut states);
        values[*file].1.clone_from(value);
        tree.put(&values);
        states.push((journal.clone(), values.clone()));
        grow(&mut journal, &Line::Shows(value.clone()), &values, &mut states);
    }
    states
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn whenever_it_was_killed_the_tree_is_as_before(
        changes in prop::collection::vec((0..FILES.len(), "[1-3]"), 1..4),
    ) {
        for (journal, values) in states(&changes) {
            let tree = Tree::new();
            tree.put(&values);
            fs::create_dir(tree.path("run")).expect("made");
            // Replace the paths in the journal by those of this tree.
            let journal = FILES.iter().fold(journal, |journal, (name, _)| {
                let path = serde_json::to_string(&tree.path(name)).expect("text");
                journal.replace(&format!("\"path\":\"{name}\""), &format!("\"path\":{path}"))
            });
            fs::write(tree.journal(), &journal).expect("written");
            let restored = tree.restore_leftovers();
            prop_assert!(tree.is_as_before(), "{:?} after {restored:?} of {journal}", tree.values());
            // Also interrupt the restoration, and repeat it.
            prop_assert!(!tree.journal().exists());
        }
    }
}
