//! The state of a scripted disk: its files, the operations under way, its time, and its faults.

mod names;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use hairspring_machine::{Instant, Nanos};

use super::content::{Change, Content, Inode};
use super::image::Image;
use super::script::{Chance, DiskScript, OpKind, Pace, What, When};
use crate::memories::Memories;
use crate::owner::PathFacts;
use crate::{Completion, Direct, Errno, FileFacts, FileId, Op, Open, Piece, StoreError, Token, system};

/// The error of a disk that has disappeared.
const GONE: Errno = Errno(libc::ENODEV);

#[derive(Clone, Debug)]
struct OpenFile {
    path: PathBuf,
    inode: usize,
    alignment: u64,
    writable: bool,
}

/// The effect of an operation when it is due.
#[derive(Clone, Debug)]
enum Effect {
    Fail(Errno),
    /// Writes this many bytes of the piece, read at submission or at completion.
    Write {
        piece: Piece,
        length: u64,
        read: Option<Vec<u8>>,
    },
    Read {
        piece: Piece,
        length: u64,
    },
    Sync {
        barrier: u64,
        failed: Option<Errno>,
    },
    /// A sync that is only confirmed.
    Lie,
    Allocate {
        to: u64,
    },
}

#[derive(Clone, Debug)]
struct Flight {
    store: usize,
    number: u64,
    token: Token,
    due: Instant,
    file: FileId,
    at: u64,
    effect: Effect,
    /// Keeps the memory alive.
    memories: Memories,
}

/// The script's decision about an operation.
#[derive(Clone, Copy, Debug, Default)]
struct Verdict {
    error: Option<Errno>,
    most_bytes: Option<u64>,
    stall: Nanos,
    lies: bool,
}

/// The result of a blocking call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Nothing,
    /// It is done, but a power cut may undo it although it should be durable.
    InMemory,
    All,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    script: DiskScript,
    chance: Chance,
    now: Instant,
    /// The time by which the disk will have moved the data of all submitted operations.
    idle_from: Instant,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    inodes: Vec<Inode>,
    /// Slots of files without references, and the number of files at which they are looked for again.
    unused: Vec<usize>,
    collect_at: usize,
    /// By id; the ids of closed files are reused.
    open: Vec<Option<OpenFile>>,
    flights: Vec<Flight>,
    /// Completions by store; the numbers of dropped stores are reused.
    done: Vec<Vec<Completion>>,
    dropped_stores: Vec<usize>,
    operations: u64,
    /// For each fault the operations and bytes that matched it up to now.
    seen: Vec<(u64, u64)>,
    is_crashed: bool,
}

impl State {
    pub(super) fn new(mut script: DiskScript, image: Image) -> Self {
        script.alignment = script.alignment.max(1);
        let names: BTreeMap<_, _> = image.files.keys().cloned().zip(0..).collect();
        Self {
            chance: Chance::new(script.seed),
            now: Instant::BOOT,
            idle_from: Instant::BOOT,
            durable_names: names.clone(),
            names,
            inodes: image.files.into_values().map(Inode::durable).collect(),
            unused: Vec::new(),
            collect_at: 64,
            open: Vec::new(),
            flights: Vec::new(),
            done: Vec::new(),
            dropped_stores: Vec::new(),
            operations: 0,
            seen: vec![(0, 0); script.faults.len()],
            is_crashed: false,
            script,
        }
    }

    pub(super) fn add_store(&mut self) -> usize {
        let store = self.dropped_stores.pop().unwrap_or(self.done.len());
        self.done.resize_with(self.done.len().max(store + 1), Vec::new);
        store
    }

    pub(super) fn pace(&self) -> Pace {
        self.script.pace
    }

    pub(super) fn now(&mut self) -> Instant {
        self.follow_the_clock();
        self.now
    }

    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    pub(super) fn open_files(&self) -> usize {
        self.open.iter().flatten().count()
    }

    pub(super) fn names(&self) -> usize {
        self.names.len()
    }

    pub(super) fn inodes(&self) -> usize {
        self.inodes.len()
    }

    pub(super) fn length(&self, path: &Path) -> Option<u64> {
        self.names.get(path).map(|inode| self.inodes[*inode].volatile.length)
    }

    /// The slot of a new file: an unused one, or a new one.
    fn place_of(&mut self, inode: Inode) -> usize {
        if self.inodes.len() >= self.collect_at {
            let mut used = vec![false; self.inodes.len()];
            let open = self.open.iter().flatten().map(|file| file.inode);
            let named = self.names.values().chain(self.durable_names.values()).copied();
            open.chain(named).for_each(|inode| used[inode] = true);
            self.unused = (0..used.len()).filter(|inode| !used[*inode]).collect();
            self.collect_at = (self.inodes.len() - self.unused.len()).max(32) * 2;
        }
        match self.unused.pop() {
            Some(place) => {
                self.inodes[place] = inode;
                place
            }
            None => {
                self.inodes.push(inode);
                self.inodes.len() - 1
            }
        }
    }

    pub(super) fn is_crashed(&self) -> bool {
        self.is_crashed
    }

    /// When the next operation is due; of one store, or of all.
    pub(super) fn next_due(&self, store: Option<usize>) -> Option<Instant> {
        let mine = self.flights.iter().filter(|flight| store.is_none_or(|store| flight.store == store));
        mine.map(|flight| flight.due).min()
    }

    pub(super) fn follow_the_clock(&mut self) {
        if self.script.pace == Pace::Real {
            self.advance(system::now());
        }
    }

    pub(super) fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        let (mut due, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.flights).into_iter().partition(|flight| flight.due <= self.now);
        self.flights = waiting;
        due.sort_by_key(|flight| (flight.due, flight.number));
        for flight in due {
            let result = self.complete(&flight);
            self.done[flight.store].push(Completion { token: flight.token, result });
        }
    }

    pub(super) fn has_completions(&self, store: usize) -> bool {
        !self.done[store].is_empty()
    }

    pub(super) fn reap(&mut self, store: usize, completions: &mut Vec<Completion>) {
        self.follow_the_clock();
        completions.append(&mut self.done[store]);
    }

    /// Counts an operation and finds the script's decision.
    fn meet(&mut self, kind: OpKind, path: &Path, bytes: u64) -> Verdict {
        self.operations += 1;
        let mut verdict = Verdict::default();
        let mut struck = false;
        for (fault, (count, total)) in self.script.faults.clone().iter().zip(&mut self.seen) {
            let looks_at = fault.kind.is_none_or(|wanted| wanted == kind)
                && fault.file.as_ref().is_none_or(|part| path.to_string_lossy().contains(part.as_str()));
            if !looks_at {
                continue;
            }
            *count += 1;
            let before = *total;
            *total += bytes;
            let strikes = match fault.when {
                When::Nth(n) => *count == n,
                When::From(n) => *count >= n,
                When::AfterBytes(limit) => *total > limit.0,
            };
            if !strikes || struck {
                continue;
            }
            struck = true;
            match (fault.what, fault.when) {
                (What::Error(error), When::AfterBytes(limit)) => {
                    let room = limit.0.saturating_sub(before);
                    // A refused operation moves nothing.
                    *total = before + room.min(bytes);
                    match room / self.script.alignment * self.script.alignment {
                        0 => verdict.error = Some(error),
                        room => verdict.most_bytes = Some(room),
                    }
                }
                (What::Error(error), _) => verdict.error = Some(error),
                (What::Short(most), _) => verdict.most_bytes = Some(most),
                (What::Stall(stall), _) => verdict.stall = stall,
                (What::Lie, _) => verdict.lies = true,
                (What::Crash, _) => self.is_crashed = true,
            }
        }
        verdict
    }

    /// Begins an operation.
    pub(super) fn begin(&mut self, store: usize, token: Token, op: Op, memories: &Memories) {
        self.follow_the_clock();
        let (kind, file, at, length) = match op {
            Op::Write(file, at, piece) => (OpKind::Write, file, at, piece.length as u64),
            Op::Read(file, at, piece) => (OpKind::Read, file, at, piece.length as u64),
            Op::Sync(file) => (OpKind::Sync, file, 0, 0),
            Op::Allocate(file, at, length) => (OpKind::Allocate, file, at, length),
        };
        let open = self.file(file).clone();
        let was_crashed = self.is_crashed;
        let moved = if kind == OpKind::Allocate { 0 } else { length };
        let verdict = self.meet(kind, &open.path, moved);
        let effect = self.effect(op, &open, verdict, memories);
        let moved = match &effect {
            Effect::Write { length, .. } | Effect::Read { length, .. } => *length,
            _ => 0,
        };
        let due = self.due(moved, verdict.stall);
        let memories = memories.clone();
        let number = self.operations;
        if was_crashed {
            self.done[store].push(Completion { token, result: Err(GONE) });
            return;
        }
        self.flights.push(Flight { store, number, token, due, file, at, effect, memories });
        if self.is_crashed {
            self.crash();
        } else if due <= self.now {
            self.advance(self.now);
        }
    }

    fn effect(&mut self, op: Op, open: &OpenFile, verdict: Verdict, memories: &Memories) -> Effect {
        if let (Some(error), false) = (verdict.error, matches!(op, Op::Sync(_))) {
            return Effect::Fail(error);
        }
        let is_aligned = |at: u64, piece: Piece| (at | piece.length as u64).is_multiple_of(open.alignment);
        let most = verdict.most_bytes.unwrap_or(u64::MAX);
        match op {
            Op::Write(..) | Op::Allocate(..) if !open.writable => Effect::Fail(Errno(libc::EBADF)),
            Op::Write(_, at, piece) | Op::Read(_, at, piece) if !is_aligned(at, piece) => {
                Effect::Fail(Errno(libc::EINVAL))
            }
            Op::Write(_, at, piece) => {
                let room = self.room_from(open.inode, at) / open.alignment * open.alignment;
                let length = (piece.length as u64).min(most).min(room);
                if length == 0 && piece.length > 0 && most > 0 {
                    return Effect::Fail(Errno(libc::ENOSPC));
                }
                self.inodes[open.inode].reserve(at + length);
                let read = self.chance.coin().then(|| memories.span(piece).first(length as usize).copy_out());
                Effect::Write { piece, length, read }
            }
            Op::Read(_, _, piece) => Effect::Read { piece, length: (piece.length as u64).min(most) },
            Op::Sync(_) if verdict.lies => Effect::Lie,
            Op::Sync(_) => Effect::Sync { barrier: self.inodes[open.inode].barrier(), failed: verdict.error },
            Op::Allocate(_, at, length) => {
                let room = self.room_from(open.inode, at);
                if room < length {
                    if self.script.refused_takes_all {
                        self.inodes[open.inode].reserve(at + room);
                    }
                    return Effect::Fail(Errno(libc::ENOSPC));
                }
                self.inodes[open.inode].reserve(at + length);
                Effect::Allocate { to: at + length }
            }
        }
    }

    fn due(&mut self, moved: u64, stall: Nanos) -> Instant {
        let time = self
            .script
            .rate
            .and_then(|rate| rate.time_for(hairspring_ring::units::Bytes(moved)))
            .unwrap_or(Nanos::ZERO);
        self.idle_from = self.idle_from.max(self.now) + stall + time;
        let (least, most) = (self.script.least_latency.count(), self.script.most_latency.count());
        let span = u64::try_from(most - least).unwrap_or(0);
        let latency = least + self.chance.below(span.saturating_add(1).max(1)).cast_signed();
        self.idle_from + Nanos::new(latency)
    }

    fn complete(&mut self, flight: &Flight) -> Result<u64, Errno> {
        let inode = self.file(flight.file).inode;
        match &flight.effect {
            Effect::Fail(error) => Err(*error),
            Effect::Write { length, .. } => {
                let change = self.change(flight);
                self.inodes[inode].change(change);
                Ok(*length)
            }
            Effect::Read { piece, length } => {
                let bytes = self.inodes[inode].volatile.read(flight.at, *length as usize);
                flight.memories.span(*piece).copy_in(&bytes);
                Ok(bytes.len() as u64)
            }
            Effect::Sync { barrier, failed: None } => {
                self.inodes[inode].sync(*barrier);
                Ok(0)
            }
            Effect::Lie => Ok(0),
            Effect::Sync { barrier, failed: Some(error) } => {
                self.inodes[inode].fail_sync(*barrier);
                Err(*error)
            }
            Effect::Allocate { to } => {
                self.inodes[inode].change(Change::Extend { to: *to });
                Ok(0)
            }
        }
    }

    /// The change that a write or an allocation makes; reads the memory if that was not done yet.
    fn change(&self, flight: &Flight) -> Change {
        match &flight.effect {
            Effect::Write { length, .. } if self.script.forgetful => Change::Extend { to: flight.at + length },
            Effect::Write { piece, length, read } => {
                let read = read.clone();
                let bytes = read.unwrap_or_else(|| flight.memories.span(*piece).first(*length as usize).copy_out());
                Change::Write { at: flight.at, bytes: bytes.into() }
            }
            Effect::Allocate { to } => Change::Extend { to: *to },
            Effect::Fail(_) | Effect::Read { .. } | Effect::Sync { .. } | Effect::Lie => Change::Extend { to: 0 },
        }
    }

    pub(super) fn crash(&mut self) {
        self.is_crashed = true;
        let mut flights = std::mem::take(&mut self.flights);
        flights.sort_by_key(|flight| flight.number);
        let mut chance = Chance::new(self.chance.next());
        self.half_do(&flights, &mut chance);
        for flight in flights {
            self.done[flight.store].push(Completion { token: flight.token, result: Err(GONE) });
        }
    }

    /// Ends the operations under way at a crash: done, half done or not done.
    fn half_do(&mut self, flights: &[Flight], chance: &mut Chance) {
        for flight in flights {
            let change = self.change(flight);
            let inode = self.file(flight.file).inode;
            self.inodes[inode].change_by_chance(&change, chance);
        }
    }

    pub(super) fn image_after_kill(&self, seed: u64) -> Image {
        let ended = self.ended(&mut Chance::new(seed));
        let content = |inode: &usize| ended.inodes[*inode].volatile.clone();
        Image { files: ended.names.iter().map(|(path, inode)| (path.clone(), content(inode))).collect() }
    }

    pub(super) fn image_after_power_cut(&self, seed: u64) -> Image {
        let mut chance = Chance::new(seed);
        let ended = self.ended(&mut chance);
        let mut names = ended.durable_names.clone();
        names.retain(|path, _| ended.names.contains_key(path) || chance.coin());
        for (path, inode) in &ended.names {
            if names.get(path) != Some(inode) && chance.coin() {
                names.insert(path.clone(), *inode);
            }
        }
        let contents: Vec<Content> = ended.inodes.iter().map(|inode| inode.after_power_cut(&mut chance)).collect();
        Image { files: names.into_iter().map(|(path, inode)| (path, contents[inode].clone())).collect() }
    }

    fn ended(&self, chance: &mut Chance) -> Self {
        let mut ended = self.clone();
        let mut flights = std::mem::take(&mut ended.flights);
        flights.sort_by_key(|flight| flight.number);
        ended.half_do(&flights, chance);
        ended
    }

    /// Begins a blocking call: counts it, applies faults, refuses it if the disk has disappeared. Returns the stall.
    fn act(&mut self, kind: OpKind, attempted: &str, path: &Path) -> Result<(Nanos, Done), StoreError> {
        self.follow_the_clock();
        let was_crashed = self.is_crashed;
        let verdict = self.meet(kind, path, 0);
        let failed = |errno: Errno| StoreError::new(attempted, path, &io::Error::from_raw_os_error(errno.0));
        if was_crashed {
            return Err(failed(GONE));
        }
        if self.is_crashed {
            // The call may have had its effect.
            self.crash();
            return Ok((Nanos::ZERO, if self.chance.coin() { Done::All } else { Done::Nothing }));
        }
        if let Some(error) = verdict.error {
            return Err(failed(error));
        }
        if self.script.pace == Pace::Leaping && verdict.stall > Nanos::ZERO {
            self.advance(self.now + verdict.stall);
        }
        Ok((verdict.stall, if verdict.lies { Done::InMemory } else { Done::All }))
    }

    /// Ends a blocking call: an error if the disk crashed during it.
    fn acted(&self, stall: Nanos, attempted: &str, path: &Path) -> Result<Nanos, StoreError> {
        if self.is_crashed {
            return Err(StoreError::new(attempted, path, &io::Error::from_raw_os_error(GONE.0)));
        }
        Ok(stall)
    }

    pub(super) fn open(&mut self, path: &Path, how: Open) -> Result<FileId, StoreError> {
        let creates = matches!(how, Open::CreateData | Open::CreateJournal);
        let attempted = if creates { "create" } else { "open" };
        let (stall, done) = self.act(OpKind::Open, attempted, path)?;
        let refused = |errno| Err(StoreError::new(attempted, path, &io::Error::from_raw_os_error(errno)));
        let inode = match self.names.get(path) {
            Some(_) if creates => return refused(libc::EEXIST),
            Some(inode) => *inode,
            None if !creates => return refused(libc::ENOENT),
            None => {
                let place = self.place_of(Inode::default());
                if done != Done::Nothing {
                    self.names.insert(path.to_owned(), place);
                }
                place
            }
        };
        self.acted(stall, attempted, path)?;
        let alignment = if matches!(how, Open::CreateData | Open::ReadData) { self.script.alignment } else { 1 };
        let place = self.open.iter().position(Option::is_none).unwrap_or(self.open.len());
        if place == self.open.len() {
            self.open.push(None);
        }
        self.open[place] = Some(OpenFile { path: path.to_owned(), inode, alignment, writable: how != Open::ReadData });
        Ok(FileId(u32::try_from(place).unwrap_or(u32::MAX)))
    }

    pub(super) fn close(&mut self, id: FileId) {
        let _ = self.file(id);
        self.open[id.0 as usize] = None;
    }

    /// A store was dropped: closes its files, unless operations on them are under way.
    pub(super) fn leave(&mut self, store: usize, opened: &[FileId]) {
        if !self.flights.iter().any(|flight| flight.store == store) {
            opened.iter().for_each(|file| self.open[file.0 as usize] = None);
            self.done[store].clear();
            self.dropped_stores.push(store);
        }
    }

    fn file(&self, id: FileId) -> &OpenFile {
        self.open.get(id.0 as usize).and_then(Option::as_ref).expect("a file that a store on this disk has opened")
    }

    pub(super) fn facts(&self, id: FileId) -> FileFacts {
        let OpenFile { inode, alignment, .. } = *self.file(id);
        let direct = if alignment > 1 { Direct::Claimed } else { Direct::No };
        let shared = self.names.values().filter(|other| **other == inode).count() > 1;
        FileFacts { size: self.inodes[inode].volatile.length, alignment, memory_alignment: alignment, direct, shared }
    }

    pub(super) fn link(&mut self, path: &Path, further: &Path) {
        if let Some(inode) = self.names.get(path).copied() {
            self.names.insert(further.to_owned(), inode);
            self.durable_names.insert(further.to_owned(), inode);
        }
    }

    /// The facts of the file at a path. This is no operation, so no fault applies to it.
    pub(super) fn look(&self, path: &Path) -> Result<PathFacts, StoreError> {
        let missing = || StoreError::new("look at", path, &io::Error::from_raw_os_error(libc::ENOENT));
        self.names.get(path).map(|inode| self.facts_of(*inode)).ok_or_else(missing)
    }

    pub(super) fn look_at(&self, id: FileId) -> PathFacts {
        self.facts_of(self.file(id).inode)
    }

    fn facts_of(&self, inode: usize) -> PathFacts {
        let links = self.names.values().filter(|named| **named == inode).count() as u64;
        PathFacts { device: 0, inode: inode as u64, links, size: self.inodes[inode].volatile.length }
    }

    pub(super) fn truncate(&mut self, id: FileId, length: u64) -> Result<Nanos, StoreError> {
        let OpenFile { path, inode, .. } = self.file(id).clone();
        let attempted = "set the length of";
        let (stall, done) = self.act(OpKind::Truncate, attempted, &path)?;
        if done != Done::Nothing {
            self.inodes[inode].change(Change::Truncate { length });
            self.inodes[inode].reserved = length;
        }
        self.acted(stall, attempted, &path)
    }

    pub(super) fn free_bytes(&self) -> Option<u64> {
        let used = self.names.values().map(|inode| self.inodes[*inode].reserved).sum();
        self.script.capacity.map(|capacity| capacity.0.saturating_sub(used))
    }

    /// Bytes that fit into a file from an offset on.
    fn room_from(&self, inode: usize, at: u64) -> u64 {
        let Some(free) = self.free_bytes() else { return u64::MAX };
        (self.inodes[inode].reserved + free).saturating_sub(at)
    }
}
