//! Accuracy of the time base: its rate, its bound, the cost of a calibration, and the rates from other sources.

use std::cell::RefCell;
use std::rc::Rc;

use hairspring_machine::{Machine, Nanos};
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_time::{TimeSource, Timebase};

use crate::probe::{Context, Effort, Probes, Reading, Row, Samples, Setting, Slot, Taken};

/// Number of fresh calibrations that measure the cost and the error of one.
const CALIBRATIONS: usize = 11;
/// The age of the second bound.
const AGE: Nanos = Nanos::from_millis(100);

/// The rows of the table, and the state that its two probes share.
#[derive(Clone)]
pub(super) struct Calibrations {
    rate: Slot,
    bound: Slot,
    bound_start: Slot,
    bound_100ms: Slot,
    error_start: Slot,
    wall: Slot,
    cpu: Slot,
    published: Slot,
    raw: Slot,
    kernel_frequency: Slot,
    kernel_error: Slot,
    /// Rates of fresh calibrations, in hertz, until a longer baseline can judge them.
    rates: Rc<RefCell<Vec<f64>>>,
}

impl Calibrations {
    pub(super) fn declare<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) -> Self {
        let table = probes.table(
            "clocks.calibration",
            "Calibration",
            "11 fresh calibrations (5 with --quick); the long baseline covers the sheet so far",
        );
        let mut row =
            |suffix, label, unit, method, measures| probes.row(table, Row::new(suffix, label, unit, method, measures));
        let (derived, stamp) = (Method::Derived, Method::Stamp);
        Self {
            rate: row(
                "rate",
                "counter rate",
                Unit::Hz,
                derived,
                "rate of the counter against CLOCK_MONOTONIC over the whole chapter",
            ),
            bound: row(
                "bound",
                "its bound",
                Unit::Ppm,
                derived,
                "the greatest error of that rate, from the widths of the brackets at both ends",
            ),
            bound_start: row(
                "bound_start",
                "bound of a fresh calibration",
                Unit::Ppm,
                derived,
                "the bound right after Timebase::calibrate",
            ),
            bound_100ms: row(
                "bound_100ms",
                "bound at the age of 100 ms",
                Unit::Ppm,
                derived,
                "the bound after refining at the age of 100 ms",
            ),
            error_start: row(
                "error_start",
                "true error of a fresh one",
                Unit::Ppm,
                derived,
                "rate of fresh calibrations against that of the longest baseline of this chapter, absolute values",
            ),
            wall: row(
                "wall",
                "time a calibration takes",
                Unit::Ns,
                stamp,
                "wall time of Timebase::calibrate, most of it asleep",
            ),
            cpu: row(
                "cpu",
                "CPU time it takes",
                Unit::Ns,
                stamp,
                "CPU time of the calling thread in Timebase::calibrate",
            ),
            published: row(
                "published",
                "difference to published rate",
                Unit::Ppm,
                derived,
                "our rate against the finest rate that the hypervisor, the CPU or the kernel's log states",
            ),
            raw: row(
                "raw",
                "MONOTONIC_RAW against MONOTONIC",
                Unit::Ppm,
                derived,
                "how much faster the undisciplined clock ran: what NTP does to the kernel's clock at present",
            ),
            kernel_frequency: row(
                "kernel_frequency",
                "kernel's own rate correction",
                Unit::Ppm,
                derived,
                "the correction that adjtimex states for the kernel's clock",
            ),
            kernel_error: row(
                "kernel_error",
                "kernel clock's error to UTC",
                Unit::Ns,
                derived,
                "the maximum error that adjtimex states for the time of day; independent of our bound",
            ),
            rates: Rc::default(),
        }
    }

    /// The probe of fresh calibrations. Their errors are known once the baseline has grown.
    pub(super) fn fresh<M: Machine + Clone + Sync + 'static>(&self, probes: &mut Probes<M>) {
        let own = self.clone();
        let slots = [own.wall, own.cpu, own.bound_start, own.bound_100ms, own.error_start];
        probes.several(Setting::AsStarted, slots, move |context| {
            context.say("calibration");
            own.calibrate(context);
        });
    }

    /// The probe of the baseline that has grown over the chapter.
    pub(super) fn grown<M: Machine + Clone + Sync + 'static>(&self, probes: &mut Probes<M>) {
        let own = self.clone();
        let slots =
            [own.rate, own.bound, own.error_start, own.published, own.raw, own.kernel_frequency, own.kernel_error];
        probes.several(Setting::AsStarted, slots, move |context| own.judge(context));
    }

    fn calibrate<M: Machine + Clone + Sync>(&self, context: &mut Context<'_, M>) {
        let count = if context.effort == Effort::Quick { CALIBRATIONS / 2 } else { CALIBRATIONS };
        let mut aged = None;
        let (mut wall, mut cpu, mut bounds) = (Samples::new(), Samples::new(), Vec::new());
        let began = context.machine.monotonic();
        for _ in 0..context.repeats(count) {
            let Ok(fresh) = Timebase::calibrate(context.machine.clone()) else { continue };
            wall.push_nanos(fresh.cost().wall);
            cpu.push_nanos(fresh.cost().cpu);
            bounds.push(fresh.calibration().bound_ppm);
            self.rates.borrow_mut().push(fresh.calibration().rate_hz);
            aged.get_or_insert(fresh);
        }
        let none = Absent::final_("no calibration succeeded: counter and kernel clock do not advance together");
        let Some(fresh) = aged else {
            for slot in [self.wall, self.cpu, self.bound_start, self.bound_100ms, self.error_start] {
                context.absent(slot, none.clone());
            }
            return;
        };
        while context.machine.monotonic() < began + AGE {
            context.machine.sleep_until(began + AGE);
        }
        let refined = fresh.refine().timebase;
        let calibration = refined.calibration();
        let reading = Reading::single(calibration.bound_ppm).with_caveat(format!("baseline {}", calibration.baseline));
        context.put(self.bound_100ms, reading);
        context.enter(self.wall, wall.taken(&none));
        let coarse = cpu.values().contains(&0.0);
        let coarse = coarse.then(|| Absent::final_("the system counts CPU time in steps longer than a calibration"));
        context.enter(self.cpu, coarse.map_or_else(|| cpu.taken(&none), Err));
        context.put(self.bound_start, Reading::samples(bounds));
    }

    fn judge<M: Machine + Clone + Sync>(&self, context: &mut Context<'_, M>) {
        context.refine();
        let calibration = *context.timebase.calibration();
        let baseline = format!("baseline {}", calibration.baseline);
        context.put(self.rate, Reading::single(calibration.rate_hz).with_caveat(&baseline));
        context.put(self.bound, Reading::single(calibration.bound_ppm).with_caveat(&baseline));
        let rates = self.rates.take();
        if !rates.is_empty() {
            let errors = rates.iter().map(|rate| ((rate / calibration.rate_hz - 1.0) * 1e6).abs());
            context.put(self.error_start, Reading::samples(errors.collect()));
        }
        if calibration.source == TimeSource::KernelClock {
            let own = Absent::final_("time comes from the kernel's clock itself, because the counter is not trusted");
            context.absent(self.raw, own.clone());
            context.absent(self.published, own);
        } else {
            context.put(self.raw, Reading::single(calibration.discipline_ppm));
            let published = published(context, calibration.rate_hz);
            context.enter(self.published, published);
        }
        match context.machine.discipline() {
            Ok(kept) => {
                let state = if kept.synchronized {
                    "the kernel says: synchronized"
                } else {
                    "the kernel says: not synchronized"
                };
                context.put(self.kernel_frequency, Reading::single(kept.frequency_ppm).with_caveat(state));
                context.put(self.kernel_error, Reading::single(kept.most_error.count() as f64).with_caveat(state));
            }
            Err(unread) => {
                let absent = Absent { reason: unread.reason, remedy: unread.remedy };
                context.absent(self.kernel_frequency, absent.clone());
                context.absent(self.kernel_error, absent);
            }
        }
    }
}

/// The difference of a rate from the finest one of another source.
fn published<M: Machine + Clone + Sync>(context: &Context<'_, M>, rate_hz: f64) -> Taken {
    let rates = context.machine.published_rates();
    match rates.iter().min_by(|a, b| a.step_hz.total_cmp(&b.step_hz)) {
        Some(finest) => Ok(Reading::single((rate_hz / finest.rate_hz - 1.0) * 1e6).with_caveat(format!(
            "{} states {:.6} MHz in steps of {} Hz",
            finest.source,
            finest.rate_hz / 1e6,
            finest.step_hz
        ))),
        None => Err(Absent::new(
            "neither the hypervisor nor the CPU nor a readable kernel log states a rate",
            "run as root, or `sysctl -w kernel.dmesg_restrict=0`, to read the kernel's log",
        )),
    }
}
