//! The rows of the chapter, declared.

use hairspring_machine::Machine;
use hairspring_sheet::{Method, Unit};

use crate::probe::{Probes, Row, Slot};

/// The calling languages: segment and display name.
const LANGUAGES: [(&str, &str); 6] = [
    ("rust", "Rust"),
    ("c", "C"),
    ("c_pointer", "C, through a function pointer"),
    ("python", "Python"),
    ("tcl", "Tcl"),
    ("dll", "C, of the DLL on Windows"),
];

/// The calls: segment and what is measured.
pub(super) const CALLS: [(&str, &str); 4] = [
    ("now", "a reading of the time base in nanoseconds"),
    ("delay_1us", "a guaranteed minimum delay of 1 µs, from before the call until after it"),
    ("word_read", "a read of a 32-bit word of a mapped device"),
    ("word_write", "a write of a 32-bit word of a mapped device"),
];

/// The rows of one call from one language: the first call of a process, and later ones.
pub(super) struct CallRows {
    pub(super) call: &'static str,
    pub(super) first: Slot,
    pub(super) later: Slot,
}

impl CallRows {
    pub(super) fn slots(&self) -> [Slot; 2] {
        [self.first, self.later]
    }
}

/// A table for each call, with the rows of every language; the rows by language.
pub(super) fn tables<M: Machine + Clone + Sync + 'static>(
    probes: &mut Probes<M>,
) -> Vec<(&'static str, Vec<CallRows>)> {
    let mut by_language: Vec<_> = LANGUAGES.iter().map(|(language, _)| (*language, Vec::new())).collect();
    for (call, measures) in CALLS {
        let title = match call {
            "now" => "Reading the clock",
            "delay_1us" => "A guaranteed minimum delay of 1 µs",
            "word_read" => "Reading a mapped word",
            _ => "Writing a mapped word",
        };
        let table = probes.table(
            "callers",
            title,
            "the first calls of 10 processes (3 at the least effort, 50 at the greatest), and 2,000 later calls of each, in \
             blocks of 100 but for delays",
        );
        for ((language, caller), (_, rows)) in LANGUAGES.into_iter().zip(&mut by_language) {
            let mut row = |when: &str, which: &str| {
                let measures = format!("{measures}, called from {caller}: {which}");
                let suffix = format!("{language}.{call}.{when}");
                probes.row(table, Row::new(suffix, format!("{caller}: {when}"), Unit::Ns, Method::Stamp, measures))
            };
            let first = row("first", "the first call of a process");
            rows.push(CallRows { call, first, later: row("later", "later calls") });
        }
    }
    by_language
}
