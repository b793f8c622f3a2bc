//! The name of the host, and its load.

use super::root::{self, Root, malformed, with_remedy};
use super::{counters, fact, hypervisor, private_fact};
use crate::facts::{Fact, Unread};

/// The facts about the host.
pub(super) fn host(root: &Root) -> Vec<Fact> {
    let name = root::line(&root.proc.join("sys/kernel/hostname"));
    vec![
        private_fact("host.name", "Host name", name),
        fact("host.product", "Computer", hypervisor::product(root)),
        fact("host.os", "Operating system", os(root)),
    ]
}

/// The facts about load.
pub(super) fn read(root: &Root) -> Vec<Fact> {
    vec![
        fact("load.average", "Load averages", average(root)),
        fact("load.runnable", "Runnable threads", runnable(root)),
        fact("load.threads", "Threads", threads(root)),
        fact("load.pressure", "CPU pressure", pressure(root)),
        fact("load.uptime", "Time since boot", uptime(root)),
    ]
}

/// The name of the distribution.
fn os(root: &Root) -> Result<String, Unread> {
    let path = root.etc.join("os-release");
    root::text(&path)?
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map(|value| value.trim().trim_matches(['"', '\'']).to_owned())
        .filter(|name| !name.is_empty())
        .ok_or_else(|| malformed(&path, "no PRETTY_NAME"))
}

/// How many threads ran or waited to run, averaged over three times.
fn average(root: &Root) -> Result<String, Unread> {
    let path = root.proc.join("loadavg");
    let content = root::line(&path)?;
    let averages: Vec<&str> = content.split(' ').take(3).filter(|word| is_amount(word)).collect();
    match averages.as_slice() {
        [one, five, fifteen] => Ok(format!("{one} over 1 min, {five} over 5 min, {fifteen} over 15 min")),
        _ => Err(malformed(&path, "not three averages")),
    }
}

/// The number of threads that run or wait to run now, the reading thread included.
fn runnable(root: &Root) -> Result<String, Unread> {
    let path = counters::stat(root);
    let running = root::text(&path).and_then(|content| {
        content
            .lines()
            .find_map(|line| line.strip_prefix("procs_running ")?.trim().parse::<u64>().ok())
            .ok_or_else(|| malformed(&path, "no `procs_running` line"))
    });
    let running = running.or_else(|unread| tasks(root).map(|(running, _)| running).map_err(|_| unread))?;
    Ok(format!("{running}, the reader included"))
}

/// The number of all threads.
fn threads(root: &Root) -> Result<String, Unread> {
    tasks(root).map(|(_, all)| all.to_string())
}

/// The fourth column of `/proc/loadavg`: runnable threads and all threads.
fn tasks(root: &Root) -> Result<(u64, u64), Unread> {
    let path = root.proc.join("loadavg");
    root::line(&path)?
        .split(' ')
        .nth(3)
        .and_then(|tasks| {
            let (running, all) = tasks.split_once('/')?;
            Some((running.parse().ok()?, all.parse().ok()?))
        })
        .ok_or_else(|| malformed(&path, "no count of threads"))
}

/// Whether a word is a finite number that is not negative.
fn is_amount(word: &str) -> bool {
    word.parse::<f64>().is_ok_and(|amount| amount.is_finite() && amount >= 0.0)
}

/// The share of time in which some thread waited for a CPU.
fn pressure(root: &Root) -> Result<String, Unread> {
    let path = root.proc.join("pressure/cpu");
    let content = root::text(&path).map_err(|unread| with_remedy(unread, "boot with psi=1"))?;
    let some = content.lines().find_map(|line| line.strip_prefix("some ")).unwrap_or_default();
    let over = |key: &str| {
        let share = some.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        share.filter(|share| is_amount(share)).ok_or_else(|| malformed(&path, &format!("no `{key}` of `some`")))
    };
    Ok(format!(
        "some thread waited {} % of the last 10 s, {} % of 60 s, {} % of 300 s",
        over("avg10")?,
        over("avg60")?,
        over("avg300")?
    ))
}

/// The time since boot, suspended time included.
fn uptime(root: &Root) -> Result<String, Unread> {
    let path = root.proc.join("uptime");
    let content = root::line(&path)?;
    let seconds = content
        .split(['.', ' '])
        .next()
        .and_then(|seconds| seconds.parse::<u64>().ok())
        .ok_or_else(|| malformed(&path, "not a time"))?;
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    Ok(match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {seconds} s"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    })
}
