//! Proofs of the executive on this machine: preemption before the call returns, periodic timers without drift, and
//! priority inversion with and without its remedy.

pub(crate) mod mutants;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hairspring_exec::{
    Backend, Create, ExecConfig, Executive, Finish, Limit, Nanos, Priority, ResourceProtocol, RunLimit, Services, Sim,
    TaskId,
};
use hairspring_machine::sim::Script;
use serde_json::{Map, Value, json};

use super::{Verdict, order_statistics, placement};

/// The proof could not be set up.
fn defect(what: impl ToString) -> Verdict {
    Verdict { passed: false, figures: Map::from_iter([("defect".to_owned(), json!(what.to_string()))]) }
}

fn priority(number: u8) -> Priority {
    Priority::new(number).unwrap_or(Priority::LOWEST)
}

/// Checks that each wake of a more urgent task by a less urgent one runs that task before the call returns.
pub(crate) fn preemption(count: u64) -> Verdict {
    let mut figures = Map::new();
    let mut passed = true;
    for backend in [Backend::fiber(), Backend::thread_up()] {
        let name = backend.name();
        match wakes(backend, count) {
            Ok((proved, finish)) => {
                figures.insert(
                    format!("{name}: wakes, and those preempted before the call returned"),
                    json!([count, proved]),
                );
                figures.insert(format!("{name}: strict priority"), json!(finish.strict));
                passed &= proved == count && finish.strict;
            }
            Err(error) => return defect(error),
        }
    }
    Verdict { passed, figures }
}

fn wakes(backend: Backend, count: u64) -> Result<(u64, Finish), Box<dyn std::error::Error>> {
    let mut executive = Executive::new(backend, &ExecConfig::default())?;
    let word = Arc::new(AtomicU64::new(0));
    let proved = Arc::new(AtomicU64::new(0));
    let written = Arc::clone(&word);
    let urgent = executive.task("urgent", priority(10), move |ctx| {
        while ctx.wait(Limit::Forever).is_ok() {
            // Relaxed: both tasks share a CPU, and the executive orders them.
            written.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    let seen = Arc::clone(&proved);
    let low = executive.task("low", priority(20), move |ctx| {
        for wake in 1..=count {
            let woken = ctx.wake(urgent);
            let ran = word.load(Ordering::Relaxed) == wake;
            seen.fetch_add(u64::from(ran && woken.is_ok()), Ordering::Relaxed);
        }
        ctx.stop();
    })?;
    executive.trigger(urgent)?;
    executive.trigger(low)?;
    let finish = executive.run(RunLimit::For(Nanos::from_secs(120)));
    Ok((proved.load(Ordering::Relaxed), finish))
}

/// Expiries of a timer: its deadlines, and how late its procedure ran.
#[derive(Default)]
struct Expiries {
    off_the_grid: u64,
    early: u64,
    missed: u64,
    late_ns: Vec<i64>,
}

/// Checks that a periodic timer keeps to `t0 + n·p`: exactly on Sim over many periods, and on the host for a while.
pub(crate) fn periodic_timer(seconds: i64) -> Verdict {
    let mut figures = Map::new();
    let periods = 100_000;
    let sim = Backend::Sim(Sim::new(Script::default()));
    let simulated = match expiries(sim, Nanos::from_millis(1), Nanos::from_millis(periods)) {
        Ok(simulated) => simulated,
        Err(error) => return defect(error),
    };
    figures.insert("sim: periods of 1 ms".to_owned(), json!(simulated.late_ns.len()));
    figures.insert("sim: off the grid, early, missed".to_owned(), counts(&simulated));
    let mut passed = simulated.late_ns.len() as i64 == periods && (simulated.off_the_grid, simulated.early) == (0, 0);
    for backend in [Backend::fiber(), Backend::thread_up()] {
        let name = backend.name();
        let mut taken = match expiries(backend, Nanos::from_millis(1), Nanos::from_secs(seconds)) {
            Ok(taken) => taken,
            Err(error) => return defect(error),
        };
        passed &= (taken.off_the_grid, taken.early) == (0, 0) && taken.late_ns.len() >= 2_000;
        let ends = 1_000.min(taken.late_ns.len() / 2);
        let last = order_statistics::figures(&mut taken.late_ns.split_off(taken.late_ns.len() - ends));
        let first = order_statistics::figures(&mut taken.late_ns[..ends]);
        // The phase does not drift by more than a wake-up: the last thousand are as late as the first thousand.
        passed &= last["median_ns"].as_i64() <= first["p99_ns"].as_i64();
        figures.insert(format!("{name}: {seconds} s of 1 ms, off the grid, early, missed"), counts(&taken));
        figures.insert(format!("{name}: lateness of the first {ends}"), first);
        figures.insert(format!("{name}: lateness of the last {ends}"), last);
    }
    Verdict { passed, figures }
}

fn counts(expiries: &Expiries) -> Value {
    json!([expiries.off_the_grid, expiries.early, expiries.missed])
}

fn expiries(backend: Backend, period: Nanos, span: Nanos) -> Result<Expiries, Box<dyn std::error::Error>> {
    let mut executive = Executive::new(backend, &ExecConfig::default())?;
    let all = Arc::new(Mutex::new(Expiries::default()));
    let first = executive.now() + Nanos::new(1_000_000);
    let last = first + span - period;
    let kept = Arc::clone(&all);
    let timer = executive.timer("periodic", move |ctx, expiry| {
        let now = ctx.now();
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let off = (expiry.deadline - first).count() % period.count();
        kept.off_the_grid += u64::from(off != 0);
        kept.early += u64::from(now < expiry.deadline);
        kept.missed += expiry.missed;
        let late_ns = (now - expiry.deadline).count();
        kept.late_ns.push(late_ns);
        if expiry.deadline >= last {
            ctx.stop();
        }
    })?;
    executive.start_periodic(timer, first, period)?;
    executive.run(RunLimit::For(span + Nanos::from_secs(10)));
    Ok(std::mem::take(&mut *all.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Compares the lateness of our periodic timer with cyclictest's on the same kernel, one after the other. Without
/// cyclictest the proof reports that and does not fail.
pub(crate) fn cyclictest(seconds: i64) -> Verdict {
    let mut figures = Map::new();
    // As Debian's rt-tests has it: one thread on the last CPU, 1 ms, SCHED_FIFO 80, idle states as the system has them.
    let cpu = placement::last_cpu().0.to_string();
    let loops = (seconds * 1_000).to_string();
    let arguments = ["-q", "-m", "-p", "80", "-i", "1000", "-t", "1", "-a", &cpu, "-l", &loops, "--default-system"];
    let output = match std::process::Command::new("cyclictest").args(arguments).output() {
        Ok(output) => output,
        Err(error) => {
            figures.insert("not compared".to_owned(), json!(format!("cyclictest: {error}; install rt-tests")));
            return Verdict { passed: true, figures };
        }
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let field = |name: &str| {
        let after = said.split(name).nth(1)?;
        after.split_whitespace().next()?.parse::<i64>().ok()
    };
    let Some(average_us) = field("Avg:") else { return defect(format!("cyclictest said: {said}")) };
    let mut ours = match expiries(Backend::thread_up(), Nanos::from_millis(1), Nanos::from_secs(seconds)) {
        Ok(ours) => ours,
        Err(error) => return defect(error),
    };
    let mean_ns = ours.late_ns.iter().sum::<i64>() / ours.late_ns.len().max(1) as i64;
    figures.insert("cyclictest: min, average, max in µs".to_owned(), json!([field("Min:"), average_us, field("Max:")]));
    figures.insert("ours, thread_up timer: mean in ns".to_owned(), json!(mean_ns));
    figures.insert("ours, thread_up timer".to_owned(), order_statistics::figures(&mut ours.late_ns));
    // The machine changes between two programs, so only the same order of magnitude is required.
    let ratio = mean_ns as f64 / (average_us.max(1) as f64 * 1_000.0);
    figures.insert("ours over cyclictest".to_owned(), json!((ratio * 100.0).round() / 100.0));
    Verdict { passed: (0.2..5.0).contains(&ratio) && ours.early == 0, figures }
}

/// Measures how long an urgent task waits for a resource that a low task holds while a middle task computes. With the
/// remedies it waits no longer than the low task holds the resource; without them it waits as long as the middle task
/// computes.
pub(crate) fn inversion() -> Verdict {
    let mut figures = Map::new();
    let mut passed = true;
    let (hold, compute) = (Nanos::from_millis(5), Nanos::from_millis(50));
    figures.insert("low holds for, middle computes for".to_owned(), json!([hold.to_string(), compute.to_string()]));
    for (name, protocol, cured) in [
        ("none", ResourceProtocol::None, false),
        ("inherit", ResourceProtocol::Inherit, true),
        ("ceiling", ResourceProtocol::Ceiling(priority(10)), true),
    ] {
        for backend in [Backend::Sim(Sim::new(Script::default())), Backend::fiber(), Backend::thread_up()] {
            let label = format!("{}, {name}: the urgent task waited", backend.name());
            let waited = match blocked(backend, protocol, hold, compute) {
                Ok(waited) => waited,
                Err(error) => return defect(error),
            };
            figures.insert(label, json!(waited.to_string()));
            // Not an absolute time: compares with the program's own computing time, with a margin of half the
            // difference.
            passed &= (waited < (hold + compute).half()) == cured;
        }
    }
    Verdict { passed, figures }
}

trait Half {
    fn half(self) -> Self;
}

impl Half for Nanos {
    fn half(self) -> Self {
        Self::new(self.count() / 2)
    }
}

fn blocked(
    backend: Backend,
    protocol: ResourceProtocol,
    hold: Nanos,
    compute: Nanos,
) -> Result<Nanos, Box<dyn std::error::Error>> {
    let mut executive = Executive::new(backend, &ExecConfig::default())?;
    let resource = executive.resource(protocol)?;
    let waited = Arc::new(AtomicU64::new(0));
    let held = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&waited);
    let urgent = executive.task("urgent", priority(10), move |ctx| {
        let asked = ctx.now();
        let reserved = ctx.reserve(resource, Limit::Forever);
        let waited_ns = (ctx.now() - asked).count().cast_unsigned();
        drop(reserved);
        // Relaxed: read after the run.
        told.store(waited_ns, Ordering::Relaxed);
        ctx.stop();
    })?;
    let middle: TaskId = executive.task("middle", priority(20), move |ctx| ctx.work(compute))?;
    let taken = Arc::clone(&held);
    let low = executive.task("low", priority(30), move |ctx| {
        let reserved = ctx.reserve(resource, Limit::Forever);
        taken.store(reserved.is_ok(), Ordering::Relaxed);
        // Starts the urgent one first, so that it waits before the middle one can run.
        let _ = (ctx.trigger(urgent), ctx.trigger(middle));
        ctx.work(hold);
    })?;
    executive.trigger(low)?;
    executive.run(RunLimit::For(Nanos::from_secs(10)));
    if !held.load(Ordering::Relaxed) {
        return Err("the low task did not get the resource".into());
    }
    Ok(Nanos::new(waited.load(Ordering::Relaxed).cast_signed()))
}
