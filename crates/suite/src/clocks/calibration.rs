//! How right the time base is: its rate, its bound, what it took, and what others say.

use hairspring_machine::{Clock, Machine, Nanos};
use hairspring_sheet::{Absent, Figure, Method, Unit};
use hairspring_time::{Source, Timebase};

use super::single;
use crate::context::{Context, Effort};
use crate::registry::{RowDeclaration, TableDeclaration};
use crate::samples::Samples;

/// Fresh calibrations that are made to see what one costs and how right it is.
const CALIBRATIONS: usize = 11;
/// The age at which the second bound is stated.
const AGE: Nanos = Nanos::from_millis(100);

pub(super) fn declare() -> TableDeclaration {
    let id = |quantity: &str| format!("clocks.calibration.{quantity}");
    let row = |quantity: &str, label: &str, unit, measures: &str| {
        RowDeclaration::new(id(quantity), label.to_owned(), unit, Method::Derived, measures.to_owned())
    };
    let stamped = |quantity: &str, label: &str, measures: &str| {
        RowDeclaration::new(id(quantity), label.to_owned(), Unit::Ns, Method::Stamp, measures.to_owned())
    };
    TableDeclaration {
        diagram: None,
        id: "clocks.calibration".to_owned(),
        title: "Calibration".to_owned(),
        limits: "11 fresh calibrations (5 with --quick); the long baseline is that of the sheet so far",
        rows: vec![
            row("rate", "counter rate", Unit::Hz, "rate of the counter against CLOCK_MONOTONIC over the whole chapter"),
            row(
                "bound",
                "its bound",
                Unit::Ppm,
                "how wrong that rate can be, from the widths of the brackets at both ends",
            ),
            row("bound_start", "bound of a fresh calibration", Unit::Ppm, "the bound right after Timebase::calibrate"),
            row(
                "bound_100ms",
                "bound at the age of 100 ms",
                Unit::Ppm,
                "the bound after refining at the age of 100 ms",
            ),
            row(
                "error_start",
                "true error of a fresh one",
                Unit::Ppm,
                "rate of fresh calibrations against that of the longest baseline of this chapter, absolute values",
            ),
            stamped("wall", "time a calibration takes", "wall time of Timebase::calibrate, most of it asleep"),
            stamped("cpu", "CPU time it takes", "CPU time of the calling thread in Timebase::calibrate"),
            row(
                "published",
                "difference to published rate",
                Unit::Ppm,
                "our rate against the finest that the hypervisor, the CPU or the kernel's log states",
            ),
            row(
                "raw",
                "MONOTONIC_RAW against MONOTONIC",
                Unit::Ppm,
                "how much faster the undisciplined clock ran: what NTP does to the kernel's clock at present",
            ),
            row(
                "kernel_frequency",
                "kernel's own rate correction",
                Unit::Ppm,
                "the correction that adjtimex states for the kernel's clock",
            ),
            row(
                "kernel_error",
                "kernel clock's error to UTC",
                Unit::Ns,
                "the maximum error that adjtimex states for the time of day; a matter apart from our bound",
            ),
        ],
    }
}

/// What fresh calibrations show; the rest follows at the end of the chapter, when the baseline has grown.
pub(super) fn measure<M: Machine + Clone + Sync>(context: &mut Context<'_, M>) {
    if !context.wants("clocks.calibration") {
        return;
    }
    context.say("calibration");
    let count = if context.effort == Effort::Quick { CALIBRATIONS / 2 } else { CALIBRATIONS };
    let mut aged = None;
    let (mut wall, mut cpu, mut bound, mut rates) = (Samples::new(), Samples::new(), Vec::new(), Vec::new());
    let began = context.machine.read(Clock::Monotonic);
    for _ in 0..count {
        let Ok(fresh) = Timebase::calibrate(context.machine.clone()) else { continue };
        wall.push_nanos(fresh.cost().wall);
        cpu.push_nanos(fresh.cost().cpu);
        bound.push(fresh.calibration().bound_ppm);
        rates.push(fresh.calibration().rate_hz);
        aged.get_or_insert(fresh);
    }
    let none = Absent::final_("no calibration succeeded: counter and kernel clock do not advance together");
    let Some(fresh) = aged else {
        for quantity in ["wall", "cpu", "bound_start", "bound_100ms", "error_start"] {
            context.absent(&format!("clocks.calibration.{quantity}"), none.clone());
        }
        return;
    };
    while context.machine.read(Clock::Monotonic) < began + AGE {
        context.machine.sleep_until(began + AGE);
    }
    let refined = fresh.refine().timebase;
    let figure = single(Unit::Ppm, refined.calibration().bound_ppm)
        .with_caveat(format!("baseline {}", refined.calibration().baseline));
    context.put("clocks.calibration.bound_100ms", figure);
    let coarse = Absent::final_("the system books CPU time in steps that are longer than a calibration takes");
    let coarse = cpu.values().contains(&0.0).then_some(coarse);
    for (id, samples) in [("clocks.calibration.wall", wall), ("clocks.calibration.cpu", cpu)] {
        if let Some(coarse) = coarse.as_ref().filter(|_| id.ends_with(".cpu")) {
            context.absent(id, coarse.clone());
            continue;
        }
        match samples.figure(Method::Stamp, &none) {
            Ok(figure) => context.put(id, figure),
            Err(absent) => context.absent(id, absent),
        }
    }
    context.put("clocks.calibration.bound_start", Figure::from_samples(Unit::Ppm, Method::Derived, &mut bound));
    // Kept as rates until the long baseline is there to judge them by.
    context.fresh_rates = rates;
}

/// The figures of the baseline that has grown over the chapter.
pub(super) fn finish<M: Machine + Clone + Sync>(context: &mut Context<'_, M>) {
    if !context.wants("clocks.calibration") {
        return;
    }
    context.refine();
    let calibration = *context.timebase.calibration();
    let baseline = format!("baseline {}", calibration.baseline);
    context.put("clocks.calibration.rate", single(Unit::Hz, calibration.rate_hz).with_caveat(&baseline));
    context.put("clocks.calibration.bound", single(Unit::Ppm, calibration.bound_ppm).with_caveat(&baseline));
    let mut errors: Vec<f64> = std::mem::take(&mut context.fresh_rates)
        .iter()
        .map(|rate| ((rate / calibration.rate_hz - 1.0) * 1e6).abs())
        .collect();
    if !errors.is_empty() {
        context.put("clocks.calibration.error_start", Figure::from_samples(Unit::Ppm, Method::Derived, &mut errors));
    }
    if calibration.source == Source::KernelClock {
        let own = Absent::final_("time is taken from the kernel's clock itself, since the counter is not trusted");
        context.absent("clocks.calibration.raw", own.clone());
        context.absent("clocks.calibration.published", own);
    } else {
        context.put("clocks.calibration.raw", single(Unit::Ppm, calibration.discipline_ppm));
        published(context, calibration.rate_hz);
    }
    match context.machine.discipline() {
        Ok(kept) => {
            let state =
                if kept.synchronized { "the kernel says: synchronized" } else { "the kernel says: not synchronized" };
            let frequency = single(Unit::Ppm, kept.frequency_ppm).with_caveat(state);
            context.put("clocks.calibration.kernel_frequency", frequency);
            let error = single(Unit::Ns, kept.most_error.count() as f64).with_caveat(state);
            context.put("clocks.calibration.kernel_error", error);
        }
        Err(unread) => {
            let absent = Absent { reason: unread.reason, remedy: unread.remedy };
            context.absent("clocks.calibration.kernel_frequency", absent.clone());
            context.absent("clocks.calibration.kernel_error", absent);
        }
    }
}

fn published<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, rate_hz: f64) {
    let rates = context.machine.published_rates();
    match rates.iter().min_by(|a, b| a.step_hz.total_cmp(&b.step_hz)) {
        Some(finest) => {
            let figure = single(Unit::Ppm, (rate_hz / finest.rate_hz - 1.0) * 1e6).with_caveat(format!(
                "{} states {:.6} MHz in steps of {} Hz",
                finest.source,
                finest.rate_hz / 1e6,
                finest.step_hz
            ));
            context.put("clocks.calibration.published", figure);
        }
        None => context.absent(
            "clocks.calibration.published",
            Absent::new(
                "neither the hypervisor nor the CPU nor a readable kernel log states a rate",
                "run as root, or `sysctl -w kernel.dmesg_restrict=0`, to read the kernel's log",
            ),
        ),
    }
}
