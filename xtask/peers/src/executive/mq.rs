//! POSIX message queues and semaphores between pinned `SCHED_FIFO` threads, as C programs on Linux use them.
//!
//! A task is a thread that waits for a start; starts and wakes are semaphores (they count, a wake is not latched one
//! deep), mail is a queue of the kernel. libc and the kernel do all the work; this file makes no scheduling decisions.

use std::future::{Future, ready};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use hairspring_machine::{CpuSet, Host, Instant, Machine, Nanos, Policy, Refused};
use hairspring_sheet::Absent;
use hairspring_suite::executive::port::{
    Ability, Calls, Message, Placement, Port, RunOutcome, TaskUrgency, at_once, not_compared,
};
use hairspring_time::RealTime;

use super::number::{Never, Number};
use super::posix::{Queue, Semaphore};

/// Most tasks and most semaphores of a cell.
const SEATS: usize = 64;
/// Room of a mailbox; the system's own limit is 10.
const MAIL_ROOM: i64 = 8;
/// Real-time priority of a task of urgency 0.
const PRIORITY: u8 = 60;

struct Seat {
    starts: Semaphore,
    wakes: Semaphore,
    mail: OnceLock<Queue>,
}

struct Shared {
    seats: Vec<Seat>,
    semaphores: Vec<Semaphore>,
    /// Whether tasks should unwind.
    ended: AtomicBool,
    stopped: (Mutex<bool>, Condvar),
}

/// The threads and the objects that they wait for.
pub(crate) struct Mq {
    place: Placement,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    started: Vec<Number>,
    semaphores: usize,
}

/// A task's calls.
pub(crate) struct MqCalls<'k> {
    shared: &'k Shared,
    me: usize,
}

/// Panic payload that unwinds a task at the end of a run.
struct Ended;

impl Shared {
    /// After a wait: unwinds the task if the run is over.
    #[inline]
    fn go_on(&self) {
        // Acquire pairs with the Release in `Mq::end`.
        if self.ended.load(Ordering::Acquire) {
            resume_unwind(Box::new(Ended));
        }
    }
}

fn refusal(refused: &Refused) -> Absent {
    Absent::new(format!("the system refused to {}: {}", refused.attempted, refused.said), &refused.remedy)
}

impl Mq {
    /// Starts the thread of a task and waits until it has its CPU and priority.
    fn thread(
        &mut self,
        urgency: TaskUrgency,
        body: impl FnMut(&MqCalls<'_>) + Send + 'static,
    ) -> Result<usize, Absent> {
        let me = self.threads.len();
        if me == SEATS {
            return Err(Absent::final_("more tasks than this adapter has seats"));
        }
        let (shared, cpu) = (Arc::clone(&self.shared), self.place.cpu);
        let (report, placed) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
            let policy = Policy::Fifo(PRIORITY - urgency);
            let granted = Host.set_affinity(&CpuSet(vec![cpu])).and_then(|()| Host.set_policy(policy));
            let refused = granted.is_err();
            // The maker waits for it.
            let _ = report.send(granted);
            if refused {
                return;
            }
            let (calls, mut body) = (MqCalls { shared: &shared, me }, body);
            // Ends by unwinding out of a wait; a panic has been reported by then, and its proofs are missing.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                loop {
                    body(&calls);
                }
            }));
        });
        self.threads.push(thread.map_err(|error| Absent::final_(format!("failed to start a thread: {error}")))?);
        match placed.recv() {
            Ok(Ok(())) => Ok(me),
            Ok(Err(refused)) => Err(refusal(&refused)),
            Err(_) => Err(Absent::final_("a thread ended before it began")),
        }
    }

    /// Has all tasks unwind.
    fn end(&mut self) {
        // Release pairs with the Acquire in `go_on`.
        self.shared.ended.store(true, Ordering::Release);
        for seat in &self.shared.seats[..self.threads.len()] {
            seat.starts.post();
            seat.wakes.post();
            if let Some(mail) = seat.mail.get() {
                mail.release();
            }
        }
        self.shared.semaphores.iter().for_each(Semaphore::post);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Mq {
    fn drop(&mut self) {
        self.end();
    }
}

impl Port for Mq {
    type Task = Number;
    type Mail = Number;
    type Semaphore = Number;
    type Lock = Number;
    type Timer = Number;
    type Blocks = ();
    type Interrupt = Never;
    type Calls<'k> = MqCalls<'k>;
    type InterruptCalls<'k> = Never;

    fn make(place: Placement) -> Result<Self, Absent> {
        let seat = || Seat { starts: Semaphore::new(0), wakes: Semaphore::new(0), mail: OnceLock::new() };
        let shared = Shared {
            seats: (0..SEATS).map(|_| seat()).collect(),
            semaphores: (0..SEATS).map(|_| Semaphore::new(0)).collect(),
            ended: AtomicBool::new(false),
            stopped: (Mutex::new(false), Condvar::new()),
        };
        Ok(Self { place, shared: Arc::new(shared), threads: Vec::new(), started: Vec::new(), semaphores: 0 })
    }

    fn unable(ability: Ability) -> Option<Absent> {
        match ability {
            Ability::Trigger
            | Ability::Wake
            | Ability::PreemptsCaller
            | Ability::Yield
            | Ability::Mail
            | Ability::Semaphore => None,
            _ => Some(not_compared()),
        }
    }

    fn spawn<B>(&mut self, _name: &str, urgency: TaskUrgency, mut body: B) -> Result<Number, Absent>
    where
        B: for<'c, 'k> AsyncFnMut(&'c MqCalls<'k>) + Send + 'static,
    {
        let run = move |calls: &MqCalls<'_>| {
            calls.shared.seats[calls.me].starts.wait();
            calls.shared.go_on();
            at_once(body(calls));
        };
        self.thread(urgency, run).map(Number)
    }

    fn spawn_mail<B>(&mut self, _name: &str, urgency: TaskUrgency, mut body: B) -> Result<Number, Absent>
    where
        B: for<'c, 'k> AsyncFnMut(&'c MqCalls<'k>, Number, Message) + Send + 'static,
    {
        let queue = Queue::new(MAIL_ROOM).map_err(|error| {
            let remedy = "raise fs.mqueue.queues_max or RLIMIT_MSGQUEUE";
            Absent::new(format!("failed to make a message queue: {error}"), remedy)
        })?;
        if let Some(seat) = self.shared.seats.get(self.threads.len()) {
            // The next free seat.
            let _ = seat.mail.set(queue);
        }
        let run = move |calls: &MqCalls<'_>| {
            let own = Number(calls.me);
            let message = calls.receive_message(own);
            at_once(body(calls, own, message));
        };
        self.thread(urgency, run).map(Number)
    }

    fn start(&mut self, task: Number) -> Result<(), Absent> {
        self.started.push(task);
        Ok(())
    }

    fn semaphore(&mut self, count: u32) -> Result<Number, Absent> {
        let number = self.semaphores;
        let Some(semaphore) = self.shared.semaphores.get(number) else {
            return Err(Absent::final_("more semaphores than this adapter has"));
        };
        (0..count).for_each(|_| semaphore.post());
        self.semaphores += 1;
        Ok(Number(number))
    }

    fn run(&mut self, most: Nanos) -> RunOutcome {
        // Runs above all tasks and on their CPU while it starts them, so that they begin together.
        let above =
            RealTime { policy: Some(Policy::Fifo(PRIORITY + 1)), cpu: Some(self.place.cpu), ..RealTime::default() };
        let guard = above.apply(&Host);
        for task in self.started.drain(..) {
            self.shared.seats[task.0].starts.post();
        }
        drop(guard);
        let (flag, rung) = &self.shared.stopped;
        if let Ok(flag) = flag.lock() {
            drop(rung.wait_timeout_while(flag, Duration::try_from(most).unwrap_or_default(), |stopped| !*stopped));
        }
        self.end();
        RunOutcome::default()
    }
}

impl MqCalls<'_> {
    #[inline]
    fn receive_message(&self, own: Number) -> Message {
        let message = self.shared.seats[own.0].mail.get().map(Queue::receive).unwrap_or_default();
        self.shared.go_on();
        message
    }
}

impl Calls<Mq> for MqCalls<'_> {
    #[inline(always)]
    fn trigger(&self, task: Number) -> impl Future<Output = ()> {
        self.shared.seats[task.0].starts.post();
        ready(())
    }

    #[inline(always)]
    fn wait(&self) -> impl Future<Output = ()> {
        self.shared.seats[self.me].wakes.wait();
        self.shared.go_on();
        ready(())
    }

    #[inline(always)]
    fn wake(&self, task: Number) -> impl Future<Output = ()> {
        self.shared.seats[task.0].wakes.post();
        ready(())
    }

    /// `sched_yield`: queues behind all threads of the same priority.
    #[inline(always)]
    fn yield_now(&self) -> impl Future<Output = ()> {
        std::thread::yield_now();
        self.shared.go_on();
        ready(())
    }

    #[inline(always)]
    fn send(&self, mail: Number, message: Message) -> impl Future<Output = ()> {
        if let Some(queue) = self.shared.seats[mail.0].mail.get() {
            queue.send(message);
        }
        ready(())
    }

    #[inline(always)]
    fn receive(&self, own: Number) -> impl Future<Output = Message> {
        ready(self.receive_message(own))
    }

    #[inline(always)]
    fn give(&self, semaphore: Number) -> impl Future<Output = ()> {
        self.shared.semaphores[semaphore.0].post();
        ready(())
    }

    #[inline(always)]
    fn take(&self, semaphore: Number) -> impl Future<Output = ()> {
        self.shared.semaphores[semaphore.0].wait();
        self.shared.go_on();
        ready(())
    }

    fn lock(&self, _lock: Number) -> impl Future<Output = ()> {
        ready(())
    }

    fn unlock(&self, _lock: Number) -> impl Future<Output = ()> {
        ready(())
    }

    fn delay_until(&self, _at: Instant) -> impl Future<Output = ()> {
        ready(())
    }

    /// From here on each task unwinds at its next call; `run`, which continues now, wakes those that wait.
    fn stop(&self) -> impl Future<Output = ()> {
        // Release pairs with the Acquire in `go_on`.
        self.shared.ended.store(true, Ordering::Release);
        let (flag, rung) = &self.shared.stopped;
        if let Ok(mut flag) = flag.lock() {
            *flag = true;
        }
        rung.notify_all();
        ready(())
    }
}
