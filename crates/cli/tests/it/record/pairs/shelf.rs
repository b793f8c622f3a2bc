//! The files on the disk: folders as they are, and the samples of a recording by the published format alone, without
//! the library under test.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use hairspring_ring::layout::Layout;
use hairspring_ring::units::Frames;
use hairspring_source::pattern::Pattern;
use serde_json::Value;

use super::SEEDS;

/// Bytes of a frame of every recording here: two channels of 16 bits.
pub(super) const FRAME: usize = 4;
/// Bytes of a record of a journal.
const RECORD: usize = 64;
/// The record of a block.
const BLOCK: u8 = 2;

/// Every file below a folder with its contents; links are followed, folders are not listed.
pub(super) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.append(&mut files(&path));
        } else if let Ok(bytes) = fs::read(&path) {
            all.insert(path, bytes);
        }
    }
    all
}

/// The files whose contents differ.
pub(super) fn difference(before: &BTreeMap<PathBuf, Vec<u8>>, after: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<String> {
    let length = |bytes: Option<&Vec<u8>>| bytes.map_or("none".to_owned(), |bytes| format!("{} bytes", bytes.len()));
    let names = before.keys().chain(after.keys().filter(|path| !before.contains_key(*path)));
    names
        .filter(|path| before.get(*path) != after.get(*path))
        .map(|path| format!("{}: {} → {}", path.display(), length(before.get(path)), length(after.get(path))))
        .collect()
}

/// Bytes of the blocks that the journals below a folder name; those of a file with several names count once.
pub(super) fn journaled(folder: &Path) -> u64 {
    let opened = open_journals(folder);
    let inodes = opened.iter().filter_map(|file| Some((file.metadata().ok()?.ino(), blocks(file))));
    inodes.collect::<BTreeMap<_, _>>().into_values().sum()
}

/// The open journals below a folder; they stay readable when they are renamed or unlinked.
pub(super) fn open_journals(folder: &Path) -> Vec<File> {
    let is_journal = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "hairspring-journal");
    files(folder).into_keys().filter(is_journal).filter_map(|path| File::open(path).ok()).collect()
}

/// Bytes of the blocks that a journal names.
pub(super) fn blocks(journal: &File) -> u64 {
    let mut bytes = vec![0; journal.metadata().map_or(0, |about| about.len()) as usize];
    let length = journal.read_at(&mut bytes, 0).unwrap_or(0);
    let mut blocks = BTreeMap::new();
    for record in bytes[..length].chunks_exact(RECORD).take_while(|record| record.starts_with(b"hsJ1")) {
        if record[16] == BLOCK {
            let number = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
            blocks.insert(number(17), number(33) & u64::from(u32::MAX));
        }
    }
    blocks.values().sum()
}

/// The frames of one member of a recording or of one segment.
struct Run {
    frames: Range<u64>,
    /// The first deviation from the card's data.
    wrong: Option<String>,
}

/// Reads every recording below a folder whose file names begin with a name, and compares each frame with the generator:
/// the frames that are there, by their numbers, in order. Two members or segments never have the same frame.
pub(super) fn frames(folder: &Path, name: &str) -> Result<Vec<Range<u64>>, String> {
    let mut runs = Vec::new();
    // A joined recording lies beside the folder that it was joined from.
    let epochs = epochs(folder.parent().unwrap_or(folder));
    for (path, bytes) in files(folder) {
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if file.starts_with(name) && file.ends_with(".sigmf-meta") {
            read(&path, &bytes, &epochs, &mut runs).map_err(|why| format!("{}: {why}", path.display()))?;
        }
    }
    if let Some(wrong) = runs.iter().find_map(|run: &Run| run.wrong.clone()) {
        return Err(wrong);
    }
    let mut all: Vec<Range<u64>> = runs.into_iter().map(|run| run.frames).filter(|frames| !frames.is_empty()).collect();
    all.sort_by_key(|frames| frames.start);
    match all.windows(2).find(|pair| pair[0].end > pair[1].start) {
        Some(pair) => Err(format!("the frames {:?} and {:?} lie over each other", pair[0], pair[1])),
        None => Ok(all),
    }
}

/// The runs that the metadata of one member list. A series that was joined from behind a resumption states no pattern:
/// its frames were made from one of the epochs.
fn read(path: &Path, meta: &[u8], epochs: &[u64], runs: &mut Vec<Run>) -> Result<(), String> {
    let meta: Value = serde_json::from_slice(meta).map_err(|error| error.to_string())?;
    let about = &meta["global"];
    if about["hairspring:state"] == "recording" {
        return Err("its metadata say that it is being recorded".to_owned());
    }
    let pattern = about["hairspring:recording"]["pattern"].as_str().map(str::parse::<Pattern>).transpose();
    let pattern = pattern.map_err(|error| format!("{error}"))?;
    let epoch = about["hairspring:series"]["epoch_frame"].as_u64().unwrap_or(0);
    let data = path.with_extension("sigmf-data");
    let samples = fs::read(&data).map_err(|error| format!("read {}: {error}", data.display()))?;
    let layout = Layout::analogue(2, 16).expect("a layout");
    for capture in meta["captures"].as_array().into_iter().flatten() {
        let number = |key: &str| capture[key].as_u64();
        let (Some(at), Some(first), Some(count)) =
            (number("core:sample_start"), number("core:global_index"), number("hairspring:frames"))
        else {
            continue;
        };
        let bytes = samples.get(at as usize * FRAME..(at + count) as usize * FRAME);
        let bytes = bytes.ok_or_else(|| {
            format!(
                "{} has {} bytes, and its metadata list frames {at} to {}",
                data.display(),
                samples.len(),
                at + count
            )
        })?;
        let wrong = match pattern {
            Some(pattern) => pattern.check(layout, Frames(first.wrapping_sub(epoch)), bytes).map(|why| why.to_string()),
            None => (!made(first, bytes, &SEEDS, epochs))
                .then(|| format!("frames from {first} on are not what the card made")),
        };
        runs.push(Run { frames: first..first + count, wrong: wrong.map(|why| format!("{}: {why}", data.display())) });
    }
    Ok(())
}

/// Whether bytes are frames that a card made, one after the other from a frame on; `seeds` and `epochs` are those of
/// all recorders.
pub(super) fn made(first: u64, bytes: &[u8], seeds: &[u64], epochs: &[u64]) -> bool {
    let layout = Layout::analogue(2, 16).expect("a layout");
    let begins = epochs.iter().filter_map(|epoch| first.checked_sub(*epoch));
    let mut ways = begins.flat_map(|first| seeds.iter().map(move |seed| (first, *seed)));
    ways.any(|(first, seed)| Pattern::Noise { seed }.check(layout, Frames(first), bytes).is_none())
}

/// Number of frames.
pub(super) fn count(runs: &[Range<u64>]) -> u64 {
    runs.iter().map(|frames| frames.end - frames.start).sum()
}

/// The frames at which, by the metadata below a folder, recorders went on.
pub(super) fn epochs(folder: &Path) -> Vec<u64> {
    let mut all = vec![0];
    for (path, bytes) in files(folder) {
        if path.extension().is_some_and(|ending| ending == "sigmf-meta") {
            let meta: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            all.extend(meta["global"]["hairspring:series"]["epoch_frame"].as_u64());
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}
