//! The promises of the thread back-end. Each test ends within seconds, whatever goes wrong: every run has a limit.

mod cost;
mod ending;
mod interrupts;
mod nudges;
mod order;
mod runaway;
mod tasks;
mod timers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hairspring_exec_core::{By, Priority, TaskId};
use hairspring_machine::{CpuSet, Nanos};

use super::threads::Threads;
use crate::back_end::BackEnd;
use crate::calls::{CallSite, Caller, Create, IspCtx, TaskCtx};
use crate::config::{ExecConfig, ThreadProfile};
use crate::engine::{Engine, InterruptProcedure};
use crate::interrupt::Arrival;
use crate::report::{Finish, RunLimit};

const SECOND: Nanos = Nanos::from_secs(1);
/// Longer than any run of a test, short enough to wait for.
const LIMIT: RunLimit = RunLimit::For(Nanos::from_secs(10));

fn config() -> ExecConfig {
    ExecConfig { watchdog: Nanos::from_millis(200), ..ExecConfig::default() }
}

fn up() -> Threads {
    Threads::new(&config(), ThreadProfile::Up { cpu: None }).expect("an executive")
}

fn smp() -> Threads {
    Threads::new(&config(), ThreadProfile::Smp { cpus: CpuSet::default() }).expect("an executive")
}

/// Both profiles, one after the other.
fn both(check: impl Fn(Threads)) {
    check(up());
    check(smp());
}

/// Whether strict priority was granted; reports a skip if not.
fn strict(threads: &Threads, test: &str) -> bool {
    if let Some(refused) = threads.shared.refused.first() {
        testing::skip(test, refused);
        return false;
    }
    true
}

fn priority(number: u8) -> Priority {
    Priority::new(number).expect("0 to 63")
}

/// The program around the executive, which makes objects before a run.
struct Program<'t>(&'t Threads);

impl CallSite for Program<'_> {
    fn caller(&self) -> Caller<'_> {
        Caller { back_end: BackEnd::Other(self.0), by: By::Outside }
    }
}

impl Create for Program<'_> {}

/// A procedure that may make calls.
fn conforming(mut body: impl FnMut(&IspCtx<'_>, Arrival) + Send + 'static) -> InterruptProcedure<dyn Engine> {
    InterruptProcedure::Conforming(Box::new(move |engine, isp, arrival| {
        body(&IspCtx::new(BackEnd::Other(engine), isp), arrival);
    }))
}

/// A more urgent task that counts its wakes.
fn start_counting(threads: &Threads, wakes: &Count) -> TaskId {
    let ran = wakes.clone();
    start(threads, "high", 10, move |ctx| {
        while ctx.wait(crate::calls::Limit::Forever).is_ok() {
            ran.add();
        }
    })
}

/// Makes a task and starts it.
fn start(threads: &Threads, name: &str, number: u8, body: impl FnMut(&TaskCtx<'_>) + Send + 'static) -> TaskId {
    let task = make(threads, name, number, body);
    trigger(threads, task);
    task
}

fn make(threads: &Threads, name: &str, number: u8, body: impl FnMut(&TaskCtx<'_>) + Send + 'static) -> TaskId {
    Program(threads).task(name, priority(number), body).expect("a task")
}

fn trigger(threads: &Threads, task: TaskId) {
    use hairspring_exec_core::{Call, CallStatus};
    assert_eq!(threads.call(By::Outside, Call::Trigger { task }).status, CallStatus::Ok);
}

/// A number that tasks share with the test.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU64>);

impl Count {
    fn add(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
    fn set(&self, value: u64) {
        self.0.store(value, Ordering::SeqCst);
    }
    fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

#[track_caller]
fn clean(threads: &Threads, finish: &Finish) {
    assert!(finish.clean(), "{finish:?}");
    assert_eq!(threads.violations(), 0, "strict priority was violated");
    threads.shared.lock.hold().core.check().expect("the core is whole");
}
