//! Every kind of source: an event, a thread that waits for it, and the first access of a board.

use std::io::Write;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::path::Path;

use hairspring_device::{AccessTimes, Guarded, Lines, Protocol};
use hairspring_machine::{Cpu, Host, Machine, Nanos, Policy};
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_station::source::{Counter, Datagrams, Each, Pps, PreciseTimer, Readable, Timer};
use hairspring_station::{Activation, EventSource, Poller, SchedulingUnit, Signal, Sleeper, Stages, Stamped, Stop};
use hairspring_time::{Instant, RealTime, Timebase};
use tempfile::TempDir;

use super::fire::{EVENTS_MOST, Fired, fire};
use super::{board, folder, refused};
use crate::probe::{Class, Context, Probes, Reading, Row, Samples, Setting, Slot, policy_refused, spin};

/// Each source gets this share of the chapter's time.
const SHARE: f64 = 0.03;
/// The period of the timers.
const PERIOD: Nanos = Nanos::from_micros(500);
/// The least time for pulses that come once a second; without a device there is no wait.
const PULSES: Nanos = Nanos::from_millis(1500);
/// The device of the pulses.
const PULSES_FROM: &str = "/dev/pps0";
/// The multicast group of events, from the range for private use.
const GROUP: &str = "239.255.72.83:0";

/// A kind of source: how to make it, and how to fire it.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// Its segment in ids, and its name for people.
    pub(crate) segment: &'static str,
    name: &'static str,
    /// The moment that counts as the event.
    event: &'static str,
    class: Class,
    /// Whether the source fires automatically, once a second.
    pulses: bool,
    make: for<'t> fn(&Making<'t>) -> Made<'t>,
}

/// Parameters of a source.
struct Making<'t> {
    signal: &'t Signal,
    /// The path of the signal.
    path: &'t Path,
    timebase: &'t Timebase<Host>,
    stop: &'t Stop,
}

/// A source, and the function that fires its events unless it fires automatically; or the reason why there is none.
type Made<'t> = Result<(Box<dyn EventSource<Host> + 't>, Option<Firing<'t>>), Absent>;

/// Fires an event.
type Firing<'f> = Box<dyn FnMut() -> std::io::Result<()> + 'f>;

impl Kind {
    /// A source whose thread sleeps under `SCHED_FIFO`.
    const fn asleep(
        segment: &'static str,
        name: &'static str,
        event: &'static str,
        make: for<'t> fn(&Making<'t>) -> Made<'t>,
    ) -> Self {
        Self { segment, name, event, class: Class::Fifo, pulses: false, make }
    }
}

/// The sources, in reading order. Timers and pulses fire automatically.
pub(crate) const SOURCES: [Kind; 9] = [
    Kind::asleep("timer", "kernel timer", "the time it was due", |making| {
        Ok((Box::new(Timer::new(PERIOD, making.timebase, making.stop).map_err(refused)?), None))
    }),
    Kind::asleep("precise", "precise timer", "the time it was due", |making| {
        Ok((Box::new(PreciseTimer::new(PERIOD, making.timebase, making.stop).map_err(refused)?), None))
    }),
    Kind::asleep("eventfd", "eventfd", "just before the write", |making| {
        let (counter, firing) = Counter::new(making.timebase, making.stop).map_err(refused)?;
        let fire = move || firing.fire().map_err(|error| std::io::Error::other(error.to_string()));
        Ok((Box::new(counter), Some(Box::new(fire))))
    }),
    Kind::asleep("pipe", "pipe", "just before the write", |making| {
        let (reader, mut writer) = std::io::pipe().map_err(failed)?;
        let waiting = Readable::new(OwnedFd::from(reader), "a pipe", Each::Read, making.timebase, making.stop);
        Ok((Box::new(waiting), Some(Box::new(move || writer.write(&[1]).map(drop)))))
    }),
    Kind::asleep("udp", "UDP datagram", "when the kernel took the packet", |making| datagrams(making, "127.0.0.1:0")),
    Kind::asleep("multicast", "UDP to a group", "when the kernel took the packet", |making| datagrams(making, GROUP)),
    Kind::asleep("software", "signal, asleep", "when it was fired", |making| {
        let sleeper = Sleeper::new(making.again()?, making.timebase, making.stop);
        Ok((Box::new(sleeper), Some(making.fire())))
    }),
    Kind {
        class: Class::Other,
        ..Kind::asleep("polled", "signal, polled", "when it was fired", |making| {
            let poller = Poller::new(making.again()?, making.timebase, making.stop).map_err(refused)?;
            Ok((Box::new(poller), Some(making.fire())))
        })
    },
    Kind {
        pulses: true,
        ..Kind::asleep("pps", "pulse of a clock", "when the kernel took the interrupt", |making| {
            let pulses = Pps::open(PULSES_FROM.as_ref(), making.timebase, making.stop).map_err(refused)?;
            Ok((Box::new(pulses), None))
        })
    },
];

/// Lines of real devices, which no part of a machine drives: segment, name, and the moment that counts as the event.
const WIRED: [(&str, &str, &str); 3] = [
    ("gpio", "edge of a GPIO line", "when the kernel took the interrupt"),
    ("parport", "interrupt of a parallel port", "when the thread had it"),
    ("uio", "interrupt of a card", "when the thread had it"),
];

/// The stages: segment, label, description.
const STAGES: [(&str, &str, &str); 5] = [
    ("total", "event → I/O done", "from the event until the access of the device is done"),
    ("wake", "event → wake", "from the event until the waiting thread has it"),
    ("start", "wake → action", "until the first instruction of the action"),
    ("lock", "lock", "from the request of the device's lock until it is granted"),
    ("io", "I/O", "from the lock until the access of the device is done"),
];

/// A probe of each source: all its stages.
pub(super) fn add<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) {
    for kind in SOURCES {
        let limits = if kind.pulses {
            "the pulses of /dev/pps0 for a share of the chapter's time, at least 1.5 s in each round"
        } else {
            LIMITS
        };
        let slots = stages(probes, (kind.segment, kind.name, kind.event), limits);
        probes.several_on_host(Setting::AsStarted, slots, move |context, timebase| {
            context.say(&format!("reaction to a {}", kind.name));
            let span = context.share(SHARE).max(if kind.pulses { PULSES } else { Nanos::ZERO });
            let (settings, other) = (context.settings(kind.class), context.other);
            match folder().and_then(|folder| react(kind, &folder, settings, other, span, timebase)) {
                Ok(stages) => enter(context, kind, slots, &stages),
                Err(absent) => slots.into_iter().for_each(|slot| context.absent(slot, absent.clone())),
            }
        });
    }
    for (segment, name, event) in WIRED {
        let slots = stages(probes, (segment, name, event), LIMITS);
        probes.several(Setting::AsStarted, slots, move |context| {
            let absent = Absent::new(
                format!("nothing on a machine drives the {name} by itself"),
                "wire something to the line and let `hairspring serve` act on it: its report has the same stages",
            );
            slots.into_iter().for_each(|slot| context.absent(slot, absent.clone()));
        });
    }
}

const LIMITS: &str = "events at least 0.2 ms apart for a share of the chapter's time, at most 4,096";

/// The table of a source, with a row for each stage.
fn stages<M: Machine + Clone + Sync + 'static>(
    probes: &mut Probes<M>,
    (source, name, event): (&str, &str, &str),
    limits: &'static str,
) -> [Slot; STAGES.len()] {
    let table = probes.table(format!("reaction.{source}"), format!("Event to I/O, {name}"), limits);
    STAGES.map(|(stage, label, measures)| {
        let measures = format!("{measures}; the event is stamped {event}");
        probes.row(table, Row::new(stage, label, Unit::Ns, Method::Stamp, measures))
    })
}

fn enter<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    kind: Kind,
    slots: [Slot; STAGES.len()],
    stages: &[Stages],
) {
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
    let empty = if kind.pulses {
        Absent::new(format!("no pulse came from {PULSES_FROM}"), "see that its clock gives pulses: ppstest shows them")
    } else {
        Absent::final_("no event came through")
    };
    for (stage, (slot, samples)) in slots.into_iter().zip(samples).enumerate() {
        let taken = samples.taken(&empty);
        // The first stage is the total.
        context.enter(slot, if stage == 0 { taken.map(Reading::with_peaks) } else { taken });
    }
}

/// Collects events of a source for this long, and returns for each the time to the end of the access, and when that
/// was.
pub(crate) fn totals(
    source: usize,
    settings: RealTime,
    other: Option<Cpu>,
    span: Nanos,
    timebase: &Timebase<Host>,
) -> Result<Vec<(Nanos, Instant)>, Absent> {
    let stages = react(SOURCES[source], &folder()?, settings, other, span, timebase)?;
    let total = |one: &Stages| {
        let done = one.access?.done;
        Some((done.since(one.event).ok()?, done))
    };
    Ok(stages.iter().filter_map(total).collect())
}

/// Collects events for this long, and returns their stages.
fn react(
    kind: Kind,
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
    let path = folder.path().join("signal");
    let signal = Signal::open(&path).map_err(refused)?;
    let (waiting, firing) = (kind.make)(&Making { signal: &signal, path: &path, timebase, stop: &stop })?;
    let mut lines = Lines(0);
    let action = move |activation: &mut Activation<'_, '_, Host>| {
        // Part of the total and of no stage.
        spin(0, 1);
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
            // Fails only if the caller has gone.
            drop(placed.send(refused_policy.clone()));
            if refused_policy.is_some() {
                return Ok(unit.counts());
            }
            unit.run().map(|()| unit.counts())
        });
        let fired = match ready.recv() {
            Ok(None) => {
                // The firing thread has its own CPU and the priority of an interrupt, if permitted.
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
        // Wakes a thread that sleeps for the signal, so that it sees the flag.
        drop(signal.fire(None, timebase));
        let counts = reacting.join().map_err(|_| Absent::final_("the thread that reacts panicked"))?;
        let Fired { stages, stamps } = fired?;
        let counts = counts.map_err(refused)?;
        if !counts.holds() {
            return Err(Absent::final_("events are unaccounted for, which is a defect of hairspring"));
        }
        Ok(with_stamps(stages, &stamps))
    })
}

/// For sources that do not stamp their events, the stamp taken before the event was fired.
fn with_stamps(mut stages: Vec<Stages>, stamps: &[Instant]) -> Vec<Stages> {
    for one in &mut stages {
        let index = usize::try_from(one.sequence).ok().and_then(|sequence| sequence.checked_sub(1));
        if one.stamped == Stamped::Wake
            && let Some(stamp) = index.and_then(|index| stamps.get(index))
        {
            one.event = *stamp;
        }
    }
    stages
}

impl<'t> Making<'t> {
    /// The signal again, for the waiting thread.
    fn again(&self) -> Result<Signal, Absent> {
        Signal::open(self.path).map_err(refused)
    }

    /// Fires the signal.
    fn fire(&self) -> Firing<'t> {
        let (signal, timebase) = (self.signal, self.timebase);
        Box::new(move || signal.fire(None, timebase).map(drop).map_err(std::io::Error::other))
    }
}

/// Datagrams to an address of this computer.
fn datagrams<'t>(making: &Making<'t>, listen: &str) -> Made<'t> {
    let address = listen.parse().map_err(|_| Absent::final_("the address is none"))?;
    let datagrams = Datagrams::listen(address, making.timebase, making.stop).map_err(refused)?;
    let sender = UdpSocket::bind("0.0.0.0:0").map_err(failed)?;
    let to = datagrams.address();
    Ok((Box::new(datagrams), Some(Box::new(move || sender.send_to(&[], to).map(drop)))))
}

fn failed(error: std::io::Error) -> Absent {
    Absent::final_(format!("failed to make a source: {error}"))
}
