//! The attached interrupt service procedures of the thread back-end, and how they end.

use crate::system::clock::moment_of;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::engine::{Engine, InterruptProcedure};
use crate::interrupt::{Arrival, Doorbell, Health, Post, Ring, SourceThread};
use crate::report::SourceTrouble;
use crate::system::sync::Ordering;

/// One attached procedure.
pub(super) struct Procedure {
    pub(super) name: String,
    pub(super) number: u16,
    pub(super) body: Mutex<InterruptProcedure<dyn Engine>>,
    pub(super) health: Arc<Health>,
    pub(super) ring: Ring,
    pub(super) doorbell: Doorbell,
    pub(super) leaving: AtomicBool,
}

impl Post for Procedure {
    fn post(&self, _isp: u16, arrival: Arrival) -> bool {
        let kept = self.ring.push(moment_of(arrival.at).as_nanos(), arrival.count);
        if !kept {
            self.health.count_lost();
        }
        self.doorbell.ring();
        kept
    }
}

impl Procedure {
    fn end(&self) {
        // Release pairs with the Acquire in `drain`.
        self.leaving.store(true, Ordering::Release);
        self.doorbell.ring();
    }
}

/// The procedures and their threads.
#[derive(Default)]
pub(super) struct Interrupts {
    pub(super) procedures: Vec<Arc<Procedure>>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) sources: Vec<SourceThread>,
}

impl Interrupts {
    /// Ends all threads. The gate has been dissolved.
    pub(super) fn end(&mut self) {
        self.procedures.iter().for_each(|procedure| procedure.end());
        self.sources.clear();
        for thread in self.threads.drain(..) {
            // Its procedure's panics are caught.
            let _ = thread.join();
        }
    }

    /// The troubles that were not reported yet.
    pub(super) fn troubles(&self) -> impl Iterator<Item = SourceTrouble> {
        self.procedures.iter().filter_map(|procedure| procedure.health.tell(procedure.number))
    }
}
