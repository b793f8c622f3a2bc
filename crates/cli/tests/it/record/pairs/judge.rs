//! The judgement of a pair: products and leftovers agree with the reports.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::acts::{self, Act, Doing, Place, is_of_it};
use super::shelf::{FRAME, count, difference, files, frames, made};
use super::{Pair, SEEDS, State, short};
use crate::{hairspring, stderr, stdout};

/// An act ends by an exit code, without a panic.
pub(super) fn orderly(doing: &Doing) -> Result<(), String> {
    if doing.says().contains("panicked") {
        return Err(format!("{:?} panics", doing.act));
    }
    let by_hand = doing.output.is_none();
    if !doing.was_killed && !by_hand && doing.code().is_none() {
        return Err(format!("a signal ended {:?}", doing.act));
    }
    Ok(())
}

pub(super) fn unchanged(before: &BTreeMap<PathBuf, Vec<u8>>, after: &BTreeMap<PathBuf, Vec<u8>>) -> Result<(), String> {
    let changed = difference(before, after);
    if changed.is_empty() { Ok(()) } else { Err(format!("changed: {}", changed.join("; "))) }
}

/// Checks that the output of an export, play, follow or join equals the data of the card.
pub(super) fn product(doing: &Doing, epochs: &[u64]) -> Result<(), String> {
    let bytes = || fs::read(&doing.made).map_err(|why| why.to_string());
    let is_good = doing.code() == Some(0);
    match doing.act {
        Act::Export if is_good => {
            let (bytes, report) = (bytes()?, doing.report());
            let head = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
            let (first, frames) = (report["first_frame"].as_u64(), report["frames"].as_u64());
            let rows = &bytes[head..];
            if Some((rows.len() / FRAME) as u64) != frames {
                return Err(format!("{frames:?} frames are said, {} are there", rows.len() / FRAME));
            }
            if !made(first.unwrap_or(0), rows, &SEEDS, epochs) {
                return Err("the rows are not what the card made".to_owned());
            }
        }
        Act::Play if is_good && !played(&bytes()?, doing, epochs) => {
            return Err("the samples are not what the card made".to_owned());
        }
        Act::Follow => {
            let bytes = bytes().unwrap_or_default();
            let mut rest = &bytes[..];
            // One that is killed may leave half a piece.
            while rest.len() >= 16 {
                let number = |at: usize| u64::from_le_bytes(rest[at..at + 8].try_into().expect("eight bytes"));
                let (first, length) = (number(0), number(8) as usize * FRAME);
                let Some(rows) = rest.get(16..16 + length) else { break };
                if !made(first, rows, &SEEDS, epochs) {
                    return Err(format!("{} frames from frame {first} on are not what the card made", length / FRAME));
                }
                rest = &rest[16 + length..];
            }
        }
        Act::Join if is_good || doing.code() == Some(4) => {
            let name = doing.made.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let there = frames(doing.made.parent().expect("a folder"), name)?;
            if count(&there) * FRAME as u64 != doing.report()["stored_bytes"].as_u64().unwrap_or(0) {
                return Err(format!("{} frames are there", count(&there)));
            }
        }
        _ => {}
    }
    Ok(())
}

/// Whether the played data are stretches of the card's data. Their first frame is reported nowhere, so any that a
/// segment can begin with counts.
fn played(bytes: &[u8], doing: &Doing, epochs: &[u64]) -> bool {
    const STEP: usize = 1024;
    let frames = (bytes.len() / FRAME) as u64;
    doing.report()["played_frames"] == frames
        && (frames == 0
            || bytes.chunks(STEP * FRAME).all(|piece| {
                let starts = epochs.iter().flat_map(|epoch| (0..=acts::FRAMES).map(move |frame| epoch + frame));
                let head = &piece[..piece.len().min(64)];
                let mut starts = starts.filter(|start| made(*start, head, &SEEDS, epochs));
                starts.any(|start| made(start, piece, &SEEDS, epochs) || epochs.len() > 1)
            }))
}

/// Recovers and compresses the copies that a user made: nothing in them is wrong, and a copy of an unchanged recording
/// is whole. Returns the files of the recording before that.
pub(super) fn copies(
    place: &Place,
    pairs: [&Doing; 2],
    owed: u64,
) -> Result<(BTreeMap<PathBuf, Vec<u8>>, u64), String> {
    let own: BTreeMap<_, _> = files(&place.named).into_iter().filter(|(path, _)| is_of_it(path)).collect();
    let mut whole = 0;
    for (doing, other) in [(pairs[0], pairs[1]), (pairs[1], pairs[0])] {
        if !matches!(doing.act, Act::Copy | Act::CopyLinked) || doing.was_killed {
            continue;
        }
        let copy = Place { named: doing.made.clone(), out: place.out.clone(), kind: place.kind };
        let there = settle(&copy).map_err(|why| format!("a copy: {why}"));
        if other.act.only_reads() || other.act == Act::Keep {
            let there = there?;
            if count(&there) < owed {
                return Err(format!("a copy has {} of {owed} frames", count(&there)));
            }
            whole += 1;
        }
        let base = copy.named.join("d1/x").display().to_string();
        let _ = hairspring(&["compress", "--quiet", &base]).output();
    }
    Ok((own, whole))
}

/// Recovers a recording, restores its data files, and reads it by its format.
pub(super) fn settle(place: &Place) -> Result<Vec<Range<u64>>, String> {
    let base = place.named.join("d1/x").display().to_string();
    let run = |arguments: &[&str]| hairspring(arguments).arg(&base).output().map_err(|why| why.to_string());
    let is_compressed =
        || files(&place.named).keys().any(|path| path.extension().is_some_and(|ending| ending == "zst"));
    let mut said = Vec::new();
    for round in 0..2 {
        if is_compressed() {
            said.push(run(&["compress", "--undo", "--quiet"])?);
        }
        if round == 0 {
            said.push(run(&["recover", "--quiet"])?);
        }
    }
    let there = files(&place.named).into_keys().any(|path| is_of_it(&path));
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let mut runs = Vec::new();
    if there {
        for file in files(&place.named).into_keys().filter(|path| is_of_it(path) && name(path).ends_with(".sigmf-meta"))
        {
            runs.extend(frames(file.parent().expect("a folder"), &name(&file)).map_err(|why| {
                let said = said.iter().map(|output| short(&(stdout(output) + &stderr(output)))).collect::<Vec<_>>();
                format!("{why}; it was said: {}", said.join(" | "))
            })?);
        }
    }
    runs.sort_by_key(|frames| frames.start);
    match runs.windows(2).find(|pair| pair[0].end > pair[1].start) {
        Some(pair) => Err(format!("the frames {:?} and {:?} lie over each other", pair[0], pair[1])),
        None => Ok(runs),
    }
}

/// Checks that the recording still has at least its old frames, the recorded ones, and those that any output called
/// good.
pub(super) fn ending(
    place: &Place,
    pair: &Pair,
    doings: [&Doing; 2],
    recorded_on: bool,
    owed: u64,
    in_journals: u64,
) -> Result<(), String> {
    let destroyed = doings.iter().any(|doing| doing.act.destroys());
    // Acts of a user by hand are over before the second act begins. A first act may have looked before, and report
    // after; but a recorder that wrote a block after that looks later.
    let counts = |doing: &&&Doing| !doings[1].act.destroys() || doing.act.records() && recorded_on;
    let there = settle(place);
    let left = match (&there, destroyed) {
        (Ok(there), _) => count(there),
        (Err(_), true) => 0,
        (Err(why), false) => return Err(format!("the recording: {why}")),
    };
    let stored = |doing: &Doing| doing.report()["stored_bytes"].as_u64().unwrap_or(0) / FRAME as u64;
    let retains = doings.iter().any(|doing| doing.act == Act::Retention);
    let is_whole_before = matches!(pair.state, State::Whole | State::Compressed);
    let mut recorded = 0;
    for doing in doings.iter().filter(counts).filter(|doing| !doing.was_killed) {
        let is_whole = doing.code() == Some(0);
        let is_good = is_whole || doing.code() == Some(4);
        match doing.act {
            // Retention may delete everything that was recorded before it.
            // A recorder that ends with 4 after that has reported the missing files.
            act if act.records() && (is_whole || is_good && !destroyed) => {
                recorded = stored(doing) + if retains { 0 } else { recorded }
            }
            Act::Export | Act::Play | Act::Join if is_whole && is_whole_before && !retains => {
                let said = doing.report();
                let frames = [said["frames"].as_u64(), said["played_frames"].as_u64(), Some(stored(doing))];
                let frames = frames.into_iter().flatten().next().unwrap_or(0);
                if frames < owed {
                    return Err(format!("{:?} is content with {frames} of {owed} frames", doing.act));
                }
            }
            Act::Verify | Act::Recover | Act::RecoverAll if is_good && !retains => {
                let said = doing.report();
                let bytes = said["proven_bytes"].as_u64().or(said["stored_bytes"].as_u64()).unwrap_or(0);
                if left < bytes / FRAME as u64 {
                    return Err(format!("{:?} called {bytes} bytes good, and {left} frames are left", doing.act));
                }
                if is_whole && destroyed && left < owed {
                    return Err(format!("{:?} called it whole after {left} of {owed} frames were left", doing.act));
                }
            }
            Act::Keep
                if is_whole
                    && !retains
                    && !place.named.join(place.kind.members()[0]).join("x-000000.keep").exists() =>
            {
                return Err("a pin that was made is not there".to_owned());
            }
            _ => {}
        }
    }
    let least = if destroyed { recorded } else { (owed + recorded).max(in_journals) };
    let least = if retains { recorded } else { least };
    if left < least {
        return Err(format!(
            "{left} frames are left of {least}: {owed} were there, {recorded} were recorded, {in_journals} were in journals"
        ));
    }
    Ok(())
}
