//! The catalogue: every setting that is known to affect timing, as data.
//!
//! Sources: the kernel's documentation (`Documentation/admin-guide/{pm,sysctl,cgroup-v2,kernel-parameters}`,
//! `power/pm_qos_interface`) and the man pages sched(7), prctl(2), sched_setattr(2), setrlimit(2), as of Linux 6.18.

mod of_others;
mod of_the_machine;
mod of_the_program;

/// Reach of a setting, and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SettingScope {
    /// One thread and the threads that it starts. Ends with them.
    Thread,
    /// One process and the processes that it starts. Ends with them.
    Process,
    /// The whole machine, while a process holds a descriptor. The kernel ends the setting with its last holder, also
    /// after SIGKILL.
    Descriptor,
    /// The whole machine, until it is changed back or rebooted.
    Machine,
    /// The next boot.
    Boot,
    /// The host of a virtual machine, the firmware or the hardware: advice only.
    Host,
}

impl SettingScope {
    /// Its name in tables and JSON.
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
            Self::Boot => "remove the parameter and reboot",
            Self::Host => "change it back in the same place",
        }
    }
}

/// How a setting is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// By calls of this crate; the text names them.
    Call(&'static str),
    /// By writing the value to each file that matches the pattern; `*` stands for any text. A choice can select one
    /// file by the text of the last `*`: `cpu-idle-limit:1=n/a`. A file that refuses the value keeps the old one.
    Files(&'static str),
    /// Hairspring does not set it; the text describes how to.
    Advice(&'static str),
}

/// One setting of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// Its name: lower-case words with hyphens.
    pub id: &'static str,
    /// Effect of the setting, as a fragment.
    pub changes: &'static str,
    /// Its reach.
    pub scope: SettingScope,
    /// How it is changed.
    pub interface: Interface,
    /// The permitted values; empty for advice.
    pub values: &'static str,
    /// The permission that it needs.
    pub needs: &'static str,
    /// Its cost.
    pub cost: &'static str,
    /// Prefixes of the sheet's rows that it should affect.
    pub moves: &'static [&'static str],
    /// Its pitfalls.
    pub traps: &'static str,
}

impl Tunable {
    /// The setting with this id.
    pub fn find(id: &str) -> Option<&'static Self> {
        Self::all().find(|tunable| tunable.id == id)
    }

    /// Every setting: those of the program, those of the machine, then advice.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        [of_the_program::ROWS, of_the_machine::ROWS, of_others::ROWS].into_iter().flatten()
    }

    /// Whether this crate can apply it.
    pub fn can_be_applied(&self) -> bool {
        !matches!(self.interface, Interface::Advice(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_words() {
        for (place, tunable) in Tunable::all().enumerate() {
            assert!(tunable.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", tunable.id);
            assert!(!Tunable::all().take(place).any(|other| other.id == tunable.id), "{} twice", tunable.id);
        }
    }

    #[test]
    fn each_row_tells_all_there_is_to_tell() {
        for tunable in Tunable::all() {
            let texts = [tunable.changes, tunable.needs, tunable.cost, tunable.traps];
            assert!(texts.iter().all(|text| !text.is_empty()), "{}", tunable.id);
            assert!(!tunable.moves.is_empty(), "{}", tunable.id);
            assert_eq!(tunable.can_be_applied(), !tunable.values.is_empty(), "{}", tunable.id);
        }
    }

    #[test]
    fn only_files_of_the_machine_are_written() {
        for tunable in Tunable::all() {
            if let Interface::Files(pattern) = tunable.interface {
                assert_eq!(tunable.scope, SettingScope::Machine, "{}", tunable.id);
                let places = ["/sys/", "/proc/sys/", "/proc/irq/"];
                assert!(places.iter().any(|place| pattern.starts_with(place)), "{}", tunable.id);
            }
        }
    }

    /// Settings that exist on a virtual machine without cpufreq.
    #[test]
    fn what_a_virtual_machine_can_try_is_applied_and_not_advised() {
        for id in [
            "idle",
            "cpu-idle-limit",
            "idle-state",
            "idle-governor",
            "halt-poll",
            "policy",
            "rtprio-limit",
            "memlock-limit",
            "slack",
            "nice",
            "autogroup",
            "cpu",
            "interrupt-cpus",
            "workqueue-cpus",
            "stat-interval",
            "writeback-interval",
            "clocksource",
            "swappiness",
            "transparent-huge-pages",
            "no-huge-pages",
            "compaction",
            "free-memory",
            "disk-scheduler",
            "disk-completion",
            "dirty-bytes",
            "timer-migration",
            "rt-throttling",
            "fair-server",
            "preemption",
        ] {
            assert!(Tunable::find(id).is_some_and(Tunable::can_be_applied), "{id}");
        }
    }
}
