//! [`ScriptedPcm`]: a sound card in virtual time, for tests of recording and playing.
//!
//! It behaves as the kernel does with a real card: the pointer is known modulo the buffer, is looked at by interrupts
//! and queries, and whole rounds between two looks are not seen. A script sets when interrupts fail, when the driver
//! stops the stream, and when the card is pulled out.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::Frames;
use zerocopy::IntoBytes as _;

use super::abi::HwParams;
use super::pcm::{PcmState, PcmStatus};
use super::setup::{PcmForm, PcmSetup, PcmWire, PcmWish, checked, negotiate};
use crate::pattern::Pattern;

/// Sets up 16-bit stereo at 48 kHz with a malicious card, for fuzzing. An answer of the card is a byte, odd if it
/// refuses, a count of changes, and the changes: a place of two bytes in the kernel's structure, and the byte that it
/// gets. A last answer of eight bytes is where its pointers wrap.
///
/// # Errors
/// The card refuses, or its set-up contradicts itself.
pub fn negotiated(answers: &[u8]) -> io::Result<PcmSetup> {
    let wish = PcmWish { form: PcmForm::I16, channels: 2, rate_hz: 48_000, period: None, buffer: None };
    let mut rest = answers;
    let mut next = || {
        let (first, others) = rest.split_first()?;
        rest = others;
        Some(*first)
    };
    let params = negotiate(&wish, &mut |params: &mut HwParams| {
        let verdict = next();
        for _ in 0..next().unwrap_or_default() {
            let (Some(low), Some(high), Some(value)) = (next(), next(), next()) else { break };
            let bytes = params.as_mut_bytes();
            let place = usize::from(u16::from_le_bytes([low, high])) % bytes.len();
            bytes[place] = value;
        }
        if verdict.is_some_and(|verdict| verdict & 1 == 0) {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::EINVAL))
        }
    })?;
    let boundary = [(); 8].map(|()| next().unwrap_or_default());
    checked(&wish, &params, u64::from_le_bytes(boundary))
}

/// Time that one call of the card takes.
const CALL: Nanos = Nanos::from_micros(1);

/// The time of a scripted card, which calls and tests move on.
#[derive(Clone, Debug, Default)]
pub struct ScriptedClock(Arc<AtomicI64>);

impl ScriptedClock {
    /// The present time.
    pub fn now(&self) -> Instant {
        // Relaxed: one thread uses it.
        Instant::from_monotonic(Nanos::new(self.0.load(Ordering::Relaxed)))
    }

    /// Lets time pass.
    pub fn pass(&self, span: Nanos) {
        // Relaxed: as above.
        self.0.fetch_add(span.count(), Ordering::Relaxed);
    }
}

/// Script of a simulated card: its rate error and its faults. Times are since boot.
#[derive(Clone, Debug, Default)]
pub struct PcmScript {
    /// Deviation of the true rate from the nominal one, in parts per million.
    pub off_ppm: f64,
    /// Interrupts fail from the first time to the second.
    pub deaf: Vec<(Nanos, Nanos)>,
    /// The driver stops the stream.
    pub stops: Vec<Nanos>,
    /// The card is pulled out.
    pub pulled_at: Option<Nanos>,
    /// Time that taking one frame costs.
    pub copy_frame: Nanos,
    /// The hardware is suspended rather than stopped.
    pub suspends: bool,
    /// It plays instead of recording.
    pub plays: bool,
}

/// A sound card in virtual time.
#[derive(Debug)]
pub struct ScriptedPcm {
    setup: PcmSetup,
    layout: Layout,
    pattern: Pattern,
    script: PcmScript,
    clock: ScriptedClock,
    state: PcmState,
    /// Start of the present run, and the frames taken before it.
    begun: Instant,
    taken: u64,
    /// True count of frames in the present run at the last look.
    looked: u64,
    pointer: u64,
    program: u64,
    changed: Instant,
    triggered: Instant,
    /// Frames to be played: a slot for each frame of the buffer.
    slots: Vec<Option<Vec<u8>>>,
    played: Arc<std::sync::Mutex<Vec<Option<Vec<u8>>>>>,
}

impl ScriptedPcm {
    /// A card with this set-up, whose frames are those of the pattern.
    pub fn new(setup: PcmSetup, layout: Layout, pattern: Pattern, script: PcmScript, clock: ScriptedClock) -> Self {
        Self {
            slots: vec![None; setup.buffer.0 as usize],
            setup,
            layout,
            pattern,
            script,
            state: PcmState::Prepared,
            begun: clock.now(),
            taken: 0,
            looked: 0,
            pointer: 0,
            program: 0,
            changed: clock.now(),
            triggered: clock.now(),
            clock,
            played: Arc::default(),
        }
    }

    /// The played frames: those that were there in time, and `None` for silence.
    pub fn played(&self) -> Arc<std::sync::Mutex<Vec<Option<Vec<u8>>>>> {
        Arc::clone(&self.played)
    }

    pub(super) fn setup(&self) -> PcmSetup {
        self.setup
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.pass(CALL);
        self.clock.now()
    }

    fn true_rate_hz(&self) -> f64 {
        self.setup.rate.as_hz() * (1.0 + self.script.off_ppm * 1e-6)
    }

    /// Frames of the present run until a time.
    fn frames_at(&self, time: Instant) -> u64 {
        ((time - self.begun).max(Nanos::ZERO).as_secs_f64() * self.true_rate_hz()) as u64
    }

    /// Time at which a frame of the present run had passed.
    fn time_of(&self, frames: u64) -> Instant {
        self.begun + Nanos::try_from_secs_f64(frames as f64 / self.true_rate_hz()).unwrap_or(Nanos::ZERO)
    }

    /// The kernel looks at the card's position in its buffer.
    fn look(&mut self, frames: u64, when: Instant) {
        let buffer = self.setup.buffer.0;
        for frame in self.looked..frames {
            let slot = (frame % buffer) as usize;
            if let (true, Ok(mut played)) = (self.script.plays, self.played.lock()) {
                played.push(self.slots[slot].take());
            }
        }
        let moved = (frames - self.looked) % buffer;
        self.looked = frames;
        if moved > 0 {
            self.pointer = (self.pointer + moved) % self.setup.boundary.0;
            self.changed = when;
        }
    }

    /// Lets the interrupts happen that were due.
    fn catch_up(&mut self) -> io::Result<()> {
        let now = self.now();
        if self.script.pulled_at.is_some_and(|at| now >= Instant::BOOT + at) {
            self.state = PcmState::Gone;
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        if !matches!(self.state, PcmState::Running) {
            return Ok(());
        }
        let stop = self.script.stops.first().map(|at| Instant::BOOT + *at).filter(|at| now >= *at);
        let until = stop.unwrap_or(now);
        let period = self.setup.period.0;
        let mut next = (self.looked / period + 1) * period;
        while next <= self.frames_at(until) {
            let when = self.time_of(next);
            let since = when - Instant::BOOT;
            if !self.script.deaf.iter().any(|(from, to)| (*from..*to).contains(&since)) {
                self.look(next, when);
            }
            next += period;
        }
        self.look(self.frames_at(until), until);
        if let Some(at) = stop {
            self.script.stops.remove(0);
            self.state = if self.script.suspends { PcmState::Suspended } else { PcmState::Overrun };
            self.triggered = at;
            self.taken += self.looked;
        }
        Ok(())
    }

    pub(super) fn status(&mut self) -> io::Result<PcmStatus> {
        self.catch_up()?;
        let Self { state, pointer, program, changed, triggered, .. } = *self;
        Ok(PcmStatus { state, pointer, program, changed, is_stamped: true, triggered })
    }

    fn distance(&self, from: u64, to: u64) -> u64 {
        (to + self.setup.boundary.0 - from) % self.setup.boundary.0
    }

    fn refused(&self) -> io::Result<()> {
        match self.state {
            PcmState::Overrun => Err(io::Error::from_raw_os_error(libc::EPIPE)),
            PcmState::Suspended => Err(io::Error::from_raw_os_error(libc::ESTRPIPE)),
            PcmState::Gone => Err(io::Error::from_raw_os_error(libc::ENODEV)),
            _ => Ok(()),
        }
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<u64> {
        self.catch_up()?;
        self.refused()?;
        let frame_bytes = self.setup.wire_bytes();
        let frames = (into.len() as u64 / frame_bytes).min(self.distance(self.program, self.pointer));
        if frames == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.clock.pass(self.script.copy_frame * frames as i64);
        self.catch_up()?;
        // Contents of the buffer when the copying ends: the newest frame of each place.
        let newest = self.looked;
        let behind = self.distance(self.program, self.pointer);
        for (number, piece) in (0..frames).zip(into.chunks_exact_mut(frame_bytes as usize)) {
            let mut frame = newest.saturating_sub(behind) + number;
            while frame + self.setup.buffer.0 < newest {
                frame += self.setup.buffer.0;
            }
            let at = Frames(self.taken_before() + frame);
            if self.setup.wire == PcmWire::AsStored {
                self.pattern.fill(self.layout, at, piece);
                continue;
            }
            let mut stored = vec![0; self.setup.frame_bytes() as usize];
            self.pattern.fill(self.layout, at, &mut stored);
            let mut passed = Vec::new();
            self.setup.wire.pack(&stored, &mut passed);
            piece.copy_from_slice(&passed);
        }
        self.program = (self.program + frames) % self.setup.boundary.0;
        Ok(frames)
    }

    fn taken_before(&self) -> u64 {
        if matches!(self.state, PcmState::Running) { self.taken } else { self.taken - self.looked.min(self.taken) }
    }

    pub(super) fn write(&mut self, from: &[u8]) -> io::Result<u64> {
        self.catch_up()?;
        self.refused()?;
        let frame_bytes = self.setup.wire_bytes() as usize;
        let (buffer, boundary) = (self.setup.buffer.0, self.setup.boundary.0);
        let ahead = self.distance(self.pointer, self.program);
        // A program that is behind the card may write a whole buffer.
        let room = if ahead > boundary / 2 { buffer } else { buffer.saturating_sub(ahead) };
        let frames = (from.len() / frame_bytes).min(room as usize);
        if frames == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        for piece in from.chunks_exact(frame_bytes).take(frames) {
            let mut stored = piece.to_vec();
            if self.setup.wire != PcmWire::AsStored {
                stored = vec![0; self.setup.frame_bytes() as usize];
                self.setup.wire.unpack(piece, &mut stored);
            }
            self.slots[(self.program % buffer) as usize] = Some(stored);
            self.program = (self.program + 1) % boundary;
        }
        Ok(frames as u64)
    }

    pub(super) fn forward(&mut self, frames: u64) -> io::Result<u64> {
        self.catch_up()?;
        self.program = (self.program + frames) % self.setup.boundary.0;
        Ok(frames)
    }

    pub(super) fn start(&mut self) -> io::Result<()> {
        (self.begun, self.looked, self.state) = (self.now(), 0, PcmState::Running);
        self.triggered = self.begun;
        Ok(())
    }

    pub(super) fn prepare(&mut self) -> io::Result<()> {
        (self.pointer, self.program, self.looked, self.state) = (0, 0, 0, PcmState::Prepared);
        Ok(())
    }

    pub(super) fn drain(&mut self) -> io::Result<()> {
        self.catch_up()?;
        if !self.script.plays && self.state == PcmState::Running {
            self.state = PcmState::Draining;
            self.taken += self.looked;
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    pub(super) fn halt(&mut self) -> io::Result<()> {
        self.catch_up()?;
        self.state = PcmState::Stopped;
        Ok(())
    }
}
