//! Our executive without the port: the measured calls stand in the task's body, as a user writes them.
//!
//! The port's bodies are asynchronous, so they keep their variables in memory across calls. That costs a few
//! nanoseconds, which matter for fibers only. The goals are compared with these figures.

use std::sync::Arc;

use hairspring_exec::{
    Backend, Create, ExecConfig, Executive, Limit, Mailbox, Priority, RunLimit, Services, StopReason, TaskCtx, Urgency,
};
use hairspring_sheet::Absent;
use hairspring_suite::executive::port::Message;
use hairspring_suite::executive::{Bench, Compared, Round};
use hairspring_time::Nanos;

use super::meter::{CHUNK, Count, HIGH, LINKS, LOW, Meter, Outcome, Tray, catch_up, spans};

/// Stack size: enough for these tasks, in debug builds too. Only pages that a task touches take memory.
const STACK_BYTES: usize = 64 * 1024;

/// The scenarios.
pub(crate) fn run(scenario: Compared, backend: Backend, bench: &Bench) -> Option<Outcome> {
    match scenario {
        Compared::WakeWait => Some(wake_wait(backend, bench, 0)),
        Compared::FourTs => Some(four_ts(backend, bench)),
        Compared::SendRun => Some(send_run(backend, bench)),
        _ => None,
    }
}

pub(crate) fn executive(backend: Backend) -> Result<Executive, Absent> {
    let config = ExecConfig { stack_bytes: STACK_BYTES, ..ExecConfig::default() };
    Executive::new(backend, &config).map_err(|error| Absent::final_(format!("failed to {error}")))
}

pub(crate) fn failed(error: impl std::error::Error) -> Absent {
    Absent::final_(format!("failed to make or start an object: {error}"))
}

pub(crate) fn priority(number: u8) -> Priority {
    Priority::new(number).unwrap_or(Priority::LOWEST)
}

/// Starts the measuring task and runs until it stops.
pub(crate) fn conclude(
    mut executive: Executive,
    tray: &Tray,
    measuring: impl FnMut(&TaskCtx<'_>) + Send + 'static,
) -> Outcome {
    let low = executive.task("B", priority(LOW), measuring).map_err(failed)?;
    executive.trigger(low).map_err(failed)?;
    let finish = executive.run(RunLimit::For(Nanos::from_secs(20)));
    if let Some(refused) = finish.refused.first() {
        return Err(Absent::new(format!("failed to {refused}"), &refused.remedy));
    }
    if finish.stopped != StopReason::Asked {
        return Err(Absent::final_(format!("the run ended as {:?}", finish.stopped)));
    }
    tray.take()
}

/// B wakes A, which waits again, while `others` other tasks wait for ever, each on its own stack.
pub(crate) fn wake_wait(backend: Backend, bench: &Bench, others: usize) -> Outcome {
    let executive = executive(backend)?;
    let (tray, count) = (Tray::default(), Arc::new(Count::default()));
    for _ in 0..others {
        let other = executive.task("other", priority(HIGH - 1), |ctx| {
            let _ = ctx.wait(Limit::Forever);
        });
        executive.trigger(other.map_err(failed)?).map_err(failed)?;
    }
    let own = Arc::clone(&count);
    let high = executive.task("A", priority(HIGH), move |ctx| {
        let mut number = 0;
        while ctx.wait(Limit::Forever).is_ok() {
            number += 1;
            own.set(number);
        }
    });
    let high = high.map_err(failed)?;
    executive.trigger(high).map_err(failed)?;
    let (spans, left) = (spans(bench), tray.clone());
    conclude(executive, &tray, move |ctx| {
        let mut number = 0;
        for span in spans {
            let mut meter = Meter::start(span);
            while meter.goes_on() {
                for _ in 0..CHUNK {
                    number += 1;
                    let _ = ctx.wake(high);
                    meter.round(count.now() == number || catch_up(&count, number));
                }
            }
            left.put(meter.finish());
        }
        ctx.stop();
    })
}

/// B triggers A, which waits; B wakes it; it ends.
fn four_ts(backend: Backend, bench: &Bench) -> Outcome {
    let executive = executive(backend)?;
    let (tray, count) = (Tray::default(), Arc::new(Count::default()));
    let own = Arc::clone(&count);
    let mut number = 0;
    let high = executive.task("A", priority(HIGH), move |ctx| {
        number += 1;
        own.set(number);
        let _ = ctx.wait(Limit::Forever);
        number += 1;
        own.set(number);
    });
    let high = high.map_err(failed)?;
    let (spans, left) = (spans(bench), tray.clone());
    conclude(executive, &tray, move |ctx| {
        let mut number = 0;
        for span in spans {
            let mut meter = Meter::start(span);
            while meter.goes_on() {
                for _ in 0..CHUNK {
                    let _ = ctx.trigger(high);
                    let started = count.now() == number + 1 || catch_up(&count, number + 1);
                    let _ = ctx.wake(high);
                    number += 2;
                    let woken = count.now() == number || catch_up(&count, number);
                    meter.round(started & woken);
                }
            }
            left.put(meter.finish());
        }
        ctx.stop();
    })
}

/// A message of 12 bytes down a chain of tasks; the time of a link.
fn send_run(backend: Backend, bench: &Bench) -> Outcome {
    let executive = executive(backend)?;
    let (tray, count, reached) = (Tray::default(), Arc::new(Count::default()), Arc::new(Count::default()));
    let mut next: Option<Mailbox<Message>> = None;
    for link in 0..LINKS {
        let (own, mark, timebase) = (Arc::clone(&count), Arc::clone(&reached), bench.timebase.clone());
        let task = executive.mail_task("A", priority(HIGH + link), [8, 0, 0, 0], move |ctx, _, message: Message| {
            if let Some(next) = next {
                let _ = ctx.send(next, Urgency::ALL[0], message);
            } else {
                mark.set(timebase.stamp_ordered().raw());
                own.set(u64::from(message[0]));
            }
        });
        next = Some(task.map_err(failed)?);
    }
    let Some(first) = next else { return Err(Absent::final_("a chain has no links")) };
    let (spans, left, timebase, pair_ns) = (spans(bench), tray.clone(), bench.timebase.clone(), bench.pair_ns);
    conclude(executive, &tray, move |ctx| {
        let rate_ghz = timebase.calibration().rate_hz * 1e-9;
        let mut number = 0_u32;
        for span in spans {
            let mut meter = Meter::start(span);
            let mut ticks = 0;
            while meter.goes_on() {
                for _ in 0..CHUNK {
                    number = number.wrapping_add(1);
                    let before = timebase.stamp_ordered().raw();
                    let _ = ctx.send(first, Urgency::ALL[0], [number, 2, 3]);
                    let proven = count.now() == u64::from(number) || catch_up(&count, number.into());
                    meter.round(proven);
                    if proven {
                        ticks += reached.now().wrapping_sub(before);
                    }
                }
            }
            let batch = meter.finish();
            let chain_ns = ticks as f64 / rate_ghz / (batch.samples - batch.unproven).max(1) as f64;
            left.put(Round { wall_ns: (chain_ns - pair_ns) / f64::from(LINKS), cpu_ns: None, ..batch });
        }
        ctx.stop();
    })
}
