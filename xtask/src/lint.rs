//! `cargo xtask lint`: the invariants of ARCHITECTURE.md as searches over all files of the repository.
//!
//! Each check is one function from [`Repository`] to violations, with a test of a snippet that it must report and one
//! that it must accept. Rust files are searched with their comments and strings blanked out (`source.rs`), so that a
//! mention in a comment is not a violation.

mod book;
mod effects;
mod layers;
mod ledger;
mod platform;
mod source;
mod text;
mod time_names;
mod type_names;
mod unsafe_code;

use std::fmt;

use crate::tally::Tally;
use crate::workspace::{Package, Workspace};
use source::Source;

/// One place where an invariant does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) path: String,
    /// From 1; 0 when the whole file is meant.
    pub(crate) line: usize,
    /// The fault and its remedy.
    pub(crate) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// The files that the checks examine.
pub(crate) struct Repository {
    /// All Rust files.
    sources: Vec<Source>,
    /// All text files, the Rust files among them, with their text.
    texts: Vec<(String, String)>,
    /// The text of ARCHITECTURE.md with the ledgers; empty if it is missing.
    architecture: String,
    /// Packages with their folders and dependencies.
    packages: Vec<(String, String, Vec<String>)>,
}

struct Check {
    name: &'static str,
    find: fn(&Repository) -> Vec<Violation>,
}

const CHECKS: &[Check] = &[
    Check { name: "invariant 1, platform code only in host/", find: platform::find },
    Check { name: "invariant 2, unsafe code only on the ledger", find: unsafe_code::find },
    Check { name: "invariant 3, time has a type or a unit", find: time_names::find },
    Check { name: "invariant 4, libraries have no effects of their own", find: effects::find },
    Check { name: "invariant 5, crates depend downwards", find: layers::find },
    Check { name: "invariant 9, no two public types share a name", find: type_names::find },
    Check { name: "files open with their purpose", find: text::openings },
    Check { name: "no code is unfinished, no test is switched off", find: text::unfinished },
    Check { name: "no path of one particular machine", find: text::places },
    Check { name: "files are short enough to read", find: text::lengths },
    Check { name: "comments are narrow enough to read", find: text::widths },
    Check { name: "ARCHITECTURE.md names files that exist", find: book::named_files },
    Check { name: "links of pages lead to files", find: book::links },
    Check { name: "code on pages is that of examples which run", find: book::examples },
];

/// Prints all violations; `Ok(true)` if there are none.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, String> {
    let tally = check_repository(&Repository::load(workspace)?, "lint");
    print!("{}", tally.details());
    println!("{} of {} checks hold", tally.passed, CHECKS.len());
    Ok(tally.succeeded())
}

/// The lint as a step of the test run: one case for each check.
pub(crate) fn check(workspace: &Workspace, name: &str) -> Tally {
    match Repository::load(workspace) {
        Ok(repository) => check_repository(&repository, name),
        Err(why) => Tally::fail(name, why, ""),
    }
}

fn check_repository(repository: &Repository, name: &str) -> Tally {
    let mut tally = Tally::default();
    if repository.sources.is_empty() {
        // A check without files to examine would pass for the wrong reason.
        return Tally::fail(name, "there is no Rust file to look at", "");
    }
    for check in CHECKS {
        let violations = (check.find)(repository);
        if violations.is_empty() {
            tally.passed += 1;
        } else {
            let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
            let why = format!("{} violations", violations.len());
            tally.failure(&format!("{name}: {}", check.name), why, lines.join("\n"));
        }
    }
    tally
}

impl Repository {
    fn load(workspace: &Workspace) -> Result<Repository, String> {
        let mut files = Vec::new();
        for path in workspace.files()? {
            let bytes = std::fs::read(workspace.root.join(&path)).map_err(|error| format!("read {path}: {error}"))?;
            // A file that is not UTF-8 is a picture or a recording.
            if let Ok(text) = String::from_utf8(bytes) {
                files.push((path, text));
            }
        }
        let packages = workspace.packages.iter();
        let packages = packages.map(|package| {
            let Package { name, folder, dependencies, .. } = package;
            (name.clone(), folder.clone(), dependencies.clone())
        });
        Ok(Repository::new(files, packages.collect()))
    }

    /// Whether there is a text file with this path.
    fn has(&self, path: &str) -> bool {
        self.texts.iter().any(|(there, _)| there == path)
    }

    fn new(texts: Vec<(String, String)>, packages: Vec<(String, String, Vec<String>)>) -> Repository {
        let rust = texts.iter().filter(|(path, _)| path.ends_with(".rs"));
        let sources = rust.map(|(path, text)| Source::new(path, text)).collect();
        let architecture = texts.iter().find(|(path, _)| path == "ARCHITECTURE.md");
        let architecture = architecture.map(|(_, text)| text.clone()).unwrap_or_default();
        Repository { sources, texts, architecture, packages }
    }
}

#[cfg(test)]
impl Repository {
    /// A repository of these files alone, for the checks' own tests.
    fn of(files: &[(&str, &str)]) -> Repository {
        Repository::new(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect(), vec![])
    }
}

/// Asserts which lines a check reports in a repository of these files.
#[cfg(test)]
#[track_caller]
fn expect(find: fn(&Repository) -> Vec<Violation>, files: &[(&str, &str)], lines: &[(&str, usize)]) {
    let found = find(&Repository::of(files));
    let places: Vec<(&str, usize)> = found.iter().map(|found| (found.path.as_str(), found.line)).collect();
    assert_eq!(places, lines, "{found:#?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_fails_its_check_and_names_the_place() {
        let repository = Repository::of(&[("crates/time/src/lib.rs", "fn f() {}\n"), ("ARCHITECTURE.md", "# A\n")]);
        let details = check_repository(&repository, "lint").details();
        assert!(details.contains("lint: files open with their purpose: 1 violations"), "{details}");
        assert!(details.contains("crates/time/src/lib.rs:1: "), "{details}");
    }

    #[test]
    fn an_empty_repository_does_not_pass() {
        assert!(!check_repository(&Repository::of(&[]), "lint").succeeded());
    }
}
