//! Copies of recordings, of any part of their files: recovery and compression change only the copy, on real files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use hairspring_record::compress::{USUAL_LEVEL, compress};
use hairspring_record::recover::{RecoverOptions, recover};
use hairspring_recording::testing::Spec;
use hairspring_recording::{Files, Recording};
use hairspring_store::{Ways, best};

/// How a copy comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Copied,
    /// Under another name.
    Renamed,
    /// `cp -al`.
    HardLinked,
    /// `cp -as`.
    SymbolicLinks,
    /// The original no longer exists.
    Moved,
}

const WAYS: [Way; 5] = [Way::Copied, Way::Renamed, Way::HardLinked, Way::SymbolicLinks, Way::Moved];

/// The operation applied to the copy.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Recover,
    Compress,
}

/// All files below a folder, with their contents.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let Ok(entries) = fs::read_dir(folder) else { return all };
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        match path.is_dir() {
            true => all.extend(tree(&path)),
            false => drop(all.insert(path.clone(), fs::read(&path).expect("read"))),
        }
    }
    all
}

/// Writes a recording below a folder, as if it had been recorded there.
fn record(spec: &Spec, orig: &Path) {
    let image = spec.make();
    for path in image.paths() {
        let bytes = image.read(path).expect("there");
        let to = orig.join(path.strip_prefix("/").expect("absolute"));
        fs::create_dir_all(to.parent().expect("a folder")).expect("made");
        let is_meta = to.extension().is_some_and(|ending| ending == "sigmf-meta");
        let bytes = match String::from_utf8(bytes) {
            Ok(text) if is_meta => text.replace("\"/d", &format!("\"{}/d", orig.display())).into_bytes(),
            Ok(text) => text.into_bytes(),
            Err(bytes) => bytes.into_bytes(),
        };
        fs::write(to, bytes).expect("written");
    }
}

/// One case: the members' files whose bit is set in `left_out` stay out of the copy.
fn check(spec: &Spec, way: Way, left_out: u32, damaged_original: bool, deed: Deed) {
    let case = format!("{way:?} without {left_out:06b}, ended {}, {damaged_original}, {deed:?}", spec.ended);
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("a path");
    let (orig, copy) = (root.join("orig"), root.join("copy"));
    record(spec, &orig);
    let name = if way == Way::Renamed { "y" } else { "x" };
    let base = |member: usize| copy.join(format!("d{member}/{name}"));
    let three = |files: Files| [files.data, files.journal, files.meta];
    for member in 0..spec.members {
        fs::create_dir_all(copy.join(format!("d{member}"))).expect("made");
        let from = three(Files::of(&orig.join(format!("d{member}/x"))));
        for (file, (from, to)) in from.into_iter().zip(three(Files::of(&base(member)))).enumerate() {
            if left_out >> (member * 3 + file) & 1 == 1 {
                continue;
            }
            match way {
                Way::Copied | Way::Renamed => drop(fs::copy(from, to).expect("copied")),
                Way::HardLinked => fs::hard_link(from, to).expect("linked"),
                Way::SymbolicLinks => symlink(from, to).expect("linked"),
                Way::Moved => fs::rename(from, to).expect("moved"),
            }
        }
    }
    if way == Way::Moved {
        fs::remove_dir_all(&orig).expect("removed");
    } else if damaged_original && !matches!(way, Way::HardLinked | Way::SymbolicLinks) {
        let data = Files::of(&orig.join(format!("d{}/x", spec.members - 1))).data;
        let mut bytes = fs::read(&data).expect("read");
        bytes[17] ^= 1;
        fs::write(&data, bytes).expect("written");
    }
    let before = tree(&orig);
    let samples: Vec<Vec<u8>> =
        (0..spec.members).map(|member| fs::read(Files::of(&base(member)).data).unwrap_or_default()).collect();
    let mut store = best(4, Ways::ALL);
    // The first part with any files.
    let paths = [base(0)];
    let done = match deed {
        Deed::Recover => {
            let all = RecoverOptions { all: true, ..RecoverOptions::default() };
            recover(&mut *store, &paths, all, &mut |_| {}).map(drop)
        }
        Deed::Compress => Recording::open_in(&mut *store, &paths)
            .and_then(|recording| compress(&mut *store, &recording, USUAL_LEVEL, &mut |_| {}))
            .map(drop),
    };
    assert!(before == tree(&orig), "{case}: the original was changed ({done:?})");
    if left_out == 0 && way != Way::SymbolicLinks {
        assert_eq!(done.is_ok(), spec.ended || matches!(deed, Deed::Recover), "{case}: {done:?}");
    }
    // Each block of the samples is where it was, or in a file that keeps bytes cut off, or compressed.
    for (member, samples) in samples.iter().enumerate() {
        let kept: Vec<Vec<u8>> = tree(&copy.join(format!("d{member}"))).into_values().collect();
        let compressed =
            Recording::open_in(&mut *store, &paths).ok().filter(|_| matches!(deed, Deed::Compress) && done.is_ok());
        if let Some(recording) = compressed {
            let options = hairspring_recording::verify::VerifyOptions::default();
            let verified =
                hairspring_recording::verify::verify(&mut *store, &recording, options, &mut |_| {}).expect("verified");
            assert_eq!((verified.bytes.0, verified.damaged), (spec.stored, 0), "{case}");
            continue;
        }
        for block in samples.chunks(spec.block as usize) {
            // Reserved space after the samples is not part of them.
            let end = block.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let block = &block[..end];
            let is_kept = block.is_empty() || kept.iter().any(|file| file.windows(end).any(|there| there == block));
            assert!(is_kept, "{case}: a block of member {member} is gone ({done:?})");
        }
    }
}

#[test]
fn recovering_or_compressing_a_copy_changes_only_the_copy_and_no_whole_data_lose_a_byte() {
    for ended in [true, false] {
        let one = Spec { ended, stored: 5000, block: 1024, reserved: if ended { 0 } else { 2048 }, ..Spec::plain() };
        let stripe = Spec { members: 2, ..one.clone() };
        for (way, deed) in WAYS.into_iter().flat_map(|way| [(way, Deed::Recover), (way, Deed::Compress)]) {
            (0..8).for_each(|left_out| check(&one, way, left_out, left_out % 2 == 0, deed));
            let single = (0..6).map(|file| 1 << file);
            // None, each of the files alone, all of the second part, and the second part but its metadata.
            for left_out in [0, 0b11_1000, 0b01_1000].into_iter().chain(single) {
                check(&stripe, way, left_out, true, deed);
            }
        }
    }
}

#[test]
fn a_part_that_lies_outside_the_named_folders_is_changed_once_it_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("a path");
    let spec = Spec { members: 2, ..Spec::killed() };
    record(&spec, &root.join("orig"));
    // The first disk was replaced; the second one is where it was.
    fs::create_dir(root.join("new")).expect("made");
    for entry in fs::read_dir(root.join("orig/d0")).expect("there") {
        let path = entry.expect("an entry").path();
        fs::rename(&path, root.join("new").join(path.file_name().expect("a name"))).expect("moved");
    }
    let (first, second) = (root.join("new/x"), root.join("orig/d1/x"));
    let mut store = best(4, Ways::ALL);
    let before = tree(&root);
    let mut run = |paths: &[PathBuf]| recover(&mut *store, paths, RecoverOptions::default(), &mut |_| {});
    let refused = run(std::slice::from_ref(&first)).expect_err("not named").to_string();
    assert!(refused.contains(&format!("name {} {}", first.display(), second.display())), "{refused}");
    assert!(before == tree(&root), "nothing was changed");
    run(&[first, second]).expect("recovered");
}

#[test]
fn a_stripe_that_was_not_moved_is_recovered_by_one_name_through_any_path() {
    for path in ["orig/d0/x", "link/d0/x", "orig/d0/../d0/x"] {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let spec = Spec { members: 2, ..Spec::killed() };
        record(&spec, &root.join("orig"));
        symlink(root.join("orig"), root.join("link")).expect("linked");
        // The second folder is on another disk.
        fs::rename(root.join("orig/d1"), root.join("disk2")).expect("moved");
        symlink(root.join("disk2"), root.join("orig/d1")).expect("linked");
        let mut store = best(4, Ways::ALL);
        let recovered = recover(&mut *store, &[root.join(path)], RecoverOptions::default(), &mut |_| {});
        let recovered = recovered.unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(recovered.ledger.stored_bytes, spec.stored, "{path}");
    }
}

#[test]
fn a_copied_tree_with_a_link_to_the_other_disk_does_not_change_what_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("a path");
    let spec = Spec { members: 2, ..Spec::killed() };
    record(&spec, &root.join("orig"));
    fs::rename(root.join("orig/d1"), root.join("disk2")).expect("moved");
    // `cp -a orig copy` copies links as links.
    for tree in ["orig", "copy"] {
        fs::create_dir_all(root.join(tree).join("d0")).expect("made");
        symlink(root.join("disk2"), root.join(tree).join("d1")).expect("linked");
    }
    for entry in fs::read_dir(root.join("orig/d0")).expect("there") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, root.join("copy/d0").join(path.file_name().expect("a name"))).expect("copied");
    }
    let before = tree(&root);
    let mut store = best(4, Ways::ALL);
    let refused = recover(&mut *store, &[root.join("copy/d0/x")], RecoverOptions::default(), &mut |_| {});
    assert!(refused.expect_err("the other part is the original's").to_string().contains("nothing was changed"));
    assert!(before == tree(&root));
}
