//! The load: a thread on another CPU that streams through memory while the loaded cells are measured.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use hairspring_machine::{Cpu, CpuSet, Host, Machine};
use hairspring_sheet::Absent;

use crate::executive::port::Placement;

/// What it streams through: more than it could keep in a cache of its own.
const BYTES: usize = 64 << 20;
/// Between two looks at whether it is to end.
const CHUNK_BYTES: usize = 1 << 20;

/// The streaming thread. Ends when dropped.
pub struct Streaming {
    ended: Arc<AtomicBool>,
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
        let end = Arc::clone(&ended);
        let thread = std::thread::Builder::new().name("load".to_owned()).spawn(move || stream(cpu, &end));
        let thread = thread.map_err(|error| Absent::final_(format!("failed to start a thread: {error}")))?;
        Ok(Self { ended, thread: Some(thread) })
    }
}

fn stream(cpu: Cpu, end: &AtomicBool) {
    // Refused, it runs where it is: the kernel keeps it off a CPU that real-time threads use.
    let _ = Host.set_affinity(&CpuSet(vec![cpu]));
    let mut memory = vec![1_u64; BYTES / 8];
    loop {
        for chunk in memory.chunks_mut(CHUNK_BYTES / 8) {
            // Relaxed: a plain flag; a late look ends it a chunk later.
            if end.load(Ordering::Relaxed) {
                return;
            }
            for word in &mut *chunk {
                *word = word.wrapping_mul(3);
            }
            black_box(chunk);
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
