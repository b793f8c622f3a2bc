//! A virtual machine with few facts: no frequency scaling, no NUMA, control groups of version 1, a paravirtual clock.

use super::check;
use super::tree::Tree;

/// The virtual machine, with two CPUs.
pub(super) fn tree() -> Tree {
    let cpu = |number: u32| {
        format!(
            "processor\t: {number}\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n\
             model name\t: AMD EPYC 7763 64-Core Processor\nstepping\t: 1\nmicrocode\t: 0x1000065\ncpu MHz\t\t: 2445.426\n\
             flags\t\t: fpu tsc lm hypervisor\n\n"
        )
    };
    let topology = |cpu: u32, name: &str| format!("sys/devices/system/cpu/cpu{cpu}/topology/{name}");
    Tree::empty()
        .files(FILES)
        .file("proc/cpuinfo", cpu(0) + &cpu(1))
        .file(&topology(0, "physical_package_id"), "0\n")
        .file(&topology(1, "physical_package_id"), "0\n")
        .file(&topology(0, "thread_siblings_list"), "0\n")
        .file(&topology(1, "thread_siblings_list"), "1\n")
}

/// The files that are there once.
const FILES: &[(&str, &str)] = &[
    ("etc/os-release", "PRETTY_NAME='Alpine Linux v3.21'\n"),
    ("proc/cmdline", "console=ttyS0 quiet\n"),
    ("proc/loadavg", "0.00 0.01 0.05 1/88 4899\n"),
    ("proc/meminfo", "MemTotal:         498604 kB\n"),
    ("proc/self/cgroup", "3:cpuset:/\n2:cpu,cpuacct:/jobs/7\n1:name=systemd:/\n0::/\n"),
    (
        "proc/self/limits",
        "Max locked memory         8388608              8388608              bytes     \n\
         Max realtime priority     0                    0                    \n",
    ),
    ("proc/self/status", "CapEff:\t0000000000000000\nCpus_allowed_list:\t1\n"),
    ("proc/self/timerslack_ns", "50000\n"),
    ("proc/stat", "cpu  6000 0 2000 1991500 0 0 0 500 0 0\nprocs_running 1\n"),
    ("proc/sys/kernel/hostname", "escapement\n"),
    ("proc/sys/kernel/osrelease", "6.6.71-virt\n"),
    ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
    ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
    ("proc/sys/kernel/version", "#1-Alpine SMP PREEMPT_DYNAMIC 2025-01-15 10:09:25\n"),
    ("proc/uptime", "2107.92 4100.00\n"),
    ("sys/class/dmi/id/product_name", "Standard PC (Q35 + ICH9, 2009)\n"),
    ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
    ("sys/devices/system/clocksource/clocksource0/available_clocksource", "kvm-clock acpi_pm \n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "kvm-clock\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
    ("sys/devices/system/cpu/cpuidle/current_driver", "none\n"),
    ("sys/devices/system/cpu/cpuidle/current_governor_ro", "menu\n"),
    ("sys/devices/system/cpu/isolated", "\n"),
    ("sys/devices/system/cpu/nohz_full", "(null)\n"),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/cpu/possible", "0-1\n"),
    ("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
    ("sys/fs/cgroup/cpu,cpuacct/release_agent", "\n"),
    ("sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_quota_us", "50000\n"),
    ("sys/fs/cgroup/cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n"),
    ("sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_quota_us", "-1\n"),
    ("sys/fs/cgroup/cpu,cpuacct/jobs/7/cpu.cfs_period_us", "100000\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
];

#[test]
fn a_virtual_machine_tells_what_it_can_and_why_it_cannot_tell_the_rest() {
    let tree = tree();
    check(
        &tree,
        &[
            ("host.name", Ok("escapement")),
            ("host.product", Ok("QEMU Standard PC (Q35 + ICH9, 2009)")),
            ("host.os", Ok("Alpine Linux v3.21")),
            ("cpu.model", Ok("AMD EPYC 7763 64-Core Processor")),
            ("cpu.identity", Ok("AuthenticAMD, family 25, model 1, stepping 1")),
            ("cpu.microcode", Ok("0x1000065")),
            ("cpu.tsc_flags", Ok("tsc")),
            ("cpu.caches", Ok("L1d 1 × size not told per 1 CPU")),
            ("cpu.online", Ok("2 (0-1)")),
            ("cpu.possible", Ok("2 (0-1)")),
            ("cpu.sockets", Ok("1")),
            ("cpu.smt", Ok("inactive, 1 thread per core")),
            ("cpu.numa", Err("/sys/devices/system/node: not found")),
            ("cpu.memory", Ok("486.9 MiB")),
            ("cpu.isolated", Ok("none")),
            ("cpu.nohz_full", Ok("none")),
            ("cpu.rcu_nocbs", Ok("none")),
            ("cpu.governor", Err("/sys/devices/system/cpu/cpufreq: not found")),
            ("cpu.frequency", Ok("2445 MHz (nominal, as stated to this virtual machine)")),
            ("cpu.frequency_range", Err("/sys/devices/system/cpu/cpufreq: not found")),
            ("cpu.boost", Err("/sys/devices/system/cpu/cpufreq/boost: not found")),
            ("cpu.idle_driver", Ok("none")),
            ("cpu.idle_governor", Ok("menu")),
            ("cpu.idle_states", Err("/sys/devices/system/cpu/cpu0/cpuidle: not found")),
            ("kernel.release", Ok("6.6.71-virt")),
            ("kernel.version", Ok("#1-Alpine SMP PREEMPT_DYNAMIC 2025-01-15 10:09:25")),
            ("kernel.command_line", Ok("console=ttyS0 quiet")),
            (
                "kernel.preemption",
                Err("/sys/kernel/debug/sched/preempt: not found; the version string says no more than PREEMPT_DYNAMIC"),
            ),
            ("kernel.tick_rate", Err("/boot/config-6.6.71-virt: not found")),
            ("kernel.clocksource", Ok("kvm-clock")),
            ("kernel.clocksources", Ok("kvm-clock acpi_pm")),
            ("kernel.mitigations", Ok("not affected: meltdown")),
            ("kernel.hypervisor", Ok("present (QEMU Standard PC (Q35 + ICH9, 2009))")),
            ("kernel.steal", Ok("5.00 s, 0.025 % (in steps of 10 ms)")),
            ("kernel.huge_pages", Ok("always")),
            ("limits.rt_throttling", Ok("real-time threads may run 950 ms of each 1000 ms")),
            ("limits.rtprio", Ok("0")),
            ("limits.memlock", Ok("8 MiB")),
            ("limits.cap_sys_nice", Ok("not held")),
            ("limits.cap_ipc_lock", Ok("not held")),
            ("limits.timer_slack", Ok("50 µs")),
            ("limits.cgroup_cpu", Ok("0.50 CPUs (50 ms in each 100 ms)")),
            ("limits.cpus_allowed", Ok("1 (1)")),
            ("limits.cpu_dma_latency", Err("/dev/cpu_dma_latency: not found")),
            ("load.average", Ok("0.00 over 1 min, 0.01 over 5 min, 0.05 over 15 min")),
            ("load.runnable", Ok("1, the reader included")),
            ("load.threads", Ok("88")),
            ("load.pressure", Err("/proc/pressure/cpu: not found")),
            ("load.uptime", Ok("35 min 7 s")),
        ],
    );
    let governor = super::super::read(&tree.root()).facts.into_iter().find(|fact| fact.id == "cpu.governor");
    let remedy = governor.unwrap().value.unwrap_err().remedy.unwrap();
    assert!(remedy.contains("host of this virtual machine"), "{remedy}");
}
