//! Frequency scaling and idle states: how fast a CPU runs, and how deep it sleeps.

use super::root::{self, Root, malformed, with_remedy};
use super::{cpu, cpu_list, fact, hypervisor};
use crate::facts::{Fact, Unread};

/// The facts about frequency and idle states.
pub(super) fn read(root: &Root) -> Vec<Fact> {
    let policies = policies(root);
    vec![
        fact("cpu.governor", "Frequency governor", governor(root, &policies)),
        fact("cpu.frequency", "Frequency now", frequency(root, &policies)),
        fact("cpu.frequency_range", "Frequency range", frequency_range(root, &policies)),
        fact("cpu.boost", "Boost (turbo)", boost(root)),
        fact("cpu.idle_driver", "Idle driver", idle_driver(root)),
        fact("cpu.idle_governor", "Idle governor", idle_governor(root)),
        fact("cpu.idle_states", "Idle states (C-states)", idle_states(root)),
    ]
}

/// A frequency policy: its number, and the CPUs it governs.
type Policy = (u32, Vec<u32>);

/// The frequency policies, each with its CPUs.
fn policies(root: &Root) -> Result<Vec<Policy>, Unread> {
    let directory = root.cpu("cpufreq");
    let numbers = root::numbered(&directory, "policy").map_err(|u| hinted(root, u))?;
    let cpus = |policy: u32| {
        let path = directory.join(format!("policy{policy}/affected_cpus"));
        root::line(&path).ok().and_then(|list| cpu_list::parse(&list))
    };
    Ok(numbers.into_iter().map(|n| (n, cpus(n).unwrap_or_else(|| vec![n]))).collect())
}

/// `unread`, with the hint that a virtual machine does not control frequencies.
fn hinted(root: &Root, unread: Unread) -> Unread {
    match hypervisor::is_present(root) {
        true => with_remedy(unread, "the host of this virtual machine sets the frequency: read it there"),
        false => with_remedy(unread, "load a cpufreq driver, or enable P-states in the firmware"),
    }
}

/// The common value of all policies, which `value` reads from a file of each.
fn by_policy(
    root: &Root,
    policies: &Result<Vec<Policy>, Unread>,
    value: impl Fn(&dyn Fn(&str) -> Result<String, Unread>) -> Result<String, Unread>,
) -> Result<String, Unread> {
    let directory = root.cpu("cpufreq");
    let values = policies.as_ref().map_err(Clone::clone)?.iter().map(|(number, cpus)| {
        let policy = directory.join(format!("policy{number}"));
        (cpus.clone(), value(&|name| root::line(&policy.join(name))))
    });
    cpu_list::in_common(values.collect(), malformed(&directory, "no policy"))
}

/// Governor and driver; with drivers that take a hint instead of a frequency, the hint.
fn governor(root: &Root, policies: &Result<Vec<Policy>, Unread>) -> Result<String, Unread> {
    by_policy(root, policies, |file| {
        let mut value = file("scaling_governor")?;
        if let Ok(driver) = file("scaling_driver") {
            value = format!("{value}, driver {driver}");
        }
        if let Ok(preference) = file("energy_performance_preference") {
            value = format!("{value}, preference {preference}");
        }
        Ok(value)
    })
}

/// The frequency at this moment: lowest and highest among the CPUs, from the policies, else from `/proc/cpuinfo`.
fn frequency(root: &Root, policies: &Result<Vec<Policy>, Unread>) -> Result<String, Unread> {
    let directory = root.cpu("cpufreq");
    let scaled: Vec<f64> = policies
        .iter()
        .flatten()
        .filter_map(|(number, _)| {
            let path = directory.join(format!("policy{number}/scaling_cur_freq"));
            root::number::<u32>(&path).ok().map(|khz| f64::from(khz) / 1000.0)
        })
        .collect();
    if let Some(range) = range_of(&scaled) {
        return Ok(range);
    }
    let path = root.proc.join("cpuinfo");
    let stated: Vec<f64> = root::text(&path)?
        .lines()
        .filter_map(|line| {
            let (key, value) = line.split_once(':')?;
            let mhz: f64 = value.trim().parse().ok()?;
            (key.trim() == "cpu MHz" && (0.0..1e6).contains(&mhz)).then_some(mhz)
        })
        .collect();
    match range_of(&stated) {
        Some(range) if hypervisor::is_present(root) => {
            Ok(format!("{range} (nominal, as stated to this virtual machine)"))
        }
        Some(range) => Ok(range),
        None => Err(hinted(root, malformed(&path, "no `cpu MHz` line"))),
    }
}

/// Lowest and highest of some frequencies in MHz, or the one that all have.
fn range_of(mhz: &[f64]) -> Option<String> {
    let lowest = mhz.iter().copied().reduce(f64::min)?;
    let highest = mhz.iter().copied().reduce(f64::max)?;
    let (lowest, highest) = (format!("{lowest:.0}"), format!("{highest:.0}"));
    Some(match lowest == highest {
        true => format!("{lowest} MHz"),
        false => format!("{lowest} to {highest} MHz"),
    })
}

/// The frequencies between which the governor may choose, and those of the hardware.
fn frequency_range(root: &Root, policies: &Result<Vec<Policy>, Unread>) -> Result<String, Unread> {
    let directory = root.cpu("cpufreq");
    by_policy(root, policies, |file| {
        let range = |lowest, highest| {
            let khz = |name| {
                file(name)?
                    .parse::<u32>()
                    .map(|khz| f64::from(khz) / 1000.0)
                    .map_err(|_| malformed(&directory, &format!("{name} is not a number")))
            };
            let bounds = [khz(lowest)?, khz(highest)?];
            range_of(&bounds).ok_or_else(|| malformed(&directory, "no bounds"))
        };
        let allowed = range("scaling_min_freq", "scaling_max_freq")?;
        Ok(match range("cpuinfo_min_freq", "cpuinfo_max_freq") {
            Ok(hardware) if hardware != allowed => format!("{allowed} (hardware {hardware})"),
            _ => allowed,
        })
    })
}

/// Whether frequencies above the nominal one are allowed.
fn boost(root: &Root) -> Result<String, Unread> {
    // Which of the two exists depends on the driver; each states the opposite of the other.
    let boost = root.cpu("cpufreq/boost");
    let no_turbo = root.cpu("intel_pstate/no_turbo");
    let (path, on) = match root::number::<u32>(&no_turbo) {
        Ok(off) => (no_turbo, 1_u32.checked_sub(off)),
        Err(_) => {
            let on = root::number::<u32>(&boost).map_err(|unread| hinted(root, unread))?;
            (boost, Some(on))
        }
    };
    match on {
        Some(0) => Ok("off".to_owned()),
        Some(1) => Ok("on".to_owned()),
        _ => Err(malformed(&path, "neither 0 nor 1")),
    }
}

/// The driver that puts the CPUs to sleep.
fn idle_driver(root: &Root) -> Result<String, Unread> {
    root::line(&root.cpu("cpuidle/current_driver"))
        .map_err(|unread| with_remedy(unread, "a kernel built with CONFIG_CPU_IDLE"))
}

/// The governor that chooses the idle state.
fn idle_governor(root: &Root) -> Result<String, Unread> {
    // Before Linux 5.8 only the second of the two was there unless asked for on the command line.
    root::line(&root.cpu("cpuidle/current_governor"))
        .or_else(|unread| root::line(&root.cpu("cpuidle/current_governor_ro")).map_err(|_| unread))
        .map_err(|unread| with_remedy(unread, "a kernel built with CONFIG_CPU_IDLE"))
}

/// The idle states, each with the time it takes to leave it, and which are disabled.
fn idle_states(root: &Root) -> Result<String, Unread> {
    let values = cpu::online(root)?.into_iter().map(|cpu| (vec![cpu], idle_states_of(root, cpu))).collect();
    cpu_list::in_common(values, malformed(&root.cpu("online"), "no CPU"))
}

/// The idle states of one CPU.
fn idle_states_of(root: &Root, cpu: u32) -> Result<String, Unread> {
    let directory = root.cpu(&format!("cpu{cpu}/cpuidle"));
    let states = root::numbered(&directory, "state")
        .map_err(|unread| with_remedy(unread, "a cpuidle driver; without one idle CPUs only halt"))?;
    let mut parts = Vec::new();
    for state in states {
        let path = directory.join(format!("state{state}"));
        let name = root::line(&path.join("name"))?;
        let latency_us: u64 = root::number(&path.join("latency"))?;
        let disabled = match root::number::<u64>(&path.join("disable")) {
            Ok(0) => "",
            Ok(_) => " (disabled)",
            Err(_) => " (may be disabled)",
        };
        parts.push(format!("{name} {latency_us} µs{disabled}"));
    }
    Ok(parts.join(", "))
}
