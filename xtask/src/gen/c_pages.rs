//! The pages of the book on C, one per noun, from the header: functions, structures and constants with their comments.
//!
//! Each declaration belongs to one noun. The generation fails for one that belongs to none or to two.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::header::{self, Item, Kind, marked};

/// One page.
pub(super) struct Noun {
    /// The page's file is `docs/c/NAME.md`.
    pub(super) name: &'static str,
    title: &'static str,
    /// Its purpose.
    about: &'static str,
    /// Beginnings of the names that belong to it.
    names: &'static [&'static str],
    /// An example, `crates/c/examples/NAME.c`.
    example: Option<&'static str>,
    /// A file with a chapter that stands before the functions.
    chapter: Option<&'static str>,
}

pub(super) const NOUNS: [Noun; 10] = [
    Noun {
        name: "timebase",
        title: "Time base",
        about: "A calibrated clock: it ties the CPU's counter to the kernel's clock and says how wrong it can be.",
        names: &[
            "hs_timebase",
            "hs_calibrat",
            "hs_now",
            "hs_instant",
            "hs_difference",
            "hs_trust",
            "hs_continuity",
            "HS_SOURCE_",
            "HS_CONTINUED",
            "HS_RERATED",
            "HS_SUSPENDED",
            "HS_STEPPED",
            "HS_DISTRUSTED",
        ],
        example: Some("calibrate"),
        chapter: None,
    },
    Noun {
        name: "delay",
        title: "Delay and report",
        about: "A delay of at most 100 ms that polls: never early, late by a poll step unless disturbed. Its report says what happened.",
        names: &["hs_delay_", "hs_report", "hs_gaps", "hs_verdict_", "HS_VERDICT_", "HS_CAUSES"],
        example: Some("delay"),
        chapter: None,
    },
    Noun {
        name: "long-delay",
        title: "Long delay",
        about: "A delay of up to 100 days that sleeps first and polls only the end.",
        names: &["hs_long_delay"],
        example: Some("long_delay"),
        chapter: None,
    },
    Noun {
        name: "profile",
        title: "Profile",
        about: "How long each run of a piece of code takes.",
        names: &["hs_profile", "hs_summary"],
        example: Some("profile"),
        chapter: None,
    },
    Noun {
        name: "real-time",
        title: "Real-time settings",
        about: "A policy, a priority, a CPU, locked memory, the timer slack and a limit on idle states for the calling thread, restored when freed.",
        names: &[
            "hs_real_time",
            "hs_wishes",
            "hs_grants",
            "HS_POLICY_",
            "HS_IDLE_OFF",
            "HS_NOT_ASKED",
            "HS_GRANTED",
            "HS_REFUSED",
        ],
        example: Some("realtime"),
        chapter: None,
    },
    Noun {
        name: "window",
        title: "Window",
        about: "The 32-bit words of a file or of a card's memory.",
        names: &["hs_window"],
        example: None,
        chapter: None,
    },
    Noun {
        name: "sheet",
        title: "Sheet",
        about: "A timing data sheet: taken by the command, or read from its JSON.",
        names: &["hs_sheet", "hs_contents", "hs_row"],
        example: Some("read_sheet"),
        chapter: None,
    },
    Noun {
        name: "executive",
        title: "Executive",
        about: "Tasks with priorities, and what they wait for: messages, timers, semaphores, resources, events, interrupts. On Linux. \
                Include `hairspring_exec.h`, whose beginning has the rules.",
        names: &["hs_exec", "HS_EXEC_"],
        example: Some("executive"),
        chapter: Some("crates/c/src/exec/misfortune.md"),
    },
    Noun {
        name: "tap",
        title: "Live tap",
        about: "Frames of a recording that another process makes, while it makes it. On Linux. Include `hairspring_tap.h`. \
                [Watching a recording](../live-tap.md) tells what a reader gets.",
        names: &["hs_tap", "HS_TAP_"],
        example: None,
        chapter: None,
    },
    Noun {
        name: "errors",
        title: "Errors and version",
        about: "The meaning of a negative code, and the complete message of the latest error.",
        names: &[
            "HS_OK",
            "HS_E_",
            "HS_ABSENT_NS",
            "hs_strerror",
            "hs_error_name",
            "hs_last_error",
            "hs_version",
            "HS_VERSION_",
        ],
        example: None,
        chapter: None,
    },
];

/// A line of a chapter: names become code as in comments, and the bars of a table stay.
fn marked_line(line: &str) -> String {
    line.split('|').map(marked).collect::<Vec<_>>().join("|")
}

/// The page of the noun with this name.
pub(super) fn page(root: &Path, names: &[&str]) -> Result<String, String> {
    let items = header::read(root)?;
    for item in &items {
        let owners = NOUNS.iter().filter(|noun| noun.owns(item)).count();
        if owners != 1 {
            return Err(format!("place {} in the book: it belongs to {owners} pages of C instead of one", item.name));
        }
    }
    let noun = NOUNS.iter().find(|noun| names.contains(&noun.name)).ok_or("find the noun of a page of C")?;
    let chapter = noun.chapter.map_or(Ok(String::new()), |path| {
        fs::read_to_string(root.join(path)).map_err(|error| format!("read {path}: {error}"))
    })?;
    Ok(noun.page(&items, &chapter))
}

impl Noun {
    pub(super) fn owns(&self, item: &Item) -> bool {
        self.names.iter().any(|name| item.name.starts_with(name))
    }

    fn page(&self, items: &[Item], chapter: &str) -> String {
        let mut page = format!("# {} in C\n\n{}\n", self.title, self.about);
        let of = |kind| items.iter().filter(move |item| self.owns(item) && item.kind == kind);
        for handle in of(Kind::Handle) {
            let _ = writeln!(page, "\nThe handle is `{}`. {}", handle.name, marked(&handle.text));
        }
        if let Some(example) = self.example {
            let _ = writeln!(page, "\n## Example\n\n```c\n--8<-- \"crates/c/examples/{example}.c\"\n```");
        }
        if !chapter.is_empty() {
            let lines: Vec<String> = chapter.lines().map(marked_line).collect();
            let _ = write!(page, "\n{}\n", lines.join("\n"));
        }
        if of(Kind::Function).next().is_some() {
            page += "\n## Functions\n";
        }
        for function in of(Kind::Function) {
            let _ =
                writeln!(page, "\n### {}\n\n```c\n{}\n```\n\n{}", function.name, function.code, marked(&function.text));
        }
        if of(Kind::Structure).next().is_some() {
            page += "\n## Structures\n";
        }
        for structure in of(Kind::Structure) {
            let _ = writeln!(
                page,
                "\n### {}\n\n{}\n\n| field | what |\n|---|---|",
                structure.name,
                marked(&structure.text)
            );
            for (field, text) in &structure.fields {
                let _ = writeln!(page, "| `{field}` | {} |", marked(text));
            }
        }
        if of(Kind::Constant).next().is_some() {
            page += "\n## Constants\n\n| name | value | what |\n|---|---:|---|\n";
        }
        for constant in of(Kind::Constant) {
            let value = constant.code.rsplit(' ').next().unwrap_or_default();
            let _ = writeln!(page, "| `{}` | {value} | {} |", constant.name, marked(&constant.text));
        }
        page
    }
}
