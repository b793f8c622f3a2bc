//! [`RecordingThreads`]: priority, CPUs, NUMA node and locked memory of the threads that move data, and what the system
//! granted of it.

use hairspring_machine::{Cpu, CpuSet, Held, Host, Machine, Policy, Refused, Wish};

/// Settings requested of the system for the two threads of each card. The default requests none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingThreads {
    /// The real-time policy and priority of the thread that serves the source; the recorder's is one less, so that it
    /// never delays the source.
    pub policy: Option<Policy>,
    /// The CPU of the thread that serves the source.
    pub source_cpu: Option<Cpu>,
    /// The CPU of the thread that writes.
    pub recorder_cpu: Option<Cpu>,
    /// The CPUs of a NUMA node: both threads stay on them unless they have a CPU of their own, and the buffer is
    /// allocated from there.
    pub node_cpus: Option<CpuSet>,
    /// Whether to lock the memory of the process.
    pub lock_memory: bool,
}

/// A setting of a thread that was asked for, and whether it was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadGrant {
    /// The thread: `source`, `recorder` or `buffer`.
    pub thread: &'static str,
    /// The setting: `cpu`, `lock_memory`, `policy`.
    pub setting: &'static str,
    /// The refusal, if it was not granted.
    pub refused: Option<Refused>,
}

/// The settings of a thread. They are given back when this is dropped.
pub(super) struct Placed {
    pub(super) grants: Vec<ThreadGrant>,
    held: Vec<Held<'static, Host>>,
}

impl Drop for Placed {
    fn drop(&mut self) {
        // The policy first, so that the rest of the work is not done at high priority.
        while self.held.pop().is_some() {}
    }
}

impl RecordingThreads {
    /// Places the calling thread, which serves a source.
    pub(super) fn place_source(&self) -> Placed {
        let policy = self.policy;
        self.place("source", self.affinity(self.source_cpu), self.lock_memory, policy)
    }

    /// Places the calling thread, which drives a recorder.
    pub(super) fn place_recorder(&self) -> Placed {
        let policy = match self.policy {
            Some(Policy::Fifo(priority)) => Some(Policy::Fifo(priority.saturating_sub(1).max(1))),
            other => other,
        };
        self.place("recorder", self.affinity(self.recorder_cpu), self.lock_memory, policy)
    }

    /// Places the calling thread while it allocates a buffer, whose pages come from the node of the CPU that fills
    /// them.
    pub(super) fn place_buffer(&self) -> Placed {
        self.place("buffer", self.node_cpus.clone(), false, None)
    }

    fn affinity(&self, cpu: Option<Cpu>) -> Option<CpuSet> {
        cpu.map(|cpu| CpuSet(vec![cpu])).or_else(|| self.node_cpus.clone())
    }

    fn place(&self, thread: &'static str, cpus: Option<CpuSet>, lock: bool, policy: Option<Policy>) -> Placed {
        let mut placed = Placed { grants: Vec::new(), held: Vec::new() };
        let wishes = [
            ("cpu", cpus.map(Wish::Affinity)),
            ("lock_memory", lock.then_some(Wish::MemoryLock)),
            ("policy", policy.map(Wish::Policy)),
        ];
        for (setting, wish) in wishes {
            let Some(wish) = wish else { continue };
            let refused = match Held::take(&Host, wish) {
                Ok(held) => {
                    placed.held.push(held);
                    None
                }
                Err(refused) => Some(refused),
            };
            placed.grants.push(ThreadGrant { thread, setting, refused });
        }
        placed
    }
}

/// The CPUs of a NUMA node that this process may use; empty if there is no such node.
pub fn node_cpus(node: u32) -> CpuSet {
    let list = std::fs::read_to_string(format!("/sys/devices/system/node/node{node}/cpulist")).unwrap_or_default();
    let allowed = Host.affinity().0;
    CpuSet(parsed(&list).into_iter().map(Cpu).filter(|cpu| allowed.contains(cpu)).collect())
}

/// Reads a list of CPUs as the kernel writes it: `0-3,8`.
fn parsed(list: &str) -> Vec<u32> {
    let parts = list.trim().split(',').filter(|part| !part.is_empty());
    let ranges = parts.filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read_as_the_kernel_writes_them() {
        assert_eq!(parsed("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(parsed("\n"), [0_u32; 0]);
    }

    #[test]
    fn a_thread_is_told_what_was_granted_and_has_its_settings_no_longer_than_it_holds_them() {
        std::thread::spawn(|| {
            let before = Host.affinity();
            let cpu = before.0[0];
            let threads = RecordingThreads { source_cpu: Some(cpu), ..RecordingThreads::default() };
            let placed = threads.place_source();
            assert_eq!(placed.grants, [ThreadGrant { thread: "source", setting: "cpu", refused: None }]);
            assert_eq!(Host.affinity().0, [cpu]);
            drop(placed);
            assert_eq!(Host.affinity(), before);
            let nowhere = RecordingThreads { recorder_cpu: Some(Cpu(99_999)), ..RecordingThreads::default() };
            assert!(nowhere.place_recorder().grants[0].refused.is_some());
            assert!(RecordingThreads::default().place_buffer().grants.is_empty());
        })
        .join()
        .expect("no panic");
    }
}
