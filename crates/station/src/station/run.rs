//! Runs a station: a thread for each unit, until a stop is requested or one of them fails.
//!
//! Each unit's thread sets its priority and CPU, reports that, and waits for the start. The start comes when all
//! threads are ready. If one was refused its priority or CPU, or the caller has ended, there is no start, and the
//! threads end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use hairspring_device::pulse::{POLL_MOST, Pulse, PulseError, delay_for};
use hairspring_device::refusal::refusal;
use hairspring_device::{DeviceError, Guarded, Lines};
use hairspring_machine::{Machine, Nanos, Policy};
use hairspring_time::{RealTime, Timebase};

use super::{Act, DeviceSettings, Station, UnitSettings};
use crate::property::{Property, UnitControl, property_queue};
use crate::signal::Signal;
use crate::source::EventSource;
use crate::stop::Stop;
use crate::unit::{Action, Activation, Counts, SchedulingUnit, StageLog};

/// Time between two looks at the stages of the units.
const LOOK: Duration = Duration::from_millis(100);
/// Between two refinements of the time base. Its bound grows with its age: by 10 µs in 10 s at 1 ppm.
const REFINE_EVERY: Nanos = Nanos::from_secs(10);
/// Capacity for stamps between two looks: at 100 kHz.
const STAMPS: usize = 16_384;

/// A unit that runs, as it is watched.
#[derive(Debug)]
pub struct Watched {
    /// Its name.
    pub name: String,
    /// Stages since the last look.
    pub log: StageLog,
    /// Sets its properties; `None` if none can be set.
    pub control: Option<UnitControl>,
}

/// The result of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitOutcome {
    /// Its name.
    pub name: String,
    /// Counts of its events by outcome.
    pub counts: Counts,
    /// The error that ended it before a stop was requested.
    pub failed: Option<DeviceError>,
}

/// The result of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceOutcome {
    /// Its name.
    pub name: String,
    /// The state to which its outputs were set at the end.
    pub safe: Lines,
    /// Why they may not be in it.
    pub unsafe_because: Option<DeviceError>,
    /// Number of times that an owner of its lock had died.
    pub recovered: u64,
}

/// The result of a station.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StationOutcome {
    /// Its units, in order.
    pub units: Vec<UnitOutcome>,
    /// Its devices, in order.
    pub devices: Vec<DeviceOutcome>,
}

impl Station {
    /// Runs until `stop` is set or a unit fails, which sets it. Calls `watch` some ten times a second, in the calling
    /// thread. Starts a thread for each unit; they end within the call, and so do the devices' lives: their outputs are
    /// safe then.
    ///
    /// # Errors
    /// The station did not start: a device or a source cannot be opened, a priority is refused, a thread cannot be
    /// created. No event was acted upon.
    ///
    /// # Panics
    /// As `watch` does. The units have ended then, and the devices were set to their safe states.
    pub fn run<M: Machine + Send + Sync + Clone>(
        &self,
        timebase: &Timebase<M>,
        stop: &Stop,
        watch: &mut dyn FnMut(&mut [Watched]),
    ) -> Result<StationOutcome, DeviceError> {
        let driven = |index| self.units.iter().filter(move |unit| unit.device == Some(index));
        let moved = |index| Lines(driven(index).fold(0, |lines, unit| lines | unit.act.outputs().0));
        let devices = self.devices.iter().enumerate();
        let devices = devices.map(|(index, settings)| open(settings, moved(index), timebase, stop));
        let devices = devices.collect::<Result<Vec<_>, _>>()?;
        let mut outcome = StationOutcome::default();
        // The latest successor of the time base, for each unit.
        let successors: Vec<Successor<M>> = self.units.iter().map(|_| Mutex::new(None)).collect();
        let ran = {
            let mut threads = Vec::new();
            for settings in &self.units {
                let device = settings.device.and_then(|index| devices.get(index));
                let source = settings.on.open(timebase, stop)?;
                threads.push((settings, unit(settings, source, device, timebase, stop)?));
            }
            std::thread::scope(|scope| {
                // However this ends: the scope waits for the units.
                let _ends_all = EndsAll(stop);
                let (placed, in_place) = channel();
                let mut running = Vec::new();
                let mut waiting = Vec::new();
                let mut watched = Vec::new();
                for ((settings, (unit, log, control)), successor) in threads.into_iter().zip(&successors) {
                    let (go, told_to_go) = channel();
                    waiting.push(go);
                    watched.push(Watched { name: settings.name.clone(), log, control });
                    let placed = placed.clone();
                    let unit = move || serve(settings, unit, timebase.machine(), successor, placed, &told_to_go, stop);
                    let thread = Builder::new().spawn_scoped(scope, unit);
                    running.push((settings, thread.map_err(|error| no_thread(settings, &error))?));
                }
                drop(placed);
                all_in_place(&in_place, running.len())?;
                // A thread that has ended early is noticed when it is joined.
                waiting.iter().for_each(|go| drop(go.send(Go)));
                let mut refined = (timebase.clone(), timebase.machine().monotonic());
                while !stop.is_set() {
                    watch(&mut watched);
                    let now = timebase.machine().monotonic();
                    if now - refined.1 >= REFINE_EVERY {
                        refined = (refined.0.refine().timebase, now);
                        for successor in &successors {
                            *successor.lock().unwrap_or_else(PoisonError::into_inner) = Some(refined.0.clone());
                        }
                    }
                    std::thread::sleep(LOOK);
                }
                for (settings, thread) in running {
                    let name = settings.name.clone();
                    let ended = thread.join();
                    let (counts, failed) =
                        ended.unwrap_or_else(|panic| (Counts::default(), Some(panicked(&name, &*panic))));
                    outcome.units.push(UnitOutcome { name, counts, failed });
                }
                watch(&mut watched);
                Ok(())
            })
        };
        for (settings, mut device) in self.devices.iter().zip(devices) {
            let made_safe = device.make_safe();
            outcome.devices.push(DeviceOutcome {
                name: settings.name.clone(),
                safe: device.safe_state(),
                unsafe_because: made_safe.err(),
                recovered: device.recovered(),
            });
        }
        ran.map(|()| outcome)
    }
}

/// Opens a device to move its lines, with its lock, and initialises it.
fn open<'t, M: Machine + Send + Sync>(
    settings: &DeviceSettings,
    moved: Lines,
    timebase: &'t Timebase<M>,
    stop: &'t Stop,
) -> Result<Guarded<'t>, DeviceError> {
    let guarded = settings.driver.open_guarded(moved, settings.lock.as_ref(), timebase)?.cancelled_by(stop.flag());
    guarded.lock()?.device().init()?;
    Ok(guarded)
}

/// A unit with its action.
fn unit<'a, 'd, M: Machine + Send + Sync>(
    settings: &UnitSettings,
    source: Box<dyn EventSource<M> + 'a>,
    device: Option<&'a Guarded<'d>>,
    timebase: &'a Timebase<M>,
    stop: &'a Stop,
) -> Result<(SchedulingUnit<'a, 'd, M>, StageLog, Option<UnitControl>), DeviceError> {
    let (unit, log) = SchedulingUnit::new(source, action(settings, timebase, stop)?, device, timebase, STAMPS);
    let unit = match settings.late_after {
        Some(late_after) => unit.late_after(late_after),
        None => unit,
    };
    if settings.settable.is_empty() && settings.enabled {
        return Ok((unit, log, None));
    }
    let (queue, intake) = property_queue(settings.property_values());
    Ok((unit.with_properties(intake), log, Some(UnitControl::new(settings.settable.clone(), queue))))
}

fn action<'a, M: Machine + Send + Sync>(
    settings: &UnitSettings,
    timebase: &'a Timebase<M>,
    stop: &'a Stop,
) -> Result<Box<dyn Action<M> + 'a>, DeviceError> {
    type Of<'a, 'b, 'c, M> = &'a mut Activation<'b, 'c, M>;
    Ok(match settings.act {
        Act::Read => Box::new(|of: Of<'_, '_, '_, M>| of.device(|device| device.read()).map(drop)),
        Act::Write(mask, value) => Box::new(move |of: Of<'_, '_, '_, M>| {
            // Limits keep a value within 32 bits.
            let set = of.property(Property::Value).and_then(|value| u32::try_from(value).ok());
            of.device(|device| device.write(mask, set.map_or(value, Lines)))
        }),
        Act::Toggle(line) => {
            let (line, mut value) = (Lines::one(line), Lines(0));
            Box::new(move |of: Of<'_, '_, '_, M>| {
                value.0 ^= line.0;
                of.device(|device| device.write(line, value))
            })
        }
        Act::Pulse(line, width) => {
            let lines = Lines::one(line);
            let widest = settings.limits(Property::Width).map_or(width, |limits| Nanos::new(limits.most));
            let mut long = delay_for(widest, timebase, stop.flag());
            Box::new(move |of: Of<'_, '_, '_, M>| {
                let pulse = Pulse { lines, width: of.property(Property::Width).map_or(width, Nanos::new) };
                let long = long.as_mut().filter(|_| pulse.width > POLL_MOST);
                of.device(|device| pulse.fire_with(device, timebase, long).map(drop).map_err(failed_pulse))
            })
        }
        Act::Fire(ref path) => {
            let signal = Signal::open(path)?;
            Box::new(move |of: Of<'_, '_, '_, M>| signal.fire(of.event().cycle, of.timebase()).map(drop))
        }
    })
}

fn failed_pulse(error: PulseError) -> DeviceError {
    match error {
        PulseError::Device(error) => error,
        PulseError::CutShort(cut) => DeviceError {
            attempted: format!("make a pulse of {}", cut.width),
            said: format!("it was cut short after {} at most, because the station was told to stop", cut.at_most),
            remedy: "stop the station between two pulses",
        },
        other => DeviceError {
            attempted: "make a pulse".to_owned(),
            said: other.to_string(),
            remedy: "choose another width",
        },
    }
}

/// The latest successor of the time base that a unit has not adopted yet.
type Successor<M> = Mutex<Option<Timebase<M>>>;

/// The word that all are in their places.
struct Go;

/// Pins the thread and sets its priority, reports that, and reacts to events after the start signal.
fn serve<M: Machine + Clone>(
    settings: &UnitSettings,
    mut unit: SchedulingUnit<'_, '_, M>,
    machine: &M,
    successor: &Successor<M>,
    placed: Sender<Result<(), DeviceError>>,
    told_to_go: &Receiver<Go>,
    stop: &Stop,
) -> (Counts, Option<DeviceError>) {
    // Also when the action panics: then the others stop.
    let _ends_all = EndsAll(stop);
    let place = RealTime {
        policy: settings.priority.map(Policy::Fifo),
        cpu: settings.cpu,
        lock_memory: settings.priority.is_some(),
        slack: settings.priority.map(|_| Nanos::new(1)),
        idle: None,
    };
    let guard = place.apply(machine);
    let in_place = guard.refused().map_or(Ok(()), |refused| {
        Err(DeviceError {
            attempted: format!("{} for the unit {}", refused.attempted, settings.name),
            said: refused.said.clone(),
            remedy: "run as root, allow it (ulimit -r), or leave out priority and cpu",
        })
    });
    // The send fails only if the caller has gone; then there is no start signal either.
    drop(placed.send(in_place.clone()));
    // The listener must not wait for more.
    drop(placed);
    if in_place.is_err() || told_to_go.recv().is_err() {
        return (Counts::default(), in_place.err());
    }
    // Caught here, where the account of the events before is still available.
    let ran = catch_unwind(AssertUnwindSafe(|| follow(&mut unit, successor)));
    let failed = ran.map_or_else(|panic| Some(panicked(&settings.name, &*panic)), Result::err);
    (unit.counts(), failed)
}

/// Runs a unit until its source ends. Adopts successors of the time base after an action, and never waits for one.
fn follow<M: Machine + Clone>(
    unit: &mut SchedulingUnit<'_, '_, M>,
    successor: &Successor<M>,
) -> Result<(), DeviceError> {
    while unit.step()? {
        if let Ok(Some(successor)) = successor.try_lock().map(|mut latest| latest.take()) {
            unit.adopt(successor);
        }
    }
    Ok(())
}

/// Why a unit that panicked has ended.
fn panicked(name: &str, panic: &(dyn Any + Send)) -> DeviceError {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    DeviceError {
        attempted: format!("run the unit {name}"),
        said: format!("it panicked: {}", said.unwrap_or("without a word")),
        remedy: "fix this defect of the action",
    }
}

/// Stops all units when it is dropped.
struct EndsAll<'s>(&'s Stop);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Waits until `count` units are in their places.
fn all_in_place(placed: &Receiver<Result<(), DeviceError>>, count: usize) -> Result<(), DeviceError> {
    let gone = || DeviceError {
        attempted: "start the units".to_owned(),
        said: "a thread ended before it was ready".to_owned(),
        remedy: "this is a defect of hairspring: report it",
    };
    (0..count).try_for_each(|_| placed.recv().unwrap_or_else(|_| Err(gone())))
}

/// Why there is no thread for a unit.
fn no_thread(settings: &UnitSettings, error: &std::io::Error) -> DeviceError {
    refusal(
        format!("start a thread for the unit {}", settings.name),
        error,
        "allow more threads and memory (ulimit -u, ulimit -v), or use fewer units",
    )
}

#[cfg(test)]
mod tests {
    use hairspring_machine::Sim;
    use hairspring_machine::sim::{Disturbance, Script};
    use hairspring_time::Host;

    use super::*;
    use crate::source::{PreciseTimer, Timer};

    #[test]
    fn a_unit_adopts_the_successor_after_an_action() {
        let sim = Sim::new(Script::default());
        let timebase = Timebase::calibrate(sim.clone()).expect("a time base");
        sim.disturb(sim.true_time(), Disturbance::Suspend(Nanos::from_secs(5)));
        let refined = timebase.refine().timebase;
        let (stop, epochs) = (Stop::new().expect("a stop"), [timebase.epoch(), refined.epoch()]);
        let timer = PreciseTimer::new(Nanos::from_millis(1), &timebase, &stop).expect("a timer");
        let action = |activation: &mut Activation<'_, '_, Sim>| {
            if activation.event().sequence == 2 {
                stop.set();
            }
            Ok(())
        };
        let (mut unit, log) = SchedulingUnit::new(Box::new(timer), Box::new(action), None, &timebase, 8);
        let successor = Mutex::new(Some(refined));
        follow(&mut unit, &successor).expect("nothing fails");
        assert_eq!(log.map(|one| one.event.epoch()).collect::<Vec<_>>(), epochs);
        assert!(successor.lock().is_ok_and(|latest| latest.is_none()));
    }

    #[test]
    fn a_panic_ends_everybody_and_leaves_the_account_of_what_went_before() {
        let timebase = Timebase::calibrate(Host).expect("a time base");
        let stop = Stop::new().expect("a stop");
        let timer = Timer::new(Nanos::from_millis(1), &timebase, &stop).expect("a timer");
        let mut count = 0;
        let action = |_: &mut Activation<'_, '_, Host>| {
            count += 1;
            assert!(count < 3, "at the third");
            Ok(())
        };
        let settings = UnitSettings {
            name: "x".to_owned(),
            on: crate::source::EventSourceDescription::Timer(Nanos::from_millis(1)),
            device: None,
            act: Act::Read,
            priority: None,
            cpu: None,
            late_after: None,
            enabled: true,
            settable: Vec::new(),
            alarm: None,
        };
        let (unit, _log) = SchedulingUnit::new(Box::new(timer), Box::new(action), None, &timebase, 8);
        let ((placed, _in_place), (go, told_to_go)) = (channel(), channel());
        go.send(Go).expect("somebody listens");
        let (counts, failed) = serve(&settings, unit, &Host, &Mutex::new(None), placed, &told_to_go, &stop);
        // The third event arrived, but its activation is not counted. A busy machine misses some between.
        let come = counts.events - counts.missed;
        assert_eq!((come, counts.activations, counts.holds(), stop.is_set()), (3, 2, false, true));
        let failed = failed.expect("it panicked").to_string();
        assert!(failed.contains("run the unit x: it panicked: at the third"), "{failed}");
    }
}
