//! `mutants.toml`: code that is not mutated, and mutants that may live, each with its reason.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::Mutant;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exceptions {
    #[serde(default)]
    excluded: Vec<Excluded>,
    #[serde(default)]
    lives: Vec<Lives>,
}

/// Files, or mutants by a regular expression, that no test here can distinguish from the sound code.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Excluded {
    files: Option<String>,
    mutants: Option<String>,
    reason: String,
}

/// Mutants of one line of code that may live.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lives {
    /// As cargo-mutants names it, without line and column.
    mutant: String,
    /// The line of code it begins on.
    code: String,
    reason: String,
}

/// Least length of a reason: more than "equivalent".
const SHORTEST_REASON: usize = 20;

impl Exceptions {
    pub(crate) fn read(file: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(file).map_err(|error| format!("read {}: {error}", file.display()))?;
        Self::parse(&text).map_err(|error| format!("read {}: {error}", file.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let read: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for excluded in &read.excluded {
            if excluded.files.is_some() == excluded.mutants.is_some() {
                return Err(format!("name either files or mutants in what is excluded because {}", excluded.reason));
            }
        }
        let reasons = read.excluded.iter().map(|excluded| &excluded.reason);
        let short =
            reasons.chain(read.lives.iter().map(|lives| &lives.reason)).find(|r| r.trim().len() < SHORTEST_REASON);
        short.map_or(Ok(()), |reason| Err(format!("give a reason that explains, not {reason:?}")))?;
        Ok(read)
    }

    /// The arguments of cargo-mutants for the exclusions.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let arguments = self.excluded.iter().flat_map(|excluded| {
            let files = excluded.files.as_ref().map(|files| ["--exclude".to_owned(), files.clone()]);
            let mutants = excluded.mutants.as_ref().map(|mutants| ["--exclude-re".to_owned(), mutants.clone()]);
            files.into_iter().chain(mutants).flatten()
        });
        arguments.collect()
    }

    /// Why this mutant may live.
    pub(crate) fn reason(&self, mutant: &Mutant) -> Option<&str> {
        self.lives.iter().find(|lives| lives.is(mutant)).map(|lives| lives.reason.as_str())
    }

    /// Entries for this part's files that no mutant needs: it is gone, or, once all were tried, a test finds it.
    pub(crate) fn stale(&self, part: &[Mutant], excused: &[&Mutant], all_tried: bool) -> Vec<String> {
        let files = |lives: &&Lives| part.iter().any(|mutant| lives.mutant.starts_with(&format!("{}:", mutant.file)));
        let needed = |lives: &Lives| {
            if all_tried {
                excused.iter().any(|mutant| lives.is(mutant))
            } else {
                part.iter().any(|mutant| lives.is(mutant))
            }
        };
        let stale = self.lives.iter().filter(files).filter(|lives| !needed(lives));
        stale.map(|lives| format!("{} — {}", lives.mutant, lives.code)).collect()
    }
}

impl Lives {
    fn is(&self, mutant: &Mutant) -> bool {
        self.mutant == mutant.what && self.code == mutant.code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(line: u32, what: &str, code: &str) -> Mutant {
        Mutant {
            name: format!("crates/a/src/lib.rs:{line}:1: {what}"),
            file: "crates/a/src/lib.rs".to_owned(),
            what: format!("crates/a/src/lib.rs: {what}"),
            code: code.to_owned(),
            listed: serde_json::Value::Null,
        }
    }

    const LIST: &str = "[[excluded]]\nfiles = 'crates/a/src/windows.rs'\nreason = 'compiled for Windows only'\n\
                        [[lives]]\nmutant = 'crates/a/src/lib.rs: replace < with <= in f'\ncode = 'if a < b {'\n\
                        reason = 'a and b are never equal there'\n";

    #[test]
    fn an_entry_is_found_by_what_is_changed_in_which_code_wherever_it_stands() {
        let list = Exceptions::parse(LIST).unwrap();
        assert_eq!(list.arguments(), ["--exclude", "crates/a/src/windows.rs"]);
        let reason = list.reason(&mutant(99, "replace < with <= in f", "if a < b {"));
        assert_eq!(reason, Some("a and b are never equal there"));
        assert_eq!(list.reason(&mutant(99, "replace < with == in f", "if a < b {")), None);
        assert_eq!(list.reason(&mutant(99, "replace < with <= in f", "if b < a {")), None);
    }

    #[test]
    fn an_entry_is_stale_when_its_mutant_is_gone_or_found() {
        let list = Exceptions::parse(LIST).unwrap();
        let listed = mutant(3, "replace < with <= in f", "if a < b {");
        let other = mutant(3, "replace f with ()", "g();");
        assert_eq!(list.stale(std::slice::from_ref(&listed), &[&listed], true), [""; 0]);
        assert_eq!(list.stale(std::slice::from_ref(&listed), &[], false), [""; 0], "not tried yet");
        assert_eq!(list.stale(std::slice::from_ref(&listed), &[], true).len(), 1, "found by a test");
        assert_eq!(list.stale(&[other], &[], false).len(), 1, "gone");
        assert_eq!(list.stale(&[], &[], true), [""; 0], "another part's");
    }

    #[test]
    fn an_entry_without_a_reason_that_explains_is_refused() {
        for text in [
            LIST.replace("a and b are never equal there", "equivalent"),
            LIST.replace("files = 'crates/a/src/windows.rs'\n", ""),
            LIST.replace("code = 'if a < b {'\n", ""),
        ] {
            assert!(Exceptions::parse(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_list_of_the_project_can_be_read() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("mutants.toml");
        assert!(!Exceptions::read(&file).unwrap().excluded.is_empty());
    }
}
