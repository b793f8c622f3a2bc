//! A naive reader of recordings: it shares only the records of the journal with the library's reader. Slow and simple.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hairspring_recording::Recording;
use hairspring_recording::journal::{Journal, Record};
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_recording::sigmf;
use hairspring_recording::verify;
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames};
use hairspring_source::pattern::Pattern;
use hairspring_store::scripted::{DiskScript, Image, Pace, ScriptedDisk};

/// The blocks of a recording, and its account of the missing frames.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Bytes of all blocks.
    pub(crate) stored: u64,
    /// Frames of gaps and frames that were left out.
    pub(crate) lost: u64,
    pub(crate) left_out: u64,
    /// Blocks whose record is covered by a sync of their journal.
    pub(crate) durable: u64,
    /// The totals of the last record, if there is one.
    pub(crate) end: Option<Record>,
    pub(crate) blocks: usize,
}

/// Reads a recording and compares every byte with its checksum and, if it is `strict`, with the pattern at its place.
///
/// # Panics
/// If any byte differs.
pub(crate) fn check(image: &Image, bases: &[&str], layout: Layout, pattern: Pattern, strict: bool) -> Contents {
    let mut contents = Contents::default();
    let mut blocks: BTreeMap<u64, (usize, u64, u32, u32)> = BTreeMap::new();
    let mut holes: Vec<(u64, u64, u64, bool)> = Vec::new();
    let mut block_bytes = 0;
    for (member, base) in bases.iter().enumerate() {
        let journal = image.read(format!("{base}.hairspring-journal")).unwrap_or_default();
        let read = Journal::read(&journal);
        let mut durable_before = 0;
        for record in &read.records {
            match *record {
                Record::Start { block_bytes: bytes, .. } => block_bytes = u64::from(bytes),
                Record::Block { index, length: 0, .. } => drop(blocks.remove(&index)),
                Record::Block { index, file_offset, length, crc, .. } => {
                    blocks.insert(index, (member, file_offset, length, crc));
                }
                Record::Gap { position, gap } => holes.push((position, gap.first.0, gap.frames.0, true)),
                Record::Skip { position, skip } => holes.push((position, skip.first.0, skip.frames.0, false)),
                Record::Sync { before, .. } => durable_before = before,
                Record::End { .. } => contents.end = Some(*record),
                _ => {}
            }
        }
        let covered = read.records.iter().zip(0_u64..).filter(|(_, sequence)| *sequence < durable_before);
        for (record, _) in covered {
            if let Record::Block { length, .. } = record {
                contents.durable += u64::from(*length);
            }
        }
    }
    // Every journal has every gap.
    holes.sort_unstable();
    holes.dedup();
    let end = blocks.iter().last().map_or(0, |(index, block)| index * block_bytes + u64::from(block.2));
    let whole: u64 = blocks.values().map(|block| u64::from(block.2)).sum();
    if strict {
        assert_eq!(whole, end, "blocks are missing in the middle: {blocks:?}");
    }
    for (index, (member, file_offset, length, crc)) in &blocks {
        let data = image.read(format!("{}.sigmf-data", bases[*member])).expect("a data file");
        let from = *file_offset as usize;
        let bytes = match data.get(from..from + *length as usize) {
            Some(bytes) => bytes,
            // Withdrawn, and the journal was dead by then.
            None if !strict => continue,
            None => panic!("block {index} is beyond the file"),
        };
        assert_eq!(crc32c::crc32c(bytes), *crc, "block {index} is not what was written");
        if strict {
            check_block(bytes, index * block_bytes, &holes, layout, pattern);
        }
        contents.stored += u64::from(*length);
        contents.blocks += 1;
    }
    for (_, _, frames, lost) in holes {
        *(if lost { &mut contents.lost } else { &mut contents.left_out }) += frames;
    }
    contents
}

/// After a power cut: bytes of the blocks that a journal calls durable; each must be the byte that was written.
///
/// # Panics
/// If one differs.
pub(crate) fn check_what_is_left(image: &Image, bases: &[&str]) -> u64 {
    let mut bytes_left = 0;
    for base in bases {
        let journal = Journal::read(&image.read(format!("{base}.hairspring-journal")).unwrap_or_default());
        let covered = journal.records.iter().filter_map(|record| match record {
            Record::Sync { before, .. } => Some(*before),
            _ => None,
        });
        let covered = covered.max().unwrap_or(0) as usize;
        let mut blocks = BTreeMap::new();
        for record in journal.records.iter().take(covered) {
            if let Record::Block { index, file_offset, length, crc, .. } = *record {
                blocks.insert(index, (file_offset as usize, length as usize, crc));
            }
        }
        let data = image.read(format!("{base}.sigmf-data")).unwrap_or_default();
        for (index, (at, length, crc)) in blocks {
            let bytes = data.get(at..at + length).unwrap_or_else(|| panic!("durable block {index} is not in the file"));
            assert_eq!(crc32c::crc32c(bytes), crc, "durable block {index} is not what was written");
            bytes_left += length as u64;
        }
    }
    bytes_left
}

/// Compares each grain of a block with the pattern at the expected frame.
fn check_block(bytes: &[u8], start: u64, holes: &[(u64, u64, u64, bool)], layout: Layout, pattern: Pattern) {
    let grain = layout.grain();
    let mut expected = vec![0; grain.bytes as usize];
    for (number, piece) in bytes.chunks_exact(grain.bytes as usize).enumerate() {
        let position = start + number as u64 * grain.bytes;
        let missing: u64 = holes.iter().filter(|hole| hole.0 <= position).map(|hole| hole.2).sum();
        let frame = Frames(layout.frames_in(Bytes(position)).0 + missing);
        pattern.fill(layout, frame, &mut expected);
        assert_eq!(piece, expected, "at position {position}, which should be frame {}", frame.0);
    }
}

/// The verdicts in the members' metadata, `None` in the state `recording`; each is true.
///
/// # Panics
/// If one is not: frames that the source did not produce, reserved space counted as frames, or losses that are not
/// declared.
pub(crate) fn true_metadata(
    image: &Image,
    bases: &[&str],
    pattern: Pattern,
    power_cut: bool,
) -> Vec<Option<RecordingVerdict>> {
    let mut verdicts = Vec::new();
    for base in bases {
        let meta = image.read(format!("{base}.sigmf-meta")).unwrap_or_default();
        let read = sigmf::parse(&meta).ok().and_then(|(about, closing, segments)| Some((about, closing?, segments)));
        let Some((about, closing, segments)) = read else {
            verdicts.push(None);
            continue;
        };
        verdicts.push(Some(closing.verdict));
        let ledger = closing.ledger;
        assert!(ledger.holds() && ledger.is_settled(), "{base}: {ledger:?}");
        let is_whole = closing.verdict <= RecordingVerdict::Stopped;
        if is_whole {
            assert_eq!((ledger.lost_bytes, closing.gaps.len()), (0, 0), "{base}: whole, and something is lost");
            assert_eq!(ledger.durable_bytes, ledger.stored_bytes, "{base}: whole, and not certainly on the device");
        }
        if power_cut && ledger.durable_bytes != ledger.stored_bytes {
            // They state that it may be gone.
            continue;
        }
        let data = image.read(format!("{base}.sigmf-data")).unwrap_or_default();
        let bytes = |frames: Frames| about.layout.bytes_of(frames).0 as usize;
        for segment in &segments {
            let (from, length) = (bytes(segment.sample_start), bytes(segment.frames));
            let found =
                data.get(from..from + length).unwrap_or_else(|| panic!("{base}: {segment:?} is not in the file"));
            let mut expected = vec![0; length];
            pattern.fill(about.layout, segment.first, &mut expected);
            assert!(found == expected, "{base}: {segment:?} is not what the source produced");
        }
        if is_whole || !closing.reason.contains("recover") {
            let end = segments.last().map_or(0, |last| bytes(last.sample_start) + bytes(last.frames));
            assert_eq!(data.len(), end, "{base}: {} and space behind the last frame", closing.verdict.name());
        }
        // All blocks are in the journals and match their checksums.
        let disk = ScriptedDisk::with(DiskScript { pace: Pace::Leaping, ..DiskScript::default() }, image.clone());
        let (mut store, paths) = (disk.store(8), bases.iter().map(PathBuf::from).collect::<Vec<_>>());
        let recording = Recording::open_in(&mut store, &paths).and_then(Recording::whole).expect("opens");
        let options = verify::VerifyOptions { counters: true, sha512: false };
        let verified = verify::verify(&mut store, &recording, options, &mut |_| {}).expect("verified");
        // If every journal has failed, only the metadata can declare the losses.
        let named = closing.gaps.iter().filter(|_| recording.ended().is_none());
        let named: usize = named.map(|gap| bytes(gap.frames)).sum();
        assert_eq!((verified.damaged, verified.mismatch), (0, None), "{base}: {:?}", verified.faults);
        assert!(verified.missing.0 <= named as u64, "{base}: {:?}", verified.faults);
        // The journal of a target that failed cannot take a withdrawal. Its blocks are read when they match their
        // checksums, although the recording gave them up.
        let beyond = verified.bytes.0.checked_sub(ledger.stored_bytes).expect("no less than they say");
        assert!(beyond == 0 || bases.iter().any(|base| is_dead(image, base)), "{base}: {:?}", verified.faults);
    }
    verdicts
}

/// Whether a journal was cut off: it has no end.
fn is_dead(image: &Image, base: &str) -> bool {
    let journal = Journal::read(&image.read(format!("{base}.hairspring-journal")).unwrap_or_default());
    !journal.records.iter().any(|record| matches!(record, Record::End { .. }))
}

/// The verdict in the metadata, if they can be read and have one.
pub(crate) fn verdict_said(image: &Image, base: &str) -> Option<RecordingVerdict> {
    let meta = image.read(Path::new(&format!("{base}.sigmf-meta")))?;
    let (_, closing, _) = sigmf::parse(&meta).ok()?;
    Some(closing?.verdict)
}

/// Whether the metadata exist and contain this text.
pub(crate) fn meta_says(image: &Image, base: &str, text: &str) -> bool {
    let meta = image.read(Path::new(&format!("{base}.sigmf-meta"))).unwrap_or_default();
    String::from_utf8_lossy(&meta).contains(text)
}
