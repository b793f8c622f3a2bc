//! Copies: any subset of a recording's files, copied, renamed, hard-linked or moved, beside the original or one that is
//! damaged.
//!
//! `verify`, `recover`, `compress` and its `--undo` on such a copy change nothing else, and the samples of each copied
//! data file are still there, byte for byte. If the whole recording was copied, it is whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::acts::{Kind, Place, is_of_it};
use super::judge::{settle, unchanged};
use super::shelf::{difference, files};
use super::{Chance, MOST_NAMED, Masters, State, must, seeds, short};
use crate::{folder, hairspring, stderr, stdout};

/// Copies of an ordinary run.
const COPIES: u64 = 16;

/// Size in bytes of the pieces in which samples are searched for.
const PIECE: usize = 512;

/// Way in which the files come to their new place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Copied,
    Linked,
    Moved,
}

#[derive(Debug)]
struct Subset {
    kind: Kind,
    state: State,
    way: Way,
    /// The chosen files, in the order of their names; one bit each.
    files: u64,
    /// Whether the files left behind are damaged.
    is_damaged: bool,
    /// Whether the folders of the members keep their names.
    same_folders: bool,
}

impl Subset {
    fn draw(seed: u64) -> Self {
        let mut chance = Chance::seeded(seed ^ 0xc0_91e5);
        let states = [State::Whole, State::Whole, State::CutOff, State::Compressed];
        Self {
            kind: Kind::ALL[chance.below(4) as usize],
            state: states[chance.below(4) as usize],
            way: [Way::Copied, Way::Linked, Way::Moved][chance.below(3) as usize],
            // Each file with a probability of three quarters: the recordings that lack little are the hard ones.
            files: chance.below(1 << 40) | chance.below(1 << 40),
            is_damaged: chance.below(2) == 0,
            same_folders: chance.below(4) > 0,
        }
    }
}

#[test]
fn of_any_subset_of_the_files_of_a_recording_no_sample_is_lost_and_nothing_else_changes() {
    let seeds = seeds(COPIES);
    let mut masters = Masters::default();
    let (mut tried, mut failed) = (0, Vec::new());
    for seed in seeds {
        let subset = Subset::draw(seed);
        tried += 1;
        if let Err(why) = attempt(&subset, &mut masters) {
            println!("failed: HAIRSPRING_SEED={seed}\n{subset:?}: {why}");
            failed.push(seed);
            masters.again();
        }
    }
    println!("figure: copies: {tried}\nfigure: copies with exceptions: {}", failed.len());
    let named = &failed[..failed.len().min(MOST_NAMED)];
    assert!(failed.is_empty(), "{} of {tried}: HAIRSPRING_SEED={named:?}", failed.len());
}

fn attempt(subset: &Subset, masters: &mut Masters) -> Result<(), String> {
    let (master, owed) = masters.of(subset.kind, subset.state)?;
    let home = folder();
    let [original, copied] = ["original", "copy"].map(|name| home.path().join(name));
    must(Command::new("cp").arg("-a").arg(&master).arg(&original))?;
    let there = files(&original);
    let all: Vec<&PathBuf> = there.keys().filter(|path| is_of_it(path)).collect();
    let chosen: Vec<&PathBuf> =
        all.iter().enumerate().filter(|(bit, _)| subset.files >> (bit % 40) & 1 == 1).map(|(_, path)| *path).collect();
    let mut taken = Vec::new();
    for path in &chosen {
        let below = path.strip_prefix(&original).expect("it lies there");
        let folder = below.parent().and_then(|folder| folder.to_str()).unwrap_or_default();
        let folder = if subset.same_folders { folder.to_owned() } else { folder.replace('d', "e") };
        let new = copied.join(folder).join(below.file_name().expect("a name"));
        fs::create_dir_all(new.parent().expect("a folder")).map_err(|why| why.to_string())?;
        let put = match subset.way {
            Way::Copied => fs::copy(path, &new).map(drop),
            Way::Linked => fs::hard_link(path, &new),
            Way::Moved => fs::rename(path, &new),
        };
        put.map_err(|why| why.to_string())?;
        taken.push((new, there[*path].clone()));
    }
    if subset.is_damaged {
        damage(&original, &taken, subset.way)?;
    }
    let others = || {
        let mut others = files(&original);
        others.extend(files(&master));
        others
    };
    let before = others();
    let mut said = Vec::new();
    for arguments in
        [&["verify"][..], &["recover"], &["recover", "--all"], &["compress"], &["verify"], &["compress", "--undo"]]
    {
        // Any member may be the one that is named; a base without its metadata is refused.
        for base in bases(&copied) {
            let output = hairspring(arguments).arg("--quiet").arg(&base).output().map_err(|why| why.to_string())?;
            let told = stdout(&output) + &stderr(&output);
            if told.contains("panicked") || output.status.code().is_none() {
                return Err(format!("{arguments:?}: {}: {told}", output.status));
            }
            said.push(format!("{arguments:?} {:?}: {}", output.status.code(), short(&told)));
            unchanged(&before, &others()).map_err(|why| format!("{why}\n  {}", said.join("\n  ")))?;
        }
    }
    let told = |why: String| format!("{why}\n  {}", said.join("\n  "));
    kept(subset, &taken, &copied).map_err(told)?;
    if chosen.len() == all.len() {
        let place = Place { named: copied.clone(), out: copied, kind: subset.kind };
        let place = if subset.same_folders { place } else { return Ok(()) };
        let left = super::shelf::count(&settle(&place).map_err(told)?);
        if left < owed {
            return Err(told(format!("{left} frames are left of {owed}")));
        }
    }
    Ok(())
}

/// The names under which a copy can be opened: one for each of its data files, metadata and indexes.
fn bases(copied: &Path) -> Vec<PathBuf> {
    let mut bases: Vec<PathBuf> = Vec::new();
    for path in files(copied).into_keys().filter(|path| is_of_it(path)) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        bases.push(path.with_file_name(name.split('.').next().unwrap_or_default()));
    }
    bases.sort();
    bases.dedup();
    bases
}

/// Changes some bytes of each data file that is left of the original, if the copy does not share it.
fn damage(original: &Path, taken: &[(PathBuf, Vec<u8>)], way: Way) -> Result<(), String> {
    for (path, mut bytes) in files(original) {
        let name = path.file_name();
        let is_shared = way == Way::Linked && taken.iter().any(|(new, _)| new.file_name() == name);
        if path.extension().is_some_and(|ending| ending == "sigmf-data") && is_of_it(&path) && !is_shared {
            bytes.iter_mut().skip(1000).take(900).for_each(|byte| *byte = !*byte);
            fs::write(&path, bytes).map_err(|why| why.to_string())?;
        }
    }
    Ok(())
}

/// Whether the samples of each data file are still there: in the data file, or in a file beside it that recovery made
/// of the part it cut off.
fn kept(subset: &Subset, taken: &[(PathBuf, Vec<u8>)], copied: &Path) -> Result<(), String> {
    let now = files(copied);
    for (path, bytes) in taken {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if ending == "zst" && !now.contains_key(path) && !now.contains_key(&path.with_extension("")) {
            return Err(format!("{} is gone, and so are its samples", path.display()));
        }
        if ending != "sigmf-data" {
            continue;
        }
        let samples = without_zeros(bytes);
        let stem = path.with_extension("");
        let rest: Vec<u8> = now
            .iter()
            .filter(|(other, _)| *other != path && other.to_string_lossy().starts_with(&*stem.to_string_lossy()))
            .flat_map(|(_, bytes)| bytes.iter().copied())
            .collect();
        let data = now.get(path).cloned().unwrap_or_default();
        let mut pieces = samples.chunks(PIECE).enumerate();
        let whole = pieces.all(|(number, piece)| {
            data.get(number * PIECE..).is_some_and(|there| there.starts_with(piece))
                || contains(&data, piece)
                || contains(&rest, piece)
        });
        if !whole {
            let told = difference(&[(path.clone(), bytes.clone())].into(), &now);
            return Err(format!("samples are gone: {}", told.join("; ")));
        }
        if subset.state == State::Whole && !data.starts_with(samples) && rest.is_empty() {
            return Err(format!("{} has changed", path.display()));
        }
    }
    Ok(())
}

fn contains(bytes: &[u8], piece: &[u8]) -> bool {
    bytes.windows(piece.len()).step_by(4).any(|window| window == piece)
}

/// Bytes without the zeros at the end: the space that the recorder of a cut-off file had reserved.
fn without_zeros(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}
