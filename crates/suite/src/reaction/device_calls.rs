//! Cost of device calls, and the overhead of a unit.

use hairspring_device::{AccessTimes, Device, DeviceError, Guarded, Lines, Protocol};
use hairspring_machine::{Host, Machine, Nanos};
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_station::{Activation, Event, EventSource, SchedulingUnit, Stamped};
use hairspring_time::{HeldTimebase, Instant, Timebase};

use super::{board, folder, refused};
use crate::probe::{Class, Probes, Reading, Row, Samples, Setting, Taken, spin};

/// Each row gets this share of the chapter's time.
const SHARE: f64 = 0.02;
/// Activations between two stamps.
const ROUNDS: u64 = 1000;

type Call = fn(&mut dyn Device) -> Result<(), DeviceError>;

/// The calls: segment, description, and the call.
const CALLS: [(&str, &str, Call); 3] = [
    ("read", "read the input lines", |board| board.read().map(drop)),
    ("write", "write the output lines", |board| board.write(Lines::one(0), Lines::one(0))),
    ("init", "initialise the board", |board| board.init()),
];

/// A probe of each call, and one of a unit's overhead.
pub(super) fn add<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) {
    let table = probes.table(
        "reaction.call",
        "Device calls, on a virtual board with the access times of FESA's (1.25, 1.25 and 3.75 µs)",
        "at most 20,000 samples, and a fiftieth of the chapter's time",
    );
    let setting = Setting::Class(Class::Other);
    for (call, measures, act) in CALLS {
        let row = Row::new(call, call, Unit::Ns, Method::Stamp, measures);
        probes.one_on_host(setting, table, row, move |context, timebase| {
            context.say("calls of a device");
            calls(act, context.share(SHARE), timebase)
        });
    }
    let measures = "the whole work of a unit for a pending event: take it, stamp every stage, lock and unlock an \
                    idle board that is not accessed, and put the stamps into the ring; the mean of 1,000 events";
    let row = Row::new("dispatch", "dispatch", Unit::Ns, Method::Mean, measures);
    probes.one_on_host(setting, table, row, |context, timebase| dispatch(context.share(SHARE), timebase));
}

fn calls(act: Call, span: Nanos, timebase: &Timebase<Host>) -> Taken {
    let folder = folder()?;
    let mut board = board(&folder, AccessTimes::FESA, Protocol::Inherit, timebase)?;
    board.init().map_err(refused)?;
    let mut samples = Samples::new();
    let end = timebase.now() + span;
    while before(timebase, end) && !samples.is_full() {
        let begun = timebase.stamp_ordered();
        let done = act(&mut board);
        spin(0, 1);
        let ended = timebase.stamp_ordered();
        done.map_err(refused)?;
        samples.push_nanos(timebase.nanos(ended.since(begun)));
    }
    samples.taken(&Absent::final_("there was no time for a single call"))
}

fn before(timebase: &Timebase<Host>, end: Instant) -> bool {
    end.since(timebase.now()).is_ok_and(|left| left > Nanos::ZERO)
}

/// A source whose events are already pending.
struct Ready<'t> {
    timebase: HeldTimebase<'t, Host>,
    sequence: u64,
}

impl EventSource<Host> for Ready<'_> {
    fn name(&self) -> String {
        "pending events".to_owned()
    }

    fn adopt(&mut self, successor: Timebase<Host>) {
        self.timebase.adopt(successor);
    }

    #[inline]
    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        self.sequence += 1;
        let wake = self.timebase.now();
        let (sequence, stamped) = (self.sequence, Stamped::Wake);
        Ok(Some(Event { at: wake, stamped, wake, waited: true, sequence, missed: 0, cycle: None }))
    }
}

/// The cost of an empty activation, from many in a row.
fn dispatch(span: Nanos, timebase: &Timebase<Host>) -> Taken {
    let folder = folder()?;
    let open = || board(&folder, AccessTimes::ZERO, Protocol::Inherit, timebase);
    let device = Guarded::new(Box::new(open()?), Box::new(open()?));
    device.lock().and_then(|mut held| held.device().init()).map_err(refused)?;
    let action = |activation: &mut Activation<'_, '_, Host>| activation.device(|_| Ok(()));
    let source = Ready { timebase: HeldTimebase::Lent(timebase), sequence: 0 };
    let room = usize::try_from(ROUNDS).unwrap_or(usize::MAX);
    let (mut unit, mut log) = SchedulingUnit::new(Box::new(source), Box::new(action), Some(&device), timebase, room);
    let mut samples = Samples::new();
    let end = timebase.now() + span;
    while before(timebase, end) && !samples.is_full() {
        let begun = timebase.stamp_ordered();
        for _ in 0..ROUNDS {
            unit.step().map_err(refused)?;
        }
        spin(0, ROUNDS);
        let ended = timebase.stamp_ordered();
        samples.push(timebase.nanos(ended.since(begun)).count() as f64 / ROUNDS as f64);
        log.by_ref().for_each(drop);
    }
    if !unit.counts().holds() || unit.counts().unrecorded > 0 {
        return Err(Absent::final_("events were lost, which is a defect of hairspring"));
    }
    if samples.len() == 0 {
        return Err(Absent::final_("there was no time for a single activation"));
    }
    Ok(Reading::means(samples.values().to_vec(), ROUNDS as f64))
}
