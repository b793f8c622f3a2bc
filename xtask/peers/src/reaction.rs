//! From an event to the code that reacts: a scheduling unit beside a bare thread that is blocked in `read` on an
//! eventfd.
//!
//! Both wait on the same CPU under SCHED_FIFO at the same priority. One thread fires them in turns, from another CPU
//! or, without a real-time priority, from the same one.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};

use hairspring_sheet::{Figure, Method, Unit};
use hairspring_station::source::{Counter, CounterWriter};
use hairspring_station::{Activation, SchedulingUnit, Stop};
use hairspring_time::{Cpu, Host, Machine, Nanos, Policy, RealTime, Timebase};
use rustix::event::{EventfdFlags, eventfd};

use crate::report;

/// The priority of both.
const PRIORITY: u8 = 80;
/// Events of each.
const EVENTS: usize = 4_000;
const EVENTS_QUICK: usize = 1_000;
/// A pause before each event, so that both sleep again.
const REST: Nanos = Nanos::from_micros(200);
/// Time limit of a reaction.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// Stamp of the latest reaction, in ticks, stored by the thread that reacts.
#[derive(Default)]
#[repr(align(128))]
struct Reacted(AtomicU64);

pub(crate) fn run(timebase: &Timebase, cpu: Cpu, quick: bool) -> Result<(), String> {
    let events = if quick { EVENTS_QUICK } else { EVENTS };
    let other = Host.affinity().0.into_iter().find(|other| *other != cpu);
    println!("## Reaction to an event\n");
    println!(
        "From just before the write to an eventfd until the first instruction that reacts; {events} events each, in turns. \
         The bare thread is blocked in `read`; the unit waits for the eventfd or its stop, and accounts for the event.\n"
    );
    println!(
        "| fired from | who reacts | n | min | median | p99 | max | median, ratio |\n|---|---|---:|---:|---:|---:|---:|---:|"
    );
    let places = [("another CPU", other), ("the same CPU, by a thread of no priority", Some(cpu))];
    for (name, place) in places.into_iter().filter_map(|(name, place)| Some((name, place?))) {
        let [bare, unit] = both(timebase, cpu, place, events)?;
        let ratio = unit.median.zip(bare.median).map(|(unit, bare)| unit / bare);
        println!("| {name} | bare thread | {} | 1.00 |", report::statistics(&bare));
        let ratio = ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.3}"));
        println!("| {name} | scheduling unit | {} | {ratio} |", report::statistics(&unit));
    }
    println!();
    Ok(())
}

fn real_time(cpu: Cpu) -> RealTime {
    RealTime { policy: Some(Policy::Fifo(PRIORITY)), cpu: Some(cpu), lock_memory: true, slack: None, idle: None }
}

/// Bare thread and unit, fired in turns.
fn both(timebase: &Timebase, cpu: Cpu, from: Cpu, events: usize) -> Result<[Figure; 2], String> {
    let stop = Stop::new().map_err(|error| error.to_string())?;
    let (counter, firing) = Counter::new(timebase, &stop).map_err(|error| error.to_string())?;
    let blocking = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| error.to_string())?;
    let bare_fires = File::from(blocking.try_clone().map_err(|error| error.to_string())?);
    let (bare, unit) = (Reacted::default(), Reacted::default());
    let (bare, unit) = (&bare, &unit);
    std::thread::scope(|scope| {
        let mut bare_waits = File::from(blocking);
        let ended = &stop;
        scope.spawn(move || {
            let _guard = real_time(cpu).apply(&Host);
            let mut count = [0; 8];
            while bare_waits.read_exact(&mut count).is_ok() {
                let stamp = timebase.stamp();
                if ended.is_set() {
                    break;
                }
                bare.0.store(stamp.raw(), Ordering::Release);
            }
        });
        scope.spawn(move || {
            let _guard = real_time(cpu).apply(&Host);
            let action = |activation: &mut Activation<'_, '_, Host>| {
                unit.0.store(activation.timebase().stamp().raw(), Ordering::Release);
                Ok(())
            };
            let (mut served, _log) = SchedulingUnit::new(Box::new(counter), Box::new(action), None, timebase, 1);
            served.run()
        });
        let fired = fire(
            timebase,
            from,
            events,
            &mut |which| {
                if which == 0 { write_one(&bare_fires) } else { fire_unit(&firing) }
            },
            [bare, unit],
        );
        stop.set();
        write_one(&bare_fires)?;
        fired
    })
}

fn write_one(mut to: &File) -> Result<(), String> {
    std::io::Write::write_all(&mut to, &1_u64.to_ne_bytes()).map_err(|error| format!("fire a bare thread: {error}"))
}

fn fire_unit(firing: &CounterWriter) -> Result<(), String> {
    firing.fire().map_err(|error| error.to_string())
}

fn fire(
    timebase: &Timebase,
    from: Cpu,
    events: usize,
    act: &mut dyn FnMut(usize) -> Result<(), String>,
    reacted: [&Reacted; 2],
) -> Result<[Figure; 2], String> {
    let _placed = RealTime { cpu: Some(from), ..RealTime::default() }.apply(&Host);
    let rest = |span: Nanos| Host.sleep_until(timebase.now() + span);
    let mut samples = [Vec::with_capacity(events), Vec::with_capacity(events)];
    // By now both threads wait.
    rest(Nanos::from_millis(50));
    for number in 0..2 * events {
        // Alternates which of the two comes first.
        let which = (number + number / 2) % 2;
        rest(REST);
        let stamp = timebase.stamp();
        act(which)?;
        let begun = timebase.now();
        loop {
            let seen = reacted[which].0.load(Ordering::Acquire);
            let took = hairspring_time::Ticks::new(seen).since(stamp);
            if took > 0 {
                samples[which].push(timebase.nanos(took).count() as f64);
                break;
            }
            if timebase.now().since(begun).is_ok_and(|waited| waited > PATIENCE) {
                return Err("fire an event: no thread reacted".to_owned());
            }
            rest(REST);
        }
    }
    let [mut bare, mut unit] = samples;
    let figure = |samples: &mut Vec<f64>| Figure::from_samples(Unit::Ns, Method::Stamp, samples);
    Ok([figure(&mut bare), figure(&mut unit)])
}
