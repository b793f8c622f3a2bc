//! Counters of the time taken from a CPU: steal by the hypervisor, interrupts.

use std::path::PathBuf;

use super::root::{self, Root, malformed};
use crate::facts::Unread;

/// Milliseconds in a tick of the times that files under `/proc` state. The kernel converts them to `USER_HZ` = 100 for
/// its users on every architecture that is supported here, whatever its own tick rate is.
pub(super) const TICK_MS: u64 = 10;

/// Where steal stands on a `cpu` line of `/proc/stat`; before it user, nice, system, idle, iowait, irq and softirq. The
/// columns after it, guest times, are contained in the first two.
const STEAL: usize = 7;

/// Rows of `/proc/interrupts` that are not interrupts of their own: errors and misrouted ones have one count for all
/// CPUs, TLB shootdowns arrive as function calls and are counted there, machine check polls run from a timer.
const NOT_INTERRUPTS: [&str; 5] = ["ERR", "Err", "MIS", "TLB", "MCP"];

/// Time and interrupts taken from one CPU since boot: ticks of 10 ms stolen by the hypervisor (0 if there is none or it
/// does not report them), and interrupts of every kind, the local timer's included. Each row of the latter is a 32-bit
/// count that wraps, so compare by difference.
pub(crate) fn counters_steal_and_interrupts(root: &Root, cpu: u32) -> Result<(u64, u64), Unread> {
    let path = stat(root);
    let ticks = cpu_ticks(&root::text(&path)?, &format!("cpu{cpu}"))
        .ok_or_else(|| malformed(&path, &format!("no steal time of CPU {cpu}")))?;
    let path = root.proc.join("interrupts");
    let interrupts =
        interrupts(&root::text(&path)?, cpu).ok_or_else(|| malformed(&path, &format!("no interrupts of CPU {cpu}")))?;
    Ok((ticks[STEAL], interrupts))
}

/// Time that the hypervisor took from all CPUs together, also as a share of the time of all CPUs.
pub(super) fn steal_since_boot(root: &Root) -> Result<String, Unread> {
    let path = stat(root);
    let ticks = cpu_ticks(&root::text(&path)?, "cpu").ok_or_else(|| malformed(&path, "no steal time"))?;
    let all = ticks.iter().fold(0_u64, |sum, ticks| sum.saturating_add(*ticks));
    if all == 0 {
        return Err(malformed(&path, "no time has passed"));
    }
    let stolen_s = ticks[STEAL].saturating_mul(TICK_MS) as f64 / 1000.0;
    let share_percent = 100.0 * ticks[STEAL] as f64 / all as f64;
    Ok(format!("{stolen_s:.2} s, {share_percent:.3} % (in steps of {TICK_MS} ms)"))
}

/// The file with the times of the CPUs.
pub(super) fn stat(root: &Root) -> PathBuf {
    root.proc.join("stat")
}

/// The times of the line `name` of `/proc/stat`, up to and with steal.
fn cpu_ticks(stat: &str, name: &str) -> Option<[u64; STEAL + 1]> {
    let mut words =
        stat.lines().map(str::split_whitespace).find_map(|mut words| (words.next() == Some(name)).then_some(words))?;
    let mut ticks = [0; STEAL + 1];
    for tick in &mut ticks {
        *tick = words.next()?.parse().ok()?;
    }
    Some(ticks)
}

/// The interrupts in the column of `cpu` of `/proc/interrupts`. CPUs that are offline have no column.
fn interrupts(table: &str, cpu: u32) -> Option<u64> {
    let mut lines = table.lines();
    let name = format!("CPU{cpu}");
    let columns: Vec<&str> = lines.next()?.split_whitespace().collect();
    let column = columns.iter().position(|column| *column == name)?;
    let counts = lines.filter_map(|line| {
        let (label, counts) = line.split_once(':')?;
        if NOT_INTERRUPTS.contains(&label.trim()) {
            return None;
        }
        counts.split_whitespace().nth(column)?.parse::<u64>().ok()
    });
    counts.reduce(u64::saturating_add)
}
