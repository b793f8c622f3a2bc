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

/// The calls: segment and description.
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
    /// Whether later calls are timed in blocks.
    pub(super) in_blocks: bool,
}

impl CallRows {
    pub(super) fn slots(&self) -> [Slot; 2] {
        [self.first, self.later]
    }
}

/// A table for each call, with the rows of every language; returns the rows by language.
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
            "the first calls of 20 processes (50 at the greatest effort), and 2,000 later calls of each, in blocks of 100 except for delays",
        );
        for ((language, caller), (_, rows)) in LANGUAGES.into_iter().zip(&mut by_language) {
            let in_blocks = call != "delay_1us";
            let mut row = |when: &str, which: &str, method| {
                let measures = format!("{measures}, called from {caller}: {which}");
                let suffix = format!("{language}.{call}.{when}");
                probes.row(table, Row::new(suffix, format!("{caller}: {when}"), Unit::Ns, method, measures))
            };
            let first =
                row("first", "the first call of a process, after the calibration of its time base", Method::Stamp);
            let later = row("later", "later calls", if in_blocks { Method::Mean } else { Method::Stamp });
            rows.push(CallRows { call, first, later, in_blocks });
        }
    }
    by_language
}
