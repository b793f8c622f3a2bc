//! Bare threads behind the port: pinned, `SCHED_FIFO`, each asleep on one futex word. The reference for the cost of the
//! kernel alone.
//!
//! `std::thread::park` is on Linux one futex word for each thread: `unpark` sets it and wakes the sleeper. Services
//! that bare threads lack (starts and ends, messages, timers with procedures) are absent.

use std::future::{Future, ready};
use std::io::{PipeWriter, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, mpsc};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use hairspring_machine::{Cpu, CpuSet, Host, Instant, Machine, Nanos, Policy, Refused};
use hairspring_sheet::Absent;

use super::{
    Ability, Calls, InterruptCalls, InterruptTrigger, Message, Placement, Port, RunOutcome, TaskUrgency, at_once,
};

/// Most tasks.
const TASKS_MOST: usize = 32;
/// The kernel's priority of urgency 0; each step of urgency is one step.
const PRIORITY_MOST: u8 = 80;
/// The priority of a thread that waits for an interrupt: above all tasks.
const PRIORITY_INTERRUPT: u8 = 88;

/// A task before its thread is started.
type Body = Box<dyn FnOnce(&BareCalls) + Send>;

/// State that all threads of one run share.
struct Shared {
    threads: [OnceLock<Thread>; TASKS_MOST],
    /// Whether the tasks may begin. They are all woken at once: the first of several could keep the waker off its CPU.
    open: Mutex<bool>,
    opened: Condvar,
    /// Set when the tasks should unwind.
    ending: AtomicBool,
}

/// Bare threads, without an executive.
pub struct Bare {
    place: Placement,
    shared: Arc<Shared>,
    tasks: Vec<(TaskUrgency, Body)>,
    started: Vec<usize>,
    procedures: Vec<(PipeWriter, JoinHandle<()>)>,
}

/// A task's calls.
pub struct BareCalls {
    shared: Arc<Shared>,
    stop: mpsc::Sender<()>,
}

/// The writing end of the pipe that a procedure's thread reads from.
#[derive(Clone)]
pub struct Pipe(Arc<PipeWriter>);

impl InterruptTrigger for Pipe {
    #[inline]
    fn fire(&self) {
        drop(self.0.as_ref().write(&[1]));
    }
}

/// The payload with which a task unwinds when the run is over.
struct Over;

fn place_thread(cpu: Cpu, priority: u8) -> Result<(), Refused> {
    Host.set_affinity(&CpuSet(vec![cpu]))?;
    Host.set_policy(Policy::Fifo(priority))
}

fn na(what: &str) -> Absent {
    Absent::final_(format!("n/a on bare threads: {what}"))
}

impl Shared {
    fn wait_until_open(&self) {
        let Ok(mut open) = self.open.lock() else { return };
        while !*open {
            open = match self.opened.wait(open) {
                Ok(open) => open,
                Err(_) => return,
            };
        }
    }

    fn let_begin(&self) {
        if let Ok(mut open) = self.open.lock() {
            *open = true;
        }
        self.opened.notify_all();
    }
}

impl Bare {
    fn spawn_thread(
        &self,
        index: usize,
        urgency: TaskUrgency,
        body: Body,
        stop: mpsc::Sender<()>,
        ready: mpsc::Sender<Result<(), Refused>>,
    ) -> std::io::Result<JoinHandle<()>> {
        let (shared, cpu) = (Arc::clone(&self.shared), self.place.cpu);
        std::thread::Builder::new().name(format!("bare {index}")).spawn(move || {
            let _ = shared.threads[index].set(std::thread::current());
            let placed = place_thread(cpu, PRIORITY_MOST - urgency.min(63));
            let _ = ready.send(placed);
            shared.wait_until_open();
            let calls = BareCalls { shared, stop };
            let outcome = catch_unwind(AssertUnwindSafe(|| body(&calls)));
            if let Err(payload) = outcome
                && !payload.is::<Over>()
            {
                resume_unwind(payload);
            }
        })
    }
}

impl Port for Bare {
    type Task = usize;
    type Mail = ();
    type Semaphore = ();
    type Lock = ();
    type Timer = ();
    type Blocks = ();
    type Interrupt = Pipe;
    type Calls<'k> = BareCalls;
    type InterruptCalls<'k> = ();

    fn make(place: Placement) -> Result<Self, Absent> {
        let shared = Shared {
            threads: std::array::from_fn(|_| OnceLock::new()),
            open: Mutex::new(false),
            opened: Condvar::new(),
            ending: AtomicBool::new(false),
        };
        Ok(Self { place, shared: Arc::new(shared), tasks: Vec::new(), started: Vec::new(), procedures: Vec::new() })
    }

    fn unable(ability: Ability) -> Option<Absent> {
        Some(na(match ability {
            Ability::Wake
            | Ability::PreemptsCaller
            | Ability::Yield
            | Ability::Delay
            | Ability::Priority
            | Ability::RawInterrupt => return None,
            Ability::Trigger => "a thread begins once and its end is final",
            Ability::Mail => "they have no mailboxes",
            Ability::Semaphore => "std has no semaphore",
            Ability::InheritingLock => "std has no lock with inheritance",
            Ability::Timer | Ability::Tick => "they have no timers with procedures",
            Ability::Interrupt => "only a thread that waits for a descriptor can serve it; see T1 and T2",
            Ability::Blocks => "they have no pools",
            Ability::LockTime | Ability::PollTime => "there is no executive that could keep others out",
        }))
    }

    fn remarks() -> Vec<String> {
        vec![
            "pthread_futex is std::thread::park and unpark on pinned SCHED_FIFO threads: one futex word for each."
                .to_owned(),
        ]
    }

    fn spawn<B>(&mut self, _name: &str, urgency: TaskUrgency, mut body: B) -> Result<usize, Absent>
    where
        B: for<'c, 'k> AsyncFnMut(&'c BareCalls) + Send + 'static,
    {
        if self.tasks.len() == TASKS_MOST {
            return Err(Absent::final_(format!("bare threads are limited to {TASKS_MOST}")));
        }
        self.tasks.push((urgency, Box::new(move |calls| at_once(body(calls)))));
        Ok(self.tasks.len() - 1)
    }

    fn spawn_mail<B>(&mut self, _name: &str, _urgency: TaskUrgency, _body: B) -> Result<(), Absent>
    where
        B: for<'c, 'k> AsyncFnMut(&'c BareCalls, (), Message) + Send + 'static,
    {
        Err(na("they have no mailboxes"))
    }

    fn start(&mut self, task: usize) -> Result<(), Absent> {
        self.started.push(task);
        Ok(())
    }

    fn semaphore(&mut self, _count: u32) -> Result<(), Absent> {
        Ok(())
    }

    fn lock(&mut self) -> Result<(), Absent> {
        Ok(())
    }

    fn blocks(&mut self, _count: u16) -> Result<(), Absent> {
        Ok(())
    }

    fn timer(&mut self, _procedure: impl FnMut() + Send + 'static) -> Result<(), Absent> {
        Ok(())
    }

    fn attach_raw(&mut self, mut procedure: impl FnMut() + Send + 'static) -> Result<Pipe, Absent> {
        let failed = |error: std::io::Error| Absent::final_(format!("failed to attach a procedure: {error}"));
        let (mut reader, writer) = std::io::pipe().map_err(failed)?;
        let end = writer.try_clone().map_err(failed)?;
        let cpu = self.place.cpu;
        let (placed, ready) = mpsc::channel();
        let thread = std::thread::Builder::new().name("bare isp".to_owned()).spawn(move || {
            // The tasks report a refusal.
            let _ = place_thread(cpu, PRIORITY_INTERRUPT);
            let _ = placed.send(());
            let mut byte = [0];
            // A zero ends it.
            while matches!(reader.read(&mut byte), Ok(1)) && byte[0] == 1 {
                procedure();
            }
        });
        self.procedures.push((end, thread.map_err(failed)?));
        let _ = ready.recv();
        Ok(Pipe(Arc::new(writer)))
    }

    fn attach<R>(&mut self, _procedure: R) -> Result<Pipe, Absent>
    where
        R: for<'c, 'k> FnMut(&'c ()) + Send + 'static,
    {
        Err(na("only a thread that waits for a descriptor can serve it"))
    }

    fn run(&mut self, most: Nanos) -> RunOutcome {
        let (stop, stopped) = mpsc::channel();
        let (ready, placed) = mpsc::channel();
        let tasks = std::mem::take(&mut self.tasks);
        let mut threads = Vec::new();
        let mut outcome = RunOutcome::default();
        for (index, (urgency, body)) in tasks.into_iter().enumerate().filter(|(index, _)| self.started.contains(index))
        {
            let thread = self.spawn_thread(index, urgency, body, stop.clone(), ready.clone());
            match (thread, &mut outcome.void) {
                (Ok(thread), _) => threads.push(thread),
                (Err(error), void) => *void = Some(Absent::final_(format!("failed to start a thread: {error}"))),
            }
        }
        drop((stop, ready));
        for _ in &threads {
            if let Ok(Err(refused)) = placed.recv() {
                let reason = format!("the system refused to {}: {}", refused.attempted, refused.said);
                outcome.void = Some(Absent::new(reason, refused.remedy));
            }
        }
        if outcome.void.is_some() {
            // Relaxed: the unpark that follows orders it.
            self.shared.ending.store(true, Ordering::Relaxed);
        }
        self.shared.let_begin();
        if outcome.void.is_none() {
            let most = Duration::from_nanos(u64::try_from(most.count()).unwrap_or(0));
            let _ = stopped.recv_timeout(most);
        }
        self.shared.ending.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.thread().unpark();
            if thread.join().is_err() {
                outcome.void = Some(Absent::final_("a thread panicked"));
            }
        }
        outcome
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        for (mut writer, thread) in self.procedures.drain(..) {
            let _ = writer.write(&[0]);
            let _ = thread.join();
        }
    }
}

impl BareCalls {
    /// Unwinds if the run is over. Relaxed: a late check ends the thread at its next call.
    #[inline(always)]
    fn go_on(&self) {
        if self.shared.ending.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Over));
        }
    }
}

impl Calls<Bare> for BareCalls {
    #[inline(always)]
    fn trigger(&self, _task: usize) -> impl Future<Output = ()> {
        ready(())
    }

    #[inline(always)]
    fn wait(&self) -> impl Future<Output = ()> {
        std::thread::park();
        self.go_on();
        ready(())
    }

    #[inline(always)]
    fn wake(&self, task: usize) -> impl Future<Output = ()> {
        if let Some(thread) = self.shared.threads[task].get() {
            thread.unpark();
        }
        ready(())
    }

    #[inline(always)]
    fn yield_now(&self) -> impl Future<Output = ()> {
        std::thread::yield_now();
        self.go_on();
        ready(())
    }

    #[inline(always)]
    fn preempt_point(&self) -> impl Future<Output = ()> {
        self.go_on();
        ready(())
    }

    fn send(&self, _mail: (), _message: Message) -> impl Future<Output = ()> {
        ready(())
    }

    fn receive(&self, _own: ()) -> impl Future<Output = Message> {
        ready([0; 3])
    }

    fn give(&self, _semaphore: ()) -> impl Future<Output = ()> {
        ready(())
    }

    fn take(&self, _semaphore: ()) -> impl Future<Output = ()> {
        ready(())
    }

    fn lock(&self, _lock: ()) -> impl Future<Output = ()> {
        ready(())
    }

    fn unlock(&self, _lock: ()) -> impl Future<Output = ()> {
        ready(())
    }

    #[inline(always)]
    fn delay_until(&self, at: Instant) -> impl Future<Output = ()> {
        Host.sleep_until(at);
        self.go_on();
        ready(())
    }

    fn stop(&self) -> impl Future<Output = ()> {
        // Set by the task, because tasks that keep yielding would keep another thread off its CPU. Relaxed, as in
        // `go_on`.
        self.shared.ending.store(true, Ordering::Relaxed);
        let _ = self.stop.send(());
        ready(())
    }
}

impl InterruptCalls<Bare> for () {
    fn wake(&self, _task: usize) {}

    fn give(&self, _semaphore: ()) {}
}
