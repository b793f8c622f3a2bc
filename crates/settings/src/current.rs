//! The current value of a setting: of the calling thread, or of the machine.

use std::io;
use std::path::{Path, PathBuf};

use hairspring_machine::{Host, Machine, Policy};
use rustix::process::{Resource, getrlimit};

use crate::catalogue::{Interface, Tunable};
use crate::files;
use crate::idle::IdleLatency;

/// The files of a setting on the machine whose files lie under `root`; none if the setting is not a file or this
/// machine lacks it.
pub fn files_of(root: &Path, tunable: &Tunable) -> Vec<PathBuf> {
    match tunable.interface {
        Interface::Files(pattern) => files::expand(root, pattern),
        Interface::Call(_) | Interface::Advice(_) => Vec::new(),
    }
}

/// The value of a setting, in the text form of [`Choice`](crate::Choice): of the calling thread, or of the machine
/// whose files lie under `root`. Files that differ are listed, each value once.
///
/// # Errors
/// This machine lacks the setting, the caller may not read it, or it is advice without a value.
pub fn current(root: &Path, tunable: &Tunable) -> io::Result<String> {
    match tunable.interface {
        Interface::Advice(_) => Err(io::ErrorKind::Unsupported.into()),
        Interface::Call(_) => of_thread(tunable.id),
        Interface::Files(_) => {
            let values: io::Result<Vec<String>> =
                files_of(root, tunable).iter().map(|path| files::read(path)).collect();
            let mut values = values?;
            values.sort();
            values.dedup();
            if values.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(values.join(", ")) }
        }
    }
}

fn of_thread(id: &str) -> io::Result<String> {
    match id {
        "slack" => Ok(Host.timer_slack().to_string().replace(' ', "")),
        "policy" => Ok(match Host.policy() {
            Policy::Other => "other".to_owned(),
            Policy::Fifo(priority) => format!("fifo:{priority}"),
            Policy::RoundRobin(priority) => format!("rr:{priority}"),
            Policy::Unknown(number) => format!("policy {number}"),
        }),
        "cpu" => Ok(Host.affinity().0.iter().map(|cpu| cpu.0.to_string()).collect::<Vec<_>>().join("+")),
        "nice" => Ok(rustix::process::getpriority_process(None)?.to_string()),
        "rtprio-limit" => Ok(limit(Resource::Rtprio)),
        "memlock-limit" => Ok(limit(Resource::Memlock)),
        "no-huge-pages" => {
            let are_off = rustix::thread::transparent_huge_pages_are_disabled()?;
            Ok(if are_off { "yes" } else { "no" }.to_owned())
        }
        "idle" => Ok(match IdleLatency::in_force()? {
            Some(0) => "off".to_owned(),
            Some(most_us) => format!("{most_us}us"),
            None => "no limit".to_owned(),
        }),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// The current resource limit of the program.
fn limit(resource: Resource) -> String {
    getrlimit(resource).current.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_a_value_on_this_machine_or_a_reason() {
        for tunable in Tunable::all().filter(|tunable| matches!(tunable.interface, Interface::Call(_))) {
            match current(Path::new("/"), tunable) {
                Ok(value) => assert!(!value.is_empty(), "{}", tunable.id),
                Err(error) => assert_ne!(error.kind(), io::ErrorKind::Unsupported, "{}", tunable.id),
            }
        }
    }

    #[test]
    fn files_that_differ_are_listed() {
        let root = tempfile::tempdir().expect("a folder");
        let tunable = Tunable::find("disk-scheduler").expect("in the catalogue");
        assert_eq!(current(root.path(), tunable).expect_err("no disk").kind(), io::ErrorKind::NotFound);
        for (disk, scheduler) in [("a", "[none] bfq"), ("b", "none [bfq]"), ("c", "[none] bfq")] {
            let folder = root.path().join("sys/block").join(disk).join("queue");
            std::fs::create_dir_all(&folder).expect("made");
            std::fs::write(folder.join("scheduler"), scheduler).expect("written");
        }
        assert_eq!(current(root.path(), tunable).expect("readable"), "bfq, none");
    }
}
