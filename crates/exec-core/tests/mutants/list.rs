//! Reads `mutants.toml`: tables of strings, each on one line in double quotes or over several in three single ones.

use std::fs;
use std::path::Path;

/// One deliberate break of the core.
pub(crate) struct Mutant {
    pub(crate) name: String,
    /// The file that is changed, from the crate's folder.
    pub(crate) file: String,
    pub(crate) old: String,
    pub(crate) new: String,
    /// The test that must fail.
    pub(crate) killed_by: String,
}

/// All mutants of the crate in this folder.
///
/// # Panics
/// If the file is missing or a mutant lacks a field: then the list is wrong.
pub(crate) fn mutants(folder: &Path) -> Vec<Mutant> {
    let text = fs::read_to_string(folder.join("mutants.toml")).expect("the list of mutants");
    let of = |table: &str, key: &str| field(table, key).unwrap_or_else(|| panic!("a mutant has no `{key}`:{table}"));
    let tables = text.split("[[mutant]]\n").skip(1);
    tables
        .map(|table| Mutant {
            name: of(table, "name"),
            file: of(table, "file"),
            old: of(table, "old"),
            new: of(table, "new"),
            killed_by: of(table, "killed_by"),
        })
        .collect()
}

fn field(table: &str, key: &str) -> Option<String> {
    ["'''", "\""].into_iter().find_map(|quote| {
        let (_, rest) = table
            .split_once(&format!("\n{key} = {quote}"))
            .or_else(|| table.strip_prefix(&format!("{key} = {quote}")).map(|rest| ("", rest)))?;
        Some(rest.split_once(quote)?.0.to_owned())
    })
}
