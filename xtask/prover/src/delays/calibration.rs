//! Proof: the stated bound of a calibration holds, in many fresh processes, and costs hardly any CPU.
//!
//! Each process calibrates at once and refines at the age of 100 ms, stating rate and bound both times. Then it sleeps
//! until it is 20 s old and measures the true rate of its own counter between the narrowest of 200 brackets at both
//! ends of these 20 s. That measurement has a bound as well, five thousand times smaller than the first one and part of
//! the comparison.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hairspring_machine::Clock;
use hairspring_time::{BRACKETS, Bracket, Host, Machine, Nanos, TimeSource, Timebase};
use serde_json::{Map, Value, json};

use crate::Verdict;

/// Time between the starts of two processes, so that they hardly disturb each other.
const APART: Duration = Duration::from_millis(250);
/// Required bounds at the ages of 5 ms and of 100 ms.
const YOUNG_PPM: f64 = 20.0;
const OLD_PPM: f64 = 1.0;
/// The share of the processes that must reach them.
const SHARE: f64 = 0.95;
/// The CPU time that a calibration may take, as the median.
const CPU_MOST_NS: i64 = 1_000_000;
/// Brackets for the true rate.
const TRUTH_BRACKETS: u32 = 200;

/// The parent: starts the processes and compares their results.
pub(crate) fn prove(processes: u32, seconds: u32) -> Verdict {
    let mut children = Vec::new();
    for _ in 0..processes {
        children.push(begin(seconds));
        std::thread::sleep(APART);
    }
    let results: Vec<Result<Value, String>> = children.into_iter().map(|child| child.and_then(end)).collect();
    let told: Vec<&Value> = results.iter().flatten().collect();
    let number = |value: &Value, key: &str| value[key].as_f64().unwrap_or(f64::NAN);
    let inside = |value: &&&Value, age: &str| {
        let error = number(value, &format!("{age}_error_ppm")).abs();
        error <= number(value, &format!("{age}_bound_ppm")) + number(value, "truth_bound_ppm")
    };
    let both_inside = told.iter().filter(|value| inside(value, "young") && inside(value, "old")).count();
    let good =
        |value: &&&Value| number(value, "young_bound_ppm") <= YOUNG_PPM && number(value, "old_bound_ppm") <= OLD_PPM;
    let in_time = told.iter().filter(good).count();
    let exceptions: Vec<&&Value> =
        told.iter().filter(|value| !good(value) || !inside(value, "young") || !inside(value, "old")).collect();
    let spread = |key: &str| {
        let mut values: Vec<f64> = told.iter().map(|value| number(value, key)).collect();
        values.sort_by(f64::total_cmp);
        json!({"min": values.first(), "median": values.get(values.len() / 2), "max": values.last()})
    };
    let cpu = spread("cpu_ns");
    let mut figures = Map::new();
    figures.insert("processes".to_owned(), json!(processes));
    figures.insert("inside_bound".to_owned(), json!(both_inside));
    figures.insert("within_20_and_1_ppm".to_owned(), json!(in_time));
    let shown = [
        "young_bound_ppm",
        "young_error_ppm",
        "old_bound_ppm",
        "old_error_ppm",
        "old_age_ns",
        "wall_ns",
        "truth_bound_ppm",
    ];
    for key in shown {
        figures.insert(key.to_owned(), spread(key));
    }
    figures.insert("exceptions".to_owned(), json!(exceptions));
    let failures: Vec<&String> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    figures.insert("failed_processes".to_owned(), json!(failures));
    let cheap = cpu["median"].as_f64().is_some_and(|median| median <= CPU_MOST_NS as f64);
    figures.insert("cpu_ns".to_owned(), cpu);
    let enough = in_time as f64 >= SHARE * f64::from(processes);
    let all = both_inside == processes as usize && processes > 0;
    Verdict { passed: all && enough && cheap, figures }
}

fn begin(seconds: u32) -> Result<Child, String> {
    let own = std::env::current_exe().map_err(|error| format!("find this program: {error}"))?;
    let mut command = Command::new(own);
    command.args(["calibration", "--child", "--seconds", &seconds.to_string()]);
    command.stdout(Stdio::piped()).spawn().map_err(|error| format!("begin a process: {error}"))
}

fn end(mut child: Child) -> Result<Value, String> {
    let mut text = String::new();
    if let Some(output) = child.stdout.as_mut() {
        output.read_to_string(&mut text).map_err(|error| format!("read a process: {error}"))?;
    }
    let status = child.wait().map_err(|error| format!("wait for a process: {error}"))?;
    let last: Value = serde_json::from_str(text.trim_end().lines().last().unwrap_or(""))
        .map_err(|error| format!("{status}, no result: {error}"))?;
    if status.success() { Ok(last["figures"].clone()) } else { Err(format!("{status}: {last}")) }
}

/// A child: calibrates, refines and measures the true rate. Its verdict only shows that it finished.
pub(crate) fn child(seconds: u32) -> Verdict {
    let began = Host.monotonic();
    let Ok(young) = Timebase::calibrate(Host) else {
        return Verdict { passed: false, figures: Map::new() };
    };
    let first = narrowest(young.source());
    Host.sleep_until(began + Nanos::from_millis(100));
    let refined = young.refine();
    let old_age = Host.monotonic() - began;
    let old = refined.timebase;
    Host.sleep_until(began + Nanos::from_secs(i64::from(seconds)));
    let last = narrowest(young.source());
    let ticks = last.middle().since(first.middle()) as f64;
    let true_hz = ticks / (last.clock - first.clock).as_secs_f64();
    let truth_bound_ppm = (first.half_width() + last.half_width()) as f64 / ticks * 1e6;
    let error_ppm = |timebase: &Timebase| (timebase.calibration().rate_hz / true_hz - 1.0) * 1e6;
    let figures = json!({
        "young_bound_ppm": young.calibration().bound_ppm,
        "young_error_ppm": error_ppm(&young),
        "old_bound_ppm": old.calibration().bound_ppm,
        "old_error_ppm": error_ppm(&old),
        "old_age_ns": old_age.count(),
        "wall_ns": young.cost().wall.count(),
        "cpu_ns": young.cost().cpu.count(),
        "true_hz": true_hz,
        "truth_bound_ppm": truth_bound_ppm,
        "continuity": format!("{:?}", refined.continuity),
    });
    let figures = figures.as_object().cloned().unwrap_or_default();
    Verdict { passed: true, figures }
}

fn narrowest(source: TimeSource) -> Bracket {
    let mut best = Bracket::narrowest(&Host, source, Clock::Monotonic);
    for _ in 1..TRUTH_BRACKETS / BRACKETS {
        let next = Bracket::narrowest(&Host, source, Clock::Monotonic);
        if next.width() < best.width() {
            best = next;
        }
    }
    best
}
