//! [`Session`]: runs the threads of all cards, waits for them, and collects their results.

use std::thread::{Builder, Scope, ScopedJoinHandle};

use super::*;

/// Flags shared by all threads of a session.
#[derive(Default)]
pub(super) struct Flags {
    /// The sources must stop.
    ending: AtomicBool,
    /// The time was over before anything else ended the recording.
    time_over: AtomicBool,
    /// The session is over.
    pub(super) over: AtomicBool,
}

impl Flags {
    /// Signals all threads to end.
    fn end(&self) {
        // Relaxed: a plain flag; no other data depend on it.
        self.ending.store(true, Ordering::Relaxed);
    }

    fn is_ending(&self) -> bool {
        // Relaxed: likewise.
        self.ending.load(Ordering::Relaxed)
    }
}

/// References that all cards of a session share.
pub(super) struct Session<'s> {
    pub(super) config: &'s RecordConfig,
    pub(super) flags: &'s Flags,
    pub(super) now: &'s (dyn Fn() -> Instant + Sync),
    pub(super) external: Option<&'s External>,
}

/// A card whose threads run.
pub(super) struct Running<'s> {
    shown: Shown,
    granted: Granted,
    placed: Vec<ThreadGrant>,
    serving: ScopedJoinHandle<'s, Served>,
    recording: ScopedJoinHandle<'s, Option<Written>>,
}

/// The parts of a running card that the caller sees.
struct Shown {
    description: SourceDescription,
    tap: Option<Arc<Tap>>,
    external: Option<ExternalTrigger>,
    board: Arc<Board>,
}

/// The result of the thread that serves a source.
struct Served {
    cpu: Nanos,
    grants: Vec<ThreadGrant>,
}

/// The result of the thread that drives a recorder.
struct Written {
    outcome: Outcome,
    series: Option<SeriesSummary>,
    finished: Instant,
    cpu: Nanos,
    grants: Vec<ThreadGrant>,
}

impl<'s> Session<'s> {
    /// Runs the two threads of a card.
    ///
    /// # Errors
    /// The system refused a thread. The files of this card are removed, and the others end.
    pub(super) fn run<'scope>(
        &self,
        scope: &'scope Scope<'scope, 's>,
        card: Ready,
        watch: ClockWatch,
    ) -> Result<Running<'scope>, RecordError> {
        let Ready { source, description, producer, recorder, beside, is_new, granted, placed, tap, clock_page, .. } =
            card;
        let (external, board, (to_recorder, notes)) = (card.external, card.board, card.notes);
        let shown = Shown { description, tap, external, board };
        // The recorder is handed over once both threads exist, so that its files can be removed if a thread is refused.
        let (hand, take) = sync_channel::<SeriesRecorder>(1);
        let of_series = self.config.series.is_some().then(|| beside.clone());
        let threads = self.recording(scope, &shown, take, notes, of_series).and_then(|recording| {
            let serving = self.serving(scope, &shown, (source, producer, clock_page), watch, to_recorder)?;
            Ok((recording, serving))
        });
        let (recording, serving) = match threads {
            Ok(threads) => threads,
            Err(error) => {
                self.flags.end();
                abandon(recorder, &beside, is_new);
                return Err(RecordError::Thread(error));
            }
        };
        if hand.send(recorder).is_err() {
            unreachable!("the thread waits for it");
        }
        Ok(Running { shown, granted, placed, serving, recording })
    }

    /// Runs the thread that drives a recorder, which it takes. `beside`: index and collection, if it is a series.
    fn recording<'scope>(
        &self,
        scope: &'scope Scope<'scope, 's>,
        shown: &Shown,
        take: Receiver<SeriesRecorder>,
        notes: Receiver<ClockNote>,
        beside: Option<Vec<PathBuf>>,
    ) -> std::io::Result<ScopedJoinHandle<'scope, Option<Written>>> {
        let (config, flags, now, board) = (self.config, self.flags, self.now, Arc::clone(&shown.board));
        let wanted = shown.description.rate.map(|rate| (shown.description.layout, rate));
        Builder::new().name("recorder".to_owned()).spawn_scoped(scope, move || {
            let mut recorder = take.recv().ok()?;
            let _leaves = Leaves { board: Some(&board), ending: &flags.ending };
            let placed = config.threads.place_recorder();
            let finished = drive(&mut recorder, &board, now, &notes);
            // Relaxed: it was set before the source was stopped, and the ring's end came after that.
            if let Some(length) = config.length.filter(|_| flags.time_over.load(Ordering::Relaxed)) {
                recorder.stopped_by(time_was_over(length, wanted, board.counters().produced_bytes));
            }
            let (mut outcome, summary) = recorder.finish(now(), board.counters());
            let series = beside.map(|beside| {
                outcome.files.splice(0..0, beside);
                summary
            });
            Some(Written { outcome, series, finished, cpu: thread_cpu(), grants: placed.grants.clone() })
        })
    }

    /// The thread that serves a source.
    fn serving<'scope>(
        &self,
        scope: &'scope Scope<'scope, 's>,
        shown: &Shown,
        (mut source, mut producer, mut clock_page): (Box<dyn Source>, Producer, Option<ClockPage>),
        watch: ClockWatch,
        to_recorder: SyncSender<ClockNote>,
    ) -> std::io::Result<ScopedJoinHandle<'scope, Served>> {
        let (config, flags, now, external) = (self.config, self.flags, self.now, self.external);
        let board = Arc::clone(&shown.board);
        Builder::new().name("source".to_owned()).spawn_scoped(scope, move || {
            let _leaves = Leaves { board: None, ending: &flags.ending };
            let placed = config.threads.place_source();
            let mut hand_on = |note| {
                clock_page.iter_mut().for_each(|page| tap_state::note(page, &note));
                match note {
                    ClockNote::Frame0(beginning, _) => {
                        let _ = board.frame0.set(beginning);
                    }
                    ClockNote::Count(count) => board.count.show(count),
                    // A note that finds the queue full is left out: bounds become wider, never wrong.
                    note => {
                        let _ = to_recorder.try_send(note);
                    }
                }
            };
            let served = (watch, external);
            let cpu = serve(&mut *source, &mut producer, &board, &flags.ending, now, served, &mut hand_on);
            Served { cpu, grants: placed.grants.clone() }
        })
    }

    /// Waits until all recorders are done, reports progress, and ends them when it is time. Returns the panic of
    /// `progress`, if it had one.
    pub(super) fn wait(
        &self,
        running: &[Running<'_>],
        start: Instant,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&[RecordProgress]),
    ) -> Option<RecordError> {
        let mut panicked = None;
        loop {
            // Acquire: pairs with the Release when a recorder is done.
            let done = running.iter().all(|card| card.shown.board.done.load(Ordering::Acquire));
            let moment = (self.now)();
            let limit = self.limit(running, start);
            let over = limit.is_some_and(|(_, limit)| moment >= limit);
            // Relaxed: plain flags; no other data depend on them.
            if over || stop.load(Ordering::Relaxed) {
                // The first of the two has ended the recording.
                if over && limit.is_some_and(|(has_begun, _)| has_begun) && !self.flags.is_ending() {
                    // Relaxed: likewise.
                    self.flags.time_over.store(true, Ordering::Relaxed);
                }
                self.flags.end();
            }
            let all: Vec<RecordProgress> =
                running.iter().map(|card| shown_progress(&card.shown, start, moment)).collect();
            if panicked.is_none()
                && let Err(panic) = catch_unwind(AssertUnwindSafe(|| progress(&all)))
            {
                panicked = Some(RecordError::Panicked("progress callback", said(&*panic)));
                self.flags.end();
            }
            if done {
                return panicked;
            }
            // The requested length is met to the millisecond.
            let left = limit.map_or(PROGRESS_EVERY, |(_, limit)| duration(limit - moment));
            std::thread::park_timeout(PROGRESS_EVERY.min(left.max(Duration::from_millis(1))));
        }
    }

    /// Whether all cards have begun, and when this computer's clock ends the recording; `None` if it does not.
    fn limit(&self, running: &[Running<'_>], start: Instant) -> Option<(bool, Instant)> {
        let began = running.iter().map(|card| card.shown.board.began().map(|began| began.monotonic));
        let all_began = began.collect::<Option<Vec<Instant>>>().and_then(|began| began.into_iter().max());
        match all_began {
            Some(began) => self.config.length.map(|length| (true, began + length + self.config.patience(length))),
            None => self.config.wait.map(|wait| (false, start + wait)),
        }
    }
}

/// The results of all cards, or the first panic. Waits for the threads.
pub(super) fn results(
    running: Vec<Running<'_>>,
    mut panicked: Option<RecordError>,
) -> Result<Vec<Recorded>, RecordError> {
    let mut results = Vec::new();
    for Running { shown: Shown { description, board, .. }, granted, placed, serving, recording } in running {
        let (served, written) = match (serving.join(), recording.join()) {
            (Ok(served), Ok(Some(written))) => (served, written),
            (Ok(_), Ok(None)) => unreachable!("it was handed over"),
            (Err(panic), _) => {
                panicked.get_or_insert(RecordError::Panicked("source", said(&*panic)));
                continue;
            }
            (_, Err(panic)) => {
                panicked.get_or_insert(RecordError::Panicked("recorder", said(&*panic)));
                continue;
            }
        };
        let Written { outcome, series, finished, cpu, grants } = written;
        let ended = board.ended.get().copied().unwrap_or(finished);
        let began = board.began();
        let since = |moment: Instant| began.map_or(Nanos::ZERO, |began| moment - began.monotonic);
        results.push(Recorded {
            description,
            outcome,
            series,
            granted,
            began,
            elapsed: since(ended),
            finished: since(finished),
            recorder_cpu: cpu,
            source_cpu: served.cpu,
            pauses: board.counters().pauses,
            reordered: board.counters().reordered,
            grants: placed.into_iter().chain(served.grants).chain(grants).collect(),
        });
    }
    panicked.map_or(Ok(results), Err)
}

impl RecordConfig {
    /// The delay after the length at which this computer's clock ends the recording.
    fn patience(&self, length: Nanos) -> Nanos {
        let share = Nanos::new(length.count() / 100).max(LEAST_PATIENCE).min(MOST_PATIENCE);
        if self.by_frames { share } else { Nanos::ZERO }
    }
}

/// Why a recording ended by its time, as a fragment. `wanted`: the layout and the rate of the source, if it has one.
fn time_was_over(length: Nanos, wanted: Option<(Layout, SampleRate)>, produced_bytes: u64) -> String {
    let Some((layout, rate)) = wanted else { return "its time was over".to_owned() };
    let (produced, all) = (layout.frames_in(Bytes(produced_bytes)), rate.frames_after(length));
    // A card's own clock differs from its nominal rate.
    if produced.0 >= all.0 - all.0 / 100 {
        return "its time was over".to_owned();
    }
    format!(
        "its time was over, and it is shorter than {length}: its source gave {} of {} frames and was silent or slow",
        produced.0, all.0
    )
}

fn shown_progress(shown: &Shown, start: Instant, now: Instant) -> RecordProgress {
    let Shown { description, tap, external, board } = shown;
    let status = board.status.lock().map_or_else(|poisoned| poisoned.into_inner().clone(), |status| status.clone());
    let wanted = description.rate.map(|rate| description.layout.byte_rate(rate));
    let (description, tap, external) = (description.clone(), tap.clone(), external.clone());
    let began = board.began();
    let elapsed = began.map_or(Nanos::ZERO, |began| now - began.monotonic);
    let waits = began.is_none().then(|| now - start);
    // Relaxed: a figure for people.
    let segment = board.segment.load(Ordering::Relaxed).checked_sub(1).and_then(|number| u32::try_from(number).ok());
    // Relaxed: likewise.
    let low_space = Some(board.low_bytes.load(Ordering::Relaxed)).filter(|low| *low != NOT_SAID).map(Bytes);
    RecordProgress { description, status, segment, low_space, elapsed, waits, wanted, tap, external }
}

/// Drives a recorder to its end. Returns when that was.
fn drive(
    recorder: &mut SeriesRecorder,
    board: &Board,
    now: &dyn Fn() -> Instant,
    notes: &Receiver<ClockNote>,
) -> Instant {
    let mut shown = Instant::BOOT;
    loop {
        let moment = now();
        hand_over(recorder, board, notes);
        let step = recorder.step(moment, board.counters());
        if moment - shown > Nanos::from_millis(50) {
            shown = moment;
            // If the caller is reading now, it gets the next status.
            if let Ok(mut status) = board.status.try_lock() {
                *status = status_of(recorder, board);
            }
        }
        match step {
            Step::Done => {
                hand_over(recorder, board, notes);
                if let Ok(mut status) = board.status.lock() {
                    *status = status_of(recorder, board);
                }
                return now();
            }
            Step::StopSource => {
                // Relaxed: a plain flag.
                board.enough.store(true, Ordering::Relaxed);
                recorder.wait(moment + Nanos::from_millis(1));
            }
            Step::Wait(until) => recorder.wait(until),
        }
    }
}

fn status_of(recorder: &SeriesRecorder, board: &Board) -> Status {
    // Relaxed: as below.
    board.segment.store(recorder.number().map_or(0, |number| u64::from(number) + 1), Ordering::Relaxed);
    // Relaxed: likewise.
    board.low_bytes.store(recorder.low_space().map_or(NOT_SAID, |low| low.0), Ordering::Relaxed);
    // Relaxed: a figure for people.
    let free = Some(board.free_bytes.load(Ordering::Relaxed)).filter(|free| *free != NOT_SAID);
    recorder.status(board.counters(), free.map(Bytes))
}
