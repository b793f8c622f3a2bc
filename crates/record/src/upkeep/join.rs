//! [`join`]: copies the stripes of a recording into one new recording, and proves every byte.

use std::path::{Path, PathBuf};

use crate::recover::mend::{encoded, metadata, records};
use crate::recover::plan::Plan;
use crate::upkeep::owned::shared;
use hairspring_recording::ledger::{Ledger, RecordingVerdict};
use hairspring_recording::sigmf::About;
use hairspring_recording::sync_io::BlockingStore;
use hairspring_recording::verify::ReadProgress;
use hairspring_recording::{Block, BlockReader, Files, MissingFrames, Recording, RecordingError};
use hairspring_ring::gap::Gap;
use hairspring_ring::units::Bytes;
use hairspring_store::owner::{OwnError, Work};
use hairspring_store::{FileId, Open, Store};

/// The options of [`join`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinOptions {
    /// Whether missing members and damaged blocks become gaps. Otherwise they are an error.
    pub declare_gaps: bool,
}

/// The result of [`join`].
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    /// The verdict on the new recording.
    pub verdict: RecordingVerdict,
    /// Its account.
    pub ledger: Ledger,
    /// Its gaps.
    pub gaps: Vec<Gap>,
    /// Its files.
    pub files: Vec<PathBuf>,
}

/// Joins a recording into a new one with this base path, the same id and one member. No existing file is overwritten.
/// After an error the new files are removed. The metadata are written last, because without them the files are no
/// recording.
///
/// Reads through one store and writes through the other.
///
/// # Errors
/// Another process changes or records it ([`RecordingError::Owned`]); members are missing or blocks are damaged, unless
/// they may become gaps; files cannot be read or written, or exist.
pub fn join(
    from: &mut dyn Store,
    recording: &Recording,
    to: &mut dyn Store,
    base: &Path,
    options: JoinOptions,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Joined, RecordingError> {
    if recording.is_foreign() {
        let why = "another program wrote this recording: it has one file, and no checksums to prove it by";
        return Err(RecordingError::Limit(why.to_owned()));
    }
    // Other processes may copy it, too, but none may change it.
    let _shared = shared(from, recording)?;
    if !options.declare_gaps {
        recording.require_members()?;
        let plan = Plan::new(recording, &[]);
        if let Some(first) = plan.changes.first() {
            let remedy = recording.remedy();
            return Err(RecordingError::Limit(format!("the recording is not in order ({first}): {remedy}")));
        }
    }
    if let Some(lost) = outside_the_stream(recording) {
        return Err(RecordingError::Limit(format!(
            "frames {} to {} were in a segment that is missing, which one recording cannot state: join the segments before and behind them, or \
             export the series",
            lost.first.0,
            lost.end().0 - 1
        )));
    }
    let block = recording.about().block.0;
    if recording.blocks().iter().any(|one| one.index.checked_mul(block) != Some(one.position)) {
        return Err(RecordingError::Limit(
            "the series was resumed or has a trigger, so it has shorter blocks in its middle: join the segments between them, or export the series"
                .to_owned(),
        ));
    }
    let files = Files::of(base);
    let _ownership = match to.own(&[files.data.clone(), files.meta.clone(), files.journal.clone()], Work::Changes) {
        // The new files are not visible to other processes yet.
        Err(OwnError::NoLocks(..)) => None,
        other => Some(other?),
    };
    let mut disk = BlockingStore::new(to)?;
    let data = disk.store.open(&files.data, Open::CreateJournal)?;
    let mut made = vec![files.data.clone()];
    let joined =
        disk.store.open(&files.journal, Open::CreateJournal).map_err(RecordingError::from).and_then(|journal| {
            made.push(files.journal.clone());
            copy(from, recording, &mut disk, &files, (data, journal), options, progress)
        });
    if joined.is_err() {
        for file in &made {
            // The first error is the one to report.
            let _ = disk.store.remove(file);
        }
    }
    joined
}

/// The first frames that are missing without a reason and have no place in the stored stream: the frames of a missing
/// segment. A gap for them would have to state a cause, which is unknown.
fn outside_the_stream(recording: &Recording) -> Option<MissingFrames> {
    let timeline = recording.timeline();
    let room = |missing: &MissingFrames| timeline.position_of(missing.end()) - timeline.position_of(missing.first);
    let has_room = |missing: &MissingFrames| room(missing) >= timeline.layout().bytes_of(missing.frames).0;
    recording.missing().iter().find(|missing| !missing.cause.is_declared() && !has_room(missing)).copied()
}

/// The step of [`join`] after which a failure removes the files, opened as `data` and `journal`.
fn copy(
    from: &mut dyn Store,
    recording: &Recording,
    disk: &mut BlockingStore<'_>,
    files: &Files,
    (data, journal): (FileId, FileId),
    options: JoinOptions,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Joined, RecordingError> {
    let total = Bytes(recording.stored_bytes());
    let (mut bad, mut done, mut at) = (Vec::new(), 0, 0);
    let mut blocks: Vec<Block> = Vec::with_capacity(recording.blocks().len());
    let mut reader = BlockReader::new(from, recording)?;
    while let Some((block, bytes)) = reader.next_block() {
        match bytes {
            Ok(bytes) => {
                disk.write(&files.data, data, at, bytes)?;
                blocks.push(Block { member: 0, file_offset: at, ..block });
                at += bytes.len() as u64;
            }
            Err(_) if options.declare_gaps => bad.push(block.index),
            Err(why) => {
                let Block { index, member, .. } = block;
                let remedy = recording.remedy();
                return Err(RecordingError::Limit(format!("block {index} of member {}: {why}: {remedy}", member + 1)));
            }
        }
        done += u64::from(block.length);
        progress(ReadProgress { done: Bytes(done), total });
    }
    drop(reader);
    let plan = Plan::new(recording, &bad);
    let recovered = !plan.lost_nothing() || recording.ended().is_none_or(|ended| ended.recovered);
    let base = Files::base_of(&files.data);
    let base = std::path::absolute(&base).unwrap_or(base);
    let of = recording.about();
    // A recording joined from segments stands alone. Data of a restarted source cannot be computed from its frames.
    let is_later = of.series.as_ref().is_some_and(|of| of.epoch_first.0 > 0);
    let series = of.series.clone().filter(|_| !recording.is_series());
    let pattern = of.pattern.clone().filter(|_| !recording.is_series() || !is_later);
    let about = About { members: vec![base], member: 0, series, pattern, ..of.clone() };
    let records = records(recording, &plan, &about, &blocks, recovered);
    disk.sync(&files.data, data)?;
    disk.write(&files.journal, journal, 0, &encoded(&records))?;
    disk.sync(&files.journal, journal)?;
    if disk.store.open(&files.meta, Open::ReadData).is_ok() {
        return Err(RecordingError::Limit(format!(
            "{} exists already: recordings are never overwritten, choose another name",
            files.meta.display()
        )));
    }
    disk.store.put(&files.meta, &metadata(recording, &plan, &about, &blocks, recovered))?;
    let gaps = plan.gaps.iter().map(|(_, gap)| *gap).collect();
    let files = [&files.data, &files.meta, &files.journal].map(PathBuf::clone).into();
    Ok(Joined { verdict: plan.verdict, ledger: plan.ledger, gaps, files })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hairspring_recording::testing::Spec;
    use hairspring_recording::verify;
    use hairspring_recording::verify::verify;
    use hairspring_store::scripted::{DiskScript, Fault, Image, Pace, ScriptedDisk};

    fn joined(image: &Image, options: JoinOptions, faults: Vec<Fault>) -> (Result<Joined, RecordingError>, Image) {
        let disk =
            ScriptedDisk::with(DiskScript { pace: Pace::Leaping, faults, ..DiskScript::default() }, image.clone());
        let (mut from, mut to) = (disk.store(8), disk.store(8));
        let result = Recording::open_in(&mut from, &[Spec::base(0)])
            .and_then(|recording| join(&mut from, &recording, &mut to, Path::new("/j/x"), options, &mut |_| {}));
        (result, disk.image_after_power_cut(1))
    }

    /// The joined recording is sound, and has every byte.
    #[track_caller]
    fn check_sound(spec: &Spec, image: &Image, verdict: RecordingVerdict) {
        let mut store = ScriptedDisk::with(DiskScript::default(), image.clone()).store(8);
        let recording = Recording::open_in(&mut store, &["/j/x".into()]).expect("opens");
        let options = verify::VerifyOptions { counters: true, sha512: false };
        let verified = verify(&mut store, &recording, options, &mut |_| {}).expect("verified");
        assert_eq!((&verified.faults[..], verified.verdict), (&[] as &[String], verdict));
        assert_eq!((verified.mismatch, verified.damaged), (None, 0));
        let data = image.read("/j/x.sigmf-data").expect("data");
        for block in recording.blocks() {
            let start = block.file_offset as usize;
            assert!(data[start..start + block.length as usize] == spec.content(block.position, block.length.into()));
        }
    }

    #[test]
    fn stripes_become_one_file_with_all_gaps() {
        for members in 1..4 {
            let spec = Spec { members, gaps: vec![(0, 2), (9000, 3)], ..Spec::plain() };
            let (result, image) = joined(&spec.make(), JoinOptions::default(), Vec::new());
            assert_eq!(result.expect("joined").gaps.len(), 2);
            check_sound(&spec, &image, RecordingVerdict::Incomplete);
            assert_eq!(image.read("/j/x.sigmf-data").expect("data"), spec.content(0, spec.stored));
        }
    }

    /// The joined recording lacks the same frames as the original. Frames that were in no file are declared then.
    #[test]
    fn the_joined_recording_lacks_what_the_first_one_lacks() {
        let gaps = vec![(0, 5), (1000, 9), (8192, 3)];
        let skips = vec![(0, 70), (2048, 900), (12_288, 5)];
        let specs = [
            ("gaps", Spec { gaps: gaps.clone(), members: 2, ..Spec::plain() }, None),
            ("holes of triggers", Spec { skips, members: 3, ..Spec::plain() }, None),
            ("not written", Spec { gaps: gaps.clone(), unwritten: vec![4, 5, 9], ..Spec::plain() }, None),
            ("killed", Spec { gaps: gaps.clone(), unwritten: vec![3], ..Spec::killed() }, None),
            ("a copy that was cut", Spec { gaps: gaps.clone(), ..Spec::plain() }, Some(9000)),
            ("a cut stripe", Spec { gaps, members: 2, ..Spec::plain() }, Some(5000)),
        ];
        for (name, spec, cut) in specs {
            let mut image = spec.make();
            if let Some(length) = cut {
                let data = image.read("/d0/x.sigmf-data").expect("data");
                image.put("/d0/x.sigmf-data", &data[..length]);
            }
            let stretches = |image: &Image, base: &Path| -> (Vec<(u64, u64)>, u64, bool) {
                let disk = DiskScript { pace: Pace::Leaping, ..DiskScript::default() };
                let mut store = ScriptedDisk::with(disk, image.clone()).store(8);
                let missing = Recording::open_in(&mut store, &[base.to_owned()]).expect("opens").missing();
                let mut frames: Vec<(u64, u64)> = Vec::new();
                for one in missing.iter() {
                    match frames.last_mut() {
                        Some((_, end)) if *end == one.first.0 => *end = one.end().0,
                        _ => frames.push((one.first.0, one.end().0)),
                    }
                }
                (frames, missing.extent().end, missing.iter().all(|one| one.cause.is_declared()))
            };
            let (lacks, end, is_declared) = stretches(&image, &Spec::base(0));
            let declare_gaps = !is_declared || !spec.ended;
            let (result, after) = joined(&image, JoinOptions { declare_gaps }, Vec::new());
            result.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(stretches(&after, Path::new("/j/x")), (lacks, end, true), "{name}");
        }
    }

    #[test]
    fn what_is_missing_is_refused_or_becomes_gaps() {
        let spec = Spec { members: 3, ..Spec::plain() };
        let mut image = spec.make();
        let mut data = image.read("/d1/x.sigmf-data").expect("data");
        data[5000] ^= 1;
        image.put("/d1/x.sigmf-data", &data);
        let (refused, left) = joined(&image, JoinOptions::default(), Vec::new());
        assert!(refused.expect_err("damaged").to_string().contains("recover it first"));
        assert_eq!(left.paths().filter(|path| path.starts_with("/j")).count(), 0, "nothing is left behind");
        let (result, after) = joined(&image, JoinOptions { declare_gaps: true }, Vec::new());
        assert_eq!(result.expect("joined").gaps.len(), 1);
        check_sound(&spec, &after, RecordingVerdict::Incomplete);
        let mut without = Image::default();
        for path in image.paths().filter(|path| !path.starts_with("/d2")) {
            without.put(path, &image.read(path).expect("a file"));
        }
        let (refused, _) = joined(&without, JoinOptions::default(), Vec::new());
        assert!(matches!(refused, Err(RecordingError::MembersMissing(..))));
        let (result, after) = joined(&without, JoinOptions { declare_gaps: true }, Vec::new());
        assert_eq!(result.expect("joined").verdict, RecordingVerdict::Incomplete);
        check_sound(&spec, &after, RecordingVerdict::Incomplete);
    }

    #[test]
    fn nothing_that_exists_is_overwritten() {
        for name in ["/j/x.sigmf-data", "/j/x.sigmf-meta", "/j/x.hairspring-journal"] {
            let mut image = Spec::plain().make();
            image.put(name, b"mine");
            let (refused, after) = joined(&image, JoinOptions::default(), Vec::new());
            assert!(refused.is_err());
            assert_eq!(after.read(name).as_deref(), Some(&b"mine"[..]));
            assert_eq!(after.paths().filter(|path| path.starts_with("/j")).count(), 1, "nothing else is left behind");
        }
    }
}
