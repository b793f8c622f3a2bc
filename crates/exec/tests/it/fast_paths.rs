//! The short way of a call on fibers against the long one: random programs whose calls nearly all take the short way,
//! run twice.
//!
//! An executive that measures the usage of its tasks makes each call by the pure core. One that does not makes wakes,
//! waits, starts, ends, messages and units of semaphores by the core's fast paths, compiled into the task, and switches
//! without asking it again. Both must give the same outcomes in the same order. The tasks of a program draw their steps
//! from one source of random numbers, so the first difference in who runs, or in what a call returns, changes all that
//! follows.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use hairspring_exec::{
    Backend, Create, ExecConfig, Executive, Limit, Mailbox, Nanos, RunLimit, SemaphoreId, Services, StopReason,
    TaskCtx, TaskId, Urgency, WakeOutcome,
};

use crate::backends::{nth, priority, proof};

/// Tasks that wait and are woken, tasks that are started, tasks that get messages; the last one drives them all.
const WAITERS: u32 = 4;
const RUNNERS: u32 = 3;
const RECEIVERS: u32 = 3;
const ALL: u32 = WAITERS + RUNNERS + RECEIVERS;
/// Steps of one program.
const STEPS: u64 = 2_000;
/// One step in this many is of another kind, which leaves a wake, a start, a mark or mail behind for later steps.
const ODD_ONE_IN: u64 = 24;

/// State that the tasks of one program share. They run one at a time on one thread, so Relaxed does.
struct Program {
    random: AtomicU64,
    /// Everything that happened, in order.
    digest: AtomicU64,
    steps: AtomicU64,
    /// Wakes, starts, messages and units by the fast path. Waits and ends that it makes afterwards are not counted.
    short: AtomicU64,
    /// The state of each task: see below.
    states: [AtomicU8; ALL as usize],
    mail: [std::sync::OnceLock<Mailbox<u64>>; RECEIVERS as usize],
    semaphore: std::sync::OnceLock<SemaphoreId>,
}

const IDLE: u8 = 0;
const WAITS: u8 = 1;
const BUSY: u8 = 2;
/// Waits for a unit of the semaphore, for a letter.
const UNIT: u8 = 3;
const LETTER: u8 = 4;

impl Program {
    fn new(seed: u64) -> Arc<Self> {
        let states = [const { AtomicU8::new(IDLE) }; ALL as usize];
        let mail = [const { std::sync::OnceLock::new() }; RECEIVERS as usize];
        let (digest, steps, short) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let semaphore = std::sync::OnceLock::new();
        Arc::new(Self { random: AtomicU64::new(seed), digest, steps, short, states, mail, semaphore })
    }

    /// The next random number (SplitMix64).
    fn draw(&self) -> u64 {
        let state = self.random.load(Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random.store(state, Relaxed);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Logs an event, its task, and its result.
    fn note(&self, who: TaskId, what: u64, outcome: u64) {
        let event = u64::from(who.number()) << 40 ^ what << 32 ^ outcome;
        let digest = (self.digest.load(Relaxed) ^ event).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        self.digest.store(digest, Relaxed);
    }

    fn semaphore(&self) -> SemaphoreId {
        *self.semaphore.get().expect("set before the run")
    }

    /// The mailbox of a receiver.
    fn mailbox(&self, task: TaskId) -> Option<Mailbox<u64>> {
        let receiver = (task.index() as u32).checked_sub(WAITERS + RUNNERS)?;
        self.mail.get(receiver as usize).map(|mailbox| *mailbox.get().expect("set before the run"))
    }

    fn state(&self, task: u32) -> &AtomicU8 {
        &self.states[task as usize]
    }

    /// One step of a task: a call that acts on another task.
    fn step(&self, ctx: &TaskCtx<'_>) {
        if self.steps.fetch_add(1, Relaxed) + 1 == STEPS {
            ctx.stop();
        }
        let random = self.draw();
        let number = (random >> 8) as u32 % ALL;
        let task = nth(number);
        if random.is_multiple_of(ODD_ONE_IN) {
            let outcome = match random >> 20 & 7 {
                0 => code(ctx.wake(task)),
                1 => code(ctx.trigger(task)),
                2 => code(ctx.set_priority(task, priority(10 + (random >> 24) as u8 % 6))),
                3 => code(ctx.kill(task)),
                4 if task != ctx.id() => code(ctx.suspend(task)),
                5 => code(ctx.signal(task, 1)),
                // A task that stayed suspended would take part in nothing any more.
                _ => (0..ALL)
                    .map(|number| code(ctx.resume(nth(number))))
                    .fold(0, |all: u64, one| all.rotate_left(5) ^ one),
            };
            return self.note(ctx.id(), 10, outcome);
        }
        // Busy from now on: it may run only later.
        let state = self.state(number).swap(BUSY, Relaxed);
        let (is_short, outcome) = match (state, self.mailbox(task)) {
            (WAITS, _) => {
                let woken = ctx.wake(task);
                (woken == Ok(WakeOutcome::Now), code(woken))
            }
            (UNIT, _) => (false, code(ctx.signal_semaphore(self.semaphore()))),
            (IDLE | LETTER, Some(mailbox)) => {
                let sent = ctx.send(mailbox, Urgency::ALL[0], random);
                (sent.is_ok(), code(sent))
            }
            (IDLE, None) => {
                let started = ctx.trigger(task);
                (started.is_ok(), code(started))
            }
            // It is in the middle of something; it may be this very task.
            _ => self.alone(ctx, random >> 16),
        };
        self.short.fetch_add(u64::from(is_short), Relaxed);
        self.note(ctx.id(), u64::from(state), outcome);
    }

    /// A step that needs no other task. Returns whether it took the fast path, and its outcome.
    fn alone(&self, ctx: &TaskCtx<'_>, random: u64) -> (bool, u64) {
        let taken = match (random % 4, self.mailbox(ctx.id())) {
            (0, _) => code(ctx.wait_semaphore(self.semaphore(), Limit::NoWait)),
            (1, _) => code(ctx.signal_semaphore(self.semaphore())),
            (2, Some(own)) => {
                let sent = code(ctx.send(own, Urgency::ALL[0], random));
                let received = ctx.receive(own, None, Limit::NoWait);
                self.note(ctx.id(), 23, received.unwrap_or(0));
                sent ^ code(received)
            }
            _ => {
                ctx.yield_now();
                return (false, 0);
            }
        };
        (taken == 0, taken)
    }

    /// The run of a task: some steps, and waits between, if it is of those that wait.
    fn live(&self, ctx: &TaskCtx<'_>, waits: bool) {
        let me = self.state(ctx.id().index() as u32);
        let _over = Over { state: me };
        me.store(BUSY, Relaxed);
        self.note(ctx.id(), 20, 0);
        loop {
            for _ in 0..self.draw() % 3 {
                self.step(ctx);
            }
            if !waits || self.draw().is_multiple_of(5) {
                return;
            }
            let outcome = match (self.draw() % 4, self.mailbox(ctx.id())) {
                (0, _) => {
                    me.store(UNIT, Relaxed);
                    code(ctx.wait_semaphore(self.semaphore(), Limit::Forever))
                }
                (1, Some(own)) => {
                    me.store(LETTER, Relaxed);
                    let received = ctx.receive(own, None, Limit::Forever);
                    self.note(ctx.id(), 24, received.unwrap_or(0));
                    code(received)
                }
                _ => {
                    me.store(WAITS, Relaxed);
                    code(ctx.wait(Limit::Forever))
                }
            };
            me.store(BUSY, Relaxed);
            self.note(ctx.id(), 21, outcome);
        }
    }
}

/// The result of a call, as a number.
fn code<T: Debug, E: Debug>(result: Result<T, E>) -> u64 {
    let text = if let Err(error) = result { format!("{error:?}") } else { return 0 };
    text.bytes().fold(1, |code, byte| (code ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Marks the run of a task as over, in whatever way it ends.
struct Over<'p> {
    state: &'p AtomicU8,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.state.store(IDLE, Relaxed);
    }
}

/// Runs a program. Returns its events, and how many of its steps took the fast path.
fn run(seed: u64, measure_usage: bool) -> (u64, u64) {
    let config = ExecConfig { measure_usage, envelopes: 8, watchdog: Nanos::ZERO, ..ExecConfig::default() };
    let mut executive = Executive::new(Backend::fiber(), &config).expect("it can be made");
    let program = Program::new(seed);
    program.semaphore.set(executive.semaphore(1, 2).expect("few objects")).expect("set once");
    for number in 0..WAITERS + RUNNERS {
        let program = Arc::clone(&program);
        // Some are equals.
        let urgency = priority(10 + (number % 5) as u8);
        let task = executive.task("t", urgency, move |ctx| program.live(ctx, number < WAITERS)).expect("few objects");
        assert_eq!(task, nth(number));
    }
    for number in 0..RECEIVERS {
        let shared = Arc::clone(&program);
        let receiver =
            executive.mail_task("m", priority(9 + 2 * number as u8), [2, 0, 0, 0], move |ctx, _, letter: u64| {
                shared.note(ctx.id(), 22, letter);
                shared.live(ctx, letter.is_multiple_of(2));
            });
        program.mail[number as usize].set(receiver.expect("few objects")).expect("set once");
    }
    let shared = Arc::clone(&program);
    let driver = executive.task("driver", priority(40), move |ctx| {
        loop {
            shared.step(ctx);
        }
    });
    executive.trigger(driver.expect("few objects")).expect("it is idle");
    let finish = executive.run(RunLimit::Forever);
    assert_eq!(finish.stopped, StopReason::Asked, "{finish:?}");
    program.note(nth(ALL), 30, finish.mishaps.len() as u64 + finish.more_mishaps);
    (program.digest.load(Relaxed), program.short.load(Relaxed))
}

#[test]
fn the_short_way_of_a_call_comes_out_as_the_long_one() {
    let programs = proof(60, 8_000);
    let (mut short, mut different) = (0, None);
    for seed in 0..u64::from(programs) {
        let (fast, taken) = run(seed, false);
        short += taken;
        if (fast, taken) != run(seed, true) {
            different = different.or(Some(seed));
        }
    }
    println!("figure: wakes, starts, messages and units by the short way: {short}");
    assert_eq!(different, None, "the program with this seed comes out in two ways");
    assert!(short > u64::from(programs) * STEPS / 2, "only {short} calls of {programs} programs are short");
}
