//! The source of interrupts: a thread outside the executive, on another CPU, which fires when the measuring task is
//! ready. The interrupt is a real asynchronous event, never a call.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use hairspring_machine::{CpuSet, Host, Machine, Nanos, Policy};
use hairspring_sheet::Absent;

use super::{Bench, Board, Clock, proof_comes};
use crate::executive::port::{Calls, InterruptTrigger, Port};

/// Interval at which a resting source checks for an order to fire.
const PERIOD: Nanos = Nanos::from_micros(60);
/// Checks without an order before a polling source rests: some milliseconds.
const LOOKS_MOST: u32 = 50_000;
/// Number of rests in a rehearsal, and the length of each.
const RESTS_MOST: u32 = 50;
const REST: Nanos = Nanos::from_millis(1);
/// Its priority: above the tasks of any executive, so that no task delays it on its own CPU.
const PRIORITY: u8 = 90;

/// Messages between the measuring task and the source.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Trigger {
    /// The number of requested firings.
    armed: AtomicU64,
    ended: AtomicBool,
}

impl Trigger {
    /// Requests the firing with this number. Release pairs with the Acquire in the source's loop.
    #[inline]
    pub(crate) fn arm(&self, number: u64) {
        self.armed.store(number, Ordering::Release);
    }
}

/// The thread. Ends when dropped.
pub(crate) struct FiringThread {
    trigger: Arc<Trigger>,
    thread: Option<JoinHandle<()>>,
}

/// Wait of the source for its orders.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Sleeps between checks, for latencies.
    Rests,
    /// Polls, for rates. It rests when no order comes, because a run that is over needs a CPU to end on.
    Polls,
}

impl FiringThread {
    /// Starts a source for this interrupt. It leaves the stamp of each firing as mark 0.
    ///
    /// # Errors
    /// There is no other CPU to fire from, or no thread.
    pub(crate) fn start(
        bench: &Bench,
        board: &Arc<Board>,
        interrupt: impl InterruptTrigger,
        waiting: Waiting,
    ) -> Result<(Self, Arc<Trigger>), Absent> {
        let Some(cpu) = bench.place.other else {
            return Err(Absent::new(
                "only one CPU may be used, and an interrupt must come from another",
                "start it on more CPUs: `taskset -c 0-1 hairspring sheet`, or widen the cpuset of the container",
            ));
        };
        let trigger = Arc::new(Trigger::default());
        let (placed, ready) = mpsc::channel();
        let (orders, board, clock) = (Arc::clone(&trigger), Arc::clone(board), bench.clock());
        let thread = std::thread::Builder::new().name("firing".to_owned()).spawn(move || {
            // If refused, it keeps its CPU and policy: then it fires later, which no figure includes.
            let _ = Host.set_affinity(&CpuSet(vec![cpu]));
            let _ = Host.set_policy(Policy::Fifo(PRIORITY));
            let _ = placed.send(());
            let (mut fired, mut looks) = (0, 0_u32);
            // Relaxed: the join that follows orders the rest.
            while !orders.ended.load(Ordering::Relaxed) {
                looks = looks.saturating_add(1);
                if waiting == Waiting::Polls && looks < LOOKS_MOST {
                    Host.relax();
                } else {
                    Host.sleep_until(Host.monotonic() + PERIOD);
                }
                // Acquire pairs with the Release in `arm`.
                let armed = orders.armed.load(Ordering::Acquire);
                if armed > fired {
                    (fired, looks) = (armed, 0);
                    board.mark(0, clock.stamp());
                    interrupt.fire();
                }
            }
        });
        let thread = thread.map_err(|error| Absent::final_(format!("failed to start a thread: {error}")))?;
        // Placed before any task runs, because a task that polls at real-time priority could keep it off its CPU.
        let _ = ready.recv();
        Ok((Self { trigger: Arc::clone(&trigger), thread: Some(thread) }, trigger))
    }
}

/// Fires once before the measurement, with rests instead of polling, so that every thread reaches its CPU: a new thread
/// has no real-time priority yet, and a polling task would keep it off the CPU. That firing has number 1.
pub(crate) async fn rehearse<P: Port>(calls: &P::Calls<'_>, board: &Board, trigger: &Trigger, clock: &Clock) -> bool {
    trigger.arm(1);
    for _ in 0..RESTS_MOST {
        if board.proof() == 1 {
            return true;
        }
        calls.delay_until(clock.monotonic() + REST).await;
        calls.preempt_point().await;
    }
    proof_comes::<P>(calls, board, 1, clock).await
}

impl Drop for FiringThread {
    fn drop(&mut self) {
        self.trigger.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
