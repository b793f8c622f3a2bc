//! Owners on real files. Each ownership has descriptions of its own, so two in one process refuse each other like two
//! processes.

use std::path::{Path, PathBuf};

use super::{OwnError, OwnerProcess, Ownership, Work, has_locks, holder};
use crate::plain::PlainStore;
use crate::{Open, Store, StoreError, Ways, best, not_made};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn files(folder: &Path) -> [PathBuf; 2] {
    ["a", "b"].map(|name| {
        let path = folder.join(name);
        std::fs::write(&path, name).expect("written");
        path
    })
}

#[track_caller]
fn check_refused(files: &[PathBuf], by: Work) {
    match Ownership::take(files, Work::Changes) {
        Err(OwnError::Owned(owned)) => {
            assert_eq!(owned.holder.work, by);
            let expected = std::process::id();
            assert!(matches!(owned.holder.process(), OwnerProcess::Found(number, _) if number == expected));
            let text = owned.to_string();
            assert!(text.contains(&format!("is being {} by process {expected} (", by.participle())), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_has_one_owner_and_everybody_sees_which_process_it_is() {
    let folder = folder();
    let files = files(folder.path());
    let owner = Ownership::take(&files, Work::Records).expect("taken");
    for file in &files {
        check_refused(std::slice::from_ref(file), Work::Records);
        assert_eq!(holder(file).expect("owned").work, Work::Records);
    }
    owner.turn(Work::Deletes).expect("turned");
    check_refused(&files, Work::Deletes);
    owner.turn(Work::Records).expect("turned");
    check_refused(&files, Work::Records);
    drop(owner);
    assert_eq!(files.each_ref().map(|file| holder(file)), [None, None]);
    drop(Ownership::take(&files, Work::Changes).expect("free"));
}

#[test]
fn whoever_is_refused_one_file_holds_none() {
    let folder = folder();
    let files = files(folder.path());
    let owner = Ownership::take(&files[1..], Work::Changes).expect("taken");
    check_refused(&files, Work::Changes);
    assert_eq!(holder(&files[0]), None);
    assert!(owner.add(&files[..1]).is_ok());
    assert!(holder(&files[0]).is_some());
}

#[test]
fn the_owner_of_a_file_that_was_moved_is_still_its_owner() {
    let folder = folder();
    let [file, _] = files(folder.path());
    let owner = Ownership::take(std::slice::from_ref(&file), Work::Records).expect("taken");
    let moved = folder.path().join("moved");
    std::fs::rename(&file, &moved).expect("moved");
    check_refused(std::slice::from_ref(&moved), Work::Records);
    assert_eq!(owner.facts(&file).expect("locked").links, 1);
}

#[test]
fn two_names_of_one_file_and_one_name_twice_are_owned_like_one() {
    let folder = folder();
    let [file, _] = files(folder.path());
    let link = folder.path().join("link");
    std::fs::hard_link(&file, &link).expect("linked");
    let owner = Ownership::take(&[file.clone(), link.clone(), file.clone()], Work::Changes).expect("taken");
    owner.add(std::slice::from_ref(&link)).expect("ours");
    check_refused(&[link], Work::Changes);
}

#[test]
fn what_an_owner_creates_replaces_and_renames_is_owned_before_it_has_its_name() {
    let folder = folder();
    let [made, put, renamed] = ["made", "put", "renamed"].map(|name| folder.path().join(name));
    let names = [made.clone(), put.clone(), renamed.clone()];
    for mut store in [best(2, Ways::ALL), Box::new(PlainStore::new(2, Ways::ALL)) as Box<dyn Store>] {
        let owner = store.own(&names, Work::Records).expect("taken");
        let file = store.open(&made, Open::CreateData).expect("made");
        assert!(store.look(&made).expect("there").is_same_file(&store.look_at(file).expect("open")));
        for content in ["one", "another"] {
            store.put(&put, content.as_bytes()).expect("put");
            check_refused(std::slice::from_ref(&put), Work::Records);
        }
        for is_owned in [false, true] {
            let part = folder.path().join("part");
            if is_owned {
                owner.add(std::slice::from_ref(&part)).expect("added");
            }
            let file = store.open(&part, Open::CreateJournal).expect("made");
            store.close(file);
            store.rename(&part, &renamed).expect("renamed");
        }
        for name in &names {
            check_refused(std::slice::from_ref(name), Work::Records);
            assert!(owner.facts(name).expect("locked").is_same_file(&store.look(name).expect("there")));
        }
        store.remove(&renamed).expect("removed");
        assert_eq!(owner.facts(&renamed), None);
        drop(owner);
        // Files that the store makes from now on have no owner.
        store.put(&put, b"free").expect("put");
        assert_eq!([&made, &put].map(|name| holder(name)), [None, None]);
        drop(store);
        std::fs::remove_file(&made).expect("removed");
    }
}

#[test]
fn an_ownership_that_is_lent_to_another_store_ends_with_its_owner() {
    let folder = folder();
    let path = folder.path().join("x");
    let mut store = PlainStore::new(2, Ways::ALL);
    let owner = Ownership::take(std::slice::from_ref(&path), Work::Changes).expect("nothing is there");
    store.lend(&owner);
    store.put(&path, b"one").expect("put");
    check_refused(std::slice::from_ref(&path), Work::Changes);
    drop(owner);
    drop(Ownership::take(&[path], Work::Changes).expect("free"));
}

#[test]
fn copies_are_made_by_several_and_keep_changes_away() {
    let folder = folder();
    let files = files(folder.path());
    let copies = [(); 2].map(|()| Ownership::take(&files, Work::Copies).expect("shared"));
    check_refused(&files, Work::Copies);
    drop(copies);
    let owner = Ownership::take(&files[..1], Work::Changes).expect("free");
    assert!(matches!(Ownership::take(&files, Work::Copies), Err(OwnError::Owned(_))));
    drop(owner);
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_and_no_owner() {
    let folder = folder();
    match Ownership::take(&[folder.path().to_owned()], Work::Changes) {
        Err(OwnError::Store(error)) => assert!(error.to_string().contains("open to lock"), "{error}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_system_has_locks_if_it_can_be_asked_who_owns_a_file() {
    let folder = folder();
    let [a, _] = files(folder.path());
    assert!(has_locks(&a) && holder(&a).is_none());
    assert!(!has_locks(&folder.path().join("absent")));
}

#[test]
fn a_file_that_its_maker_has_yet_to_lock_is_that_makers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    std::fs::File::create(&path).expect("made");
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let exists = std::io::Error::from_raw_os_error(libc::EEXIST);
            let store = PlainStore::new(1, Ways::default());
            not_made(&store, StoreError::new("create", &path, &exists))
        });
        let maker = Ownership::take(std::slice::from_ref(&path), Work::Records).expect("the file is free");
        let refused = second.join().expect("no panic");
        assert!(matches!(refused, OwnError::Owned(_)), "{refused}");
        drop(maker);
    });
}
