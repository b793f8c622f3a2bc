//! Makes recordings for tests from data, without a recorder: any recording that the format allows.

use std::path::PathBuf;

use hairspring_machine::{Instant, Nanos};

use super::Files;
use crate::channels::ChannelDescription;
use crate::clock::ClockRecord;
use crate::journal::{Record, RecordingId};
use crate::ledger::{Ledger, RecordingVerdict};
use crate::sigmf;
use crate::sigmf::{About, Closing, State};
use crate::timeline::Timeline;
use hairspring_ring::OnOverrun;
use hairspring_ring::gap::{Gap, GapCause, Skip};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames, SampleRate};
use hairspring_source::pattern::Pattern;
use hairspring_store::scripted::Image;

/// The default pattern of the data.
pub const PATTERN: Pattern = Pattern::Noise { seed: 7 };

/// The description of a recording to be made.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The layout of its samples.
    pub layout: Layout,
    /// Bytes of a block.
    pub block: u64,
    /// The number of files over which it is striped.
    pub members: usize,
    /// Length of the stored stream.
    pub stored: u64,
    /// Gaps between positions: position, and number of frames.
    pub gaps: Vec<(u64, u64)>,
    /// Skips: position, and number of frames that no trigger asked for.
    pub skips: Vec<(u64, u64)>,
    /// Blocks that never completed, though later ones did.
    pub unwritten: Vec<u64>,
    /// Number of records of a journal between two syncs.
    pub sync_every: usize,
    /// Whether it ended in order; otherwise it was killed.
    pub ended: bool,
    /// Space that was reserved after the last block.
    pub reserved: u64,
    /// The pattern of the data.
    pub pattern: Pattern,
    /// Quantities and units of the channels.
    pub channels: Vec<ChannelDescription>,
}

impl Spec {
    /// Ten blocks and a half in one file, ended.
    pub fn plain() -> Self {
        Self {
            layout: Layout::analogue(2, 16).expect("exists"),
            block: 4096,
            members: 1,
            stored: 43_008,
            gaps: Vec::new(),
            skips: Vec::new(),
            unwritten: Vec::new(),
            sync_every: 3,
            ended: true,
            reserved: 0,
            pattern: PATTERN,
            channels: Vec::new(),
        }
    }

    /// The same, killed during writes.
    pub fn killed() -> Self {
        Self { ended: false, reserved: 16_384, ..Self::plain() }
    }

    /// The path of a member without extension.
    pub fn base(member: usize) -> PathBuf {
        format!("/d{member}/x").into()
    }

    /// Its time line.
    pub fn timeline(&self) -> Timeline {
        let mut timeline = Timeline::new(self.layout);
        let mut all: Vec<(u64, u64)> = self.gaps.iter().chain(&self.skips).copied().collect();
        all.sort_unstable();
        all.iter().for_each(|(position, frames)| timeline.skip(*position, Frames(*frames)));
        timeline
    }

    /// The bytes at a position.
    pub fn content(&self, position: u64, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        for run in self.timeline().runs_in(position, Bytes(length)) {
            let start = (run.position - position) as usize;
            let end = start + run.length.expect("cut").0 as usize;
            self.pattern.fill(self.layout, run.first, &mut bytes[start..end]);
        }
        bytes
    }

    /// The files.
    pub fn make(&self) -> Image {
        let mut image = Image::default();
        let timeline = self.timeline();
        let grain = self.layout.grain();
        let bytes_of = |frames: Frames| self.layout.bytes_of(frames).0;
        let all: Vec<(u64, Gap)> =
            self.gaps.iter().map(|(position, frames)| (*position, self.gap(*position, *frames))).collect();
        let left_out: Vec<(u64, Skip)> = self
            .skips
            .iter()
            .map(|(position, frames)| {
                let end = timeline.frame_at(*position);
                (*position, Skip { first: Frames(end.0 - frames), frames: Frames(*frames) })
            })
            .collect();
        let left_out_bytes: u64 = left_out.iter().map(|(_, skip)| bytes_of(skip.frames)).sum();
        let lost_bytes: u64 = all.iter().map(|(_, gap)| bytes_of(gap.frames)).sum();
        let count = self.stored.div_ceil(self.block);
        for member in 0..self.members {
            let (mut data, mut places) = (Vec::new(), Vec::new());
            let mut records = vec![Record::Start {
                id: RecordingId([9; 16]),
                block_bytes: self.block as u32,
                grain_bytes: grain.bytes as u32,
                grain_frames: grain.frames as u32,
                member: member as u16,
                members: self.members as u16,
                started: Nanos::from_secs(1_795_276_483),
            }];
            let mut gaps = all.iter().peekable();
            for index in 0..count {
                let position = index * self.block;
                let length = self.block.min(self.stored - position);
                // A gap stands before every block that reaches beyond it.
                while let Some((position, gap)) = gaps.next_if(|(at, _)| *at < position + length) {
                    records.push(Record::Gap { position: *position, gap: *gap });
                }
                if index as usize % self.members != member {
                    continue;
                }
                let content = self.content(position, length);
                let crc = crc32c::crc32c(&content);
                let file_offset = data.len() as u64;
                if self.unwritten.contains(&index) {
                    data.resize(data.len() + content.len(), 0);
                    continue;
                }
                data.extend_from_slice(&content);
                places.push((file_offset, position, Bytes(length)));
                let produced_bytes = bytes_of(timeline.frame_at(position + length));
                let at = Instant::BOOT + Nanos::new(index as i64);
                records.push(Record::Block { index, file_offset, length: length as u32, crc, produced_bytes, at });
                if records.len() % self.sync_every == 0 {
                    let durable_bytes = data.len() as u64;
                    records.push(Record::Sync { before: records.len() as u64, durable_bytes, at });
                }
            }
            records.extend(left_out.iter().map(|(position, skip)| Record::Skip { position: *position, skip: *skip }));
            records.extend(gaps.map(|(position, gap)| Record::Gap { position: *position, gap: *gap }));
            let ledger = Ledger {
                produced_bytes: self.stored + lost_bytes + left_out_bytes,
                stored_bytes: self.stored,
                durable_bytes: self.stored,
                lost_bytes,
                left_out_bytes,
                ..Ledger::default()
            };
            let verdict = if all.is_empty() { RecordingVerdict::Complete } else { RecordingVerdict::Incomplete };
            let closing = Closing {
                verdict,
                reason: "made".to_owned(),
                state: State::Ended(verdict),
                ledger,
                gaps: all.iter().map(|(_, gap)| *gap).collect(),
                bounds: Vec::new(),
                skips: left_out.iter().map(|(_, skip)| *skip).collect(),
                triggers: Vec::new(),
                fallbacks: Vec::new(),
                direct_io_proven: false,
                worst_stall: Nanos::ZERO,
                buffer_high_water: Bytes(0),
                buffer: Bytes(0),
                elapsed: Nanos::from_secs(1),
                ignored: hairspring_source::Ignored::default(),
                missed: hairspring_source::trigger::Missed::default(),
            };
            if self.ended {
                records.push(Record::Sync {
                    before: records.len() as u64,
                    durable_bytes: data.len() as u64,
                    at: Instant::BOOT,
                });
                records.push(Record::End {
                    verdict,
                    recovered: false,
                    produced_bytes: ledger.produced_bytes,
                    stored_bytes: ledger.stored_bytes,
                    lost_bytes,
                    left_out_bytes,
                });
            }
            data.resize(data.len() + self.reserved as usize, 0);
            let files = Files::of(&Self::base(member));
            let segments = sigmf::segments(&timeline, places);
            let meta = match self.ended {
                true => sigmf::render(&self.about(member), Some(&closing), &segments),
                false => sigmf::render(&self.about(member), None, &[]),
            };
            image.put(files.data, &data);
            image.put(files.meta, &meta);
            image.put(files.journal, &encoded(&records));
        }
        image
    }

    fn gap(&self, position: u64, frames: u64) -> Gap {
        let end = self.timeline().frame_at(position);
        Gap { first: Frames(end.0 - frames), frames: Frames(frames), cause: GapCause::BufferFull, found: Instant::BOOT }
    }

    /// The description in the metadata of a member.
    pub fn about(&self, member: usize) -> About {
        About {
            id: RecordingId([9; 16]),
            layout: self.layout,
            rate: SampleRate::hz(1_000_000),
            hardware: "virtual".to_owned(),
            pattern: Some(self.pattern.to_string()),
            started_realtime: Nanos::from_secs(1_795_276_483),
            started_monotonic: Instant::BOOT + Nanos::from_secs(3),
            started_within: Some(Nanos::new(70)),
            block: Bytes(self.block),
            members: (0..self.members).map(Self::base).collect(),
            member,
            on_overrun: OnOverrun::Gap,
            clocked: true,
            software: "hairspring test".to_owned(),
            series: None,
            channels: self.channels.clone(),
            clock: ClockRecord::default(),
        }
    }
}

/// A journal of these records.
pub fn encoded(records: &[Record]) -> Vec<u8> {
    (0_u64..).zip(records).flat_map(|(sequence, record)| record.encode(sequence)).collect()
}
