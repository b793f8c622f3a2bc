//! Cost and error of a calibration at start-up: one fresh process each, compared with a longer baseline.

use std::process::Command;
use std::time::Duration;

use hairspring_machine::{Clock, Host, Machine};
use hairspring_sheet::{Figure, Method, Unit};
use hairspring_time::{Bracket, Nanos, TimeSource, Timebase};
use serde_json::{Value, json};

use crate::report::statistics;

/// The baseline for all rates; a bracket of 40 ns at each end makes it exact to ±0.02 ppm.
const BASELINE: Duration = Duration::from_secs(2);

/// Converts a span of raw ticks to nanoseconds with a candidate's rate.
type Conversion = Box<dyn Fn(u64, u64) -> f64>;

pub(crate) fn process_cpu() -> Nanos {
    Host.read(Clock::ProcessCpu)
}

/// Calibrates in this process and prints one JSON object.
pub(crate) fn once(candidate: &str, before_main: Nanos) -> Result<(), String> {
    let started = (Host.monotonic(), process_cpu());
    // This call calibrates.
    let (nanos, bound_ppm): (Conversion, Option<f64>) = match candidate {
        "hairspring" | "hairspring_100ms" => {
            let mut timebase = Timebase::calibrate(Host).map_err(|error| error.to_string())?;
            if candidate == "hairspring_100ms" {
                std::thread::sleep(Duration::from_millis(96));
                timebase = timebase.refine().timebase;
            }
            let calibration = *timebase.calibration();
            (Box::new(move |from, to| (to - from) as f64 * 1e9 / calibration.rate_hz), Some(calibration.bound_ppm))
        }
        "quanta" => {
            let clock = quanta::Clock::new();
            (Box::new(move |from, to| clock.delta(from, to).as_nanos() as f64), None)
        }
        // fastant has calibrated before main; its rate is measured below.
        "fastant" => (Box::new(|_, _| f64::NAN), None),
        other => return Err(format!("find a candidate called {other}")),
    };
    let cost = (Host.monotonic() - started.0, process_cpu() - started.1);
    let (mine, truth) = if candidate == "fastant" { fastant_span() } else { span(&*nanos) };
    let value = json!({
        "wall_ns": cost.0.count(), "cpu_ns": cost.1.count(), "cpu_before_main_ns": before_main.count(),
        "error_ppm": (mine / truth - 1.0) * 1e6, "bound_ppm": bound_ppm,
    });
    println!("{value}");
    Ok(())
}

/// The length of the baseline by the candidate, and by the kernel's clock.
fn span(nanos: &dyn Fn(u64, u64) -> f64) -> (f64, f64) {
    let look = || Bracket::narrowest(&Host, TimeSource::Counter, Clock::Monotonic);
    let before = look();
    std::thread::sleep(BASELINE);
    let after = look();
    let truth = (after.clock - before.clock).count() as f64;
    // The kernel's clock was read in the middle of each bracket of ticks.
    (nanos(before.middle().raw(), after.middle().raw()), truth)
}

/// The same for fastant, which cannot convert raw ticks: its own instants between readings of the kernel's clock.
fn fastant_span() -> (f64, f64) {
    let look = || {
        (0..200)
            .map(|_| {
                let before = Host.monotonic();
                let own = fastant::Instant::now();
                let after = Host.monotonic();
                ((after - before).count(), before + Nanos::new((after - before).count() / 2), own)
            })
            .min_by_key(|(width, ..)| *width)
    };
    let before = look();
    std::thread::sleep(BASELINE);
    match (before, look()) {
        (Some((_, from, own_from)), Some((_, to, own_to))) => {
            (own_to.duration_since(own_from).as_nanos() as f64, (to - from).count() as f64)
        }
        _ => (f64::NAN, f64::NAN),
    }
}

pub(crate) fn run(quick: bool) -> Result<(), String> {
    let processes = if quick { 5 } else { 20 };
    println!(
        "## Calibration at start-up\n\n{processes} fresh processes each, judged over {BASELINE:?} against CLOCK_MONOTONIC.\n"
    );
    println!(
        "| candidate | quantity | n | min | median | p99 | max |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    );
    for candidate in ["hairspring", "hairspring_100ms", "quanta", "fastant"] {
        let children: Vec<_> = (0..processes)
            .map(|_| {
                // Started one after the other, so that the calibrations do not disturb each other; their baselines
                // overlap.
                std::thread::sleep(Duration::from_millis(60));
                let own = std::env::current_exe().map_err(|error| format!("find this program: {error}"))?;
                let child =
                    Command::new(own).args(["calibrate", candidate]).stdout(std::process::Stdio::piped()).spawn();
                child.map_err(|error| format!("start a fresh process: {error}"))
            })
            .collect::<Result<_, String>>()?;
        let mut results: Vec<Value> = Vec::new();
        for child in children {
            let output = child.wait_with_output().map_err(|error| format!("wait for a process: {error}"))?;
            results.push(serde_json::from_slice(&output.stdout).map_err(|error| format!("read a result: {error}"))?);
        }
        let rows = [
            ("wall time", "wall_ns", Unit::Ns),
            ("CPU time", "cpu_ns", Unit::Ns),
            ("CPU time before main", "cpu_before_main_ns", Unit::Ns),
            ("rate error, absolute", "error_ppm", Unit::Ppm),
            ("stated bound", "bound_ppm", Unit::Ppm),
        ];
        for (quantity, key, unit) in rows {
            let mut samples: Vec<f64> = results.iter().filter_map(|r| r[key].as_f64()).map(f64::abs).collect();
            if samples.is_empty() {
                println!("| {candidate} | {quantity} | nothing stated |||||");
                continue;
            }
            let figure = Figure::from_samples(unit, Method::Stamp, &mut samples);
            println!("| {candidate} | {quantity} | {} |", statistics(&figure));
        }
    }
    println!();
    Ok(())
}
