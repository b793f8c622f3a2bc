//! [`Tally`]: how many inputs each target has tried, kept in a file between turns and runs.
//!
//! The file names the code that the inputs were tried on. If a source of the crates or of the targets has changed, a
//! run begins at zero: inputs of other code show nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::fingerprint;

/// Folders with the code that is fuzzed, and with the targets.
const SOURCES: [&str; 2] = ["crates", "fuzz"];

/// Figures of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fuzzed {
    pub(super) inputs: u64,
    /// Edges of the code that inputs reached.
    pub(super) edges: u64,
    /// Edges of the code that the target holds, with the crates and the parts of the standard library in it.
    pub(super) instrumented: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    code: u64,
    targets: BTreeMap<String, Fuzzed>,
}

/// The inputs so far.
#[derive(Debug)]
pub(super) struct Tally {
    file: PathBuf,
    kept: Kept,
}

impl Tally {
    /// Begins at zero, or with the counts of an earlier run of the same code.
    pub(super) fn open(folder: &Path, resume: bool) -> Result<Self, String> {
        let mut numbers = BTreeMap::new();
        for sources in SOURCES {
            fingerprint::numbers(Path::new(sources), &mut numbers)
                .map_err(|error| format!("read the sources in {sources}: {error}"))?;
        }
        Self::of_code(folder, resume, fingerprint::number(&numbers))
    }

    pub(super) fn of_code(folder: &Path, resume: bool, code: u64) -> Result<Self, String> {
        let file = folder.join("tally.json");
        let mut kept = Kept { code, ..Kept::default() };
        if resume && file.is_file() {
            let text = fs::read(&file).map_err(|error| format!("read {}: {error}", file.display()))?;
            let earlier: Kept =
                serde_json::from_slice(&text).map_err(|error| format!("read {}: {error}", file.display()))?;
            if earlier.code == code {
                kept = earlier;
            } else {
                println!("fuzz: the code has changed since the earlier run, so this one begins at zero");
            }
        }
        Ok(Self { file, kept })
    }

    /// Adds a turn, and keeps the result. Edges are those of the latest turn, which began with all inputs found before.
    pub(super) fn add(&mut self, target: &str, turn: Fuzzed) -> Result<(), String> {
        let so_far = self.kept.targets.entry(target.to_owned()).or_default();
        *so_far = Fuzzed { inputs: so_far.inputs + turn.inputs, edges: turn.edges.max(so_far.edges), ..turn };
        let text = serde_json::to_vec(&self.kept).map_err(|error| format!("write the tally: {error}"))?;
        // Under another name first: a file that is there is whole.
        let new = self.file.with_extension("new");
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &self.file));
        written.map_err(|error| format!("write {}: {error}", self.file.display()))
    }

    /// Figures of a target; zeros if it had no turn.
    pub(super) fn of(&self, target: &str) -> Fuzzed {
        self.kept.targets.get(target).copied().unwrap_or_default()
    }

    /// The inputs of these targets together.
    pub(super) fn inputs(&self, targets: &[String]) -> u64 {
        targets.iter().map(|target| self.of(target).inputs).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_only_with_inputs_of_the_same_code() {
        let folder = tempfile::tempdir().unwrap();
        let turn = |inputs, edges| Fuzzed { inputs, edges, instrumented: 90 };
        let open = |resume, code| Tally::of_code(folder.path(), resume, code).unwrap();
        let names = ["tap".to_owned(), "http".to_owned()];
        let mut first = open(false, 7);
        first.add("tap", turn(10, 5)).unwrap();
        first.add("http", turn(1, 2)).unwrap();
        first.add("tap", turn(20, 6)).unwrap();
        let again = open(true, 7);
        assert_eq!((again.of("tap"), again.inputs(&names)), (turn(30, 6), 31));
        assert_eq!(again.inputs(&names[1..]), 1);
        assert_eq!((open(true, 8).inputs(&names), open(false, 7).inputs(&names)), (0, 0));
    }
}
