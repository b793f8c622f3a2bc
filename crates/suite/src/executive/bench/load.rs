//! The load: a thread on another CPU that streams through memory while the loaded cells are measured.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use hairspring_machine::{Cpu, CpuSet, Host, Machine, Nanos};
use hairspring_sheet::Absent;

use crate::executive::port::Placement;

/// Bytes of the stream: more than a private cache holds.
const BYTES: usize = 64 << 20;
/// Time between two checks for the end.
const CHUNK_BYTES: usize = 1 << 20;
/// Time limit of its first pass, and the time between two checks of it.
const WARM_MOST: Nanos = Nanos::from_millis(200);
const LOOK: Nanos = Nanos::from_millis(1);
/// Time for which it runs alone at its beginning.
const ALONE: Nanos = Nanos::from_millis(5);

/// The streaming thread. Ends when dropped.
pub struct Streaming {
    ended: Arc<AtomicBool>,
    chunks: Arc<AtomicU64>,
    /// Its rate at the beginning, when it ran alone, in bytes per second.
    alone: f64,
    /// The end of that time, and the number of chunks moved by then.
    since: (Nanos, u64),
    thread: Option<JoinHandle<()>>,
}

impl Streaming {
    /// Starts it on the place's other CPU, under the ordinary policy.
    ///
    /// # Errors
    /// There is no other CPU, or no thread.
    pub fn start(place: Placement) -> Result<Self, Absent> {
        let Some(cpu) = place.other else {
            return Err(Absent::new(
                "only one CPU may be used, and the load has to run on another",
                "start it on more CPUs: `taskset -c 0-1 hairspring sheet`, or widen the cpuset of the container",
            ));
        };
        let ended = Arc::new(AtomicBool::new(false));
        let chunks = Arc::new(AtomicU64::new(0));
        let (end, count) = (Arc::clone(&ended), Arc::clone(&chunks));
        let thread = std::thread::Builder::new().name("load".to_owned()).spawn(move || stream(cpu, &end, &count));
        let thread = thread.map_err(|error| Absent::final_(format!("failed to start a thread: {error}")))?;
        let mut load = Self { ended, chunks, alone: 0.0, since: (now(), 0), thread: Some(thread) };
        // It maps its memory first; then it runs alone for a while.
        while load.chunks.load(Ordering::Relaxed) < (BYTES / CHUNK_BYTES) as u64 && now() - load.since.0 < WARM_MOST {
            Host.sleep_until(Host.monotonic() + LOOK);
        }
        load.mark();
        Host.sleep_until(Host.monotonic() + ALONE);
        load.alone = load.rate();
        load.mark();
        Ok(load)
    }

    fn mark(&mut self) {
        // Relaxed: a count that publishes no other data.
        self.since = (now(), self.chunks.load(Ordering::Relaxed));
    }

    /// Bytes per second since the mark.
    fn rate(&self) -> f64 {
        let moved = self.chunks.load(Ordering::Relaxed) - self.since.1;
        moved as f64 * CHUNK_BYTES as f64 / (now() - self.since.0).as_secs_f64()
    }

    /// Ends the load; returns its rates alone at the beginning and since then, in bytes per second.
    pub(crate) fn rates(self) -> [f64; 2] {
        [self.alone, self.rate()]
    }
}

fn now() -> Nanos {
    Host.monotonic().as_monotonic()
}

fn stream(cpu: Cpu, end: &AtomicBool, chunks: &AtomicU64) {
    // If refused, it keeps its CPU: the kernel keeps it off a CPU that real-time threads use.
    let _ = Host.set_affinity(&CpuSet(vec![cpu]));
    let mut memory = vec![1_u64; BYTES / 8];
    loop {
        for chunk in memory.chunks_mut(CHUNK_BYTES / 8) {
            // Relaxed: a plain flag; a late check ends it a chunk later.
            if end.load(Ordering::Relaxed) {
                return;
            }
            for word in &mut *chunk {
                *word = word.wrapping_mul(3);
            }
            black_box(chunk);
            chunks.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
