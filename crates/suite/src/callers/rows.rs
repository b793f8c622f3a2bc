//! The rows of the chapter, declared.

use hairspring_sheet::{Method, Unit};

use crate::registry::{ChapterDeclaration, RowDeclaration, TableDeclaration};

/// Who calls: segment, for people.
const LANGUAGES: [(&str, &str); 6] = [
    ("rust", "Rust"),
    ("c", "C"),
    ("c_pointer", "C, through a function pointer"),
    ("python", "Python"),
    ("tcl", "Tcl"),
    ("dll", "C, of the DLL on Windows"),
];

/// What is called: segment, what it is.
pub(super) const CALLS: [(&str, &str); 4] = [
    ("now", "a reading of the time base in nanoseconds"),
    ("delay_1us", "a guaranteed minimum delay of 1 µs, from before the call until after it"),
    ("word_read", "a read of a 32-bit word of a mapped device"),
    ("word_write", "a write of a 32-bit word of a mapped device"),
];

/// Which call of a process: segment, for people.
const WHENS: [(&str, &str); 2] = [("first", "the first call of a process"), ("later", "later calls")];

pub(crate) fn declare() -> ChapterDeclaration {
    ChapterDeclaration {
        id: "callers",
        title: "Callers",
        intro: "What a call of the library costs from each language, the first of a process and later ones: a reading of the clock, \
                the shortest useful delay, and one access to a mapped word.",
        tables: CALLS.map(by_call).into(),
    }
}

fn by_call((call, measures): (&str, &str)) -> TableDeclaration {
    let mut rows = Vec::new();
    for (language, caller) in LANGUAGES {
        for (when, which) in WHENS {
            let id = format!("callers.{language}.{call}.{when}");
            let measures = format!("{measures}, called from {caller}: {which}");
            rows.push(RowDeclaration::new(id, format!("{caller}: {when}"), Unit::Ns, Method::Stamp, measures));
        }
    }
    let title = match call {
        "now" => "Reading the clock",
        "delay_1us" => "A guaranteed minimum delay of 1 µs",
        "word_read" => "Reading a mapped word",
        _ => "Writing a mapped word",
    };
    TableDeclaration {
        id: "callers".to_owned(),
        title: title.to_owned(),
        limits: "the first calls of 10 processes (3 at the least effort, 50 at the greatest), and 2,000 later calls of each, in blocks of 100 but for delays",
        rows,
        diagram: None,
    }
}
