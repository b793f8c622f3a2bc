//! Proof: rows of a sheet agree with measurements of the same quantity by independent tools of this machine.
//!
//! Tool and row take turns, so that both see the same machine. A check passes if the ratio of their medians lies within
//! the factor that the two ways to measure leave open; the factor stands in the table with its reason. A tool that is
//! not installed, or that this machine refuses, is skipped with the reason. With no tool at all the proof was not run.

use std::process::Command;

use serde_json::{Map, Value, json};

use crate::sheet::rows::medians;
use crate::{Verdict, placement};

/// Number of turns of tool and row.
const TURNS: usize = 3;
/// Wake-ups of cyclictest in a turn, 1 ms each.
const LOOPS: &str = "2000";
/// Size that is copied and written in a turn.
const ARRAY_MIB: &str = "256";

/// A tool beside a row.
struct Check {
    name: &'static str,
    /// The row, and the arguments of the command before `sheet`.
    row: &'static str,
    run: &'static [&'static str],
    /// The tool, and where it comes from.
    tool: &'static [&'static str],
    package: &'static str,
    /// Reads the tool's output, in the unit of the row.
    read: fn(&str) -> Option<f64>,
    /// Limit of the ratio of row to tool, and of its inverse.
    factor: f64,
    why: &'static str,
}

/// CPU stands for the last one that may be used, DIR for a folder on a disk.
const CHECKS: [Check; 5] = [
    Check {
        name: "cyclictest, idle states as the system has them",
        row: "disturbance.wakeup.late",
        run: &[],
        tool: &["cyclictest", "-q", "-m", "-p80", "-i1000", "-t1", "-aCPU", "-l", LOOPS, "--default-system"],
        package: "rt-tests",
        read: cyclictest,
        factor: 2.0,
        why: "cyclictest reports the mean in whole µs, and the row the median",
    },
    Check {
        name: "cyclictest, idle states held off",
        row: "disturbance.wakeup.late",
        run: &["run", "--set", "idle=off", "--"],
        tool: &["cyclictest", "-q", "-m", "-p80", "-i1000", "-t1", "-aCPU", "-l", LOOPS],
        package: "rt-tests",
        read: cyclictest,
        factor: 2.0,
        why: "cyclictest reports the mean in whole µs, and the row the median",
    },
    Check {
        name: "mbw, memcpy",
        row: "transfer.memory.copy.beyond_caches.small.rate",
        run: &[],
        tool: &["taskset", "-c", "CPU", "mbw", "-q", "-a", "-t0", "-n5", ARRAY_MIB],
        package: "mbw",
        read: mbw,
        factor: 1.5,
        why: "mbw copies each array in one piece, the row in windows of 4 MiB in both directions",
    },
    Check {
        name: "fio, write of 1 MiB blocks past the page cache",
        row: "transfer.disk.write.1mib.direct.1.rate",
        run: &[],
        tool: &[
            "fio",
            "--name=check",
            "--filename=DIR/fio",
            "--rw=write",
            "--bs=1M",
            "--size=256M",
            "--iodepth=8",
            "--ioengine=io_uring",
            "--direct=1",
            "--fixedbufs=1",
            "--fallocate=native",
            "--end_fsync=1",
            "--output-format=json",
        ],
        package: "fio",
        read: fio,
        factor: 1.5,
        why: "a disk's rate varies between two files",
    },
    Check {
        name: "perf bench sched pipe, on one CPU",
        row: "executive.pthread_futex.waitwake.roundtrip.hot.idle",
        run: &[],
        tool: &["taskset", "-c", "CPU", "perf", "bench", "sched", "pipe", "-T", "-l", "100000"],
        package: "linux-perf",
        read: perf_pipe,
        factor: 3.0,
        why: "two switches each; in addition, perf writes and reads two pipes, and the row wakes and waits on two futexes",
    },
];

pub(crate) fn prove() -> Verdict {
    let mut figures = Map::new();
    let (mut passed, mut compared) = (true, 0);
    let folder = match tempfile::tempdir_in(".") {
        Ok(folder) => folder,
        Err(error) => return Verdict::not_run(format!("make a folder: {error}")),
    };
    let dir = folder.path().display().to_string();
    for check in &CHECKS {
        let said = match check.run(&dir) {
            Ok([ours, tools]) => {
                compared += 1;
                let ratio = ours / tools;
                let agrees = (1.0 / check.factor..=check.factor).contains(&ratio);
                passed &= agrees;
                let verdict = if agrees { "agree" } else { "DISAGREE" };
                let (factor, why, row) = (check.factor, check.why, check.row);
                format!(
                    "{verdict}: {row} {ours:.4e}, the tool {tools:.4e}, ratio {ratio:.2}, allowed a factor of {factor}: {why}"
                )
            }
            Err(why) => format!("skipped: {why}"),
        };
        println!("{}: {said}", check.name);
        figures.insert(check.name.to_owned(), json!(said));
    }
    if compared == 0 {
        return Verdict::not_run("none of the tools could be run".to_owned());
    }
    Verdict { passed, figures }
}

impl Check {
    /// The median of the row and that of the tool.
    fn run(&self, dir: &str) -> Result<[f64; 2], String> {
        let mut both = [Vec::new(), Vec::new()];
        for _ in 0..TURNS {
            both[1].push(self.of_tool(dir)?);
            both[0].push(self.of_row(dir)?);
        }
        Ok(both.map(|mut values| {
            values.sort_by(f64::total_cmp);
            values[TURNS / 2]
        }))
    }

    fn of_tool(&self, dir: &str) -> Result<f64, String> {
        let cpu = placement::last_cpu().0.to_string();
        let words: Vec<String> = self.tool.iter().map(|word| word.replace("CPU", &cpu).replace("DIR", dir)).collect();
        let installed = |program: &str| {
            std::env::var_os("PATH")
                .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
        };
        let program = if words[0] == "taskset" { &words[3] } else { &words[0] };
        if !installed(program) || !installed(&words[0]) {
            return Err(format!("{program} is not installed (Debian: apt-get install {})", self.package));
        }
        let output =
            Command::new(&words[0]).args(&words[1..]).output().map_err(|error| format!("{program}: {error}"))?;
        let said = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let read = (self.read)(&said).filter(|value| *value > 0.0 && output.status.success());
        let last = || said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing").trim().to_owned();
        read.ok_or_else(|| format!("{program} failed ({}): {}", output.status, last()))
    }

    fn of_row(&self, dir: &str) -> Result<f64, String> {
        let folder: &[&str] = if self.row.contains(".disk.") { &["--dir", dir] } else { &[] };
        Ok(medians(self.run, &[&["--quick"], folder].concat(), &[self.row])?[0])
    }
}

/// The mean latency, which is given in µs, in nanoseconds.
fn cyclictest(said: &str) -> Option<f64> {
    let mean = said.split("Avg:").nth(1)?.split_whitespace().next()?.parse::<f64>().ok()?;
    Some(mean * 1e3)
}

/// The median of its copies, in bytes per second; it counts in MiB, and copies once without counting.
fn mbw(said: &str) -> Option<f64> {
    let rate = |line: &str| line.split("Copy:").nth(1)?.split_whitespace().next()?.parse::<f64>().ok();
    let mut rates: Vec<f64> = said.lines().filter_map(rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).map(|rate| rate * 1_048_576.0)
}

/// The rate of its only job, in bytes per second.
fn fio(said: &str) -> Option<f64> {
    let mut values = serde_json::Deserializer::from_str(&said[said.find('{')?..]).into_iter::<Value>();
    values.next()?.ok()?["jobs"][0]["write"]["bw_bytes"].as_f64()
}

/// Time of a message there and back, which is given in µs, in nanoseconds.
fn perf_pipe(said: &str) -> Option<f64> {
    let line = said.lines().find(|line| line.contains("usecs/op"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tools_print_is_read_in_the_unit_of_the_row() {
        let said = "# /dev/cpu_dma_latency set to 0us\nT: 0 ( 8113) P:80 I:1000 C:   2000 Min:      4 Act:    7 Avg:    6 Max:      67\n";
        assert_eq!(cyclictest(said), Some(6_000.0));
        let said = "0\tMethod: MEMCPY\tElapsed: 0.1\tMiB: 256.0\tCopy: 2048.000 MiB/s\n1\tMethod: MEMCPY\tElapsed: 0.1\tMiB: 256.0\tCopy: 4096.000 MiB/s\n";
        assert_eq!(mbw(said), Some(4096.0 * 1_048_576.0));
        let said = "note: a warning\n{\"jobs\": [{\"write\": {\"bw_bytes\": 1000}}]}\nmore";
        assert_eq!(fio(said), Some(1000.0));
        let said = "# Running 'sched/pipe' benchmark:\n     Total time: 0.510 [sec]\n\n       5.102000 usecs/op\n         196001 ops/sec\n";
        assert_eq!(perf_pipe(said), Some(5_102.0));
        for read in [cyclictest, mbw, fio, perf_pipe] {
            assert_eq!(read("it failed"), None);
        }
    }
}
