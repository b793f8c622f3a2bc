//! [`Driver`]: the sink's half of a player; and [`play`], which runs both halves on threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hairspring_machine::{Clock, Host, Instant, Machine, Nanos};

use super::reader::Wait;
use super::{PlayConfig, PlayError, PlayProgress, Played, Player, Track};
use crate::sink::feed::Shared;
use crate::sink::{Feed, Sink, SinkNext};
use hairspring_ring::End;
use hairspring_ring::units::Bytes;
use hairspring_store::Store;

/// Interval at which a sink that waits for the preroll checks without a wake-up.
const LOOK_AT_LEAST: Nanos = Nanos::from_millis(20);
/// How often the caller gets the progress.
const PROGRESS_EVERY: Nanos = Nanos::from_millis(100);
/// The longest sleep: a request to stop is seen after it.
const LONGEST_SLEEP: Nanos = Nanos::from_millis(50);

/// Serves a sink. A state machine: primes, starts the clock, plays, has ended.
pub(super) struct Driver {
    pub(super) sink: Box<dyn Sink>,
    pub(super) feed: Feed,
    /// Bytes that must be in the ring before the clock starts.
    threshold: Bytes,
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    pub(super) started: Option<Instant>,
    asked: Option<Instant>,
    pub(super) worst_lateness: Nanos,
    pub(super) low_water: Option<Bytes>,
    pub(super) end: Option<End>,
}

impl Driver {
    pub(super) fn new(
        sink: Box<dyn Sink>,
        feed: Feed,
        threshold: Bytes,
        shared: Arc<Shared>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            sink,
            feed,
            threshold,
            shared,
            stop,
            started: None,
            asked: None,
            worst_lateness: Nanos::ZERO,
            low_water: None,
            end: None,
        }
    }

    /// Serves the sink once. Returns when it must be served again.
    pub(super) fn step(&mut self, now: Instant) -> SinkNext {
        if let Some(end) = self.end {
            return SinkNext::Ended(end);
        }
        // Relaxed: a plain flag.
        if self.stop.load(Ordering::Relaxed) {
            self.sink.stop(now);
            self.end = Some(End::Stopped);
            return SinkNext::Ended(End::Stopped);
        }
        if self.started.is_none() {
            // Acquire: pairs with the Release in the reader; data that it published before are in the ring.
            let full = self.shared.full.load(Ordering::Acquire);
            let ready = self.feed.ring().now >= self.threshold || full || self.feed.is_closed();
            if !ready {
                return SinkNext::Data(now + LOOK_AT_LEAST);
            }
            self.sink.prime(&mut self.feed);
            self.sink.start(now);
            self.started = Some(now);
        }
        if let Some(asked) = self.asked.take() {
            self.worst_lateness = self.worst_lateness.max(now - asked);
        }
        if !self.feed.is_closed() {
            let now = self.feed.ring().now;
            self.low_water = Some(self.low_water.map_or(now, |low| low.min(now)));
        }
        let next = self.sink.service(now, &mut self.feed);
        match next {
            SinkNext::At(at) if at > now => self.asked = Some(at),
            SinkNext::Ended(end) => self.end = Some(end),
            _ => {}
        }
        next
    }

    pub(super) fn progress(&self, now: Instant) -> PlayProgress {
        PlayProgress {
            playing: self.started.is_some(),
            counters: self.sink.counters(),
            ring: self.feed.ring(),
            low_water: self.low_water,
            length: self.feed.length(),
            elapsed: self.started.map_or(Nanos::ZERO, |start| now - start),
        }
    }

    /// Serves the sink until it ends.
    fn run(&mut self, board: &Mutex<PlayProgress>, now: impl Fn() -> Instant) {
        let mut shown = Instant::BOOT;
        loop {
            let next = self.step(now());
            let time = now();
            if time - shown >= PROGRESS_EVERY || matches!(next, SinkNext::Ended(_)) {
                shown = time;
                // Never waits, because the display may be slow.
                if let Ok(mut board) = board.try_lock() {
                    *board = self.progress(time);
                }
            }
            match next {
                SinkNext::Ended(_) => return,
                SinkNext::At(at) => sleep((at - time).min(LONGEST_SLEEP)),
                SinkNext::Data(at) => {
                    if !self.feed.notifier().clear() {
                        self.feed.notifier().wait(None, (at - time).min(LONGEST_SLEEP));
                    }
                }
            }
        }
    }
}

/// Ends the sink's thread if the reader panics, because the scope would wait for it forever.
struct StopsOnPanic<'a>(&'a AtomicBool);

impl Drop for StopsOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Relaxed: a plain flag.
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

fn sleep(span: Nanos) {
    if span > Nanos::ZERO {
        std::thread::sleep(Duration::try_from(span).unwrap_or_default());
    }
}

/// CPU time of the calling thread.
fn thread_cpu() -> Nanos {
    Host.read(Clock::ThreadCpu)
}

/// Plays a track until it ends, the sink fails or `stop` is set. Blocks; spawns one thread, which ends within it.
/// `progress` is called about ten times a second.
///
/// # Errors
/// Reasons that prevent the beginning. Later failures are in the result.
pub fn play(
    track: &Track,
    sink: Box<dyn Sink>,
    store: Box<dyn Store>,
    config: &PlayConfig,
    stop: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(&PlayProgress),
) -> Result<Played, PlayError> {
    let Player { mut reader, mut driver, granted, gaps } = Player::new(track, sink, store, config, Arc::clone(stop))?;
    let now = || Host.monotonic();
    let cpu_before = thread_cpu();
    let begun = now();
    let board = Mutex::new(PlayProgress::default());
    let (driver, sink_cpu) = std::thread::scope(|scope| {
        let serving = std::thread::Builder::new()
            .name("sink".to_owned())
            .spawn_scoped(scope, || {
                driver.run(&board, now);
                (driver, thread_cpu())
            })
            .map_err(PlayError::Thread)?;
        let mut shown = begun;
        let _guard = StopsOnPanic(stop);
        while !serving.is_finished() {
            let time = now();
            match reader.step(time) {
                Wait::Until(until) => reader.wait(until.min(time + LONGEST_SLEEP)),
                Wait::Ended => sleep(LONGEST_SLEEP),
            }
            if now() - shown >= PROGRESS_EVERY {
                shown = now();
                let seen = *board.lock().unwrap_or_else(PoisonError::into_inner);
                progress(&seen);
            }
        }
        reader.stop(now);
        Ok(serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let (ended, reader_cpu) = (now(), thread_cpu() - cpu_before);
    progress(&driver.progress(ended));
    Ok(Player { reader, driver, granted, gaps }.played(begun, ended, reader_cpu, sink_cpu, track.layout))
}
