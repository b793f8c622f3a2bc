//! The facts of a Linux machine, read from the files in which the kernel states them.
//!
//! [`read`] yields every fact on every machine, always in the same order: what cannot be read is there with the file and
//! what the system said of it. It opens some thousands of files on a large machine and takes milliseconds; nothing here
//! belongs inside a measurement, [`counters_steal_and_interrupts`] included, which is for just before and just after.
//!
//! All files are found through a [`Root`], so that tests read recorded trees. Nothing is written, and nothing is asked of
//! the machine by other means than files.

mod cgroup;
mod command_line;
mod counters;
mod cpu;
mod cpu_list;
mod hypervisor;
mod kernel;
mod limits;
mod load;
mod power;
mod root;
mod threads;

#[cfg(test)]
#[path = "../../../tests/facts/mod.rs"]
mod tests;

pub(crate) use counters::counters_steal_and_interrupts;
pub(crate) use cpu::cpu_flags;
pub(crate) use kernel::clocksource;
pub(crate) use root::Root;

use crate::facts::{Fact, Facts, Unread};

/// Everything the machine says of itself in the files under `root`.
pub(crate) fn read(root: &Root) -> Facts {
    let facts = [
        load::host(root),
        cpu::read(root),
        power::read(root),
        kernel::read(root),
        limits::read(root),
        load::read(root),
    ];
    let (threads, threads_unread) = threads::read(root);
    Facts { facts: facts.into_iter().flatten().collect(), threads, threads_unread }
}

/// A fact that anybody may see.
fn fact(id: &'static str, label: &'static str, value: Result<String, Unread>) -> Fact {
    Fact { id, label, value, private: false }
}

/// A fact that may tell who or where the machine is.
fn private_fact(id: &'static str, label: &'static str, value: Result<String, Unread>) -> Fact {
    Fact { id, label, value, private: true }
}
