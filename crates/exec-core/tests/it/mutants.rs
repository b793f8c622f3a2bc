//! The list of mutants is up to date: what each changes is there once, and the test it names exists.

#[path = "../mutants/list.rs"]
mod list;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn every_mutant_changes_one_place_and_names_a_test_that_exists() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mutants = list::mutants(folder);
    assert!(mutants.len() >= 16, "{} mutants", mutants.len());
    let names: BTreeSet<_> = mutants.iter().map(|mutant| &mutant.name).collect();
    assert_eq!(names.len(), mutants.len(), "two have the same name");
    for list::Mutant { name, file, old, new, killed_by } in &mutants {
        let source = fs::read_to_string(folder.join(file)).expect("the file that a mutant changes");
        assert_eq!(source.matches(old.as_str()).count(), 1, "`{name}` looks for this in {file}:\n{old}");
        assert_ne!(old, new, "`{name}` changes nothing");
        let (module, test) = killed_by.rsplit_once("::").expect("a module and a test");
        let tests = fs::read_to_string(folder.join(format!("tests/it/{module}.rs"))).expect("the file of a test");
        assert!(tests.contains(&format!("fn {test}(")), "`{name}` names a test that is not there: {killed_by}");
    }
}
