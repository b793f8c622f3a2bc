//! Interrupt service procedures on threads: each runs on the thread of its source, above all tasks.
//!
//! A descriptor's thread runs the procedure itself. Posts go through a ring to the procedure's own thread, so that a
//! post neither blocks nor runs foreign code. A procedure never runs twice at the same time.

use crate::system::clock::instant_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use hairspring_exec_core::Moment;
use hairspring_machine::{Host, Machine};

use super::bands::INTERRUPT;
use super::procedure::Procedure;
use super::state::Phase;
use super::threads::Threads;
use crate::engine::{Engine, InterruptProcedure};
use crate::interrupt::{Arrival, Doorbell, Health, InterruptSource, Isp, Ring, SourceThread};
use crate::system::scheduling::thread_name;
use crate::system::sync::{Ordering, whole};

impl Threads {
    pub(super) fn make_procedure(
        &self,
        name: &str,
        source: &InterruptSource,
        body: InterruptProcedure<dyn Engine>,
    ) -> Result<Isp, std::io::Error> {
        let mut interrupts = whole(&self.shared.interrupts);
        let number = u16::try_from(interrupts.procedures.len())
            .map_err(|_| std::io::Error::other("65,536 interrupt service procedures are attached already"))?;
        let health = Arc::new(Health::new(name));
        let procedure = Arc::new(Procedure {
            name: name.to_owned(),
            number,
            body: Mutex::new(body),
            health: Arc::clone(&health),
            ring: Ring::new(),
            doorbell: Doorbell::new(),
            leaving: AtomicBool::new(false),
        });
        let beside = || Threads { shared: Arc::clone(&self.shared), own: None, owner: false };
        let (fired, threads) = (Arc::clone(&procedure), beside());
        let policy = self.shared.policy(INTERRUPT);
        let deliver = move |arrival| threads.fire(&fired, arrival);
        let started = SourceThread::start(name, source, policy, self.shared.cpus.clone(), health, deliver)?;
        let (drained, threads) = (Arc::clone(&procedure), beside());
        // The thread takes its place before a task can keep it from the CPU.
        let (in_place, taken) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name(thread_name(&format!("post {name}")))
            .spawn(move || threads.drain(&drained, &in_place))?;
        // An error means that the thread has ended, which it does only when the procedure leaves.
        let _ = taken.recv();
        interrupts.threads.push(thread);
        interrupts.sources.extend(started);
        interrupts.procedures.push(Arc::clone(&procedure));
        let mut state = self.shared.lock.hold();
        debug_assert_eq!(state.phase, Phase::Closed, "procedures are attached between runs");
        state.attached += 1;
        self.shared.release(state);
        Ok(Isp { number, to: procedure })
    }

    fn fire(&self, procedure: &Procedure, arrival: Arrival) {
        let mut body = whole(&procedure.body);
        let ending = match &mut *body {
            InterruptProcedure::Raw(raw) => catch_unwind(AssertUnwindSafe(|| raw(arrival))),
            InterruptProcedure::Conforming(conforming) => {
                if !self.shared.gate.pass() {
                    return;
                }
                catch_unwind(AssertUnwindSafe(|| conforming(self, procedure.number, arrival)))
            }
        };
        if let Err(payload) = ending {
            let mut state = self.shared.lock.hold();
            state.burst(payload);
            self.shared.release(state);
        }
    }

    /// The loop of the thread for posts.
    fn drain(&self, procedure: &Procedure, in_place: &SyncSender<()>) {
        self.shared.take_cpus();
        // The executive has reported a refusal when it was made.
        let _ = Host.set_policy(self.shared.policy(INTERRUPT));
        // The send fails only if the caller has gone.
        let _ = in_place.send(());
        loop {
            procedure.doorbell.sleep(None);
            procedure.doorbell.acknowledge();
            // Acquire pairs with the Release in `end`.
            if procedure.leaving.load(Ordering::Acquire) {
                return;
            }
            while let Some((at, count)) = procedure.ring.pop() {
                self.fire(procedure, Arrival { at: instant_of(Moment::from_nanos(at)), count });
            }
        }
    }
}
