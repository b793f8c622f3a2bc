//! The thread back-end: one thread of the kernel for each task, and Linux does the preempting.
//!
//! **Problem.** Tasks are to be preempted wherever they are, at once, by whoever becomes more urgent, without signals (whose
//! handlers can stop a task inside a libc lock) and without a kernel of our own.
//!
//! **Solution.** The core decides, under one lock; a task of priority *p* is a thread with `SCHED_FIFO` priority 80 − *p* that
//! sleeps on a word of its own while the core does not let it run. Whoever lets it run sets the word under the lock and
//! issues the wake after the lock is given back; that moment Linux takes the CPU away from the less urgent.
//!
//! ```text
//!   95  watchdog          takes the priority of whoever runs away, whatever happens
//!   88  interrupts        one thread for each source
//!   85  kernel            ticks, timer procedures, the limit of a run
//!   80  task of priority 0
//!    ⋮
//!   17  task of priority 63
//!    —  whoever called `run`, and the rest of the machine
//! ```
//!
//! **Conditions.** Profile UP puts all of them on one CPU: then the most urgent ready task is the one that runs. That is
//! watched: a task that makes a call and is not the core's first is counted as a violation (one that sleeps in a system call
//! of its own lets others run, and is found so). Profile SMP lets as many run as there are CPUs; a wake then does not preempt
//! its sender. Without the permission for real-time priority everything works, in no particular order, and
//! [`Finish::strict`](crate::Finish::strict) is false. The kernel throttles real-time threads that leave less than 5 % of a
//! second to others (`sched_rt_runtime_us`).
//!
//! The policy of a task's thread belongs to the executive. A task that wishes for another one ([`Held`](hairspring_machine::Held), a
//! real-time guard) leaves that order for as long: it runs as it wished until the executive changes its priority (by a call, by a resource, or
//! as the watchdog), which overrules the wish. The end of the wish puts the policy back that the thread had when the wish came, and
//! that lasts until its priority changes again. Wishes for CPUs, timer slack and memory are left alone.
//!
//! **Deferred.** Suspending or killing another task, and ending the run, takes effect at that task's next call (AMX does it
//! at once): a thread cannot be stopped at an arbitrary place without a signal. A suspended task's next call is made when it
//! is resumed; a killed task's next call is not made, it unwinds (but what it gives back, a buffer or a resource, it does). The end of a run kills all tasks. One that still computes
//! without a call after the watchdog's time is left behind, demoted, and reported as a runaway.
//!
//! **Why nothing is lost.** The word mirrors the core's state and is written under the lock only; the kernel compares it when
//! a thread goes to sleep. See [`place`] for the words, [`mirror`] for nudges that are owed, [`door`] for the way of a call.
#![expect(unsafe_code, reason = "messages of any Copy type are moved as bytes")]

mod door;
mod gate;
mod interrupts;
mod kernel;
mod lock;
mod mirror;
mod place;
mod run;
pub(crate) mod schedule;
mod state;
mod task;
mod watchdog;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use hairspring_exec_core::{By, Call, Moment, Observer, Priority, Reply, Status, TaskId, TimerId};
use hairspring_machine::{Clock, CpuSet, Host, Machine, Nanos, Refused};

use crate::config::{Config, ExecError, Profile};
use crate::context::accept;
use crate::engine::{Engine, IspBody, TaskBody, TimerBody};
use crate::interrupt::{Isp, Source, monotonic};
use crate::message::{Bytes, Slots};
use crate::report::{Finish, RunLimit};
use crate::trace::{Log, Trace};
use gate::Gate;
use interrupts::Interrupts;
use lock::Lock;
use place::Places;
use state::{State, TimerSeat};

/// What a task does, in its place while it is not doing it.
type Body = Mutex<Option<TaskBody>>;

/// The engine, in the hands of one thread: of the program that made it, of a task, or of an interrupt source.
pub(crate) struct Threads {
    shared: Arc<Shared>,
    /// The place of the task whose thread this is.
    own: Option<u32>,
    /// Dropping this one ends the executive.
    owner: bool,
}

/// What all threads of an executive share.
struct Shared {
    lock: Lock<State>,
    places: Arc<Places>,
    slots: Slots,
    gate: Arc<Gate>,
    interrupts: Mutex<Interrupts>,
    own_threads: Mutex<Option<[JoinHandle<()>; 2]>>,
    /// Where its threads are put; none: where they are.
    cpus: Option<CpuSet>,
    granted: bool,
    refused: Vec<Refused>,
    stack_bytes: usize,
    watchdog: Nanos,
    envelopes: u16,
    backend: &'static str,
}

impl Threads {
    /// An executive with nothing in it but its kernel thread and its watchdog.
    pub(crate) fn new(config: &Config, profile: Profile) -> Result<Self, ExecError> {
        let (cpus, single, asked, backend) = placement(profile);
        let wanted = cpus.clone();
        // Asked on a thread that ends: the caller's own scheduling is left alone.
        let probe = std::thread::Builder::new().name("probe".to_owned()).spawn(move || {
            let placed = wanted.map_or(Ok(()), |cpus| Host.set_affinity(&cpus));
            (placed, Host.set_policy(schedule::WATCHDOG))
        })?;
        let Ok((placed, scheduled)) = probe.join() else {
            return Err(ExecError::Config("a thread could not be tried"));
        };
        let mut refused = Vec::new();
        match placed {
            Err(refusal) if asked => return Err(ExecError::Refused(refusal)),
            Err(refusal) => refused.push(refusal),
            Ok(()) => {}
        }
        let granted = scheduled.map_err(|refusal| refused.push(refusal)).is_ok();

        let (places, gate) = (Arc::new(Places::new()), Arc::new(Gate::new()));
        let log = config.trace.map(Log::new);
        let mut state = State::new(config.envelopes, Arc::clone(&places), Arc::clone(&gate), log);
        state.granted = granted;
        state.single = single;
        let shared = Arc::new(Shared {
            lock: Lock::new(state, config.measure_latency)?,
            places,
            slots: Slots::new(config.envelopes, config.message_bytes),
            gate,
            interrupts: Mutex::default(),
            own_threads: Mutex::new(None),
            cpus,
            granted,
            refused,
            stack_bytes: config.stack_bytes,
            watchdog: config.watchdog,
            envelopes: config.envelopes,
            backend,
        });
        let threads = Self { shared, own: None, owner: true };
        let beside = || Self { shared: Arc::clone(&threads.shared), own: None, owner: false };
        let (timekeeper, watcher) = (beside(), beside());
        let kernel = std::thread::Builder::new().name("kernel".to_owned()).spawn(move || timekeeper.keep_time())?;
        // Should this fail, the kernel thread ends with `threads`, which is dropped on the way out.
        let watchdog = std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || watcher.watch())?;
        *task::whole(&threads.shared.own_threads) = Some([kernel, watchdog]);
        Ok(threads)
    }

    pub(crate) fn message_fits<M>(&self) -> bool {
        self.shared.slots.fits::<M>()
    }

    /// The number of this executive.
    pub(crate) fn home(&self) -> u32 {
        self.shared.slots.home()
    }

    /// Has every decision told to the program.
    pub(crate) fn set_hooks(&self, hooks: Box<dyn Observer + Send>) {
        self.shared.lock.hold().core.observer.tap.hooks = Some(hooks);
    }

    /// What was recorded so far.
    pub(crate) fn trace(&self) -> Option<Trace> {
        let isps = task::whole(&self.shared.interrupts).procedures.iter().map(|isp| isp.name.clone()).collect();
        let state = self.shared.lock.hold();
        let mut trace = state.log.as_ref()?.trace(self.shared.backend, self.shared.envelopes);
        trace.tasks = state.core.observer.seats.iter().map(|seat| seat.name.clone()).collect();
        trace.timers = state.timers.iter().map(|seat| seat.name.clone()).collect();
        trace.isps = isps;
        Some(trace)
    }

    /// Calls by tasks that were not first though nothing was under way, in the last run.
    #[cfg(test)]
    pub(crate) fn violations(&self) -> u64 {
        self.shared.lock.hold().violations
    }
}

/// Where threads go: the CPUs, whether it is one, whether the caller named them, and the back-end's name.
fn placement(profile: Profile) -> (Option<CpuSet>, bool, bool, &'static str) {
    match profile {
        Profile::Up { cpu } => {
            let chosen = cpu.or_else(|| Host.affinity().0.last().copied());
            (chosen.map(|cpu| CpuSet(vec![cpu])), chosen.is_some(), cpu.is_some(), "thread_up")
        }
        Profile::Smp { cpus } => {
            let asked = !cpus.0.is_empty();
            (Some(cpus).filter(|_| asked), false, asked, "thread_smp")
        }
    }
}

impl Engine for Threads {
    fn call(&self, by: By, call: Call) -> Reply {
        let gives_back = matches!(call, Call::FreeBuffer { .. } | Call::Release { .. });
        let mut state = self.enter_for(by, gives_back);
        let reply = state.apply(by, call);
        self.leave(state, by, &call, reply)
    }

    fn send(&self, by: By, call: Call, message: Bytes<'_>) -> Reply {
        let mut state = self.enter(by);
        let reply = state.apply(by, call);
        if matches!(reply.status, Status::Ok | Status::Blocked) {
            // Under the lock, and before the receiver's word is set.
            self.shared.slots.write(reply.value, message);
        }
        self.leave(state, by, &call, reply)
    }

    unsafe fn take(&self, me: TaskId, envelope: u32, to: *mut u8, bytes: usize) {
        let mut state = self.enter(By::Task(me));
        // SAFETY: the caller's promise; the core handed the envelope to `me`, who has not taken it yet, and the lock is held.
        unsafe { self.shared.slots.read(envelope, to, bytes) };
        let reply = state.apply(By::Task(me), Call::Take);
        self.leave(state, By::Task(me), &Call::Take, reply);
    }

    fn started_with(&self, me: TaskId) -> u32 {
        self.shared.lock.hold().core.outcome(me).value
    }

    fn now(&self) -> Moment {
        monotonic()
    }

    fn work(&self, me: TaskId, span: Nanos) {
        let used = || Host.read(Clock::ThreadCpu);
        let begun = used();
        while used() - begun < span {
            self.preempt_point(me);
        }
    }

    fn preempt_point(&self, _me: TaskId) {
        let Some(place) = self.own() else { return };
        place.count();
        door::heed(place);
        place.park();
        door::heed(place);
    }

    fn create_task(
        &self,
        by: By,
        name: &str,
        priority: Priority,
        mailboxes: [u16; 4],
        body: TaskBody,
    ) -> Result<TaskId, Status> {
        self.make_task(by, name, priority, mailboxes, body)
    }

    fn delete_task(&self, by: By, task: TaskId) -> Reply {
        self.unmake_task(by, task)
    }

    fn create_timer(&self, by: By, name: &str, body: TimerBody) -> Result<TimerId, Status> {
        let mut state = self.enter(by);
        let timer = TimerId::from_number(accept(state.apply(by, Call::CreateTimer))?);
        let seat = TimerSeat { timer, name: name.to_owned(), body: Some(body) };
        // The body of a deleted timer is gone already.
        match state.timers.get_mut(timer.index()) {
            Some(old) => *old = seat,
            None => state.timers.push(seat),
        }
        self.shared.release(state);
        Ok(timer)
    }

    fn delete_timer(&self, by: By, timer: TimerId) -> Reply {
        let mut state = self.enter(by);
        let call = Call::DeleteTimer { timer };
        let reply = state.apply(by, call);
        let mut gone = None;
        if reply.status == Status::Ok
            && let Some(seat) = state.timers.get_mut(timer.index())
        {
            // None if this is called by the procedure itself: then it is dropped when it returns.
            gone = seat.body.take();
            seat.timer = TimerId::from_number(u32::MAX);
        }
        let reply = self.leave(state, by, &call, reply);
        drop(gone);
        reply
    }

    fn attach(&self, name: &str, source: Source, body: IspBody) -> Result<Isp, std::io::Error> {
        self.make_procedure(name, &source, body)
    }

    fn run(&self, limit: RunLimit) -> Finish {
        self.run_once(limit)
    }

    fn stop(&self, by: By) {
        let mut state = self.enter(by);
        state.end_run(crate::report::Stopped::Asked);
        // Nothing was asked of the core; what the killing led to is seen to on the way out.
        self.leave(state, by, &Call::Tick { now: Moment::START }, Status::Ok.into());
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if self.owner {
            self.close();
        }
    }
}
