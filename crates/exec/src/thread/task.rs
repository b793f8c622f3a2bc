//! The thread of a task: made with it, parked at once, one run after the other, ended when the task is deleted.

use std::sync::{Arc, Mutex};

use hairspring_exec_core::{By, Call, CallStatus, Ending, Priority, Reply, TaskId};
use hairspring_machine::Nanos;

use super::bands::policy_of;
use super::given::TaskThread;
use super::mirror::{Body, Seat};
use super::state::Phase;
use super::threads::Threads;
use crate::engine::{Ended, TaskProcedure, TaskStack, Unusual, in_full};
use crate::report::Misfortune;
use crate::system::scheduling::{own_number, set_policy_of, thread_name};
use crate::system::stack::own_stack;
use crate::system::sync::{AtomicU32, Ordering, sleep_while, wake_one, whole};

/// Stack beyond what the configuration gives the task's own code: what std's threads and a panic's message need.
const STACK_OVERHEAD_BYTES: usize = 64 * 1024;

impl Threads {
    pub(super) fn make_task(
        &self,
        by: By,
        name: &str,
        priority: Priority,
        mailboxes: [u16; 4],
        stack: TaskStack,
        body: TaskProcedure,
    ) -> Result<TaskId, CallStatus> {
        self.reap();
        let body: Arc<Body> = Arc::new(Mutex::new(Some(body)));
        let mut state = self.enter(by);
        let task = TaskId::from_number(state.apply(by, Call::CreateTask { priority, mailboxes }).result()?);
        let place = state.take_place();
        state.core.observer.seat(Seat {
            task,
            name: name.to_owned(),
            place,
            body: Arc::clone(&body),
            thread: None,
            stack: None,
            busy: false,
            may_run: false,
            awaiting: false,
            new: true,
            wanted: priority,
            applied: priority,
            demoted: false,
            abandoned: false,
            seen: (0, Nanos::ZERO),
        });
        self.shared.release(state);
        let started = Arc::new(AtomicU32::new(0));
        let threads = Threads { shared: Arc::clone(&self.shared), own: Some(place), owner: false };
        let tell = Arc::clone(&started);
        let code = Box::new(move || threads.live(task, &body, &tell));
        let usual = self.shared.stack_bytes;
        let spawned = TaskThread::start(thread_name(name), stack, usual, STACK_OVERHEAD_BYTES, code);
        let Ok(thread) = spawned else {
            let mut state = self.shared.lock.hold();
            state.apply(by, Call::DeleteTask { task });
            state.give_place(place);
            self.shared.release(state);
            return Err(CallStatus::TooMany);
        };
        // No other task knows this one yet, so none lets it run; but its thread must be there for its priority to be
        // set. It begins at its maker's priority, for which the maker waits. Acquire pairs with the Release in `live`.
        while started.load(Ordering::Acquire) == 0 {
            sleep_while(&started, 0, None);
        }
        let mut state = self.shared.lock.hold();
        if state.granted {
            set_policy_of(self.shared.places.at(place).thread(), policy_of(priority));
        }
        state.core.observer.seats[task.index()].thread = Some(thread);
        self.shared.release(state);
        Ok(task)
    }

    /// Body of a task's thread, from its start to the deletion of the task.
    fn live(self, me: TaskId, body: &Arc<Body>, started: &Arc<AtomicU32>) {
        let Some(place) = self.own() else { return };
        self.shared.take_cpus();
        place.settle_in(own_number());
        {
            let mut state = self.shared.lock.hold();
            state.core.observer.seats[me.index()].stack = own_stack();
        }
        // Release pairs with the Acquire in `make_task`.
        started.store(1, Ordering::Release);
        wake_one(started);
        loop {
            place.park();
            if place.is_dismissed() {
                break;
            }
            // Baseline of the watchdog.
            place.count();
            let ended = if place.is_killed() { Err(Unusual::killed()) } else { self.live_once(me, body) };
            let (how, text) = in_full(ended);
            self.end(me, how, text);
        }
        if let Some(number) = self.own {
            self.shared.lock.hold().give_place(number);
        }
    }

    fn live_once(&self, me: TaskId, body: &Body) -> Ended {
        // Out of its place while it runs: the thread that deletes the task finds it there, because the task is idle
        // then.
        let mut taken = whole(body).take();
        let ending = taken.as_mut().map_or(Ok(()), |procedure| procedure(self, me));
        *whole(body) = taken;
        ending
    }

    /// The end of a run.
    fn end(&self, me: TaskId, how: Ending, text: Option<String>) {
        let Some(place) = self.own() else { return };
        let mut state = self.shared.lock.hold();
        let how = if how == Ending::Returned && place.is_killed() { Ending::Killed } else { how };
        let call = Call::End { how };
        let reply = state.apply(By::Task(me), call);
        if how != Ending::Returned && state.phase == Phase::Running {
            state.mishap(me, Misfortune::Ended(how, text.unwrap_or_default()));
        }
        if reply.status == CallStatus::ResourceHeld {
            state.mishap(me, Misfortune::HeldResources);
        }
        let granted = state.granted;
        let seat = &mut state.core.observer.seats[me.index()];
        if std::mem::take(&mut seat.demoted) && granted {
            set_policy_of(place.thread(), policy_of(seat.wanted));
            seat.applied = seat.wanted;
        }
        self.depart(state, By::Task(me), &call, reply);
    }

    pub(super) fn unmake_task(&self, by: By, task: TaskId) -> Reply {
        let mut state = self.enter(by);
        let call = Call::DeleteTask { task };
        let reply = state.apply(by, call);
        let (mut body, mut on_memory) = (None, None);
        if reply.status == CallStatus::Ok
            && let Some(seat) = state.core.observer.seat_of(task)
        {
            body = Some(Arc::clone(&seat.body));
            let (place, thread) = (seat.place, seat.thread.take());
            self.shared.places.at(place).dismiss();
            state.core.observer.owe(place, u8::MAX);
            match thread {
                // Its memory is the program's again when this returns.
                Some(thread) if thread.is_on_memory() => on_memory = Some(thread),
                thread => state.ended_threads.extend(thread),
            }
        }
        let reply = self.leave(state, by, &call, reply);
        if let Some(body) = body {
            // The captured values are dropped here, by the thread that deletes the task, and not under any lock.
            let captured = whole(&body).take();
            drop(captured);
        }
        if let Some(thread) = on_memory {
            thread.join();
        }
        reply
    }

    /// Joins threads of deleted tasks that have ended.
    fn reap(&self) {
        let mut state = self.shared.lock.hold();
        let (ended, rest): (Vec<_>, Vec<_>) = state.ended_threads.drain(..).partition(TaskThread::is_over);
        state.ended_threads = rest;
        drop(state);
        ended.into_iter().for_each(TaskThread::join);
    }
}
