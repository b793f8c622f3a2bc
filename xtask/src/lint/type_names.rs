//! Invariant 9: no two public types share a name.
//!
//! Checks all `pub` structures, enumerations, unions, traits and type aliases of the product. A type with one name on
//! several platforms is one type: of files under `host/` only those for Linux count.

use std::collections::BTreeMap;

use super::{Repository, Violation};

const KEYWORDS: [&str; 5] = ["struct", "enum", "union", "trait", "type"];

pub(crate) fn find(repository: &Repository) -> Vec<Violation> {
    let mut places: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for source in &repository.sources {
        let counts = source.crate_name().is_some() && source.path.contains("/src/") && !source.is_outside_the_product();
        if !counts || source.path.contains("/host/windows") {
            continue;
        }
        for (line, code) in source.product_lines() {
            if let Some(name) = declared(code) {
                places.entry(name).or_default().push((&source.path, line));
            }
        }
    }
    let shared = places.iter().filter(|(_, places)| places.len() > 1);
    shared
        .flat_map(|(name, places)| {
            let (first, line) = places[0];
            places[1..].iter().map(move |(path, at)| Violation {
                path: (*path).to_owned(),
                line: *at,
                what: format!("{name} is also a public type in {first}:{line}; give this one a more specific name"),
            })
        })
        .collect()
}

/// The public type that a line declares.
fn declared(code: &str) -> Option<&str> {
    let mut words = code.split(|c: char| !super::source::is_name(c)).filter(|word| !word.is_empty());
    let code = code.trim_start();
    // `pub(crate)` and similar are not public, and a macro variable is not a name.
    if !code.starts_with("pub ") || code.contains('$') {
        return None;
    }
    words.next();
    let keyword = words.find(|word| *word != "unsafe")?;
    KEYWORDS.contains(&keyword).then(|| words.next()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[(&str, usize)]) {
        let found = find(&Repository::of(files));
        let found: Vec<_> = found.iter().map(|violation| (violation.path.as_str(), violation.line)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_name_that_two_public_types_share_is_caught_at_the_second() {
        let one = ("crates/time/src/a.rs", "\n/// It.\npub struct Source(u8);\n");
        check(&[one, ("crates/exec/src/b.rs", "pub enum Source<'a> {\n}\n")], &[("crates/exec/src/b.rs", 1)]);
        check(&[one, ("crates/exec/src/b.rs", "pub unsafe trait Source {\n}\n")], &[("crates/exec/src/b.rs", 1)]);
        check(&[one, ("crates/exec/src/b.rs", "pub type Source = u8;\n")], &[("crates/exec/src/b.rs", 1)]);
    }

    #[test]
    fn private_types_tests_and_other_platforms_pass() {
        let one = ("crates/time/src/a.rs", "pub struct Source(u8);\n");
        for other in [
            (
                "crates/exec/src/b.rs",
                "pub(crate) struct Source;\nstruct Source;\npub fn Source() {}\n// pub struct Source;\n",
            ),
            ("crates/exec/src/b/tests.rs", "pub struct Source;\n"),
            ("crates/time/src/host/windows.rs", "pub struct Source;\n"),
            ("crates/exec/src/b.rs", "pub struct $Source;\n"),
            ("crates/exec/src/b.rs", "#[cfg(test)]\nmod tests {\n    pub struct Source;\n}\n"),
            ("xtask/src/b.rs", "pub struct Source;\n"),
        ] {
            check(&[one, other], &[]);
        }
    }
}
