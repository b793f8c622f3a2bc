//! A bare-metal workstation: two sockets and NUMA nodes, SMT, frequency scaling, a PREEMPT_RT kernel, isolated CPUs.

use super::check;
use super::tree::Tree;

/// The workstation: CPUs 0-3 are two cores of socket 0, CPUs 4-7 two cores of socket 1.
pub(super) fn tree() -> Tree {
    let mut tree = Tree::empty().files(FILES);
    let mut cpuinfo = String::new();
    for cpu in 0..8_u32 {
        let (socket, core) = (cpu / 4, cpu / 2);
        let (siblings, package) = (format!("{}-{}\n", 2 * core, 2 * core + 1), ["0-3\n", "4-7\n"][socket as usize]);
        cpuinfo += &format!(
            "processor\t: {cpu}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n\
             model name\t: Intel(R) Xeon(R) Gold 6144 CPU @ 3.50GHz\nstepping\t: 4\nmicrocode\t: 0x2007006\n\
             cpu MHz\t\t: 3499.998\nflags\t\t: fpu tsc msr lm constant_tsc nonstop_tsc tsc_deadline_timer\n\
             power management:\n\n"
        );
        let at = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/{name}");
        tree = tree
            .file(&at("topology/physical_package_id"), format!("{socket}\n"))
            .file(&at("topology/thread_siblings_list"), &siblings);
        for (index, level, kind, size, shared) in [
            (0, 1, "Data", "32K", siblings.as_str()),
            (1, 1, "Instruction", "32K", &siblings),
            (2, 2, "Unified", "1024K", &siblings),
            (3, 3, "Unified", "25344K", package),
        ] {
            tree = tree
                .file(&at(&format!("cache/index{index}/level")), format!("{level}\n"))
                .file(&at(&format!("cache/index{index}/type")), format!("{kind}\n"))
                .file(&at(&format!("cache/index{index}/size")), format!("{size}\n"))
                .file(&at(&format!("cache/index{index}/shared_cpu_list")), shared);
        }
        for (state, name, latency) in [(0, "POLL", 0), (1, "C1", 2), (2, "C6", 133)] {
            // On the isolated CPUs the deep state is disabled.
            let disable = u32::from(state == 2 && cpu >= 6);
            tree = tree
                .file(&at(&format!("cpuidle/state{state}/name")), format!("{name}\n"))
                .file(&at(&format!("cpuidle/state{state}/latency")), format!("{latency}\n"))
                .file(&at(&format!("cpuidle/state{state}/disable")), format!("{disable}\n"));
        }
        let at = |name: &str| format!("sys/devices/system/cpu/cpufreq/policy{cpu}/{name}");
        tree = tree
            .file(&at("affected_cpus"), format!("{cpu}\n"))
            .file(&at("scaling_driver"), "intel_pstate\n")
            .file(&at("scaling_governor"), if cpu < 6 { "powersave\n" } else { "performance\n" })
            .file(&at("scaling_cur_freq"), format!("{}\n", 1_200_000 + 300_000 * cpu))
            .file(&at("scaling_min_freq"), "1200000\n")
            .file(&at("scaling_max_freq"), "3500000\n")
            .file(&at("cpuinfo_min_freq"), "1200000\n")
            .file(&at("cpuinfo_max_freq"), "4200000\n");
    }
    tree.file("proc/cpuinfo", cpuinfo)
}

/// The files that are there once.
const FILES: &[(&str, &str)] = &[
    (
        "boot/config-6.12.9-rt5",
        "# Linux/x86 6.12.9 Kernel Configuration\nCONFIG_HZ_1000=y\nCONFIG_HZ=1000\nCONFIG_PREEMPT=y\n",
    ),
    ("dev/cpu_dma_latency", "\0\0\0\0"),
    ("etc/os-release", "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n"),
    (
        "proc/cmdline",
        "BOOT_IMAGE=/vmlinuz root=/dev/sda1 isolcpus=4 isolcpus=managed_irq,domain,6-7 nohz_full=6-7 rcu_nocbs=6-7 -- \
         nohz_full=all\n",
    ),
    ("proc/interrupts", INTERRUPTS),
    ("proc/loadavg", "0.52 0.38 0.29 2/1291 48213\n"),
    ("proc/meminfo", "MemTotal:       131841204 kB\nMemFree:        98212340 kB\n"),
    (
        "proc/pressure/cpu",
        "some avg10=1.50 avg60=0.75 avg300=0.10 total=901\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    ),
    ("proc/self/cgroup", "0::/user.slice/user-1000.slice/session-2.scope\n"),
    ("proc/self/limits", LIMITS),
    ("proc/self/status", "Name:\thairspring\nCapEff:\t0000000000804000\nCpus_allowed:\t3f\nCpus_allowed_list:\t0-5\n"),
    ("proc/self/timerslack_ns", "1\n"),
    ("proc/stat", STAT),
    ("proc/sys/kernel/hostname", "balance-wheel\n"),
    ("proc/sys/kernel/osrelease", "6.12.9-rt5\n"),
    ("proc/sys/kernel/sched_rt_period_us", "1000000\n"),
    ("proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
    ("proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian 6.12.9-1 (2025-01-10)\n"),
    ("proc/uptime", "183905.44 1460311.02\n"),
    ("sys/class/dmi/id/product_name", "Precision 7920 Tower\n"),
    ("sys/class/dmi/id/sys_vendor", "Dell Inc.\n"),
    ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm \n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n"),
    ("sys/devices/system/cpu/cpuidle/current_governor", "menu\n"),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
    ("sys/devices/system/cpu/isolated", "6-7\n"),
    ("sys/devices/system/cpu/nohz_full", "6-7\n"),
    ("sys/devices/system/cpu/online", "0-7\n"),
    ("sys/devices/system/cpu/possible", "0-15\n"),
    ("sys/devices/system/cpu/smt/control", "on\n"),
    ("sys/devices/system/cpu/vulnerabilities/l1tf", "Mitigation: PTE Inversion; VMX: cache flushes, SMT vulnerable\n"),
    ("sys/devices/system/cpu/vulnerabilities/srbds", "Not affected\n"),
    ("sys/devices/system/cpu/vulnerabilities/tsx_async_abort", "Vulnerable\n"),
    ("sys/devices/system/cpu/vulnerabilities/mmio_unknown", "Not affected\n"),
    ("sys/devices/system/node/node0/cpulist", "0-3\n"),
    ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       65736000 kB\nNode 0 MemFree: 1 kB\n"),
    ("sys/devices/system/node/node1/cpulist", "4-7\n"),
    ("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:       66105204 kB\nNode 1 MemFree: 1 kB\n"),
    ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n"),
    ("sys/fs/cgroup/user.slice/cpu.max", "250000 100000\n"),
    ("sys/fs/cgroup/user.slice/user-1000.slice/cpu.max", "150000 100000\n"),
    ("sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope/cpu.max", "max 100000\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("sys/kernel/realtime", "1\n"),
];

/// `/proc/stat`, cut after what is read.
const STAT: &str = "\
cpu  100 0 100 9700 50 20 30 0 0 0
cpu0 50 0 50 4850 25 10 15 0 0 0
cpu1 50 0 50 4850 25 10 15 0 0 0
intr 8 0 8
ctxt 5
procs_running 2
procs_blocked 0
";

/// `/proc/self/limits`, cut to what is read and a neighbour.
const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     
Max processes             96365                96365                processes 
Max locked memory         65536                unlimited            bytes     
Max nice priority         0                    0                    
Max realtime priority     95                   99                   
Max realtime timeout      unlimited            unlimited            us        
";

/// `/proc/interrupts` of the first two CPUs.
pub(super) const INTERRUPTS: &str = "\
           CPU0       CPU1       
  8:          1          0  IR-IO-APIC   8-edge      rtc0
 31:          0        200  IR-PCI-MSI 512000-edge      nvme0q1
NMI:          3          4   Non-maskable interrupts
LOC:      10000      20000   Local timer interrupts
CAL:         70         80   Function call interrupts
TLB:         60         50   TLB shootdowns
MCP:          9          9   Machine check polls
ERR:          1
MIS:          2
";

#[test]
fn every_fact_of_a_bare_metal_workstation_is_read() {
    check(
        &tree(),
        &[
            ("host.name", Ok("balance-wheel")),
            ("host.product", Ok("Dell Inc. Precision 7920 Tower")),
            ("host.os", Ok("Debian GNU/Linux 13 (trixie)")),
            ("cpu.model", Ok("Intel(R) Xeon(R) Gold 6144 CPU @ 3.50GHz")),
            ("cpu.identity", Ok("GenuineIntel, family 6, model 85, stepping 4")),
            ("cpu.microcode", Ok("0x2007006")),
            ("cpu.tsc_flags", Ok("tsc constant_tsc nonstop_tsc tsc_deadline_timer")),
            (
                "cpu.caches",
                Ok("L1d 4 × 32 KiB per 2 CPUs, L1i 4 × 32 KiB per 2 CPUs, L2 4 × 1 MiB per 2 CPUs, \
                    L3 2 × 25344 KiB per 4 CPUs"),
            ),
            ("cpu.online", Ok("8 (0-7)")),
            ("cpu.possible", Ok("16 (0-15)")),
            ("cpu.sockets", Ok("2")),
            ("cpu.smt", Ok("active, 2 threads per core (control: on)")),
            ("cpu.numa", Ok("2 (node 0: CPUs 0-3, 62.7 GiB; node 1: CPUs 4-7, 63.0 GiB)")),
            ("cpu.memory", Ok("125.7 GiB")),
            ("cpu.isolated", Ok("6-7 (isolcpus=managed_irq,domain,6-7)")),
            ("cpu.nohz_full", Ok("6-7 (nohz_full=6-7)")),
            ("cpu.rcu_nocbs", Ok("6-7")),
            (
                "cpu.governor",
                Ok("CPUs 0-5: powersave, driver intel_pstate; CPUs 6-7: performance, driver intel_pstate"),
            ),
            ("cpu.frequency", Ok("1200 to 3300 MHz")),
            ("cpu.frequency_range", Ok("1200 to 3500 MHz (hardware 1200 to 4200 MHz)")),
            ("cpu.boost", Ok("off")),
            ("cpu.idle_driver", Ok("intel_idle")),
            ("cpu.idle_governor", Ok("menu")),
            (
                "cpu.idle_states",
                Ok("CPUs 0-5: POLL 0 µs, C1 2 µs, C6 133 µs; CPUs 6-7: POLL 0 µs, C1 2 µs, C6 133 µs (disabled)"),
            ),
            ("kernel.release", Ok("6.12.9-rt5")),
            ("kernel.version", Ok("#1 SMP PREEMPT_RT Debian 6.12.9-1 (2025-01-10)")),
            (
                "kernel.command_line",
                Ok("BOOT_IMAGE=/vmlinuz root=/dev/sda1 isolcpus=4 isolcpus=managed_irq,domain,6-7 nohz_full=6-7 \
                    rcu_nocbs=6-7 -- nohz_full=all"),
            ),
            ("kernel.preemption", Ok("real-time (/sys/kernel/realtime)")),
            ("kernel.tick_rate", Ok("1000 Hz")),
            ("kernel.clocksource", Ok("tsc")),
            ("kernel.clocksources", Ok("tsc hpet acpi_pm")),
            (
                "kernel.mitigations",
                Ok(
                    "l1tf: Mitigation: PTE Inversion, VMX: cache flushes, SMT vulnerable; tsx_async_abort: Vulnerable; \
                    not affected: mmio_unknown, srbds",
                ),
            ),
            ("kernel.hypervisor", Ok("none")),
            ("kernel.steal", Ok("0.00 s, 0.000 % (in steps of 10 ms)")),
            ("kernel.huge_pages", Ok("madvise")),
            ("limits.rt_throttling", Ok("off")),
            ("limits.rtprio", Ok("95 (may be raised to 99)")),
            ("limits.memlock", Ok("64 KiB (may be raised to unlimited)")),
            ("limits.cap_sys_nice", Ok("held")),
            ("limits.cap_ipc_lock", Ok("held")),
            ("limits.timer_slack", Ok("1 ns")),
            ("limits.cgroup_cpu", Ok("1.50 CPUs (150 ms in each 100 ms)")),
            ("limits.cpus_allowed", Ok("6 (0-5)")),
            ("limits.cpu_dma_latency", Ok("writable")),
            ("load.average", Ok("0.52 over 1 min, 0.38 over 5 min, 0.29 over 15 min")),
            ("load.runnable", Ok("2, the reader included")),
            ("load.threads", Ok("1291")),
            ("load.pressure", Ok("some thread waited 1.50 % of the last 10 s, 0.75 % of 60 s, 0.10 % of 300 s")),
            ("load.uptime", Ok("2 d 3 h")),
        ],
    );
}

/// Reads one fact of the workstation after a change.
#[track_caller]
fn check_one(tree: &Tree, id: &str, expected: super::Expected) {
    let facts = super::super::read(&tree.root());
    let fact = facts.facts.iter().find(|fact| fact.id == id).unwrap();
    let value = fact.value.clone().map_err(|unread| tree.without_path(&unread.reason));
    assert_eq!(value, expected.map(str::to_owned).map_err(str::to_owned), "{id}");
}

#[test]
fn the_preemption_model_comes_from_the_first_source_that_knows() {
    let id = "kernel.preemption";
    let tree = tree().file("sys/kernel/debug/sched/preempt", "none voluntary (full) lazy\n");
    check_one(&tree, id, Ok("real-time (/sys/kernel/realtime)"));
    let tree = tree.without("sys/kernel/realtime");
    check_one(&tree, id, Ok("full (/sys/kernel/debug/sched/preempt)"));
    let tree = tree.without("sys/kernel/debug/sched/preempt");
    check_one(&tree, id, Ok("real-time (version string)"));
    let version = "proc/sys/kernel/version";
    let tree = tree.file(version, "#1 SMP PREEMPT RT Wed Jan 1 00:00:00 UTC 2019\n");
    check_one(&tree, id, Ok("real-time (version string)"));
    let tree = tree.file(version, "#1 SMP PREEMPT Wed Jan 1 00:00:00 UTC 2025\n");
    check_one(&tree, id, Ok("full, or lazy since Linux 6.13 (version string)"));
    let tree = tree.file(version, "#1 SMP Wed Jan 1 00:00:00 UTC 2025\n");
    check_one(&tree, id, Ok("none or voluntary (no PREEMPT in the version string)"));
    let tree = tree.file(version, "#1 SMP PREEMPT_DYNAMIC Wed Jan 1 00:00:00 UTC 2025\n");
    check_one(&tree, id, Ok("full at boot, dynamic (kernel configuration)"));
    let tree = tree.file("boot/config-6.12.9-rt5", "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n");
    check_one(&tree, id, Ok("voluntary at boot, dynamic (kernel configuration)"));
    let tree = tree.file("proc/cmdline", "root=/dev/sda1 preempt=none\n");
    check_one(&tree, id, Ok("none at boot, dynamic (command line)"));
    let tree = tree.without("proc/cmdline").without("boot/config-6.12.9-rt5");
    let reason = "/sys/kernel/debug/sched/preempt: not found; the version string says no more than PREEMPT_DYNAMIC";
    check_one(&tree, id, Err(reason));
}

#[test]
fn a_tick_rate_that_only_a_compressed_file_holds_is_absent_with_its_remedy() {
    let tree = tree().without("boot/config-6.12.9-rt5").file("proc/config.gz", [0x1f, 0x8b]);
    let reason = "/boot/config-6.12.9-rt5: not found; /proc/config.gz: compressed, not read";
    check_one(&tree, "kernel.tick_rate", Err(reason));
    let facts = super::super::read(&tree.root());
    let fact = facts.facts.iter().find(|fact| fact.id == "kernel.tick_rate").unwrap();
    let remedy = fact.value.as_ref().unwrap_err().remedy.as_deref();
    assert_eq!(remedy, Some("zcat /proc/config.gz | grep CONFIG_HZ="));
}

#[test]
fn throttling_is_told_in_milliseconds() {
    let tree = tree().file("proc/sys/kernel/sched_rt_runtime_us", "950000\n");
    check_one(&tree, "limits.rt_throttling", Ok("real-time threads may run 950 ms of each 1000 ms"));
}

/// Reads one fact of the workstation with each of these contents of a file.
#[track_caller]
fn check_each(id: &str, file: &str, contents: &[(&str, super::Expected)]) {
    for (content, expected) in contents {
        check_one(&tree().file(file, content), id, *expected);
    }
}

#[test]
fn throttling_is_off_only_where_the_kernel_says_so() {
    check_each(
        "limits.rt_throttling",
        "proc/sys/kernel/sched_rt_runtime_us",
        &[("-1\n", Ok("off")), ("0\n", Ok("real-time threads may run 0 ms of each 1000 ms"))],
    );
}

#[test]
fn sizes_are_told_in_the_largest_unit_that_divides_them() {
    let limit = |bytes: &str| format!("Max locked memory         {bytes}  {bytes}  bytes\n");
    for (bytes, expected) in
        [("0", "0"), ("1000", "1000 B"), ("1024", "1 KiB"), ("1049600", "1025 KiB"), ("3145728", "3 MiB")]
    {
        check_one(&tree().file("proc/self/limits", limit(bytes)), "limits.memlock", Ok(expected));
    }
    let size = "sys/devices/system/cpu/cpu0/cache/index0/size";
    let one = tree().file("sys/devices/system/cpu/online", "0\n");
    let caches = ["index1", "index2", "index3"].map(|index| format!("sys/devices/system/cpu/cpu0/cache/{index}"));
    let mut one = caches.iter().fold(one, |tree, cache| tree.without(cache));
    for (written, expected) in [("0K\n", "0 KiB"), ("1000K\n", "1000 KiB"), ("2048K\n", "2 MiB")] {
        one = one.file(size, written);
        let facts = super::super::read(&one.root());
        let caches =
            facts.facts.iter().find(|fact| fact.id == "cpu.caches").and_then(|fact| fact.value.as_deref().ok());
        assert!(caches.is_some_and(|told| told.contains(&format!(" {expected} "))), "{written}: {caches:?}");
    }
}

#[test]
fn the_slack_is_told_in_microseconds_if_it_is_whole_ones() {
    check_each(
        "limits.timer_slack",
        "proc/self/timerslack_ns",
        &[("50000\n", Ok("50 µs")), ("1500\n", Ok("1500 ns")), ("0\n", Ok("0 ns")), ("1000\n", Ok("1 µs"))],
    );
}

#[test]
fn the_time_since_boot_has_its_two_largest_units() {
    check_each(
        "load.uptime",
        "proc/uptime",
        &[
            ("42.99 1.00\n", Ok("42 s")),
            ("2107.92 1.00\n", Ok("35 min 7 s")),
            ("7265.00 1.00\n", Ok("2 h 1 min")),
            ("93600.00 1.00\n", Ok("1 d 2 h")),
        ],
    );
}

#[test]
fn load_averages_are_amounts() {
    let malformed = Err("/proc/loadavg: not three averages");
    check_each(
        "load.average",
        "proc/loadavg",
        &[
            ("0 1.5 200 1/2 3\n", Ok("0 over 1 min, 1.5 over 5 min, 200 over 15 min")),
            ("0.1 few 0.3 1/2 3\n", malformed),
            ("0.1 -0.2 0.3 1/2 3\n", malformed),
            ("0.1 inf 0.3 1/2 3\n", malformed),
            ("0.1 nan 0.3 1/2 3\n", malformed),
        ],
    );
}

#[test]
fn a_frequency_is_called_nominal_only_in_a_virtual_machine() {
    check_one(&tree().without("sys/devices/system/cpu/cpufreq"), "cpu.frequency", Ok("3500 MHz"));
}

#[test]
fn the_range_of_the_hardware_is_told_where_it_differs() {
    let mut tree = tree();
    for policy in 0..8 {
        tree = tree.file(&format!("sys/devices/system/cpu/cpufreq/policy{policy}/cpuinfo_max_freq"), "3500000\n");
    }
    check_one(&tree, "cpu.frequency_range", Ok("1200 to 3500 MHz"));
}

#[test]
fn the_maker_is_named_once() {
    let product = "sys/class/dmi/id/product_name";
    check_each(
        "host.product",
        product,
        &[
            ("Dell Inc. Precision\n", Ok("Dell Inc. Precision")),
            ("Precision Dell Inc.\n", Ok("Dell Inc. Precision Dell Inc.")),
        ],
    );
}

#[test]
fn a_hypervisor_without_firmware_tables_is_named_by_its_kind_or_not_at_all() {
    let guest = "processor : 0\nflags : fpu lm hypervisor\n";
    let tree = tree().without("sys/class/dmi").file("proc/cpuinfo", guest);
    check_one(&tree, "kernel.hypervisor", Ok("present, not named by firmware tables"));
    check_one(&tree.file("sys/hypervisor/type", "xen\n"), "kernel.hypervisor", Ok("xen"));
}

#[test]
fn boost_of_a_driver_with_a_common_switch_is_read() {
    let tree = tree().without("sys/devices/system/cpu/intel_pstate");
    check_one(&tree, "cpu.boost", Err("/sys/devices/system/cpu/cpufreq/boost: not found"));
    let tree = tree.file("sys/devices/system/cpu/cpufreq/boost", "1\n");
    check_one(&tree, "cpu.boost", Ok("on"));
    let tree = tree.file("sys/devices/system/cpu/cpufreq/boost", "2\n");
    check_one(&tree, "cpu.boost", Err("/sys/devices/system/cpu/cpufreq/boost: neither 0 nor 1"));
}

#[test]
fn a_value_that_some_cpus_do_not_tell_is_marked_for_them() {
    let tree = tree().without("sys/devices/system/cpu/cpufreq/policy3/scaling_governor");
    let id = "cpu.governor";
    let expected = "CPUs 0-2,4-5: powersave, driver intel_pstate; CPUs 3: not read; \
                    CPUs 6-7: performance, driver intel_pstate";
    check_one(&tree, id, Ok(expected));
}

#[test]
fn a_machine_with_arm_cores_of_two_kinds_names_both() {
    let block = |cpu: u32, part: &str| {
        format!(
            "processor\t: {cpu}\nBogoMIPS\t: 48.00\nFeatures\t: fp asimd evtstrm\nCPU implementer\t: 0x41\n\
             CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: {part}\nCPU revision\t: 0\n\n"
        )
    };
    let cpuinfo = block(0, "0xd05") + &block(1, "0xd05") + &block(2, "0xd0b");
    let tree = tree().file("proc/cpuinfo", cpuinfo);
    let expected = "CPUs 0-1: implementer 0x41, architecture 8, variant 0x1, part 0xd05, revision 0; \
                    CPUs 2: implementer 0x41, architecture 8, variant 0x1, part 0xd0b, revision 0";
    check_one(&tree, "cpu.identity", Ok(expected));
    check_one(&tree, "cpu.model", Err("/proc/cpuinfo: no `model name` line"));
    check_one(&tree, "cpu.tsc_flags", Ok("none"));
    let reason = "/sys/firmware/devicetree/base/hypervisor/compatible: not found, and the CPU has no flag that tells";
    check_one(&tree, "kernel.hypervisor", Err(reason));
    let tree = tree.file("sys/firmware/devicetree/base/hypervisor/compatible", "linux,kvm\0");
    check_one(&tree, "kernel.hypervisor", Ok("linux,kvm (Dell Inc. Precision 7920 Tower)"));
}
