//! Invariant 5: crates depend downwards only, and formats stay above the clock.
//!
//! The table lists the crates of ours that each crate may use; a crate that the table lacks is a violation, so that a
//! new one gets its place. `serde` and similar crates are not used below the sheet, neither in a manifest nor in code,
//! except in the one file that writes a crate's own product.

use super::source::has_word;
use super::{Repository, Violation};

/// A crate and those of ours it may use.
const LAYERS: &[(&str, &[&str])] = &[
    ("describe", &[]),
    ("machine", &[]),
    ("file", &[]),
    ("time", &["machine"]),
    ("settings", &["machine"]),
    ("culprit", &["machine"]),
    ("exec-core", &[]),
    ("exec", &["machine", "exec-core"]),
    ("ring", &["machine"]),
    ("tap", &["machine", "ring"]),
    ("source", &["describe", "machine", "ring"]),
    ("store", &["file", "machine", "ring"]),
    ("recording", &["describe", "file", "machine", "ring", "source", "store"]),
    ("record", &["file", "machine", "time", "ring", "source", "store", "recording"]),
    // Its tests and its example record what they play.
    ("play", &["file", "machine", "ring", "source", "store", "recording", "record"]),
    ("plan", &["machine", "ring", "source", "store", "recording", "record"]),
    ("device", &["describe", "machine", "time", "ring", "source"]),
    ("station", &["describe", "file", "machine", "time", "ring", "device"]),
    ("sheet", &[]),
    (
        "suite",
        &[
            "machine",
            "time",
            "settings",
            "culprit",
            "exec",
            "ring",
            "source",
            "store",
            "recording",
            "record",
            "play",
            "device",
            "station",
            "sheet",
        ],
    ),
    ("archive", &["file", "sheet"]),
    ("advice", &["describe", "machine", "time", "settings", "culprit", "ring", "plan", "sheet", "suite"]),
    (
        "hairspring",
        &[
            "machine",
            "time",
            "settings",
            "culprit",
            "exec",
            "ring",
            "tap",
            "source",
            "store",
            "recording",
            "record",
            "play",
            "plan",
            "device",
            "station",
            "sheet",
            "suite",
            "advice",
            "archive",
        ],
    ),
    ("c", &["machine", "time", "sheet", "device", "exec", "ring", "tap"]),
    (
        "cli",
        &[
            "describe",
            "file",
            "machine",
            "time",
            "settings",
            "culprit",
            "exec",
            "ring",
            "tap",
            "source",
            "store",
            "recording",
            "record",
            "play",
            "plan",
            "device",
            "station",
            "sheet",
            "suite",
            "advice",
            "archive",
        ],
    ),
];

const WITHOUT_FORMATS: &[&str] = &[
    "machine",
    "time",
    "settings",
    "culprit",
    "exec-core",
    "exec",
    "ring",
    "tap",
    "source",
    "play",
    "device",
    "station",
    "advice",
];
/// Files that write a crate's own product, or read it back in a test, and so may use its format.
const PRODUCTS: &[&str] = &[
    "crates/exec/src/status/document.rs",
    "crates/exec/src/trace/chrome.rs",
    "crates/exec/tests/it/trace/chrome.rs",
    "crates/play/src/export/array_facts.rs",
    "crates/play/src/export/zarr.rs",
    // The reader that its exports are compared with.
    "crates/play/tests/it/every_format.rs",
    "crates/station/src/station/file.rs",
    "crates/settings/src/journal.rs",
    "crates/settings/src/journal/tests.rs",
];
const FORMATS: &[&str] = &["serde", "serde_json", "schemars"];
const PREFIX: &str = "hairspring-";

pub(crate) fn find(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (_, folder, dependencies) in &repository.packages {
        let Some(name) = folder.strip_prefix("crates/") else { continue };
        let mut report =
            |what: String| violations.push(Violation { path: format!("{folder}/Cargo.toml"), line: 0, what });
        let Some((_, allowed)) = LAYERS.iter().find(|(known, _)| *known == name) else {
            report(format!("{name} has no place in the order of crates; give it one in xtask/src/lint/layers.rs"));
            continue;
        };
        for ours in dependencies.iter().filter_map(|dependency| dependency.strip_prefix(PREFIX)) {
            // A crate's tests may enable a feature of the crate itself.
            if ours != name && !allowed.contains(&ours) {
                report(format!("{name} must not depend on {ours}: dependencies point down only"));
            }
        }
        let has_product = PRODUCTS.iter().any(|file| file.starts_with(&format!("{folder}/")));
        if WITHOUT_FORMATS.contains(&name) && !has_product {
            for format in dependencies.iter().filter(|dependency| FORMATS.contains(&dependency.as_str())) {
                report(format!("{name} must not depend on {format}: it yields values, the sheet writes them"));
            }
        }
    }
    for source in &repository.sources {
        if PRODUCTS.contains(&source.path.as_str()) {
            continue;
        }
        if !source.crate_name().is_some_and(|name| WITHOUT_FORMATS.contains(&name)) {
            continue;
        }
        for (line, code) in source.lines() {
            if let Some(format) = FORMATS.iter().find(|format| has_word(code, format)) {
                let what = format!("{format} below the sheet; yield values and let the sheet write them");
                violations.push(Violation { path: source.path.clone(), line, what });
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    #[track_caller]
    fn check(name: &str, dependencies: &[&str], violations: usize) {
        let dependencies = dependencies.iter().map(|name| (*name).to_owned()).collect();
        let packages = vec![(format!("{PREFIX}{name}"), format!("crates/{name}"), dependencies)];
        let found = find(&Repository::new(vec![], packages));
        assert_eq!(found.len(), violations, "{found:#?}");
    }

    #[test]
    fn dependencies_upwards_and_sideways_are_caught() {
        check("machine", &["libc", "hairspring-time"], 1);
        check("sheet", &["hairspring-machine", "hairspring-time"], 2);
        check("exec", &["hairspring-record"], 1);
        check("time", &["serde"], 1);
        check("gadget", &[], 1);
    }

    #[test]
    fn dependencies_downwards_pass() {
        check("time", &["hairspring-machine", "hdrhistogram"], 0);
        check("sheet", &["serde", "schemars"], 0);
        check("cli", &["hairspring-machine", "hairspring-suite"], 0);
    }

    #[test]
    fn formats_in_the_code_of_lower_crates_are_caught() {
        let derive = "#[derive(serde::Serialize)]\n";
        expect(find, &[("crates/time/src/a.rs", derive)], &[("crates/time/src/a.rs", 1)]);
        expect(find, &[("crates/sheet/src/a.rs", derive), ("crates/time/src/b.rs", "// serde\n")], &[]);
    }
}
