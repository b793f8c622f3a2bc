//! Facts about the CPUs: model, caches, number, shared cores and memory, and isolation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::root::{self, Root, malformed, with_remedy};
use super::{command_line, cpu_list, fact};
use crate::facts::{Fact, Unread};

/// The facts about the CPUs.
pub(super) fn read(root: &Root) -> Vec<Fact> {
    let information = Information::read(root);
    vec![
        fact("cpu.model", "CPU model", information.in_common(&["model name"], |v| v.join(" "))),
        fact("cpu.identity", "CPU identity", identity(&information)),
        fact("cpu.microcode", "Microcode", information.in_common(&["microcode"], |v| v.join(" "))),
        fact("cpu.tsc_flags", "TSC flags", tsc_flags(root)),
        fact("cpu.caches", "Caches", caches(root)),
        fact("cpu.online", "CPUs online", counted(&root.cpu("online"))),
        fact("cpu.possible", "CPUs possible", counted(&root.cpu("possible"))),
        fact("cpu.sockets", "Sockets", sockets(root)),
        fact("cpu.smt", "Hardware threads (SMT)", smt(root)),
        fact("cpu.numa", "NUMA nodes", numa(root)),
        fact("cpu.memory", "Memory", memory(root)),
        fact("cpu.isolated", "Isolated CPUs", isolated_domain(root)),
        fact("cpu.nohz_full", "CPUs without a tick", nohz_full(root)),
        fact("cpu.rcu_nocbs", "CPUs without RCU callbacks", rcu_nocbs(root)),
    ]
}

/// The feature flags of the first CPU, as `/proc/cpuinfo` writes them; `constant_tsc` and `nonstop_tsc` among them
/// mean that the TSC runs at one rate in all frequencies and sleep states.
pub(crate) fn cpu_flags(root: &Root) -> Result<Vec<String>, Unread> {
    let information = Information::read(root);
    let mut flags = information.field("flags");
    if flags.as_ref().is_ok_and(Vec::is_empty) {
        flags = information.field("Features");
    }
    match flags?.into_iter().next() {
        Some((_, flags)) => Ok(flags.split_whitespace().map(str::to_owned).collect()),
        None => Err(malformed(&root.proc.join("cpuinfo"), "no `flags` line")),
    }
}

/// The CPUs that are online.
pub(super) fn online(root: &Root) -> Result<Vec<u32>, Unread> {
    listed(&root.cpu("online"))
}

/// `/proc/cpuinfo`, which holds one block of `key : value` lines per CPU.
struct Information<'a> {
    root: &'a Root,
    text: Result<String, Unread>,
}

impl<'a> Information<'a> {
    fn read(root: &'a Root) -> Self {
        Self { root, text: root::text(&root.proc.join("cpuinfo")) }
    }

    /// The value of `key` on each CPU that has one.
    fn field(&self, key: &str) -> Result<Vec<(u32, String)>, Unread> {
        let mut cpu = 0;
        let mut values = Vec::new();
        for line in self.text.as_ref().map_err(Clone::clone)?.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let (name, value) = (name.trim(), value.trim());
            if name == "processor" {
                cpu = value.parse().unwrap_or(cpu);
            }
            if name == key && !value.is_empty() {
                values.push((cpu, value.to_owned()));
            }
        }
        Ok(values)
    }

    /// The values of `keys` that CPUs have in common; all keys must be there.
    fn in_common(&self, keys: &[&str], write: impl Fn(&[&str]) -> String) -> Result<String, Unread> {
        let mut by_cpu: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for key in keys {
            for (cpu, value) in self.field(key)? {
                by_cpu.entry(cpu).or_default().push(value);
            }
        }
        let values = by_cpu
            .into_iter()
            .filter(|(_, values)| values.len() == keys.len())
            .map(|(cpu, values)| {
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                (vec![cpu], Ok(write(&values)))
            })
            .collect();
        let path = self.root.proc.join("cpuinfo");
        cpu_list::in_common(values, malformed(&path, &format!("no `{}` line", keys.join("`, `"))))
    }
}

/// Vendor, family, model and stepping; on ARM the fields of its identification register.
fn identity(information: &Information<'_>) -> Result<String, Unread> {
    let x86 = information.in_common(&["vendor_id", "cpu family", "model", "stepping"], |v| match v {
        [vendor, family, model, stepping] => {
            format!("{vendor}, family {family}, model {model}, stepping {stepping}")
        }
        _ => v.join(", "),
    });
    let arm = ["CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision"];
    x86.or_else(|unread| {
        let named = |v: &[&str]| {
            let pairs = arm.iter().zip(v).map(|(key, value)| format!("{} {value}", &key[4..]));
            pairs.collect::<Vec<_>>().join(", ")
        };
        information.in_common(&arm, named).map_err(|_| unread)
    })
}

/// The flags that show how far the TSC can be trusted.
fn tsc_flags(root: &Root) -> Result<String, Unread> {
    let flags = cpu_flags(root)?;
    let tsc: Vec<&str> = flags.iter().map(String::as_str).filter(|f| f.contains("tsc")).collect();
    Ok(if tsc.is_empty() { "none".to_owned() } else { tsc.join(" ") })
}

/// The CPUs in a file that lists them.
fn listed(path: &Path) -> Result<Vec<u32>, Unread> {
    cpu_list::parse(&root::line(path)?).ok_or_else(|| malformed(path, "not a list of CPUs"))
}

/// How many CPUs a file lists, and which.
fn counted(path: &Path) -> Result<String, Unread> {
    let cpus = listed(path)?;
    Ok(format!("{} ({})", cpus.len(), cpu_list::written(&cpus)))
}

/// The caches by level and kind: size, how many there are, how many CPUs share one.
fn caches(root: &Root) -> Result<String, Unread> {
    let mut instances = BTreeSet::new();
    let mut reason = None;
    for cpu in online(root)? {
        let directory = root.cpu(&format!("cpu{cpu}/cache"));
        match root::numbered(&directory, "index") {
            Ok(indices) => instances.extend(indices.into_iter().filter_map(|index| {
                let file = |name: &str| root::line(&directory.join(format!("index{index}/{name}")));
                let level: u32 = file("level").ok()?.parse().ok()?;
                let kind = file("type").unwrap_or_default();
                let size = file("size").map_or_else(|_| "size not told".to_owned(), |s| size(&s));
                let shared = file("shared_cpu_list").ok().and_then(|list| cpu_list::parse(&list));
                Some((level, kind, size, shared.unwrap_or_else(|| vec![cpu])))
            })),
            Err(unread) => reason = reason.or(Some(unread)),
        }
    }
    let mut counts: BTreeMap<(u32, String, String, usize), usize> = BTreeMap::new();
    for (level, kind, size, shared) in instances {
        *counts.entry((level, kind, size, shared.len())).or_default() += 1;
    }
    let parts: Vec<String> = counts
        .into_iter()
        .map(|((level, kind, size, sharing), count)| {
            let kind = match kind.as_str() {
                "Data" => "d",
                "Instruction" => "i",
                _ => "",
            };
            let sharing = match sharing {
                1 => "1 CPU".to_owned(),
                n => format!("{n} CPUs"),
            };
            format!("L{level}{kind} {count} × {size} per {sharing}")
        })
        .collect();
    if parts.is_empty() {
        let path = root.cpu("cpu*/cache");
        return Err(reason.unwrap_or_else(|| malformed(&path, "no cache is described")));
    }
    Ok(parts.join(", "))
}

/// A cache size such as `32768K` as people write it.
fn size(written: &str) -> String {
    match written.strip_suffix('K').and_then(|kib| kib.parse::<u64>().ok()) {
        Some(kib) if kib > 0 && kib % 1024 == 0 => format!("{} MiB", kib / 1024),
        Some(kib) => format!("{kib} KiB"),
        None => written.to_owned(),
    }
}

/// How many packages the CPUs that are online sit in.
fn sockets(root: &Root) -> Result<String, Unread> {
    let mut packages = BTreeSet::new();
    for cpu in online(root)? {
        let path = root.cpu(&format!("cpu{cpu}/topology/physical_package_id"));
        packages.insert(root::number::<u32>(&path)?);
    }
    Ok(packages.len().to_string())
}

/// Whether hardware threads share cores, and how many do.
fn smt(root: &Root) -> Result<String, Unread> {
    let mut threads = 0;
    for cpu in online(root)? {
        let siblings = listed(&root.cpu(&format!("cpu{cpu}/topology/thread_siblings_list")))?;
        threads = threads.max(siblings.len());
    }
    let active = if threads > 1 { "active" } else { "inactive" };
    let control = match root::line(&root.cpu("smt/control")) {
        Ok(control) => format!(" (control: {control})"),
        Err(_) => String::new(),
    };
    let plural = if threads == 1 { "" } else { "s" };
    Ok(format!("{active}, {threads} thread{plural} per core{control}"))
}

/// The NUMA nodes with their CPUs and memory.
fn numa(root: &Root) -> Result<String, Unread> {
    let directory = root.sys.join("devices/system/node");
    let nodes =
        root::numbered(&directory, "node").map_err(|unread| with_remedy(unread, "a kernel built with CONFIG_NUMA"))?;
    let mut parts = Vec::new();
    for node in &nodes {
        let path = directory.join(format!("node{node}"));
        let cpus = match root::line_or_blank(&path.join("cpulist"))?.as_str() {
            "" => "no CPUs".to_owned(),
            cpus => format!("CPUs {cpus}"),
        };
        let memory = memory_total(&path.join("meminfo"))?;
        parts.push(format!("node {node}: {cpus}, {memory}"));
    }
    Ok(format!("{} ({})", nodes.len(), parts.join("; ")))
}

/// The memory the kernel manages.
fn memory(root: &Root) -> Result<String, Unread> {
    memory_total(&root.proc.join("meminfo"))
}

/// `MemTotal` of a file in the format of `/proc/meminfo`.
fn memory_total(path: &Path) -> Result<String, Unread> {
    let content = root::text(path)?;
    let kib: u64 = content
        .lines()
        .find_map(|line| line.split_once("MemTotal:")?.1.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| malformed(path, "no `MemTotal` line"))?;
    let (divisor, unit) = if kib >= 1 << 20 { (1 << 20, "GiB") } else { (1 << 10, "MiB") };
    Ok(format!("{:.1} {unit}", kib as f64 / f64::from(divisor)))
}

/// The CPUs that the scheduler balances nothing onto.
fn isolated_domain(root: &Root) -> Result<String, Unread> {
    isolated(root, "isolated", "isolcpus", "Linux 4.2 or later")
}

/// The CPUs on which the tick stops while one thread runs.
fn nohz_full(root: &Root) -> Result<String, Unread> {
    isolated(root, "nohz_full", "nohz_full", "a kernel built with CONFIG_NO_HZ_FULL")
}

/// The CPUs in a list under `/sys/devices/system/cpu`, and the option of the command line that asked for it.
fn isolated(root: &Root, file: &str, option: &str, built: &str) -> Result<String, Unread> {
    let path = root.cpu(file);
    let list = root::line_or_blank(&path).map_err(|unread| with_remedy(unread, built))?;
    let list = match list.as_str() {
        // Kernels before 6.2 print the latter for an empty list of CPUs without a tick.
        "" | "(null)" => "none".to_owned(),
        list => match cpu_list::parse(list) {
            Some(cpus) => cpu_list::written(&cpus),
            None => return Err(malformed(&path, "not a list of CPUs")),
        },
    };
    Ok(match command_line::option(root, option) {
        Ok(Some(asked)) => format!("{list} ({option}={asked})"),
        _ => list,
    })
}

/// The CPUs whose RCU callbacks run elsewhere, as far as the command line asks for it.
fn rcu_nocbs(root: &Root) -> Result<String, Unread> {
    // An option without a list is one of no CPUs.
    Ok(command_line::option(root, "rcu_nocbs")?.filter(|list| !list.is_empty()).unwrap_or_else(|| "none".to_owned()))
}
