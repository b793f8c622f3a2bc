//! Facts about the kernel and its set-up: version, preemption, tick, clock source, mitigations, steal.

use std::path::PathBuf;

use super::root::{self, Root, malformed, with_remedy};
use super::{command_line, counters, fact, hypervisor, private_fact};
use crate::facts::{Fact, Unread};

/// The facts about the kernel.
pub(super) fn read(root: &Root) -> Vec<Fact> {
    vec![
        fact("kernel.release", "Kernel release", release(root)),
        fact("kernel.version", "Kernel version", version(root)),
        private_fact("kernel.command_line", "Kernel command line", command_line::read(root)),
        fact("kernel.preemption", "Preemption model", preemption(root)),
        fact("kernel.tick_rate", "Tick rate (HZ)", tick_rate(root)),
        fact("kernel.clocksource", "Clock source", clocksource(root)),
        fact("kernel.clocksources", "Clock sources available", clocksources(root)),
        fact("kernel.mitigations", "Mitigations", mitigations(root)),
        fact("kernel.hypervisor", "Hypervisor", hypervisor::read(root)),
        fact("kernel.steal", "CPU time stolen since boot", counters::steal_since_boot(root)),
        fact("kernel.huge_pages", "Transparent huge pages", huge_pages(root)),
    ]
}

/// The clock source the kernel keeps time by at this moment.
pub(crate) fn clocksource(root: &Root) -> Result<String, Unread> {
    root::line(&clocksource_file(root, "current_clocksource"))
}

/// The clock sources that could be chosen instead.
fn clocksources(root: &Root) -> Result<String, Unread> {
    root::line(&clocksource_file(root, "available_clocksource"))
}

/// A file of the one clock source device there is.
fn clocksource_file(root: &Root, name: &str) -> PathBuf {
    root.sys.join("devices/system/clocksource/clocksource0").join(name)
}

/// The release, for instance `6.12.9-rt5`.
fn release(root: &Root) -> Result<String, Unread> {
    root::line(&root.proc.join("sys/kernel/osrelease"))
}

/// The build: its number, the flags it was built with and its date. Unlike `/proc/version` it does not name who built
/// it.
fn version(root: &Root) -> Result<String, Unread> {
    root::line(&root.proc.join("sys/kernel/version"))
}

/// The kernel's preemption model, with the source: the first source that knows it.
fn preemption(root: &Root) -> Result<String, Unread> {
    if root::line(&root.sys.join("kernel/realtime")).is_ok_and(|flag| flag == "1") {
        return Ok("real-time (/sys/kernel/realtime)".to_owned());
    }
    let unread = match root::chosen(&root.sys.join("kernel/debug/sched/preempt")) {
        Ok(current) => return Ok(format!("{current} (/sys/kernel/debug/sched/preempt)")),
        Err(unread) => unread,
    };
    let version = version(root)?;
    let has = |flag: &str| version.split_whitespace().any(|word| word == flag);
    // Kernels before 5.3 with the real-time patches wrote two words.
    if has("PREEMPT_RT") || (has("PREEMPT") && has("RT")) {
        return Ok("real-time (version string)".to_owned());
    }
    if has("PREEMPT_DYNAMIC") {
        return preemption_at_boot(root).ok_or_else(|| Unread {
            reason: format!("{}; the version string says no more than PREEMPT_DYNAMIC", unread.reason),
            remedy: Some("as root: mount -t debugfs none /sys/kernel/debug, and run as root".to_owned()),
        });
    }
    if has("PREEMPT") {
        return Ok("full, or lazy since Linux 6.13 (version string)".to_owned());
    }
    Ok("none or voluntary (no PREEMPT in the version string)".to_owned())
}

/// The model that a kernel which can switch it started with: as asked for on the command line, else as it was built.
fn preemption_at_boot(root: &Root) -> Option<String> {
    if let Ok(Some(asked)) = command_line::option(root, "preempt") {
        return Some(format!("{asked} at boot, dynamic (command line)"));
    }
    let configuration = configuration(root).ok()?;
    let models =
        [("PREEMPT_NONE", "none"), ("PREEMPT_VOLUNTARY", "voluntary"), ("PREEMPT_LAZY", "lazy"), ("PREEMPT", "full")];
    let (_, model) = models.iter().find(|(name, _)| setting(&configuration, &format!("CONFIG_{name}")) == Some("y"))?;
    Some(format!("{model} at boot, dynamic (kernel configuration)"))
}

/// How often the kernel's tick fires. `USER_HZ`, which `sysconf` returns, is another number.
fn tick_rate(root: &Root) -> Result<String, Unread> {
    let configuration = configuration(root)?;
    let hz: u32 = setting(&configuration, "CONFIG_HZ")
        .and_then(|hz| hz.parse().ok())
        .ok_or_else(|| malformed(&root.boot.join("config-*"), "no CONFIG_HZ"))?;
    Ok(format!("{hz} Hz"))
}

/// The value of a setting of the kernel's configuration.
fn setting<'a>(configuration: &'a str, name: &str) -> Option<&'a str> {
    configuration.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

/// The kernel's configuration. A compressed copy that the kernel itself holds is not read.
fn configuration(root: &Root) -> Result<String, Unread> {
    let release = release(root)?;
    if release.contains('/') {
        return Err(malformed(&root.proc.join("sys/kernel/osrelease"), "not a release"));
    }
    let compressed = root.proc.join("config.gz");
    root::text(&root.boot.join(format!("config-{release}"))).map_err(|unread| match compressed.exists() {
        true => Unread {
            reason: format!("{}; {}: compressed, not read", unread.reason, compressed.display()),
            remedy: Some("zcat /proc/config.gz | grep CONFIG_HZ=".to_owned()),
        },
        false => with_remedy(unread, "install the configuration of the running kernel in /boot"),
    })
}

/// The kernel's mitigation of each hardware vulnerability; those that do not concern this CPU come last, by name only.
fn mitigations(root: &Root) -> Result<String, Unread> {
    let directory = root.cpu("vulnerabilities");
    let mut parts = Vec::new();
    let mut not_affected = Vec::new();
    let mut not_read = Vec::new();
    for name in root::names(&directory)? {
        match root::line(&directory.join(&name)) {
            Ok(state) if state == "Not affected" => not_affected.push(name),
            Ok(state) => parts.push(format!("{name}: {}", state.replace(';', ","))),
            Err(unread) => not_read.push((name, unread)),
        }
    }
    if parts.is_empty() && not_affected.is_empty() {
        let first = not_read.into_iter().next().map(|(_, unread)| unread);
        return Err(first.unwrap_or_else(|| malformed(&directory, "empty")));
    }
    parts.extend(not_read.into_iter().map(|(name, _)| format!("{name}: not read")));
    if !not_affected.is_empty() {
        parts.push(format!("not affected: {}", not_affected.join(", ")));
    }
    Ok(parts.join("; "))
}

/// Whether the kernel backs memory with huge pages unasked.
fn huge_pages(root: &Root) -> Result<String, Unread> {
    root::chosen(&root.sys.join("kernel/mm/transparent_hugepage/enabled"))
        .map_err(|unread| with_remedy(unread, "a kernel built with CONFIG_TRANSPARENT_HUGEPAGE"))
}
