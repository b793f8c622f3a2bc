//! Cost of a bridge for a station: reactions of a unit with and without the EPICS bridge beside it, in turns (ABBA).
//!
//! The station is `hairspring serve`, in a process of its own each time. This process fires its signal a thousand times
//! a second. In one half of the turns the station publishes its state and `hairspring-ioc` serves it, with a look ten
//! times a second. The figures are the station's own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hairspring_machine::{Cpu, Host, Machine};
use hairspring_station::Signal;
use hairspring_time::{Nanos, Policy, RealTime, Timebase};
use serde_json::Value;

/// Turns: without, with, with, without.
const TURNS: [bool; 4] = [false, true, true, false];
/// Number of repeats of the turns.
const ROUNDS: usize = 4;
/// Time that a station runs, in seconds.
const SECONDS: i64 = 6;
/// Between two events.
const PERIOD: Duration = Duration::from_millis(1);
/// The priority of the thread that fires: a signal is stamped before its sender wakes the unit, so a sender that is
/// preempted between the two would be counted as the unit's lateness.
const FIRES: u8 = 85;
/// The most by which the bridge may change the median.
const MOST: f64 = 0.05;

/// The station's report of its reactions in one run.
struct Reactions {
    count: u64,
    median_ns: f64,
    p99_ns: f64,
}

/// Ends a process however this ends.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn run(timebase: &Timebase, cpu: Cpu, folder: &Path, quick: bool) -> Result<(), String> {
    println!("## A bridge beside a station\n");
    let Some(command) = built("hairspring") else {
        println!("Not measured: there is no built command; run cargo build --release -p hairspring-cli.\n");
        return Ok(());
    };
    let Some(bridge) = bridge() else {
        println!("Not measured: hairspring-ioc is not in PATH; install the Python package with the extra epics.\n");
        return Ok(());
    };
    let folder = folder.join("hairspring-bridge");
    std::fs::create_dir_all(&folder).map_err(|error| format!("make {}: {error}", folder.display()))?;
    let rounds = if quick { 1 } else { ROUNDS };
    let mut measured: [Vec<Reactions>; 2] = [Vec::new(), Vec::new()];
    for is_bridged in (0..rounds).flat_map(|_| TURNS) {
        let bridge = is_bridged.then_some(bridge.as_path());
        measured[usize::from(is_bridged)].push(turn(timebase, cpu, &folder, &command, bridge)?);
    }
    let _ = std::fs::remove_dir_all(&folder);
    println!(
        "A signal each {PERIOD:?}, fired from this process; from the signal to the end of the unit's access of a virtual board. Medians of {} \
         runs of {SECONDS} s each, in turns.\n",
        rounds * 2
    );
    println!("| station | events | median, ns | p99, ns |\n|---|---:|---:|---:|");
    let of = |runs: &[Reactions], what: fn(&Reactions) -> f64| middle(runs.iter().map(what).collect());
    for (name, runs) in ["alone", "published, with the bridge"].iter().zip(&measured) {
        let count: u64 = runs.iter().map(|run| run.count).sum();
        println!("| {name} | {count} | {:.0} | {:.0} |", of(runs, |run| run.median_ns), of(runs, |run| run.p99_ns));
    }
    let [alone, bridged] = &measured;
    let change = of(bridged, |run| run.median_ns) / of(alone, |run| run.median_ns) - 1.0;
    let spread = |runs: &[Reactions]| {
        let values = || runs.iter().map(|run| run.median_ns);
        values().fold(f64::MIN, f64::max) / values().fold(f64::MAX, f64::min) - 1.0
    };
    let verdict = if change.abs() <= MOST { "within" } else { "NOT within" };
    println!(
        "\nThe bridge changes the median by {:+.1} %: {verdict} {:.0} %. Runs of the same kind differ by {:.1} % alone and {:.1} % with it.\n",
        100.0 * change,
        100.0 * MOST,
        100.0 * spread(alone),
        100.0 * spread(bridged)
    );
    Ok(())
}

/// The middle of some values, of which there is at least one.
fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) }
}

/// A program that stands beside this one.
fn built(name: &str) -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.parent()?.join(name);
    beside.is_file().then_some(beside)
}

fn bridge() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("hairspring-ioc")).find(|file| file.is_file())
}

/// Runs the station once, with or without this bridge.
fn turn(
    timebase: &Timebase,
    cpu: Cpu,
    folder: &Path,
    command: &Path,
    bridge: Option<&Path>,
) -> Result<Reactions, String> {
    let (signal, file, published) = (folder.join("signal"), folder.join("station.toml"), folder.join("published"));
    let text = format!(
        "[source.shot]\nfrom = \"signal:{}\"\n[device.board]\ndriver = \"virtual:{}\"\n[unit.look]\non = \"shot\"\ndevice = \
         \"board\"\ndo = \"read\"\npriority = 80\ncpu = {}\n",
        signal.display(),
        folder.join("board").display(),
        cpu.0
    );
    std::fs::write(&file, text).map_err(|error| format!("write {}: {error}", file.display()))?;
    let firing = Signal::open(&signal).map_err(|error| error.to_string())?;
    let mut serve = Command::new(command);
    serve.args(["serve", "--quiet", "--format", "json", "--for", &format!("{SECONDS}s")]).arg(&file);
    if bridge.is_some() {
        serve.arg("--publish").arg(&published);
    }
    let station = serve.stdout(Stdio::piped()).spawn().map_err(|error| format!("start the station: {error}"))?;
    let bridge = bridge.map(|bridge| {
        wait_for(&published.join("station.json"));
        let mut serving = Command::new(bridge);
        serving.arg(&published).args(["--port", "0", "--udp-port", "0", "--quiet"]);
        serving.spawn().map(Ends).map_err(|error| format!("start the bridge: {error}"))
    });
    let mut bridge = bridge.transpose()?;
    let other = Host.affinity().0.into_iter().find(|other| *other != cpu);
    let _fires = RealTime { policy: Some(Policy::Fifo(FIRES)), cpu: other, ..RealTime::default() }.apply(&Host);
    let end = Host.monotonic() + Nanos::from_secs(SECONDS);
    while Host.monotonic() < end {
        firing.fire(None, timebase).map_err(|error| error.to_string())?;
        std::thread::sleep(PERIOD);
    }
    if let Some(Ends(bridge)) = &mut bridge
        && let Ok(Some(status)) = bridge.try_wait()
    {
        return Err(format!("keep the bridge running: it ended with {status}"));
    }
    let output = station.wait_with_output().map_err(|error| format!("wait for the station: {error}"))?;
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("read its report: {error}"))?;
    let unit = &report["units"][0];
    let number =
        |name: &str| unit["total_ns"][name].as_f64().ok_or_else(|| format!("find total_ns.{name} in its report"));
    let count = unit["activations"].as_u64().unwrap_or_default();
    Ok(Reactions { count, median_ns: number("median")?, p99_ns: number("p99")? })
}

/// Waits until a file is there, for 10 s at most.
fn wait_for(file: &Path) {
    let end = Host.monotonic() + Nanos::from_secs(10);
    while !file.exists() && Host.monotonic() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
}
