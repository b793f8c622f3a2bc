//! The facts of a Linux machine, read from the files in which the kernel states them.
//!
//! [`read`] returns every fact on every machine, always in the same order. A fact that cannot be read names the file
//! and the system's error. It opens thousands of files on a large machine and takes milliseconds, so call nothing here
//! inside a measurement. [`counters_steal_and_interrupts`] is for just before and just after one.
//!
//! All files are found through a [`Root`], so that tests read recorded trees. This module only reads files.

mod cgroup;
mod command_line;
mod counters;
mod cpu;
mod cpu_list;
mod heat;
mod hypervisor;
mod kernel;
mod limits;
mod load;
mod power;
mod root;
mod threads;

#[cfg(test)]
mod tests;

pub(crate) use counters::counters_steal_and_interrupts;
pub(crate) use cpu::cpu_flags;
pub(crate) use heat::heat;
pub(crate) use kernel::clocksource;
pub(crate) use root::Root;

use crate::facts::{Fact, Facts, Unread};

/// All facts from the files under `root`.
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

/// A public fact.
fn fact(id: &'static str, label: &'static str, value: Result<String, Unread>) -> Fact {
    Fact { id, label, value, private: false }
}

/// A fact that may identify the machine.
fn private_fact(id: &'static str, label: &'static str, value: Result<String, Unread>) -> Fact {
    Fact { id, label, value, private: true }
}
