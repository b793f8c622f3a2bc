//! [`SchedulingUnit`]: runs an action for every event of a source, and accounts for each.
//!
//! **Problem.** An event from outside releases an action that drives a device. Between them lie a wake-up, the thread's
//! priority, a contended lock, and the previous action. The operator wants to know the outcome of each event and the
//! cause of each delay.
//!
//! **Solution.** The action runs in the thread that waits for the source: one wake-up lies between event and action,
//! and the thread's priority is the action's. Each stage is stamped ([`Stages`]) and put into a ring of bounded size,
//! which another thread empties; when it is full the stamps are lost and counted, and the unit does not wait.
//!
//! **What is counted** ([`Counts`]). Every event is acted upon, missed, or skipped because the unit is disabled:
//! `events = activations + missed + skipped`. Events are counted by the numbers of their source, before the action
//! runs; so a lost or repeated event shows, and one whose action panicked. An activation is *late* if its action began
//! later after the event than allowed. It is *overrun* if its event arrived before the previous action had ended: by
//! its stamp, or because it was there when the unit waited again. Both still run.
//!
//! **Real-time behaviour.** A [`step`](SchedulingUnit::step) allocates nothing itself; the action may. The caller sets
//! the thread's policy and CPU ([`RealTime`](hairspring_time::RealTime)).
//!
//! It works without threads, too: on [`Sim`](hairspring_machine::Sim) a test calls `step` with a source of its own.

mod stages;

pub use stages::{Access, Stages};

use hairspring_device::{Device, DeviceError, Guarded};
use hairspring_machine::{Machine, Nanos, Ticks};
use hairspring_time::{HeldTimebase, Instant, Timebase};
use rtrb::{Consumer, Producer, PushError, RingBuffer};

use crate::event::Event;
use crate::property::{Property, PropertyIntake, PropertyValues};
use crate::source::EventSource;

/// Default capacity of the stage ring: 0.4 s at 10 kHz.
pub const RING_USUAL: usize = 4096;

/// The account of a unit's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Event numbers that the source has given out.
    pub events: u64,
    /// Actions that were run to their end, whether they succeeded or not.
    pub activations: u64,
    /// Events without an action.
    pub missed: u64,
    /// Actions that began later than allowed: the late ones.
    pub delayed: u64,
    /// Events that arrived before the previous action had ended.
    pub overrun: u64,
    /// Activations whose stamps found the ring full.
    pub unrecorded: u64,
    /// Events that arrived while the unit was disabled: no action ran.
    pub skipped: u64,
}

impl Counts {
    /// Whether every event is accounted for.
    pub fn holds(&self) -> bool {
        self.events == self.activations + self.missed + self.skipped
    }
}

/// One release of an action: its event, and the access to the device.
#[derive(Debug)]
pub struct Activation<'a, 'd, M: Machine> {
    event: Event,
    device: Option<&'a Guarded<'d>>,
    timebase: &'a Timebase<M>,
    /// Requested, granted, done: turned into instants when the action is over.
    access: Option<[Ticks; 3]>,
    /// Values in force for this event, if the unit has settable properties.
    values: Option<PropertyValues>,
}

impl<'a, M: Machine> Activation<'a, '_, M> {
    /// The event that released it.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The time base.
    pub fn timebase(&self) -> &'a Timebase<M> {
        self.timebase
    }

    /// The value of a property that is in force for this event; `None` if the unit has no settable properties.
    pub fn property(&self, property: Property) -> Option<i64> {
        self.values.map(|values| values.of(property))
    }

    /// Does something with the unit's device, under its lock. The first request and the end of the last access are
    /// stamped.
    ///
    /// # Errors
    /// The unit has no device, the lock is refused, or `act` fails.
    pub fn device<R>(&mut self, act: impl FnOnce(&mut dyn Device) -> Result<R, DeviceError>) -> Result<R, DeviceError> {
        let Some(device) = self.device else {
            return Err(DeviceError {
                attempted: "use a device".to_owned(),
                said: "the unit has none".to_owned(),
                remedy: "give it one",
            });
        };
        let requested = self.timebase.stamp();
        let mut held = device.lock()?;
        let granted = self.timebase.stamp();
        let result = act(held.device());
        let done = self.timebase.stamp();
        drop(held);
        let [requested, granted, _] = self.access.unwrap_or([requested, granted, done]);
        self.access = Some([requested, granted, done]);
        result
    }
}

/// Action of a unit for each event.
pub trait Action<M: Machine>: Send {
    /// Does it.
    ///
    /// # Errors
    /// The device fails: the unit ends.
    fn run(&mut self, activation: &mut Activation<'_, '_, M>) -> Result<(), DeviceError>;
}

impl<M: Machine, F: FnMut(&mut Activation<'_, '_, M>) -> Result<(), DeviceError> + Send> Action<M> for F {
    fn run(&mut self, activation: &mut Activation<'_, '_, M>) -> Result<(), DeviceError> {
        self(activation)
    }
}

/// The stages of a unit, in order; `next` is `None` while there are no new ones. Real-time safe.
#[derive(Debug)]
pub struct StageLog(Consumer<Stages>);

impl Iterator for StageLog {
    type Item = Stages;

    fn next(&mut self) -> Option<Stages> {
        self.0.pop().ok()
    }
}

/// A source, an action, and the counts of their events.
pub struct SchedulingUnit<'a, 'd, M: Machine> {
    source: Box<dyn EventSource<M> + 'a>,
    action: Box<dyn Action<M> + 'a>,
    device: Option<&'a Guarded<'d>>,
    timebase: HeldTimebase<'a, M>,
    late_after: Option<Nanos>,
    counts: Counts,
    /// The number before its first event.
    before: u64,
    /// End of the previous action.
    last_end: Option<Instant>,
    ring: Producer<Stages>,
    intake: Option<PropertyIntake>,
}

impl<M: Machine> std::fmt::Debug for SchedulingUnit<'_, '_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SchedulingUnit").field("source", &self.source.name()).finish_non_exhaustive()
    }
}

impl<'a, 'd, M: Machine> SchedulingUnit<'a, 'd, M> {
    /// Binds a source to an action. The returned log delivers its stages and has room for `ring` of them.
    pub fn new(
        source: Box<dyn EventSource<M> + 'a>,
        action: Box<dyn Action<M> + 'a>,
        device: Option<&'a Guarded<'d>>,
        timebase: &'a Timebase<M>,
        ring: usize,
    ) -> (Self, StageLog) {
        let (producer, consumer) = RingBuffer::new(ring.max(1));
        let (before, counts) = (source.begins_after(), Counts::default());
        let (late_after, last_end, ring) = (None, None, producer);
        let timebase = HeldTimebase::Lent(timebase);
        let unit = Self { source, action, device, timebase, late_after, counts, before, last_end, ring, intake: None };
        (unit, StageLog(consumer))
    }

    /// Counts activations as late that begin later than this after their event.
    #[must_use]
    pub fn late_after(self, late_after: Nanos) -> Self {
        Self { late_after: Some(late_after), ..self }
    }

    /// Takes values of its properties from this queue, at each event.
    #[must_use]
    pub(crate) fn with_properties(self, intake: PropertyIntake) -> Self {
        Self { intake: Some(intake), ..self }
    }

    /// Uses this successor of its time base from now on, and so does its source; see [`HeldTimebase`]. Call it between
    /// two steps. Allocates; not real-time safe.
    pub fn adopt(&mut self, successor: Timebase<M>)
    where
        M: Clone,
    {
        self.source.adopt(successor.clone());
        self.timebase.adopt(successor);
    }

    /// Counts of the events by outcome, up to now.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Waits for an event and runs the action; `false` after a stop, or when the source has ended.
    ///
    /// # Errors
    /// The source or the action fails.
    pub fn step(&mut self) -> Result<bool, DeviceError> {
        let Some(event) = self.source.wait()? else { return Ok(false) };
        // Count it before the action: after a panic the event remains without an outcome.
        self.counts.events = event.sequence.saturating_sub(self.before);
        self.counts.missed += event.missed;
        let values = self.intake.as_mut().map(|intake| intake.at(event.cycle));
        if let Some(values) = values {
            let late_after = values.of(Property::LateAfter);
            self.late_after = (late_after >= 0).then(|| Nanos::new(late_after));
            if values.of(Property::Enable) == 0 {
                self.skip(&event);
                return Ok(true);
            }
        }
        let mut activation = Activation { event, device: self.device, timebase: &self.timebase, access: None, values };
        let start = self.timebase.stamp();
        let result = self.action.run(&mut activation);
        let end = self.timebase.now();
        let access = activation.access.map(|stamps| {
            let [requested, granted, done] = stamps.map(|stamp| self.timebase.instant(stamp));
            Access { requested, granted, done }
        });
        let mut stages = Stages { access, end, ..Stages::begin(&event, self.timebase.instant(start)) };
        self.account(&mut stages, &event);
        if let Err(PushError::Full(_)) = self.ring.push(stages) {
            self.counts.unrecorded += 1;
        }
        result.map(|()| true)
    }

    /// Counts an event that arrived while the unit was disabled.
    fn skip(&mut self, event: &Event) {
        self.counts.skipped += 1;
        let stages = Stages { skipped: true, counts: self.counts, ..Stages::begin(event, event.wake) };
        // A full ring loses the stamps of an event without an activation.
        let _ = self.ring.push(stages);
    }

    fn account(&mut self, stages: &mut Stages, event: &Event) {
        self.counts.activations += 1;
        let began = stages.start.since(stages.event).ok();
        stages.late = self.late_after.zip(began).is_some_and(|(allowed, began)| began > allowed);
        let is_over = |end: Instant| event.waited || end.since(event.at).is_ok_and(|over| over > Nanos::ZERO);
        stages.overrun = self.last_end.is_some_and(is_over);
        self.counts.delayed += u64::from(stages.late);
        self.counts.overrun += u64::from(stages.overrun);
        self.last_end = Some(stages.end);
        stages.counts = self.counts;
    }

    /// Runs until the source ends.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn run(&mut self) -> Result<(), DeviceError> {
        while self.step()? {}
        Ok(())
    }
}
