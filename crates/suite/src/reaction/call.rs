//! What calls of a device cost, and what a unit adds to them.

use hairspring_device::{
    AccessTimes, Activation, Device, DeviceError, Event, EventSource, Guarded, Lines, Protocol, SchedulingUnit, Stamped,
};
use hairspring_machine::{Host, Machine, Nanos};
use hairspring_sheet::{Absent, Figure, Method, Value};
use hairspring_time::{Instant, Timebase};

use super::{board, folder, refused};
use crate::context::{Class, Context};
use crate::samples::Samples;

/// Each row gets this share of the chapter's time.
const SHARE: f64 = 0.02;
/// Activations between two stamps.
const ROUNDS: u64 = 1000;

type Call = fn(&mut dyn Device) -> Result<(), DeviceError>;

const CALLS: [(&str, Call); 3] = [
    ("read", |board| board.read().map(drop)),
    ("write", |board| board.write(Lines::one(0), Lines::one(0))),
    ("init", |board| board.init()),
];

pub(super) fn measure<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, timebase: &Timebase<Host>) {
    context.say("calls of a device");
    let machine = context.machine.clone();
    let pinned = context.settings(Class::Other).apply(&machine);
    let span = context.share(SHARE);
    for (call, act) in CALLS {
        let value = calls(act, span, timebase).map_or_else(Value::Absent, Value::Figure);
        enter(context, call, value);
    }
    let value = dispatch(span, timebase).map_or_else(Value::Absent, Value::Figure);
    enter(context, "dispatch", value);
    drop(pinned);
}

fn enter<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, call: &str, value: Value) {
    let id = format!("reaction.call.{call}");
    match value {
        Value::Figure(figure) => context.put(&id, figure),
        Value::Absent(absent) => context.absent(&id, absent),
    }
}

fn calls(act: Call, span: Nanos, timebase: &Timebase<Host>) -> Result<Figure, Absent> {
    let folder = folder()?;
    let mut board = board(&folder, AccessTimes::FESA, Protocol::Inherit, timebase)?;
    board.init().map_err(refused)?;
    let mut samples = Samples::new();
    let end = timebase.now() + span;
    while before(timebase, end) && !samples.is_full() {
        let begun = timebase.stamp_ordered();
        let done = act(&mut board);
        let ended = timebase.stamp_ordered();
        done.map_err(refused)?;
        samples.push_nanos(timebase.nanos(ended.since(begun)));
    }
    samples.figure(Method::Stamp, &Absent::final_("there was no time for a single call"))
}

fn before(timebase: &Timebase<Host>, end: Instant) -> bool {
    end.since(timebase.now()).is_ok_and(|left| left > Nanos::ZERO)
}

/// Its events have come already.
struct Ready<'t> {
    timebase: &'t Timebase<Host>,
    sequence: u64,
}

impl EventSource for Ready<'_> {
    fn name(&self) -> String {
        "events that have come already".to_owned()
    }

    #[inline]
    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        self.sequence += 1;
        let wake = self.timebase.now();
        let (sequence, stamped) = (self.sequence, Stamped::Wake);
        Ok(Some(Event { at: wake, stamped, wake, waited: true, sequence, missed: 0, cycle: None }))
    }
}

/// The cost of an activation in which nothing is done, from many in a row.
fn dispatch(span: Nanos, timebase: &Timebase<Host>) -> Result<Figure, Absent> {
    let folder = folder()?;
    let open = || board(&folder, AccessTimes::ZERO, Protocol::Inherit, timebase);
    let device = Guarded::new(Box::new(open()?), Box::new(open()?));
    device.lock().and_then(|mut held| held.device().init()).map_err(refused)?;
    let action = |activation: &mut Activation<'_, '_, Host>| activation.device(|_| Ok(()));
    let source = Ready { timebase, sequence: 0 };
    let room = usize::try_from(ROUNDS).unwrap_or(usize::MAX);
    let (mut unit, mut log) = SchedulingUnit::new(Box::new(source), Box::new(action), Some(&device), timebase, room);
    let mut samples = Samples::new();
    let end = timebase.now() + span;
    while before(timebase, end) && !samples.is_full() {
        let begun = timebase.stamp_ordered();
        for _ in 0..ROUNDS {
            unit.step().map_err(refused)?;
        }
        let ended = timebase.stamp_ordered();
        samples.push(timebase.nanos(ended.since(begun)).count() as f64 / ROUNDS as f64);
        log.by_ref().for_each(drop);
    }
    if !unit.counts().holds() || unit.counts().unrecorded > 0 {
        return Err(Absent::final_("events were lost, which is a defect of hairspring"));
    }
    samples.figure(Method::Diff, &Absent::final_("there was no time for a single activation"))
}
