//! Interrupt service procedures on threads: each runs on the thread of its source, above all tasks.
//!
//! A descriptor's thread runs the procedure itself. Posts go through a ring to a thread of the procedure's own, so that a
//! post neither blocks nor runs foreign code. One procedure never runs twice at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use hairspring_exec_core::Moment;
use hairspring_machine::{Host, Machine, Policy};

use super::schedule::INTERRUPT;
use super::state::Phase;
use super::task::{thread_name, whole};
use super::{Shared, Threads};
use crate::context::IspCtx;
use crate::engine::{IspBody, Kernel};
use crate::interrupt::{Arrival, Doorbell, Health, Isp, Post, Ring, Source, SourceThread};
use crate::report::SourceTrouble;
use crate::sync::Ordering;

/// One attached procedure.
pub(super) struct Procedure {
    pub(super) name: String,
    number: u16,
    body: Mutex<IspBody>,
    health: Arc<Health>,
    ring: Ring,
    bell: Doorbell,
    leaving: AtomicBool,
}

impl Post for Procedure {
    fn post(&self, _isp: u16, arrival: Arrival) -> bool {
        let kept = self.ring.push(arrival.at.as_nanos(), arrival.count);
        if !kept {
            self.health.count_lost();
        }
        self.bell.ring();
        kept
    }
}

impl Procedure {
    fn fire(&self, threads: &Threads, arrival: Arrival) {
        let mut body = whole(&self.body);
        let ending = match &mut *body {
            IspBody::Raw(raw) => catch_unwind(AssertUnwindSafe(|| raw(arrival))),
            IspBody::Conforming(conforming) => {
                if !threads.shared.gate.pass() {
                    return;
                }
                let ctx = IspCtx::new(Kernel::Thread(threads), self.number);
                catch_unwind(AssertUnwindSafe(|| conforming(&ctx, arrival)))
            }
        };
        if let Err(payload) = ending {
            let mut state = threads.shared.lock.hold();
            state.burst(payload);
            threads.shared.release(state);
        }
    }

    /// What the thread for posts does all its life.
    fn drain(&self, threads: &Threads) {
        threads.shared.take_cpus();
        // A refusal was found when the executive was made.
        let _ = Host.set_policy(threads.shared.policy(INTERRUPT));
        loop {
            self.bell.sleep(None);
            self.bell.answer();
            // Acquire pairs with the Release in `end`.
            if self.leaving.load(Ordering::Acquire) {
                return;
            }
            while let Some((at, count)) = self.ring.pop() {
                self.fire(threads, Arrival { at: Moment::from_nanos(at), count });
            }
        }
    }

    fn end(&self) {
        // Release pairs with the Acquire in `drain`.
        self.leaving.store(true, Ordering::Release);
        self.bell.ring();
    }
}

/// The procedures and their threads.
#[derive(Default)]
pub(super) struct Interrupts {
    pub(super) procedures: Vec<Arc<Procedure>>,
    threads: Vec<JoinHandle<()>>,
    sources: Vec<SourceThread>,
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

    /// What befell them and has not been told yet.
    pub(super) fn troubles(&self) -> impl Iterator<Item = SourceTrouble> {
        self.procedures.iter().filter_map(|procedure| procedure.health.tell(procedure.number))
    }
}

impl Threads {
    pub(super) fn make_procedure(&self, name: &str, source: &Source, body: IspBody) -> Result<Isp, std::io::Error> {
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
            bell: Doorbell::new(),
            leaving: AtomicBool::new(false),
        });
        let beside = || Threads { shared: Arc::clone(&self.shared), own: None, owner: false };
        let (fired, threads) = (Arc::clone(&procedure), beside());
        let policy = self.shared.policy(INTERRUPT);
        let deliver = move |arrival| fired.fire(&threads, arrival);
        let started = SourceThread::start(name, source, policy, self.shared.cpus.clone(), health, deliver)?;
        let (drained, threads) = (Arc::clone(&procedure), beside());
        let thread = std::thread::Builder::new()
            .name(thread_name(&format!("post {name}")))
            .spawn(move || drained.drain(&threads))?;
        interrupts.threads.push(thread);
        interrupts.sources.extend(started);
        interrupts.procedures.push(Arc::clone(&procedure));
        let mut state = self.shared.lock.hold();
        debug_assert_eq!(state.phase, Phase::Closed, "procedures are attached between runs");
        state.attached += 1;
        self.shared.release(state);
        Ok(Isp { number, to: procedure })
    }
}

impl Shared {
    /// The policy, if real-time priority was granted; else the ordinary one.
    pub(super) fn policy(&self, wanted: Policy) -> Policy {
        if self.granted { wanted } else { Policy::Other }
    }
}
