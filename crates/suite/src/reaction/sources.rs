//! Every kind of source: an event, a thread that waits for it, and the first access of a board.

use std::io::Write;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;

use hairspring_device::source::{Counter, Datagrams, Each, Pps, PreciseTimer, Readable, Timer};
use hairspring_device::{
    AccessTimes, Activation, DeviceError, EventSource, Guarded, Lines, Poller, Protocol, SchedulingUnit, Signal,
    Sleeper, Stages, Stop,
};
use hairspring_machine::{Cpu, Host, Machine, Nanos, Policy};
use hairspring_sheet::{Absent, Method};
use hairspring_time::{Instant, RealTime, Timebase};
use tempfile::TempDir;

use super::fire::{Fired, fire};
use super::rows::{PPS, SOURCES, STAGES};
use super::{board, folder, modes, refused};
use crate::context::{Class, Context, policy_refused};
use crate::samples::Samples;

/// Each source gets this share of the chapter's time.
const SHARE: f64 = 0.03;
/// The period of the timers.
const PERIOD: Nanos = Nanos::from_micros(500);
/// The least time for pulses that come once in a second; nothing is waited for where there is no device.
const PULSES: Nanos = Nanos::from_secs(5);
/// Where they come from.
const PULSES_FROM: &str = "/dev/pps0";
/// Room for stamps: all of them.
pub(super) const EVENTS_MOST: usize = 4096;
/// The group of the events that are sent to one; from the range for private use.
const GROUP: &str = "239.255.72.83:0";

pub(super) fn measure<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    timebase: &Timebase<Host>,
    other: Option<Cpu>,
) {
    for (source, name, _) in SOURCES {
        let prefix = format!("reaction.{source}");
        if !context.wants(&prefix) {
            continue;
        }
        context.say(&format!("reaction to a {name}"));
        let span = context.share(SHARE).max(if source == PPS { PULSES } else { Nanos::ZERO });
        let class = if source == "polled" { Class::Other } else { Class::Fifo };
        let settings = context.settings(class);
        let taken = folder().and_then(|folder| react(source, &folder, settings, other, span, timebase));
        match taken {
            Ok(stages) => enter(context, source, name, &stages),
            Err(absent) => context.absent_under(&prefix, &absent),
        }
    }
}

fn enter<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, source: &str, name: &str, stages: &[Stages]) {
    let mut samples: [Samples; STAGES.len()] = std::array::from_fn(|_| Samples::new());
    for one in stages {
        let Some(access) = one.access else { continue };
        let spans = [
            (one.event, access.done),
            (one.event, one.wake),
            (one.wake, one.start),
            (access.requested, access.granted),
            (access.granted, access.done),
        ];
        for (samples, (from, to)) in samples.iter_mut().zip(spans) {
            if let Ok(span) = to.since(from) {
                samples.push_nanos(span);
            }
        }
    }
    let empty = match source {
        PPS => Absent::new(
            format!("no pulse came from {PULSES_FROM}"),
            "see that its clock gives pulses: ppstest shows them",
        ),
        _ => Absent::final_("no event came through"),
    };
    for ((stage, _, _), samples) in STAGES.iter().zip(samples) {
        let id = format!("reaction.{source}.{stage}");
        if *stage == "total"
            && let Some(modes) = modes::named(samples.values())
        {
            context.remark(format!("{id}, {name}: {modes}"));
        }
        match samples.figure(Method::Stamp, &empty) {
            Ok(figure) => context.put(&id, figure),
            Err(absent) => context.absent(&id, absent),
        }
    }
}

/// What makes an event.
type Firing<'f> = Box<dyn FnMut() -> std::io::Result<()> + 'f>;

/// Lets events come for this long, and returns the stages of all that did.
fn react(
    source: &str,
    folder: &TempDir,
    settings: RealTime,
    other: Option<Cpu>,
    span: Nanos,
    timebase: &Timebase<Host>,
) -> Result<Vec<Stages>, Absent> {
    let stop = Stop::new().map_err(refused)?;
    let open = || board(folder, AccessTimes::ZERO, Protocol::Inherit, timebase);
    let device = Guarded::new(Box::new(open()?), Box::new(open()?));
    device.lock().and_then(|mut held| held.device().init()).map_err(refused)?;
    let signal = Signal::open(&folder.path().join("signal")).map_err(refused)?;
    let (waiting, firing) = make(source, &signal, folder, timebase, &stop)?;
    let mut lines = Lines(0);
    let action = move |activation: &mut Activation<'_, '_, Host>| {
        lines.0 ^= 1;
        activation.device(|device| device.write(Lines::one(0), lines))
    };
    let unit = SchedulingUnit::new(waiting, Box::new(action), Some(&device), timebase, EVENTS_MOST);
    let (mut unit, ring) = unit;
    std::thread::scope(|scope| {
        let (placed, ready) = std::sync::mpsc::channel();
        let reacting = scope.spawn(move || {
            let guard = settings.apply(&Host);
            let refused_policy = policy_refused(&guard);
            // Nobody listens only if the caller has gone.
            drop(placed.send(refused_policy.clone()));
            if refused_policy.is_some() {
                return Ok(unit.counts());
            }
            unit.run().map(|()| unit.counts())
        });
        let fired = match ready.recv() {
            Ok(None) => {
                // The one who fires has a CPU of its own and the priority of an interrupt, where that can be had.
                let place = RealTime { policy: Some(Policy::Fifo(90)), cpu: other, ..RealTime::default() };
                let guard = other.map(|_| place.apply(&Host));
                let fired = fire(firing, span, ring, timebase);
                drop(guard);
                fired
            }
            Ok(Some(absent)) => Err(absent),
            Err(_) => Err(Absent::final_("the thread that reacts did not begin")),
        };
        stop.set();
        let counts = reacting.join().map_err(|_| Absent::final_("the thread that reacts panicked"))?;
        let Fired { stages, stamps } = fired?;
        let counts = counts.map_err(refused)?;
        if !counts.holds() {
            return Err(Absent::final_("events are unaccounted for, which is a defect of hairspring"));
        }
        Ok(with_stamps(stages, &stamps))
    })
}

/// Where the source does not know when an event was sent, who fired it does.
fn with_stamps(mut stages: Vec<Stages>, stamps: &[Instant]) -> Vec<Stages> {
    for one in &mut stages {
        let index = usize::try_from(one.sequence).ok().and_then(|sequence| sequence.checked_sub(1));
        if one.stamped == hairspring_device::Stamped::Wake
            && let Some(stamp) = index.and_then(|index| stamps.get(index))
        {
            one.event = *stamp;
        }
    }
    stages
}

/// A source of this kind, and what fires it; timers need nothing.
fn make<'t>(
    source: &str,
    signal: &'t Signal,
    folder: &TempDir,
    timebase: &'t Timebase<Host>,
    stop: &'t Stop,
) -> Result<(Box<dyn EventSource + 't>, Option<Firing<'t>>), Absent> {
    let failed = |error: std::io::Error| Absent::final_(format!("failed to make a source: {error}"));
    let again = || Signal::open(&folder.path().join("signal")).map_err(refused);
    let fired = |fired: Result<u64, DeviceError>| fired.map(drop).map_err(std::io::Error::other);
    Ok(match source {
        PPS => (Box::new(Pps::open(PULSES_FROM.as_ref(), timebase, stop).map_err(refused)?), None),
        "timer" => (Box::new(Timer::new(PERIOD, timebase, stop).map_err(refused)?), None),
        "precise" => (Box::new(PreciseTimer::new(PERIOD, timebase, stop).map_err(refused)?), None),
        "eventfd" => {
            let (counter, firing) = Counter::new(timebase, stop).map_err(refused)?;
            let fire = move || firing.fire().map_err(|error| std::io::Error::other(error.to_string()));
            (Box::new(counter), Some(Box::new(fire)))
        }
        "pipe" => {
            let (reader, mut writer) = std::io::pipe().map_err(failed)?;
            let waiting = Readable::new(OwnedFd::from(reader), "a pipe", Each::Read, timebase, stop);
            (Box::new(waiting), Some(Box::new(move || writer.write(&[1]).map(drop))))
        }
        "udp" | "multicast" => {
            let listen = if source == "udp" { "127.0.0.1:0" } else { GROUP };
            let address = listen.parse().map_err(|_| Absent::final_("the address is none"))?;
            let datagrams = Datagrams::listen(address, timebase, stop).map_err(refused)?;
            let sender = UdpSocket::bind("0.0.0.0:0").map_err(failed)?;
            let to = datagrams.address();
            (Box::new(datagrams), Some(Box::new(move || sender.send_to(&[], to).map(drop))))
        }
        "software" => {
            let fire = move || fired(signal.fire(None, timebase));
            (Box::new(Sleeper::new(again()?, timebase, stop)), Some(Box::new(fire)))
        }
        _ => {
            let fire = move || fired(signal.fire(None, timebase));
            (Box::new(Poller::new(again()?, timebase, stop).map_err(refused)?), Some(Box::new(fire)))
        }
    })
}
