//! Reads the external clock of a session on a thread of its own, because its driver may block.
//!
//! The recording goes on whatever the clock does: a clock that panics is not read again, and the wait for one that
//! hangs is limited.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use hairspring_machine::{Host, Machine as _, Nanos};
use hairspring_source::external::{ExternalClock, ExternalKind};

use super::duration;
use hairspring_recording::clock::ClockNote;
use hairspring_recording::clock::external::watch::ExternalWatch;

/// How long the end of a source waits for a last reading. A slow clock takes some milliseconds.
const LAST_WAIT: Duration = Duration::from_millis(250);

/// The state shared by the threads of a session and the reader of its external clock.
#[derive(Default)]
pub(super) struct External {
    wishes: Mutex<Wishes>,
    changed: Condvar,
}

#[derive(Default)]
struct Wishes {
    /// Numbers of last readings that were requested and that are done.
    asked: u64,
    done: u64,
    over: bool,
}

impl External {
    /// Asks for a last reading, and waits until the recorders have it, or for [`LAST_WAIT`].
    pub(super) fn ask_last(&self) {
        let mut wishes = self.wishes.lock().unwrap_or_else(PoisonError::into_inner);
        wishes.asked += 1;
        let ours = wishes.asked;
        self.changed.notify_all();
        drop(self.changed.wait_timeout_while(wishes, LAST_WAIT, |wishes| wishes.done < ours && !wishes.over));
    }

    /// Marks that no thread reads the clock any more.
    pub(super) fn end(&self) {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.changed.notify_all();
    }
}

/// Ends the thread when the session leaves its scope.
pub(super) struct ExternalEnd<'s>(pub(super) &'s External);

impl Drop for ExternalEnd<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The thread that reads the clock.
pub(super) struct ExternalThread {
    clock: Arc<Mutex<dyn ExternalClock>>,
    watch: ExternalWatch,
    /// The queues of the cards' recorders.
    recorders: Vec<SyncSender<ClockNote>>,
}

impl ExternalThread {
    /// Takes the first reading, unless the clock must be waited for.
    pub(super) fn begin(clock: &Arc<Mutex<dyn ExternalClock>>, recorders: Vec<SyncSender<ClockNote>>) -> Option<Self> {
        let begun = catch_unwind(AssertUnwindSafe(|| {
            let mut opened = clock.lock().ok()?;
            let kind = opened.facts().kind;
            let mut watch = ExternalWatch::new(&Host, kind);
            if kind == ExternalKind::Ptp {
                watch.look(&Host, &mut *opened, &mut |note| hand_on(&recorders, note));
            }
            Some(watch)
        }));
        let watch = begun.ok()??;
        Some(Self { clock: Arc::clone(clock), watch, recorders })
    }

    /// Reads the clock until the session is over.
    pub(super) fn run(self, external: &External) {
        let _ends = ExternalEnd(external);
        // The panic hook has already printed the clock's panic on the standard error.
        drop(catch_unwind(AssertUnwindSafe(|| self.read(external))));
    }

    fn read(self, external: &External) {
        let Self { clock, mut watch, recorders } = self;
        let Ok(mut clock) = clock.lock() else { return };
        let mut hand_on = |note| hand_on(&recorders, note);
        loop {
            let due = watch.look(&Host, &mut *clock, &mut hand_on);
            let wishes = external.wishes.lock().unwrap_or_else(PoisonError::into_inner);
            let left = duration((due - Host.monotonic()).max(Nanos::ZERO));
            let waited = external.changed.wait_timeout_while(wishes, left, |it| it.asked == it.done && !it.over);
            let (wishes, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if wishes.over {
                return;
            }
            let asked = wishes.asked;
            if asked > wishes.done {
                drop(wishes);
                watch.end(&Host, &mut *clock, &mut hand_on);
                external.wishes.lock().unwrap_or_else(PoisonError::into_inner).done = asked;
                external.changed.notify_all();
            }
        }
    }
}

/// A note that finds the queue full is left out: bounds become wider, never wrong.
fn hand_on(recorders: &[SyncSender<ClockNote>], note: ClockNote) {
    for recorder in recorders {
        let _ = recorder.try_send(note);
    }
}
