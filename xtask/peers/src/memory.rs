//! Copies of memory: ours beside `mbw` (the C library's copy) and `likwid-bench` (non-temporal stores), in the same
//! run.
//!
//! The two count differently: mbw reports MiB copied per second, likwid-bench 10⁶ bytes read or written, which is twice
//! the bytes copied. All figures here are bytes copied.

use std::ops::ControlFlow;
use std::process::Command;

use hairspring_ring::{Bytes, Pages};
use hairspring_sheet::render::quantity;
use hairspring_sheet::{Figure, Method, Unit};
use hairspring_suite::interleaving::{interleave, median};
use hairspring_suite::transfer::{Arena, Operation, non_temporal_stores};
use hairspring_time::{Cpu, Host, Machine, RealTime, Timebase};

use crate::report::statistics;

/// Each of the two arrays.
const ARRAY: Bytes = Bytes::mib(256);
const ARRAY_QUICK: Bytes = Bytes::mib(64);
/// Rounds; every candidate has its turn in each.
const ROUNDS: usize = 7;
const ROUNDS_QUICK: usize = 5;
/// Copies of one turn; the median counts.
const COPIES: usize = 3;
/// The goal: our rate as a share of the peer's.
const GOAL: f64 = 0.95;

/// A candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Candidate {
    Ours(Operation, Pages),
    Mbw,
    Likwid,
}

const CANDIDATES: [Candidate; 6] = [
    Candidate::Ours(Operation::Copy, Pages::Small),
    Candidate::Ours(Operation::Copy, Pages::Transparent),
    Candidate::Mbw,
    Candidate::Ours(Operation::CopyNt, Pages::Small),
    Candidate::Ours(Operation::CopyNt, Pages::Transparent),
    Candidate::Likwid,
];

impl Candidate {
    fn name(self) -> String {
        match self {
            Self::Ours(operation, pages) => format!("**hairspring {}**, {pages}", operation.name()),
            Self::Mbw => "mbw, memcpy".to_owned(),
            Self::Likwid => format!("likwid-bench {}", kernel()),
        }
    }
}

/// The kernel of likwid-bench with the same stores as ours.
fn kernel() -> &'static str {
    match non_temporal_stores() {
        stores if stores.starts_with("AVX-512") => "copy_mem_avx512",
        stores if stores.starts_with("AVX") => "copy_mem_avx",
        stores if stores.starts_with("SSE") => "copy_mem_sse",
        _ => "copy_mem",
    }
}

/// The rates of a candidate, in bytes copied in a second, or why there are none.
type Rates = Result<Vec<f64>, String>;

pub(crate) fn run(timebase: &Timebase, quick: bool) {
    let (array, rounds) = if quick { (ARRAY_QUICK, ROUNDS_QUICK) } else { (ARRAY, ROUNDS) };
    // likwid-bench takes the first CPU that it may use; children inherit the placement of this thread.
    let cpu = Host.affinity().0.first().copied().unwrap_or(Cpu(0));
    let _pinned = RealTime { cpu: Some(cpu), ..RealTime::default() }.apply(&Host);
    let mut arenas: Vec<(Pages, Result<Arena, String>)> = [Pages::Small, Pages::Transparent]
        .map(|pages| (pages, Arena::new(Bytes(array.0 * 2), pages).map_err(|absent| absent.reason)))
        .into();
    let mut results: [Rates; CANDIDATES.len()] = std::array::from_fn(|_| Ok(Vec::new()));
    let complete = interleave(rounds, CANDIDATES.len(), |turn| {
        if turn.first {
            eprintln!("copies of memory, round {} of {rounds}", turn.round + 1);
        }
        if let Ok(rates) = &mut results[turn.candidate] {
            let taken = match CANDIDATES[turn.candidate] {
                Candidate::Ours(operation, pages) => ours(timebase, &mut arenas, operation, pages, array),
                Candidate::Mbw => mbw(array),
                Candidate::Likwid => likwid(array),
            };
            match taken {
                Ok(rate) => rates.push(rate),
                Err(why) => results[turn.candidate] = Err(why),
            }
        }
        ControlFlow::<()>::Continue(())
    });
    debug_assert!(complete.is_continue());
    print(&results, array, rounds, cpu);
}

fn ours(
    timebase: &Timebase,
    arenas: &mut [(Pages, Result<Arena, String>)],
    operation: Operation,
    pages: Pages,
    array: Bytes,
) -> Result<f64, String> {
    let arena = arenas.iter_mut().find(|(kind, _)| *kind == pages).map(|(_, arena)| arena);
    let arena = arena.ok_or("no such pages")?.as_mut().map_err(|why| why.clone())?;
    let rates = [0.0; COPIES].map(|_| {
        let before = timebase.stamp_ordered();
        arena.repeat(operation, array, 1);
        let took = timebase.nanos(timebase.stamp_ordered().since(before));
        array.0 as f64 * 1e9 / took.count().max(1) as f64
    });
    Ok(median(&rates))
}

fn mbw(array: Bytes) -> Result<f64, String> {
    let mib = (array.0 >> 20).to_string();
    let output = output("mbw", &["-a", "-t0", "-n", &COPIES.to_string(), &mib])?;
    let rates = mbw_rates(&output);
    if rates.len() == COPIES { Ok(median(&rates)) } else { Err(unread("mbw", &output)) }
}

fn likwid(array: Bytes) -> Result<f64, String> {
    let work = format!("S0:{}kB:1", array.0 * 2 / 1000);
    let output = output("likwid-bench", &["-t", kernel(), "-w", &work])?;
    likwid_rate(&output).ok_or_else(|| unread("likwid-bench", &output))
}

/// Bytes copied in a second by each run: `0 Method: MEMCPY Elapsed: 0.01434 MiB: 64.00000 Copy: 4462.107 MiB/s`, with
/// tabs.
fn mbw_rates(output: &str) -> Vec<f64> {
    let rate = |line: &str| {
        let (_, rate) = line.split_once("Copy:")?;
        rate.trim().strip_suffix("MiB/s")?.trim().parse::<f64>().ok()
    };
    let runs = output.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    runs.filter_map(rate).map(|mib| mib * f64::from(1 << 20)).collect()
}

/// Bytes copied in a second: half of `MByte/s: 15644.53`, with tabs.
fn likwid_rate(output: &str) -> Option<f64> {
    let line = output.lines().find_map(|line| line.strip_prefix("MByte/s:"))?;
    line.trim().parse::<f64>().ok().map(|megabytes| megabytes * 1e6 / 2.0)
}

fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(format!(
            "{program} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("no word")
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let package = if program == "mbw" { "mbw" } else { "likwid" };
            Err(format!("{program} is not installed (Debian: apt install {package})"))
        }
        Err(error) => Err(format!("{program} did not start: {error}")),
    }
}

fn unread(program: &str, output: &str) -> String {
    format!("what {program} said has no rate in it: {}", output.lines().last().unwrap_or("nothing"))
}

fn print(results: &[Rates; CANDIDATES.len()], array: Bytes, rounds: usize, cpu: Cpu) {
    println!("## Copies of memory\n");
    println!(
        "Bytes copied in a second from one array of {array} to another, on CPU {}; {rounds} rounds, each in its own random order; each \
         candidate has its turn. Ours uses {}. The peers' pages are the kernel's choice.\n",
        cpu.0,
        non_temporal_stores()
    );
    println!("| candidate | n | min | median | p99 | max |\n| --- | ---: | ---: | ---: | ---: | ---: |");
    for (candidate, rates) in CANDIDATES.iter().zip(results) {
        match rates {
            Ok(rates) => {
                let figure = Figure::from_samples(Unit::BytesPerS, Method::Rate, &mut rates.clone());
                println!("| {} | {} |", candidate.name(), statistics(&figure));
            }
            Err(why) => println!("| {} | n/a: {why} |||||", candidate.name()),
        }
    }
    println!();
    for (operation, peer) in [(Operation::Copy, Candidate::Mbw), (Operation::CopyNt, Candidate::Likwid)] {
        for pages in [Pages::Small, Pages::Transparent] {
            let ours = Candidate::Ours(operation, pages);
            println!("* {}", goal(results, ours, peer));
        }
    }
    println!();
}

/// Our rate over the peer's: the median of the ratios of the rounds.
fn goal(results: &[Rates; CANDIDATES.len()], ours: Candidate, peer: Candidate) -> String {
    let of = |wanted: Candidate| CANDIDATES.iter().position(|candidate| *candidate == wanted).map(|at| &results[at]);
    let name = format!("{} over {}", ours.name(), peer.name());
    let (Some(Ok(own)), Some(Ok(others))) = (of(ours), of(peer)) else { return format!("{name}: n/a") };
    let ratios: Vec<f64> = own.iter().zip(others).map(|(own, other)| own / other).collect();
    let ratio = median(&ratios);
    let verdict = if ratio >= GOAL { "reached" } else { "**not reached**" };
    format!("{name}: {}, goal {} {verdict}", quantity(ratio, Unit::Ratio), quantity(GOAL, Unit::Ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mbw_prints_is_read_as_bytes_copied() {
        let output = "Long uses 8 bytes. Allocating 2*8388608 elements = 134217728 bytes of memory.\n\
                      Getting down to business... Doing 2 runs per test.\n\
                      0\tMethod: MEMCPY\tElapsed: 0.01434\tMiB: 64.00000\tCopy: 4462.107 MiB/s\n\
                      1\tMethod: MEMCPY\tElapsed: 0.01398\tMiB: 64.00000\tCopy: 4096.000 MiB/s\n\
                      AVG\tMethod: MEMCPY\tElapsed: 0.01416\tMiB: 64.00000\tCopy: 4518.953 MiB/s\n";
        assert_eq!(mbw_rates(output), [4462.107 * 1_048_576.0, 4_294_967_296.0]);
        assert_eq!(mbw_rates("mbw: not enough memory\n"), [0.0; 0]);
    }

    #[test]
    fn what_likwid_prints_is_halved_because_it_counts_reads_and_writes() {
        let output = "Data volume (Byte):\t16384000000\nMByte/s:\t\t15644.53\nCycles per update:\t2.659023\n";
        assert_eq!(likwid_rate(output), Some(7_822_265_000.0));
        assert_eq!(likwid_rate("MFlops/s:\t\t0.00\n"), None);
    }
}
