//! Outcome of each mutant, kept between runs and forgotten when the code it rests on has changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Mutant;
use crate::fingerprint;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    Killed,
    Hangs,
    DoesNotCompile,
    Lives,
}

/// The files in which cargo-mutants lists the mutants that it has tried, one per line, while it runs.
const LISTS: [(&str, Outcome); 4] = [
    ("caught.txt", Outcome::Killed),
    ("timeout.txt", Outcome::Hangs),
    ("unviable.txt", Outcome::DoesNotCompile),
    ("missed.txt", Outcome::Lives),
];

/// One mutant's outcome and the code it was found with.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Found {
    outcome: Outcome,
    /// Fingerprint of the mutated file.
    file: u64,
    /// Fingerprint of the whole crate with its tests.
    whole: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    found: BTreeMap<String, Found>,
    /// The code that the run in `mutants.out` began with: of each file, and of the crate.
    files: BTreeMap<String, u64>,
    whole: u64,
}

#[derive(Debug)]
pub(crate) struct Results {
    folder: PathBuf,
    sources: PathBuf,
    kept: Kept,
}

impl Results {
    /// Reads the results in this folder, with those of an interrupted run, and forgets outdated ones.
    pub(crate) fn load(folder: &Path, sources: &str) -> Result<Self, String> {
        let file = folder.join("results.json");
        let kept = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| format!("read {}: {error}", file.display()))?,
            Err(_) => Kept::default(),
        };
        let mut results = Self { folder: folder.to_owned(), sources: PathBuf::from(sources), kept };
        results.collect()?;
        results.look_at_the_sources()?;
        let Kept { found, files, whole } = &mut results.kept;
        found.retain(|name, found| {
            let same_file = files.get(file_of(name)) == Some(&found.file);
            same_file && (found.outcome != Outcome::Lives || found.whole == *whole)
        });
        Ok(results)
    }

    fn look_at_the_sources(&mut self) -> Result<(), String> {
        let mut files = BTreeMap::new();
        fingerprint::numbers(&self.sources, &mut files)
            .map_err(|error| format!("read {}: {error}", self.sources.display()))?;
        self.kept.whole = fingerprint::number(&files);
        self.kept.files = files;
        Ok(())
    }

    /// Takes in the lists of cargo-mutants. It began with the sources that were last looked at.
    pub(crate) fn collect(&mut self) -> Result<(), String> {
        for (list, outcome) in LISTS {
            let Ok(names) = fs::read_to_string(self.folder.join("mutants.out").join(list)) else { continue };
            for name in names.lines() {
                self.enter(name, outcome);
            }
        }
        let _ = fs::remove_dir_all(self.folder.join("mutants.out"));
        self.save()
    }

    pub(crate) fn save(&self) -> Result<(), String> {
        let file = self.folder.join("results.json");
        let text = serde_json::to_vec_pretty(&self.kept).map_err(|error| error.to_string())?;
        fs::write(&file, text).map_err(|error| format!("write {}: {error}", file.display()))
    }

    pub(crate) fn outcome(&self, mutant: &Mutant) -> Option<Outcome> {
        self.kept.found.get(&mutant.name).map(|found| found.outcome)
    }

    /// Enters the outcome of the mutant of this name, in the sources that were last looked at.
    pub(crate) fn enter(&mut self, name: &str, outcome: Outcome) {
        let Some(file) = self.kept.files.get(file_of(name)).copied() else { return };
        self.kept.found.insert(name.to_owned(), Found { outcome, file, whole: self.kept.whole });
    }

    /// Has cargo-mutants leave these out in its next run with `--iterate`.
    pub(crate) fn skip_next_time<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<(), String> {
        self.save()?;
        let folder = self.folder.join("mutants.out");
        let text: String = names.into_iter().map(|name| format!("{name}\n")).collect();
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join("previously_caught.txt"), text));
        written.map_err(|error| format!("write to {}: {error}", folder.display()))
    }
}

fn file_of(name: &str) -> &str {
    name.split(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// A crate of two files and a folder of results.
    struct Bench(tempfile::TempDir);

    impl Bench {
        fn new() -> Self {
            let bench = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(bench.0.path().join("crate/tests")).unwrap();
            bench.write("crate/lib.rs", "fn a() {}");
            bench.write("crate/tests/it.rs", "");
            bench
        }

        fn write(&self, name: &str, text: &str) {
            let file = self.0.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }

        fn load(&self) -> Results {
            let folder = self.0.path().join("results");
            fs::create_dir_all(&folder).unwrap();
            Results::load(&folder, self.0.path().join("crate").to_str().unwrap()).unwrap()
        }

        fn mutant(&self, what: &str) -> Mutant {
            let file = self.0.path().join("crate/lib.rs").to_str().unwrap().to_owned();
            Mutant {
                name: format!("{file}:1:1: {what}"),
                what: what.to_owned(),
                file,
                code: String::new(),
                listed: Value::Null,
            }
        }

        /// Runs cargo-mutants, which finds one mutant and lets another live.
        fn run(&self) {
            let results = self.load();
            results.skip_next_time([]).unwrap();
            self.write("results/mutants.out/caught.txt", &format!("{}\n", self.mutant("killed").name));
            self.write("results/mutants.out/missed.txt", &format!("{}\n", self.mutant("lives").name));
        }

        #[track_caller]
        fn check(&self, killed: Option<Outcome>, lives: Option<Outcome>) {
            let results = self.load();
            assert_eq!(results.outcome(&self.mutant("killed")), killed);
            assert_eq!(results.outcome(&self.mutant("lives")), lives);
        }
    }

    #[test]
    fn what_a_run_that_was_ended_has_found_is_kept() {
        let bench = Bench::new();
        bench.check(None, None);
        bench.run();
        bench.check(Some(Outcome::Killed), Some(Outcome::Lives));
        bench.check(Some(Outcome::Killed), Some(Outcome::Lives));
    }

    #[test]
    fn a_survivor_is_tried_again_when_a_test_was_added_and_everything_when_its_file_has_changed() {
        let bench = Bench::new();
        bench.run();
        bench.write("crate/tests/it.rs", "#[test]\nfn finds_it() {}");
        bench.check(Some(Outcome::Killed), None);
        bench.write("crate/lib.rs", "fn b() {}");
        bench.check(None, None);
    }

    #[test]
    fn a_file_that_changes_during_a_run_takes_the_runs_results_with_it() {
        let bench = Bench::new();
        bench.run();
        bench.write("crate/lib.rs", "fn b() {}");
        bench.check(None, None);
    }
}
