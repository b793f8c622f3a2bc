//! The ledgers in ARCHITECTURE.md: lists of files with special permissions.
//!
//! A ledger consists of every path in backticks in a list item or table row between its heading and the next one. There
//! are three headings: `## Unsafe ledger`, `## Platform ledger` and `## Threads`.

use super::{Repository, Violation};

pub(crate) const UNSAFE: &str = "Unsafe ledger";
pub(crate) const PLATFORM: &str = "Platform ledger";
pub(crate) const THREADS: &str = "Threads";

pub(crate) struct Ledger {
    heading: &'static str,
    /// Line and path of each entry.
    entries: Vec<(usize, String)>,
}

impl Ledger {
    pub(crate) fn read(repository: &Repository, heading: &'static str) -> Ledger {
        let mut entries = Vec::new();
        let mut inside = false;
        for (index, line) in repository.architecture.lines().enumerate() {
            if line.starts_with('#') {
                inside = line.trim_start_matches('#').trim().eq_ignore_ascii_case(heading);
            } else if inside && line.trim_start().starts_with(['-', '*', '|']) {
                let quoted = line.split('`').skip(1).step_by(2);
                let paths = quoted.filter(|word| word.ends_with(".rs") && word.contains('/'));
                entries.extend(paths.map(|path| (index + 1, path.to_owned())));
            }
        }
        Ledger { heading, entries }
    }

    pub(crate) fn lists(&self, path: &str) -> bool {
        self.entries.iter().any(|(_, listed)| listed == path)
    }

    /// The message for a file that does something without being listed.
    pub(crate) fn refusal(&self, what: &str) -> String {
        format!("{what} outside `## {}` of ARCHITECTURE.md; move it to a listed file, or list this one", self.heading)
    }

    /// Stale entries: files that no longer have the reason for which they are listed.
    pub(crate) fn stale(&self, what: &str, still: impl Fn(&str) -> bool) -> Vec<Violation> {
        let gone = self.entries.iter().filter(|(_, path)| !still(path));
        let violation = |(line, path): &(usize, String)| Violation {
            path: "ARCHITECTURE.md".to_owned(),
            line: *line,
            what: format!("`## {}` lists {path}, which has no {what}; remove the entry", self.heading),
        };
        gone.map(violation).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_the_paths_under_its_heading() {
        let text = "# A\nsee `a/not.rs`\n## Unsafe ledger\nabout `a/prose.rs`\n- `a/one.rs`: why `this`\n\
                    | `a/two.rs` | why |\n## Threads\n- `a/three.rs`\n";
        let repository = Repository::of(&[("ARCHITECTURE.md", text)]);
        let ledger = Ledger::read(&repository, UNSAFE);
        assert_eq!(ledger.entries, [(5, "a/one.rs".to_owned()), (6, "a/two.rs".to_owned())]);
        assert!(Ledger::read(&repository, THREADS).lists("a/three.rs"));
        assert!(!Ledger::read(&repository, PLATFORM).lists("a/three.rs"));
    }
}
