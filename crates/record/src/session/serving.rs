//! Serves a source on its thread, and watches the clocks meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Host, Instant, Nanos};
use hairspring_ring::Producer;
use hairspring_source::{Next, Source};

use super::external::External;
use super::{Board, LOOK_AT_LEAST, TOO_SHORT_TO_SLEEP, duration, thread_cpu};
use hairspring_recording::clock::ClockNote;
use hairspring_recording::clock::watch::ClockWatch;

/// Serves a source until it has ended, and asks for a last reading of the external clock. Returns the CPU time used.
pub(super) fn serve(
    source: &mut dyn Source,
    producer: &mut Producer,
    board: &Board,
    ending: &AtomicBool,
    now: &dyn Fn() -> Instant,
    (mut watch, external): (ClockWatch, Option<&External>),
    hand_on: &mut dyn FnMut(ClockNote),
) -> Nanos {
    loop {
        // Acquire: as in the caller's loop. A recorder that is done before its source has ended has panicked.
        if board.done.load(Ordering::Acquire) {
            return thread_cpu();
        }
        let moment = now();
        // Relaxed: plain flags.
        let stop = ending.load(Ordering::Relaxed) || board.enough.load(Ordering::Relaxed);
        let next = if stop { source.stop(moment, producer) } else { source.service(moment, producer) };
        let counters = source.counters();
        watch.look(&Host, moment, source, next, hand_on);
        if matches!(next, Next::Ended(_)) {
            watch.end(&Host, source, hand_on);
            external.iter().for_each(|external| external.ask_last());
        }
        board.put(counters);
        board.bounds.show(source.gap_bounds());
        match next {
            Next::Ended(end) => {
                let _ = board.ended.set(now());
                producer.close(end);
                return thread_cpu();
            }
            Next::At(when) => {
                let span = when - now();
                if span > TOO_SHORT_TO_SLEEP {
                    std::thread::sleep(duration(span.min(LOOK_AT_LEAST)));
                }
            }
            Next::Readable(when) => {
                let span = when.min(now() + LOOK_AT_LEAST) - now();
                producer.notifier().clear();
                producer.notifier().wait(source.descriptor(), span);
            }
            Next::Room => {
                producer.flush();
                producer.notifier().wait(None, LOOK_AT_LEAST);
                producer.notifier().clear();
            }
        }
    }
}
