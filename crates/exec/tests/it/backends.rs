//! The test bench: the list of back-ends, a program that logs its actions, and one check for all back-ends.

use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use hairspring_exec::{
    Backend, Create, Ending, ExecConfig, Executive, Finish, InterruptSource, Isp, Limit, Mailbox, Misfortune, Priority,
    RunLimit, Services, TaskCtx, TaskId, Urgency,
};
use hairspring_machine::sim::Script;
use hairspring_machine::{Nanos, Sim};

/// Longer than any run of a test, short enough to wait for. In virtual time it costs nothing.
pub(crate) const LIMIT: RunLimit = RunLimit::For(Nanos::from_secs(20));

/// A task's mailbox that is never full in these tests.
pub(crate) const ROOM: [u16; 4] = [8, 8, 8, 8];

/// Every back-end that must give the same log: those that promise strict priority. The one place where they are listed.
pub(crate) fn all() -> Vec<Backend> {
    let mut all = vec![sim(), Backend::fiber()];
    let strict = Executive::new(Backend::thread_up(), &ExecConfig::default()).map(|mut threads| threads.run(LIMIT));
    match strict {
        Ok(finish) if finish.strict => all.push(Backend::thread_up()),
        Ok(finish) => skip(&format!("threads: {}", finish.refused.iter().map(ToString::to_string).collect::<String>())),
        Err(error) => skip(&error.to_string()),
    }
    all
}

/// While it lives, no other test runs threads at real-time priority: two executives on one CPU would be in each other's
/// way, and the kernel throttles both.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A quiet simulated machine.
pub(crate) fn sim() -> Backend {
    Backend::Sim(Sim::new(Script::default()))
}

/// The two back-ends of this crate's own switching.
pub(crate) fn sim_and_fiber() -> [Backend; 2] {
    [sim(), Backend::fiber()]
}

/// Reports that the test (or a part of it) cannot run here, in the form that `cargo xtask test` counts.
pub(crate) fn skip(reason: &str) {
    testing::skip(std::thread::current().name().unwrap_or("a test"), reason);
}

/// Number of cases of a test with random ones: few in the ordinary tests, many in the proofs.
#[expect(clippy::print_stdout, reason = "a figure of a proof; the harness captures it in an ordinary run")]
pub(crate) fn proof(few: u32, many: u32) -> u32 {
    let cases = if std::env::var_os("HAIRSPRING_PROOF").is_some() { many } else { few };
    println!("figure: random cases: {cases}");
    cases
}

/// Keeps panics whose message contains "on purpose" off standard error.
pub(crate) fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !panic.payload_as_str().is_some_and(|text| text.contains("on purpose")) {
                before(panic);
            }
        }));
    });
}

/// Panics in the way that [`hush`] keeps quiet.
pub(crate) fn panic_on_purpose() -> ! {
    panic!("on purpose")
}

/// A log of events, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, what: impl Display) {
        // Held by no task across a call: a task that unwinds while another holds it would poison it.
        self.0.lock().expect("nobody panics while noting").push(what.to_string());
    }

    /// Notes a result in the words of its type.
    pub(crate) fn tell(&self, what: &str, result: impl std::fmt::Debug) {
        self.note(format!("{what}:{result:?}").replace(' ', ""));
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().expect("nobody panics while noting").join(" ")
    }

    /// A value that notes when it is dropped.
    pub(crate) fn on_drop(&self, what: &'static str) -> OnDrop {
        OnDrop { log: self.clone(), what }
    }
}

/// See [`Log::on_drop`].
pub(crate) struct OnDrop {
    log: Log,
    what: &'static str,
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.log.note(self.what);
    }
}

/// Runs a piece of code when it is dropped: a destructor that makes calls.
pub(crate) struct AtEnd<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// An executive and the log of what its tasks do.
pub(crate) struct Bench {
    pub(crate) executive: Executive,
    pub(crate) log: Log,
}

impl Bench {
    pub(crate) fn new(backend: Backend, config: &ExecConfig) -> Self {
        Self { executive: Executive::new(backend, config).expect("an executive"), log: Log::default() }
    }

    /// Makes a task.
    pub(crate) fn task(
        &self,
        name: &str,
        number: u8,
        mut body: impl FnMut(&TaskCtx<'_>, &Log) + Send + 'static,
    ) -> TaskId {
        let log = self.log.clone();
        self.executive.task(name, priority(number), move |ctx| body(ctx, &log)).expect("a task")
    }

    /// Makes a task and triggers it.
    pub(crate) fn start(
        &self,
        name: &str,
        number: u8,
        body: impl FnMut(&TaskCtx<'_>, &Log) + Send + 'static,
    ) -> TaskId {
        let task = self.task(name, number, body);
        self.executive.trigger(task).expect("it exists");
        task
    }

    /// Makes a task that is started by mail.
    pub(crate) fn mail_task<M: Copy + Send + 'static>(
        &self,
        name: &str,
        number: u8,
        capacities: [u16; 4],
        mut body: impl FnMut(&TaskCtx<'_>, &Log, Mailbox<M>, M) + Send + 'static,
    ) -> Mailbox<M> {
        let log = self.log.clone();
        let body = move |ctx: &TaskCtx<'_>, mailbox: Mailbox<M>, message: M| body(ctx, &log, mailbox, message);
        self.executive.mail_task(name, priority(number), capacities, body).expect("a task")
    }

    /// A software interrupt whose procedure runs at the next look, whatever the back-end.
    pub(crate) fn isp(
        &mut self,
        mut procedure: impl FnMut(&hairspring_exec::IspCtx<'_>, &Log) + Send + 'static,
    ) -> Isp {
        let log = self.log.clone();
        let procedure = move |ctx: &hairspring_exec::IspCtx<'_>, _| procedure(ctx, &log);
        self.executive.attach("software", InterruptSource::Software, procedure).expect("software needs nothing")
    }

    /// Runs, and notes how it ended.
    pub(crate) fn run(&mut self) -> Finish {
        self.run_for(LIMIT)
    }

    pub(crate) fn run_for(&mut self, limit: RunLimit) -> Finish {
        let finish = self.executive.run(limit);
        self.log.note(format!("= {}", summary(&finish)));
        finish
    }
}

/// How a run ended, without its times.
pub(crate) fn summary(finish: &Finish) -> String {
    let mut text = format!("{:?}", finish.stopped);
    for mishap in &finish.mishaps {
        text += &match &mishap.what {
            Misfortune::Ended(Ending::Panicked, why) => format!(" {}:panicked({why})", mishap.name),
            Misfortune::Ended(how, _) => format!(" {}:{how:?}", mishap.name),
            Misfortune::HeldResources => format!(" {}:held", mishap.name),
            Misfortune::RanAway(_) => format!(" {}:ran_away", mishap.name),
        };
    }
    if finish.interrupts_lost > 0 {
        text += &format!(" lost {}", finish.interrupts_lost);
    }
    text
}

/// Sets a program up on every back-end, runs it, and compares the log (words separated by blanks) with the one
/// expected.
#[track_caller]
pub(crate) fn check(expected: &str, set_up: impl Fn(&mut Bench)) {
    check_with(&ExecConfig::default(), expected, |bench| {
        set_up(bench);
        bench.run();
    });
}

/// The same for a program that is configured and run in its own way.
#[track_caller]
pub(crate) fn check_with(config: &ExecConfig, expected: &str, program: impl Fn(&mut Bench)) {
    check_on(all(), config, expected, program);
}

/// The same on these back-ends.
#[track_caller]
pub(crate) fn check_on(
    backends: impl IntoIterator<Item = Backend>,
    config: &ExecConfig,
    expected: &str,
    program: impl Fn(&mut Bench),
) {
    hush();
    let expected = expected.split_whitespace().collect::<Vec<_>>().join(" ");
    for backend in backends {
        let name = backend.name();
        let _alone = name.starts_with("thread").then(alone);
        let mut bench = Bench::new(backend, config);
        program(&mut bench);
        let noted = bench.log.text();
        assert_eq!(noted, expected, "on {name}");
    }
}

pub(crate) fn priority(number: u8) -> Priority {
    Priority::new(number).expect("0 to 63")
}

pub(crate) fn urgency(number: u8) -> Urgency {
    Urgency::new(number).expect("0 to 3")
}

/// The task that is made as the n-th, counted from 0: for tasks that name one made after them.
pub(crate) fn nth(number: u32) -> TaskId {
    TaskId::from_number(number)
}

pub(crate) const FOREVER: Limit = Limit::Forever;

pub(crate) fn micros(count: i64) -> Nanos {
    Nanos::from_micros(count)
}
