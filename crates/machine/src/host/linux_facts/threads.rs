//! The threads of the machine that this process may see.

use std::path::Path;

use super::counters::TICK_MS;
use super::root::{self, Root, malformed, unread};
use crate::facts::{THREADS_MAX, Thread, Unread};

/// The parent of all kernel threads: its id and its name. It is visible if all processes are.
const KERNEL_THREADS: (u32, &str) = (2, "kthreadd");

/// All threads, ascending by process and thread id, and the reason if some are missing. A thread that ends while it is
/// read does not count as missing.
pub(super) fn read(root: &Root) -> (Vec<Thread>, Option<Unread>) {
    let mut pids = match ids(&root.proc) {
        Ok(pids) => pids,
        Err(unread) => return (Vec::new(), Some(unread)),
    };
    pids.sort_unstable();
    let mut threads = Vec::new();
    let mut missed = Missed::default();
    for pid in pids {
        let tasks = root.proc.join(format!("{pid}/task"));
        let mut tids = match ids(&tasks) {
            Ok(tids) => tids,
            Err(unread) => {
                missed.note(&tasks, unread);
                continue;
            }
        };
        tids.sort_unstable();
        for tid in tids {
            if threads.len() == THREADS_MAX {
                let reason = format!("more than {THREADS_MAX} threads: the rest is not listed");
                return (threads, Some(Unread { reason, remedy: None }));
            }
            let path = tasks.join(format!("{tid}/stat"));
            match thread(&path, pid, tid) {
                Ok(thread) => threads.push(thread),
                Err(unread) => missed.note(&path, unread),
            }
        }
    }
    let unread = missed.told(&root.proc, &threads);
    (threads, unread)
}

/// The threads that could not be read although they are there.
#[derive(Default)]
struct Missed {
    count: usize,
    first: Option<Unread>,
}

impl Missed {
    /// Notes that `path` was not read, unless that is because its thread has ended.
    fn note(&mut self, path: &Path, unread: Unread) {
        // If the system forbids looking, the thread counts as present.
        if !matches!(path.try_exists(), Ok(false)) {
            self.count += 1;
            self.first.get_or_insert(unread);
        }
    }

    /// The reason why `threads` is incomplete, if it is.
    fn told(self, proc: &Path, threads: &[Thread]) -> Option<Unread> {
        if let Some(first) = self.first {
            let reason = format!("{} not read, the first {}", self.count, first.reason);
            return Some(Unread { reason, remedy: first.remedy });
        }
        if threads.is_empty() {
            return Some(malformed(proc, "no process in it"));
        }
        let (pid, name) = KERNEL_THREADS;
        if threads.iter().any(|thread| thread.pid == pid && thread.name == name) {
            return None;
        }
        Some(Unread {
            reason: format!("{}: no {name}, so only the processes of this container or user are seen", proc.display()),
            remedy: Some("run outside of the container, or as root".to_owned()),
        })
    }
}

/// The numbers among the names in a directory; there are at most as many as the kernel has process ids, 2²².
fn ids(directory: &Path) -> Result<Vec<u32>, Unread> {
    let entries = std::fs::read_dir(directory).map_err(|error| unread(directory, &error))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// One thread from its `stat` file.
fn thread(path: &Path, pid: u32, tid: u32) -> Result<Thread, Unread> {
    parse(&root::bytes(path)?, pid, tid).ok_or_else(|| malformed(path, "not the state of a thread"))
}

/// The fields of `stat`: `tid (name) state …`. The name may hold spaces and parentheses, so it ends at the last of
/// them.
fn parse(stat: &[u8], pid: u32, tid: u32) -> Option<Thread> {
    let opening = stat.iter().position(|byte| *byte == b'(')?;
    let closing = stat.iter().rposition(|byte| *byte == b')')?;
    let name = root::printable(stat.get(opening + 1..closing)?).replace(['\n', '\t'], "\u{fffd}");
    let rest = std::str::from_utf8(stat.get(closing + 1..)?).ok()?;
    // Field 3 of proc(5) is the first after the name.
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let (user_ticks, kernel_ticks) = (field(14)?, field(15)?);
    Some(Thread {
        pid,
        tid,
        name,
        policy: policy(field(41)?),
        rt_priority: u32::try_from(field(40)?).ok()?,
        cpu_ms: user_ticks.saturating_add(kernel_ticks).saturating_mul(TICK_MS),
    })
}

/// The name of a scheduling policy, from `linux/sched.h`.
fn policy(number: u64) -> String {
    match number {
        0 => "other".to_owned(),
        1 => "fifo".to_owned(),
        2 => "rr".to_owned(),
        3 => "batch".to_owned(),
        5 => "idle".to_owned(),
        6 => "deadline".to_owned(),
        7 => "ext".to_owned(),
        unknown => format!("policy {unknown}"),
    }
}
