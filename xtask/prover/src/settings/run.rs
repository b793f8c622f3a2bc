//! Proof: the kernel wakes a program sooner that `hairspring run` starts with idle states off, by cyclictest's own
//! figures.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Map, json};

use crate::Verdict;
use crate::placement;
use crate::sheet::formats::command;

/// Pairs of runs, one plain and one with idle states off, in turns.
const PAIRS: usize = 5;
/// Greatest load average of the last minute at which the CPUs are idle enough for a comparison.
const LOAD_MOST: f64 = 0.5;
/// Longest wait for that.
const REST_WITHIN: Duration = Duration::from_secs(120);
/// The median may be at most this part of the plain one.
const MOST: f64 = 0.6;

/// The load average of the last minute.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// Runs cyclictest plain and under `run --set idle=off`, and compares the medians of their medians.
pub(crate) fn prove(seconds: u32) -> Verdict {
    if let Err(error) = Command::new("cyclictest").arg("--help").output() {
        return Verdict::not_run(format!("cyclictest: {error}; install rt-tests"));
    }
    let limit = hairspring_settings::IdleLatency::in_force();
    if !matches!(limit, Ok(None | Some(1..))) {
        return Verdict::not_run(format!("idle states are off already, or their limit cannot be read: {limit:?}"));
    }
    // A CPU that always has work never enters an idle state. The proof before this one has left a load average behind.
    let begun = Instant::now();
    let load = loop {
        let load = load();
        if load.is_some_and(|load| load <= LOAD_MOST) || begun.elapsed() >= REST_WITHIN {
            break load;
        }
        std::thread::sleep(Duration::from_secs(5));
    };
    if load.is_none_or(|load| load > LOAD_MOST) {
        return Verdict::not_run(format!("the machine is not at rest: its load is {load:?}, more than {LOAD_MOST}"));
    }
    let program = match command() {
        Ok(program) => program,
        Err(why) => return Verdict::not_run(why),
    };
    let loops = (seconds * 1_000).to_string();
    let cpu = placement::last_cpu().0.to_string();
    // --default-system: without it cyclictest turns idle states off itself. -h: a histogram by microseconds.
    let words =
        ["-q", "-m", "-p", "80", "-i", "1000", "-t", "1", "-a", &cpu, "-l", &loops, "-h", "2000", "--default-system"];
    let mut medians = [Vec::new(), Vec::new()];
    for pair in 0..PAIRS {
        for arm in if pair % 2 == 0 { [0, 1] } else { [1, 0] } {
            let mut run = Command::new(if arm == 0 { "cyclictest".as_ref() } else { program.as_os_str() });
            if arm == 1 {
                run.args(["run", "--set", "idle=off", "--", "cyclictest"]);
            }
            let output = match run.args(words).output() {
                Ok(output) => output,
                Err(error) => return Verdict::not_run(format!("cyclictest: {error}")),
            };
            match median(&String::from_utf8_lossy(&output.stdout)) {
                Some(median) => medians[arm].push(median),
                None => {
                    return Verdict::not_run(format!("cyclictest: {}", String::from_utf8_lossy(&output.stderr).trim()));
                }
            }
        }
    }
    medians.iter_mut().for_each(|medians| medians.sort_unstable());
    let [plain, off] = [0, 1].map(|arm| medians[arm][PAIRS / 2]);
    let ratio = f64::from(off) / f64::from(plain.max(1));
    let mut figures = Map::new();
    figures.insert("plain: medians in µs".to_owned(), json!(medians[0]));
    figures.insert("idle=off: medians in µs".to_owned(), json!(medians[1]));
    figures.insert("ratio of their medians".to_owned(), json!((ratio * 100.0).round() / 100.0));
    Verdict { passed: ratio <= MOST, figures }
}

/// The median of a histogram: lines of microseconds and counts.
fn median(said: &str) -> Option<u32> {
    let bins: Vec<(u32, u64)> = said
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (us, count) = line.split_once(' ')?;
            Some((us.trim().parse().ok()?, count.trim().parse().ok()?))
        })
        .collect();
    let all: u64 = bins.iter().map(|(_, count)| count).sum();
    let mut below = 0;
    bins.iter()
        .find(|(_, count)| {
            below += count;
            below * 2 >= all && all > 0
        })
        .map(|(us, _)| *us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_a_histogram_is_that_of_its_events() {
        assert_eq!(
            median("# /dev/cpu_dma_latency\n000001 000000\n000002 000003\n000003 000004\n000004 000000\n# Total: 7\n"),
            Some(3)
        );
        assert_eq!(median("# Histogram\n"), None);
    }
}
