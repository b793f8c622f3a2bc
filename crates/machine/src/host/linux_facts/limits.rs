//! The permissions and limits of this process: real-time policies, locked memory, CPUs, idle states.
//!
//! Files under `/proc/self` describe the main thread of the process. Threads inherit its values when they start.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

use super::root::{self, Root, malformed, unread, with_remedy};
use super::{cgroup, cpu_list, fact};
use crate::facts::{Fact, Unread};

/// The bit of the capability to set real-time priorities and affinities, from `linux/capability.h`.
const CAP_SYS_NICE: u32 = 23;

/// The bit of the capability to lock memory without limit.
const CAP_IPC_LOCK: u32 = 14;

/// The facts about limits and permissions.
pub(super) fn read(root: &Root) -> Vec<Fact> {
    vec![
        fact("limits.rt_throttling", "Real-time throttling", rt_throttling(root)),
        fact(
            "limits.rtprio",
            "Real-time priority limit",
            resource(root, "Max realtime priority", |priority| priority.to_string()),
        ),
        fact("limits.memlock", "Locked memory limit", resource(root, "Max locked memory", size)),
        fact("limits.cap_sys_nice", "CAP_SYS_NICE", capability(root, CAP_SYS_NICE)),
        fact("limits.cap_ipc_lock", "CAP_IPC_LOCK", capability(root, CAP_IPC_LOCK)),
        fact("limits.timer_slack", "Timer slack of the main thread", timer_slack(root)),
        fact("limits.cgroup_cpu", "CPU limit of the control group", cgroup::cpu_limit(root)),
        fact("limits.cpus_allowed", "CPUs allowed", cpus_allowed(root)),
        fact("limits.cpu_dma_latency", "Access to /dev/cpu_dma_latency", cpu_dma_latency(root)),
    ]
}

/// How much of a period real-time threads may run before the kernel makes them wait.
fn rt_throttling(root: &Root) -> Result<String, Unread> {
    let path = |name: &str| root.proc.join("sys/kernel").join(name);
    let runtime_us: i64 = root::number(&path("sched_rt_runtime_us"))?;
    let period_us: i64 = root::number(&path("sched_rt_period_us"))?;
    if runtime_us < 0 {
        return Ok("off".to_owned());
    }
    let (runtime_ms, period_ms) = (runtime_us as f64 / 1e3, period_us as f64 / 1e3);
    Ok(format!("real-time threads may run {runtime_ms} ms of each {period_ms} ms"))
}

/// A limit of `/proc/self/limits`: the value in force, and the value to which the process may raise it.
fn resource(root: &Root, name: &str, write: impl Fn(u64) -> String) -> Result<String, Unread> {
    let path = root.proc.join("self/limits");
    let content = root::text(&path)?;
    let mut values =
        content.lines().find_map(|line| line.strip_prefix(name)).into_iter().flat_map(str::split_whitespace).map(
            |value| match value {
                "unlimited" => Some("unlimited".to_owned()),
                value => value.parse().ok().map(&write),
            },
        );
    match (values.next().flatten(), values.next().flatten()) {
        (Some(soft), Some(hard)) if soft == hard => Ok(soft),
        (Some(soft), Some(hard)) => Ok(format!("{soft} (may be raised to {hard})")),
        _ => Err(malformed(&path, &format!("no `{name}` line"))),
    }
}

/// A number of bytes in the largest unit that divides it.
fn size(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// The value of a line of `/proc/self/status`.
fn status(root: &Root, name: &str) -> Result<String, Unread> {
    let path = root.proc.join("self/status");
    root::text(&path)?
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .map(|value| value.trim().to_owned())
        .ok_or_else(|| malformed(&path, &format!("no `{name}` line")))
}

/// Whether the process holds a capability in its effective set.
fn capability(root: &Root, bit: u32) -> Result<String, Unread> {
    let path = root.proc.join("self/status");
    let effective = u64::from_str_radix(&status(root, "CapEff")?, 16)
        .map_err(|_| malformed(&path, "`CapEff` is not a hexadecimal number"))?;
    Ok(if effective >> bit & 1 == 1 { "held" } else { "not held" }.to_owned())
}

/// How much later than asked the kernel may wake a thread of an ordinary policy, to save wake-ups.
fn timer_slack(root: &Root) -> Result<String, Unread> {
    let slack_ns: u64 = root::number(&root.proc.join("self/timerslack_ns"))?;
    Ok(match slack_ns >= 1000 && slack_ns.is_multiple_of(1000) {
        true => format!("{} µs", slack_ns / 1000),
        false => format!("{slack_ns} ns"),
    })
}

/// The CPUs the process may run on, after affinity and cpuset.
fn cpus_allowed(root: &Root) -> Result<String, Unread> {
    let path = root.proc.join("self/status");
    let cpus = cpu_list::parse(&status(root, "Cpus_allowed_list")?)
        .filter(|cpus| !cpus.is_empty())
        .ok_or_else(|| malformed(&path, "`Cpus_allowed_list` is not a list of CPUs"))?;
    Ok(format!("{} ({})", cpus.len(), cpu_list::written(&cpus)))
}

/// Whether the process may keep the CPUs out of deep idle states. It opens and closes the device without writing, which
/// makes no demand.
fn cpu_dma_latency(root: &Root) -> Result<String, Unread> {
    let path = root.dev.join("cpu_dma_latency");
    access(&path, OpenOptions::new().write(true).open(&path))
}

/// Access to a device, from the result of opening it.
fn access(path: &Path, opened: io::Result<File>) -> Result<String, Unread> {
    match opened {
        Ok(_) => Ok("writable".to_owned()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Ok("present, not writable: permission denied".to_owned())
        }
        Err(error) => Err(with_remedy(unread(path, &error), "a kernel built with CONFIG_PM, and its device")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is forbidden to root, so this test checks the report of a refusal.
    #[test]
    fn a_device_that_may_not_be_opened_is_there_all_the_same() {
        let device = Path::new("/dev/cpu_dma_latency");
        let told = |errno| access(device, Err(io::Error::from_raw_os_error(errno)));
        assert_eq!(told(libc::EACCES).as_deref(), Ok("present, not writable: permission denied"));
        let unread = told(libc::ENOENT).expect_err("it is not there");
        assert_eq!(unread.reason, "/dev/cpu_dma_latency: not found");
        assert!(unread.remedy.is_some_and(|remedy| remedy.contains("CONFIG_PM")));
    }
}
