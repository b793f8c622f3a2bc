//! The catalogue: every setting that is known to move a figure of timing, as data.
//!
//! Sources: the kernel's documentation (`Documentation/admin-guide/{pm,sysctl,cgroup-v2,kernel-parameters}`, `power/pm_qos_interface`)
//! and the man pages sched(7), prctl(2), sched_setattr(2), as of Linux 6.18.

/// How far a setting reaches, and what ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SettingScope {
    /// One thread and those it starts. Ends with them.
    Thread,
    /// One process and those it starts. Ends with them.
    Process,
    /// The whole machine, as long as a descriptor is open. The kernel ends it with its last holder, also after SIGKILL.
    Descriptor,
    /// The whole machine, until it is changed back or booted anew.
    Machine,
    /// The next boot.
    Boot,
    /// The host of a virtual machine, the firmware or the hardware: advice only.
    Host,
}

impl SettingScope {
    /// Its name as it stands in tables and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Process => "process",
            Self::Descriptor => "descriptor",
            Self::Machine => "machine",
            Self::Boot => "boot",
            Self::Host => "host",
        }
    }

    /// How a setting of this scope is undone.
    pub fn undo(self) -> &'static str {
        match self {
            Self::Thread | Self::Process => "ends with the program",
            Self::Descriptor => "the kernel ends it when the last holder closes the file or dies",
            Self::Machine => "the old value is in the undo journal; `hairspring restore` writes it back after a crash",
            Self::Boot => "remove the parameter and boot",
            Self::Host => "where it was changed",
        }
    }
}

/// How a setting is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// By calls that this crate makes; the text names them.
    Call(&'static str),
    /// By writing the value to each of the files that the pattern names. One `*` stands for any text.
    Files(&'static str),
    /// Not by this project; the text says how.
    Advice(&'static str),
}

/// One setting of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// Its name: lower-case words with hyphens.
    pub id: &'static str,
    /// What it changes, as a fragment.
    pub changes: &'static str,
    /// How far it reaches.
    pub scope: SettingScope,
    /// How it is changed.
    pub interface: Interface,
    /// Which values it takes; empty for advice.
    pub values: &'static str,
    /// Which permission it needs.
    pub needs: &'static str,
    /// What it costs.
    pub cost: &'static str,
    /// Prefixes of the sheet's rows that it should move.
    pub moves: &'static [&'static str],
    /// What goes wrong with it.
    pub traps: &'static str,
}

impl Tunable {
    /// The setting with this id.
    pub fn find(id: &str) -> Option<&'static Self> {
        CATALOGUE.iter().find(|tunable| tunable.id == id)
    }

    /// Whether this crate can apply it.
    pub fn can_be_applied(&self) -> bool {
        !matches!(self.interface, Interface::Advice(_))
    }
}

const NOTHING: &str = "nothing";
const ROOT: &str = "root";
const NICE: &str = "CAP_SYS_NICE, or RLIMIT_RTPRIO (limits.d: `rtprio`; systemd: LimitRTPRIO=)";

/// Every setting, those of the smallest reach first.
pub const CATALOGUE: &[Tunable] = &[
    Tunable {
        id: "slack",
        changes: "how late the kernel may wake an ordinary thread to save wake-ups (50 µs by default)",
        scope: SettingScope::Thread,
        interface: Interface::Call("prctl(PR_SET_TIMERSLACK)"),
        values: "a span: 1ns, 50us",
        needs: NOTHING,
        cost: "a few more wake-ups",
        moves: &["sleeps", "delays.long"],
        traps: "no effect on SCHED_FIFO, SCHED_RR and SCHED_DEADLINE, which have none",
    },
    Tunable {
        id: "policy",
        changes: "the scheduling policy, with its priority",
        scope: SettingScope::Thread,
        interface: Interface::Call("sched_setscheduler"),
        values: "fifo:1..99, rr:1..99 or other",
        needs: NICE,
        cost: "a program that never sleeps starves the rest of its CPU, but for the 5 % that the kernel keeps back",
        moves: &["disturbance.wakeup", "sleeps", "reaction"],
        traps: "a program that polls wants a CPU that others do not need; above 50 it outranks threaded interrupts",
    },
    Tunable {
        id: "cpu",
        changes: "the CPUs that the threads may run on",
        scope: SettingScope::Thread,
        interface: Interface::Call("sched_setaffinity"),
        values: "a CPU or a list joined by +: 1, 0+2",
        needs: NOTHING,
        cost: "the kernel no longer balances the load",
        moves: &["disturbance", "reaction", "delays"],
        traps: "to pin onto the CPU that serves the interrupts is worse than not to pin",
    },
    Tunable {
        id: "nice",
        changes: "the share of the CPU among ordinary programs",
        scope: SettingScope::Thread,
        interface: Interface::Call("setpriority"),
        values: "-20..19",
        needs: "below 0: CAP_SYS_NICE or RLIMIT_NICE",
        cost: "other programs get less",
        moves: &["disturbance.wakeup_other"],
        traps: "acts only inside the program's control group and autogroup",
    },
    Tunable {
        id: "memory-lock",
        changes: "whether pages of the program may be taken away",
        scope: SettingScope::Process,
        interface: Interface::Advice(
            "the program calls mlockall itself (RealTime::lock_memory in the library): a lock does not survive exec",
        ),
        values: "",
        needs: "CAP_IPC_LOCK or RLIMIT_MEMLOCK",
        cost: "memory",
        moves: &["disturbance"],
        traps: "locked pages can still be moved: see `compaction`",
    },
    Tunable {
        id: "deadline",
        changes: "a reserved budget of CPU time in each period (SCHED_DEADLINE)",
        scope: SettingScope::Thread,
        interface: Interface::Advice("chrt --deadline, or sched_setattr in the program"),
        values: "",
        needs: "CAP_SYS_NICE",
        cost: "the kernel reserves the CPU time",
        moves: &["disturbance.wakeup"],
        traps: "the thread may not be pinned, may not fork, and is stopped until its next period when it overruns",
    },
    Tunable {
        id: "idle",
        changes: "how long a CPU may take to leave an idle state, for all CPUs",
        scope: SettingScope::Descriptor,
        interface: Interface::Call("/dev/cpu_dma_latency, held open"),
        values: "off (no idle states), or a span: 10us",
        needs: "write permission on /dev/cpu_dma_latency (root, or a udev rule for a group)",
        cost: "power and heat; a virtual machine uses its CPUs fully, which its host may charge or slow down",
        moves: &["reaction", "disturbance.wakeup", "sleeps", "executive.thread"],
        traps: "cyclictest holds the file by itself; another holder makes this setting change nothing",
    },
    Tunable {
        id: "idle-governor",
        changes: "how the kernel chooses idle states",
        scope: SettingScope::Machine,
        interface: Interface::Files("/sys/devices/system/cpu/cpuidle/current_governor"),
        values: "one of available_governors: menu, teo, ladder, haltpoll",
        needs: ROOT,
        cost: "little",
        moves: &["reaction", "disturbance.wakeup"],
        traps: "it learns anew after a change",
    },
    Tunable {
        id: "halt-poll",
        changes: "how long an idle virtual CPU polls before it halts, in nanoseconds",
        scope: SettingScope::Machine,
        interface: Interface::Files("/sys/module/haltpoll/parameters/guest_halt_poll_ns"),
        values: "nanoseconds: 200000",
        needs: "root, and the idle governor haltpoll",
        cost: "the host sees the virtual CPU busy",
        moves: &["reaction"],
        traps: "sleeps that are longer gain nothing; `idle=off` overrides it",
    },
    Tunable {
        id: "rt-throttling",
        changes: "how many microseconds of each second real-time threads may run; -1 is no limit",
        scope: SettingScope::Machine,
        interface: Interface::Files("/proc/sys/kernel/sched_rt_runtime_us"),
        values: "-1, or microseconds: 950000",
        needs: ROOT,
        cost: "without it a real-time loop that never ends hangs its CPU",
        moves: &["disturbance", "delays"],
        traps: "since Linux 6.12 only groups are throttled so; starving ordinary tasks get 50 ms of a second from the fair server",
    },
    Tunable {
        id: "workqueue-cpus",
        changes: "the CPUs that serve the kernel's unbound work, as a mask in hexadecimal",
        scope: SettingScope::Machine,
        interface: Interface::Files("/sys/devices/virtual/workqueue/cpumask"),
        values: "a mask: 1",
        needs: ROOT,
        cost: "the other CPUs do more",
        moves: &["disturbance"],
        traps: "work that is bound to a CPU stays there",
    },
    Tunable {
        id: "stat-interval",
        changes: "how often the kernel gathers memory statistics, in seconds",
        scope: SettingScope::Machine,
        interface: Interface::Files("/proc/sys/vm/stat_interval"),
        values: "seconds: 120",
        needs: ROOT,
        cost: "older statistics",
        moves: &["disturbance"],
        traps: "moves rare gaps only",
    },
    Tunable {
        id: "writeback-interval",
        changes: "how often the kernel looks for old unwritten pages, in hundredths of a second; 0 is never",
        scope: SettingScope::Machine,
        interface: Interface::Files("/proc/sys/vm/dirty_writeback_centisecs"),
        values: "hundredths of a second: 1500",
        needs: ROOT,
        cost: "more is lost when the power fails",
        moves: &["disturbance", "transfer.disk"],
        traps: "no effect on direct writes, which the recorder makes",
    },
    Tunable {
        id: "timer-migration",
        changes: "whether timers of idle CPUs move to busy ones",
        scope: SettingScope::Machine,
        interface: Interface::Files("/proc/sys/kernel/timer_migration"),
        values: "0 or 1",
        needs: ROOT,
        cost: "idle CPUs wake more often",
        moves: &["disturbance"],
        traps: "mostly below the noise",
    },
    Tunable {
        id: "huge-pages",
        changes: "how many pages of 2 MiB are set aside",
        scope: SettingScope::Machine,
        interface: Interface::Files("/proc/sys/vm/nr_hugepages"),
        values: "a count: 72",
        needs: ROOT,
        cost: "the memory is set aside",
        moves: &["transfer.memory", "transfer.ring"],
        traps: "fragmented memory gives fewer than asked; read the value back",
    },
    Tunable {
        id: "transparent-huge-pages",
        changes: "which memory gets pages of 2 MiB unasked",
        scope: SettingScope::Machine,
        interface: Interface::Files("/sys/kernel/mm/transparent_hugepage/enabled"),
        values: "always, madvise or never",
        needs: ROOT,
        cost: "memory; khugepaged and compaction make gaps",
        moves: &["transfer.memory", "disturbance"],
        traps: "acts on memory that is mapped after the change",
    },
    Tunable {
        id: "swappiness",
        changes: "how readily the kernel swaps program memory out",
        scope: SettingScope::Machine,
        interface: Interface::Files("/proc/sys/vm/swappiness"),
        values: "0..200",
        needs: ROOT,
        cost: "less memory for the file cache",
        moves: &["disturbance"],
        traps: "no effect without swap, and none while memory is free",
    },
    Tunable {
        id: "compaction",
        changes: "how much the kernel compacts memory in advance",
        scope: SettingScope::Machine,
        interface: Interface::Files("/proc/sys/vm/compaction_proactiveness"),
        values: "0..100",
        needs: ROOT,
        cost: "huge pages become rare",
        moves: &["disturbance"],
        traps: "direct compaction stays",
    },
    Tunable {
        id: "numa-balancing",
        changes: "whether the kernel moves pages towards the CPU that uses them",
        scope: SettingScope::Machine,
        interface: Interface::Files("/proc/sys/kernel/numa_balancing"),
        values: "0 or 1",
        needs: ROOT,
        cost: "memory may lie far away",
        moves: &["disturbance"],
        traps: "no effect on a machine of one node",
    },
    Tunable {
        id: "nmi-watchdog",
        changes: "whether the kernel looks for hanging CPUs with a performance counter",
        scope: SettingScope::Machine,
        interface: Interface::Files("/proc/sys/kernel/nmi_watchdog"),
        values: "0 or 1",
        needs: ROOT,
        cost: "a hanging CPU goes unnoticed",
        moves: &["disturbance"],
        traps: "most virtual machines have none",
    },
    Tunable {
        id: "disk-scheduler",
        changes: "the scheduler of every disk",
        scope: SettingScope::Machine,
        interface: Interface::Files("/sys/block/*/queue/scheduler"),
        values: "one that the disks list: none, mq-deadline, kyber, bfq",
        needs: ROOT,
        cost: "fairness between programs",
        moves: &["transfer.disk"],
        traps: "a change empties the queue: not while anything records",
    },
    Tunable {
        id: "frequency-governor",
        changes: "how the kernel chooses the frequency of every CPU",
        scope: SettingScope::Machine,
        interface: Interface::Files("/sys/devices/system/cpu/cpufreq/*/scaling_governor"),
        values: "one of scaling_available_governors: performance, powersave, schedutil",
        needs: ROOT,
        cost: "power and heat; a laptop slows down sooner",
        moves: &["delays", "executive", "transfer.memory"],
        traps: "power-profiles-daemon, TLP and tuned write it back; virtual machines have no such files",
    },
    Tunable {
        id: "turbo",
        changes: "whether the CPUs may run above their nominal frequency",
        scope: SettingScope::Machine,
        interface: Interface::Files("/sys/devices/system/cpu/cpufreq/boost"),
        values: "0 or 1",
        needs: ROOT,
        cost: "10 to 40 % of the speed",
        moves: &["delays", "executive"],
        traps: "makes figures steadier, not better",
    },
    Tunable {
        id: "preemption",
        changes: "where the kernel may be interrupted for a more urgent task",
        scope: SettingScope::Machine,
        interface: Interface::Files("/sys/kernel/debug/sched/preempt"),
        values: "none, voluntary, lazy or full",
        needs: "root, debugfs mounted, a kernel with PREEMPT_DYNAMIC",
        cost: "up to 5 % of the throughput",
        moves: &["disturbance.wakeup"],
        traps: "PREEMPT_RT is another kernel: compare two sheets",
    },
    Tunable {
        id: "isolation",
        changes: "CPUs that the scheduler leaves to programs that ask for them",
        scope: SettingScope::Machine,
        interface: Interface::Advice(
            "cgroup v2: cpuset.cpus and cpuset.cpus.partition=isolated; or boot with isolcpus=domain,managed_irq,N",
        ),
        values: "",
        needs: ROOT,
        cost: "the CPUs are lost to everything else",
        moves: &["disturbance"],
        traps: "read the partition file back: it says `isolated invalid` with a reason when it did not work",
    },
    Tunable {
        id: "interrupt-cpus",
        changes: "the CPUs that serve device interrupts",
        scope: SettingScope::Machine,
        interface: Interface::Advice(
            "/proc/irq/N/smp_affinity_list; stop irqbalance, which undoes it; or boot with irqaffinity=",
        ),
        values: "",
        needs: ROOT,
        cost: "the other CPUs serve more",
        moves: &["disturbance", "reaction"],
        traps: "managed interrupts refuse; look at effective_affinity_list and at the counts",
    },
    Tunable {
        id: "busy-poll",
        changes: "whether a socket polls its network card",
        scope: SettingScope::Process,
        interface: Interface::Advice("SO_BUSY_POLL and SO_PREFER_BUSY_POLL in the program"),
        values: "",
        needs: "CAP_NET_ADMIN to raise it",
        cost: "a CPU",
        moves: &["reaction.udp"],
        traps: "no effect on the loopback",
    },
    Tunable {
        id: "tickless",
        changes: "whether a CPU with one runnable task gets timer interrupts",
        scope: SettingScope::Boot,
        interface: Interface::Advice("boot with nohz_full=N, on a kernel with CONFIG_NO_HZ_FULL"),
        values: "",
        needs: "root and a reboot",
        cost: "every call into the kernel gets slower",
        moves: &["disturbance"],
        traps: "helps only a program that makes no system calls and is alone on its CPU",
    },
    Tunable {
        id: "rcu-callbacks",
        changes: "where the kernel frees what it no longer needs",
        scope: SettingScope::Boot,
        interface: Interface::Advice("boot with rcu_nocbs=N and move the rcuo threads"),
        values: "",
        needs: "root and a reboot",
        cost: "more work for other CPUs",
        moves: &["disturbance"],
        traps: "the rcuo threads themselves must leave the CPU",
    },
    Tunable {
        id: "idle-at-boot",
        changes: "idle states, from boot on",
        scope: SettingScope::Boot,
        interface: Interface::Advice("boot with intel_idle.max_cstate=1 or idle=poll"),
        values: "",
        needs: "root and a reboot",
        cost: "full power always",
        moves: &["reaction"],
        traps: "brings no more than `idle`, which needs no reboot: try that first",
    },
    Tunable {
        id: "threaded-interrupts",
        changes: "whether interrupt handlers are threads with a priority",
        scope: SettingScope::Boot,
        interface: Interface::Advice("boot with threadirqs, then chrt the irq/ threads"),
        values: "",
        needs: "root and a reboot",
        cost: "one more task switch for each interrupt",
        moves: &["disturbance", "reaction"],
        traps: "the threads end and come back when a driver is loaded anew",
    },
    Tunable {
        id: "virtual-cpus",
        changes: "what the host does with the virtual CPUs",
        scope: SettingScope::Host,
        interface: Interface::Advice(
            "on the host: pin the virtual CPUs, no overcommit, cpu-pm=on, huge pages, no ballooning",
        ),
        values: "",
        needs: "the host's administrator",
        cost: "capacity of the host",
        moves: &["disturbance", "reaction"],
        traps: "steal time of 0 does not acquit the host: exits that it serves are not counted",
    },
    Tunable {
        id: "firmware",
        changes: "interrupts of the firmware (SMI), C1E, SpeedStep",
        scope: SettingScope::Host,
        interface: Interface::Advice("firmware setup: USB legacy support, ECC scrubbing, power management"),
        values: "",
        needs: "access to the firmware setup",
        cost: "functions of the firmware",
        moves: &["disturbance"],
        traps: "never turn off what protects against heat",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_words() {
        for (place, tunable) in CATALOGUE.iter().enumerate() {
            assert!(tunable.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", tunable.id);
            assert!(!CATALOGUE[..place].iter().any(|other| other.id == tunable.id), "{} twice", tunable.id);
        }
    }

    #[test]
    fn each_row_tells_all_there_is_to_tell() {
        for tunable in CATALOGUE {
            let texts = [tunable.changes, tunable.needs, tunable.cost, tunable.traps];
            assert!(texts.iter().all(|text| !text.is_empty()), "{}", tunable.id);
            assert!(!tunable.moves.is_empty(), "{}", tunable.id);
            assert_eq!(tunable.can_be_applied(), !tunable.values.is_empty(), "{}", tunable.id);
        }
    }

    #[test]
    fn only_files_of_the_machine_are_written() {
        for tunable in CATALOGUE {
            if let Interface::Files(pattern) = tunable.interface {
                assert_eq!(tunable.scope, SettingScope::Machine, "{}", tunable.id);
                assert!(pattern.starts_with("/sys/") || pattern.starts_with("/proc/sys/"), "{}", tunable.id);
                assert!(pattern.matches('*').count() <= 1, "{}", tunable.id);
            }
        }
    }
}
