//! The beginning and the end of a recording: makes and reserves the files, settles failures, and puts the metadata in
//! place.

use std::path::{Path, PathBuf};

use hairspring_machine::{Instant, Nanos};

use hairspring_recording::clock::MarkSource;
use hairspring_recording::clock::axis::TimeAxis;
use hairspring_recording::journal::Record;
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_recording::sigmf;
use hairspring_ring::End;
use hairspring_ring::gap::{Gap, GapCause};
use hairspring_ring::layout::Grain;
use hairspring_ring::notifier::Notifier;
use hairspring_ring::units::Bytes;
use hairspring_source::SourceCounters;
use hairspring_source::trigger::Missed;
use hairspring_store::{Direct, Errno, Store, StoreError};

use super::block_states::Standing;
use super::member::{Member, Purpose, files_of};
use super::{Outcome, Recorder, RecorderError};

impl Recorder {
    /// Reserves space, and writes the first metadata and journal records.
    pub(super) fn begin(&mut self, grain: Grain) -> Result<(), RecorderError> {
        let count = self.members.len();
        // With a gate the volume that is kept is unknown.
        let volume = self.setup.write.volume.filter(|_| self.setup.gate.is_none());
        // A member may get more than its share of blocks, because they go to the least loaded one. So an eighth more is
        // reserved.
        let share = volume.map(|volume| (volume.0 / count as u64) * if count > 1 { 9 } else { 8 } / 8);
        // Before anything is reserved, because the system takes all free space before it reports that it is not enough.
        let free: Vec<_> = self.members.iter().map(|member| self.store.free_bytes(member.folder())).collect();
        if let Some(needed) = share {
            for (member, free) in self.members.iter().zip(&free) {
                if free.is_some_and(|free| free < needed) {
                    return Err(RecorderError::NoSpace(member.folder().to_owned(), Bytes(needed), free.map(Bytes)));
                }
            }
        }
        let mut waiting = 0;
        for (number, (member, free)) in self.members.iter_mut().zip(free).enumerate() {
            for (token, op) in member.first_allocation(number, share, free, self.block) {
                self.store.submit(token, op);
                waiting += 1;
            }
        }
        self.store.flush();
        let notifier = Notifier::new().map_err(|error| no_descriptor(&error))?;
        let mut completions = Vec::new();
        while waiting > 0 {
            self.store.reap(&mut completions);
            for completion in completions.drain(..) {
                waiting -= 1;
                let number = match Purpose::of(completion.token) {
                    Some(Purpose::AllocateData(number)) => number,
                    Some(Purpose::AllocateJournal(number)) => {
                        self.members[number].journal_reserved(completion.result);
                        continue;
                    }
                    _ => continue,
                };
                self.members[number].allocated(completion.result.is_ok());
                if let (Err(Errno(libc::ENOSPC)), Some(needed)) = (completion.result, share) {
                    let folder = self.members[number].folder().to_owned();
                    let free = self.store.free_bytes(&folder).map(Bytes);
                    return Err(RecorderError::NoSpace(folder, Bytes(needed), free));
                }
            }
            if waiting > 0 {
                self.store.wait(&notifier, Instant::END);
            }
        }
        let members = u16::try_from(count).unwrap_or(u16::MAX);
        for number in 0..count {
            let record = Record::Start {
                id: self.setup.id,
                block_bytes: u32::try_from(self.block).unwrap_or(u32::MAX),
                grain_bytes: u32::try_from(grain.bytes).unwrap_or(u32::MAX),
                grain_frames: u32::try_from(grain.frames).unwrap_or(u32::MAX),
                member: u16::try_from(number).unwrap_or(u16::MAX),
                members,
                started: self.setup.opened.realtime,
            };
            self.members[number].append(&record);
            let meta = sigmf::render(&self.about(number), None, &[]);
            let path = files_of(self.members[number].base())[1].clone();
            self.store.put(&path, &meta)?;
        }
        if self.setup.series.as_ref().is_none_or(|of| of.first.is_some()) && self.setup.resumed.is_none() {
            self.enter_place();
        }
        for number in 0..count {
            let folder = self.members[number].folder().to_owned();
            self.store.sync_folder(&folder)?;
        }
        Ok(())
    }

    fn about(&self, member: usize) -> sigmf::About {
        sigmf::About {
            id: self.setup.id,
            layout: self.description.layout,
            rate: self.description.rate,
            hardware: self.description.hardware.clone(),
            pattern: self.description.pattern.map(|pattern| pattern.to_string()),
            started_realtime: self.beginning.unwrap_or(self.setup.opened).realtime,
            started_monotonic: self.beginning.unwrap_or(self.setup.opened).monotonic,
            started_within: self.beginning.map(|beginning| beginning.within),
            block: Bytes(self.block),
            // A program that runs in another folder must find them, too.
            members: self.members.iter().map(|member| absolute(member.base())).collect(),
            member,
            on_overrun: self.inlet.on_overrun(),
            clocked: self.description.clocked,
            software: self.setup.write.software.clone(),
            series: self.setup.series.clone(),
            channels: self.setup.channels.clone(),
            clock: self.clock.clone(),
        }
    }

    /// Ends the account at the first block that could not be written. This block and all later ones are withdrawn and
    /// count as lost, except blocks in a journal that can no longer be written.
    pub(super) fn settle_failure(&mut self, now: Instant) {
        let Some(first) = self.failed else { return };
        // The frames left out last come before the frames lost now.
        let position = self.end_of_stored();
        self.flush_skip(position);
        let mut lost: Option<(u64, u64)> = None;
        for index in first..self.block_states.len() {
            let Some(block) = self.block_states.block(index) else { break };
            if block.is_stored() && self.members[block.member].journal_is_dead {
                continue;
            }
            let was_lost = if block.is_stored() || block.standing == Standing::Entered {
                // A record of length 0 replaces the earlier record of the block.
                let withdrawn = Record::Block { index, file_offset: 0, length: 0, crc: 0, produced_bytes: 0, at: now };
                let sequence = self.members[block.member].append(&withdrawn);
                !self.block_states.withdrawn(index, sequence)
            } else {
                !self.block_states.lose(index)
            };
            if was_lost {
                continue;
            }
            let position = index * self.block;
            match &mut lost {
                Some((_, end)) if *end == position => *end += u64::from(block.length),
                run => {
                    let before = run.replace((position, position + u64::from(block.length)));
                    self.lose_stored(before, now);
                }
            }
        }
        self.lose_stored(lost, now);
        let end = self.end_of_stored();
        let begin = end - self.ahead_bytes();
        if let Some(staging) = &mut self.staging {
            staging.discard();
        }
        self.stored_position = end;
        self.lose_stored(Some((begin, end)), now);
        while let Some((end, _)) = self.taken.pop_front() {
            self.inlet.release(end);
        }
        self.inlet.skip_to(self.position);
    }

    /// Enters a block that had a place in the stored stream as lost.
    pub(super) fn lose_block(&mut self, index: u64, now: Instant) {
        let position = index * self.block;
        let length = self.block_states.block(index).map_or(0, |block| u64::from(block.length));
        self.lose_stored(Some((position, position + length)), now);
    }

    /// Enters a piece of the stored stream as lost. The data after it keep their position.
    fn lose_stored(&mut self, piece: Option<(u64, u64)>, now: Instant) {
        let Some((begin, end)) = piece else { return };
        self.lost_bytes += end - begin;
        let runs: Vec<_> = self.timeline.runs_in(begin, Bytes(end - begin)).collect();
        for run in runs {
            let frames = self.timeline.layout().frames_in(run.length.unwrap_or_default());
            let gap = Gap { first: run.first, frames, cause: GapCause::WriteFailed, found: now };
            self.record_all(&Record::Gap { position: run.position, gap });
            self.declare(gap);
        }
    }

    /// Cuts the files of all members to their lengths. Blocks.
    pub(super) fn cut_files(&mut self) {
        for (number, member) in self.members.iter_mut().enumerate() {
            let length = self.block_states.needed_length(number);
            if let Err(error) = member.cut(number, length, &mut *self.store) {
                self.uncut.push(format!("failed to {error}"));
            }
        }
    }

    /// The verdict as of now, and its reason.
    pub(super) fn verdict(&self, counters: SourceCounters) -> (RecordingVerdict, String) {
        let counters = self.sealed.unwrap_or(counters);
        let ledger = self.ledger(counters);
        let end = self.inlet.closed().map_or(End::Failed(0), |closed| closed.0);
        let lost = ledger.lost_bytes > 0;
        let mut reasons = self.troubles.clone();
        if let Some(gap) = self.gaps.first() {
            let frames: u64 = self.gaps.iter().map(|gap| gap.frames.0).sum();
            let (count, first) = (self.gaps.len(), gap.first.0);
            let gaps = if count == 1 { "1 gap".to_owned() } else { format!("{count} gaps") };
            reasons.push(format!("{frames} frames are missing in {gaps}, the first at frame {first}: {}", gap.cause));
        }
        if let Some(bounds) = self.resumed {
            let (least, first) = (bounds.least.0, bounds.first.0);
            reasons.push(match bounds.most.0 {
                most if most == least => format!(
                    "it was resumed: {least} frames are missing from frame {first} on, by the numbers of their sender"
                ),
                u64::MAX => {
                    format!("it was resumed: {least} to any number of frames are missing from frame {first} on")
                }
                most => format!("it was resumed: {least} to {most} frames are missing from frame {first} on"),
            });
        }
        let (fewer, more) = self.doubt();
        if more > 0 || fewer > 0 {
            let side = |frames: u64, word: &str| match frames {
                0 => None,
                u64::MAX => Some(format!("any number of frames {word}")),
                frames => Some(format!("up to {frames} frames {word}")),
            };
            let sides: Vec<_> = [side(more, "more"), side(fewer, "fewer")].into_iter().flatten().collect();
            reasons.push(format!(
                "{} may be missing there, because only the clock says how many passed",
                sides.join(" or ")
            ));
        }
        match end {
            End::Overrun => reasons.push("the source was stopped at its first loss".to_owned()),
            End::Failed(0) => reasons.push("the source vanished".to_owned()),
            End::Failed(errno) => reasons.push(format!("the source failed: {}", Errno(errno))),
            End::Finished | End::Stopped => {}
        }
        reasons.extend(self.off_line());
        reasons.extend(self.ignored(counters).remarks());
        reasons.extend(self.missed().remarks());
        let because = reasons.join("; ");
        if !ledger.holds() {
            let difference = ledger.unaccounted_bytes();
            return (RecordingVerdict::Unaccounted, format!("{difference} bytes are unaccounted for; {because}"));
        }
        if self.misplaced > 0 {
            return (
                RecordingVerdict::Unaccounted,
                format!("{} gaps are not where the source says; {because}", self.misplaced),
            );
        }
        let shots_done = self.setup.gate.as_ref().is_some_and(hairspring_source::trigger::Gate::is_done);
        let uncertain = ledger.stored_bytes - ledger.durable_bytes;
        if uncertain > 0 {
            reasons.insert(0, format!("{} are written but not certainly durable", Bytes(uncertain)));
        }
        let is_intact =
            self.uncut.is_empty() && !self.sync_failed && self.members.iter().all(|member| !member.journal_is_dead);
        let in_order = is_intact && self.astray.is_empty();
        reasons.extend(self.uncut.iter().cloned());
        if !self.astray.is_empty() {
            // No recovery mends that: the files are elsewhere, or gone.
            reasons.splice(0..0, self.astray.iter().cloned());
        } else if !is_intact {
            reasons.push("`hairspring recover` puts the files in order".to_owned());
        }
        let because = reasons.join("; ");
        // If it is unknown whether frames are missing, the recording does not claim to be complete.
        let unsure = self.resumed.is_some_and(|bounds| bounds.most > bounds.least) || more > 0;
        let failed = unsure || self.failed.is_some() || matches!(end, End::Failed(_) | End::Overrun);
        if lost || failed || uncertain > 0 || !in_order {
            (RecordingVerdict::Incomplete, because)
        } else if end == End::Stopped && !shots_done {
            let how = if self.beginning.is_some() { "without loss" } else { "before any data came" };
            let more = if because.is_empty() { String::new() } else { format!("; {because}") };
            let by = self.stopped_by.as_deref().unwrap_or("ended by its user");
            (RecordingVerdict::Stopped, format!("{by}, {how}{more}"))
        } else if !because.is_empty() {
            (RecordingVerdict::Complete, format!("everything is there, though {because}"))
        } else if self.sealed.is_some() {
            let frame = self.frame.0;
            (RecordingVerdict::Complete, format!("everything is there; the next segment begins with frame {frame}"))
        } else {
            (RecordingVerdict::Complete, "everything that the source produced is there".to_owned())
        }
    }

    /// The possible error of the declared number of missing frames, below and above, over all gaps of unknown length.
    fn doubt(&self) -> (u64, u64) {
        self.bounds.iter().fold((0_u64, 0_u64), |(fewer, more), bounds| {
            let declared = self.gaps.iter().find(|gap| gap.first == bounds.first).map_or(0, |gap| gap.frames.0);
            let further = if bounds.most.0 == u64::MAX { u64::MAX } else { bounds.most.0.saturating_sub(declared) };
            (declared.saturating_sub(bounds.least.0).saturating_add(fewer), further.saturating_add(more))
        })
    }

    /// The report on a card whose stamps lie on no straight line.
    fn off_line(&self) -> Option<String> {
        let by_card = self.clock.marks().iter().all(|mark| mark.how == MarkSource::Card);
        let off = TimeAxis::new(&self.clock, self.description.clocked && by_card).off_line();
        (off > Nanos::ZERO).then(|| format!("the card's clock and its frames disagree by {off}: the clock stepped, or frames were lost without notice"))
    }

    fn missed(&self) -> Missed {
        self.setup.gate.as_ref().map(hairspring_source::trigger::Gate::missed).unwrap_or_default()
    }

    /// Puts the metadata in place. Blocks.
    ///
    /// Call it once after [`Step::Done`](super::Step::Done). By then the files have their lengths, and data and
    /// journals are durable unless the verdict states otherwise. The metadata contain the returned verdict. If the
    /// metadata of one member cannot be put in place, the verdict is lowered and the metadata of all members are
    /// written again.
    pub fn finish(self, now: Instant, counters: SourceCounters) -> Outcome {
        let mut this = self;
        let counters = this.sealed.unwrap_or(counters);
        this.look();
        let (mut verdict, mut reason) = this.verdict(counters);
        if let Err(failure) = this.describe_all(verdict, &reason, now, counters) {
            verdict = verdict.max(RecordingVerdict::Incomplete);
            reason = format!("{failure}; {reason}");
            // Only the first failure is reported.
            drop(this.describe_all(verdict, &reason, now, counters));
        }
        let end = this.inlet.closed().map_or(End::Failed(0), |closed| closed.0);
        let (ledger, fallbacks, direct) = (this.ledger(counters), this.fallbacks(), this.direct());
        let missed = this.missed();
        let ignored = this.ignored(counters);
        let files: Vec<_> = this.members.iter().flat_map(|member| files_of(member.base())).collect();
        Outcome {
            verdict,
            reason,
            end,
            ledger,
            gaps: this.gaps,
            skips: this.skips,
            triggers: this.triggers,
            missed,
            ignored,
            worst_stall: this.worst_stall,
            high_water: this.inlet.fill().high_water,
            buffer: this.inlet.fill().capacity,
            fallbacks,
            direct,
            checksum_time: this.checksum_time,
            block: Bytes(this.block),
            files,
        }
    }

    /// Writes the metadata of all members, even if some fail, and checks that they exist. Returns the first
    /// failure, in words.
    fn describe_all(
        &mut self,
        verdict: RecordingVerdict,
        reason: &str,
        now: Instant,
        counters: SourceCounters,
    ) -> Result<(), String> {
        let (ledger, fallbacks, direct, missed) =
            (self.ledger(counters), self.fallbacks(), self.direct(), self.missed());
        let mut described = Ok(());
        for number in 0..self.members.len() {
            let closing = sigmf::Closing {
                verdict,
                reason: reason.to_owned(),
                state: sigmf::State::Ended(verdict),
                ledger,
                gaps: self.gaps.clone(),
                bounds: self.resumed.filter(|one| one.most > one.least).into_iter().chain(self.own_bounds()).collect(),
                skips: self.skips.clone(),
                triggers: self.triggers.clone(),
                fallbacks: fallbacks.iter().cloned().map(Into::into).collect(),
                direct_io_proven: direct == Direct::Proven,
                worst_stall: self.worst_stall,
                buffer_high_water: self.inlet.fill().high_water,
                buffer: self.inlet.fill().capacity,
                elapsed: self.beginning.map_or(Nanos::ZERO, |began| now - began.monotonic),
                ignored: self.ignored(counters),
                missed,
            };
            let meta = sigmf::render(&self.about(number), Some(&closing), &self.segments(number));
            let path = files_of(self.members[number].base())[1].clone();
            if let Some(strange) = self.strange_metadata(&path) {
                described = described.and(Err(strange));
                continue;
            }
            let put = self.store.put(&path, &meta);
            let put = put.map_err(|error| match self.astray.is_empty() {
                true => format!("failed to {error}: `hairspring recover` puts the files in order"),
                false => format!("failed to {error}"),
            });
            let looked = put.and_then(|()| self.look_at_metadata(&path, meta.len() as u64).map_or(Ok(()), Err));
            described = described.and(looked);
        }
        described
    }

    /// The ways to the disk: the store's, and whether blocks are copied.
    fn fallbacks(&self) -> Vec<hairspring_store::Fallback> {
        let mut fallbacks = self.store.fallbacks();
        let copied = match (self.setup.gated, &self.staging) {
            (true, _) => Some("a trigger chooses the data, so blocks are assembled from copies"),
            (false, Some(_)) => Some("data that may be overwritten are copied before they are written"),
            (false, None) => None,
        };
        fallbacks.push(hairspring_store::Fallback { name: "zero_copy", refused: copied.map(str::to_owned) });
        // A recording on a file system with locks does not mention them.
        fallbacks.extend(self.ownership.without().map(|(file, errno)| {
            let why = format!("{}: {errno}: nothing keeps another program from changing the recording", file.display());
            hairspring_store::Fallback { name: "locks", refused: Some(why) }
        }));
        fallbacks
    }

    /// The worst verdict of the members.
    fn direct(&self) -> Direct {
        let facts = self.members.iter().map(|member| self.store.facts(member.data).direct);
        facts.fold(Direct::Proven, |worst, direct| match (worst, direct) {
            (Direct::No, _) | (_, Direct::No) => Direct::No,
            (Direct::Claimed, _) | (_, Direct::Claimed) => Direct::Claimed,
            _ => Direct::Proven,
        })
    }

    /// Which frames lie where in one member's data file.
    fn segments(&self, number: usize) -> Vec<sigmf::StoredSegment> {
        let stored = self.block_states.stored_of(number);
        let mut places: Vec<_> = stored
            .map(|(index, placed)| (placed.file_offset, index * self.block, Bytes(placed.length.into())))
            .collect();
        // A block that another target refused lies after later ones.
        places.sort_unstable_by_key(|place| place.0);
        sigmf::segments(&self.timeline, places)
    }
}

pub(super) fn no_descriptor(error: &std::io::Error) -> StoreError {
    StoreError {
        attempted: "get a descriptor for".to_owned(),
        path: "the recorder's notifier".into(),
        errno: Errno(error.raw_os_error().unwrap_or(libc::EMFILE)),
    }
}

/// Removes the empty files of a recording that could not begin.
fn absolute(base: &Path) -> PathBuf {
    std::path::absolute(base).unwrap_or_else(|_| base.to_owned())
}

pub(super) fn remove_files(store: &mut dyn Store, members: &[Member]) {
    for file in members.iter().flat_map(|member| files_of(member.base())) {
        // The metadata may not exist yet; the recorder made the others.
        let _ = store.remove(&file);
    }
}
