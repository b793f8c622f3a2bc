//! What a binary is made of: our crates and those of others, with versions, licences and their texts, as
//! `cargo metadata` knows them.
//!
//! Packages for distributions, archives with binaries and the bill of materials are written from this one list.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::workspace::Workspace;

/// One crate in a binary.
#[derive(Clone)]
pub(crate) struct Component {
    pub(crate) name: String,
    pub(crate) version: String,
    /// An SPDX expression.
    pub(crate) licence: String,
    pub(crate) repository: String,
    pub(crate) description: String,
    /// Whether it comes from a registry; the others are ours.
    pub(crate) is_foreign: bool,
    /// Whom its licence files or its manifest name.
    pub(crate) holders: Vec<String>,
    /// The texts of its licence files.
    pub(crate) texts: Vec<String>,
    /// Identities of the components that it uses.
    pub(crate) uses: Vec<String>,
}

impl Component {
    /// Name and version, as package URLs have them.
    pub(crate) fn identity(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// Everything that is linked into the binaries of these packages on one target, in the order of names.
pub(crate) fn of(workspace: &Workspace, packages: &[&str], target: &str) -> Result<Vec<Component>, String> {
    let asked = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
    let output = workspace.cargo(&asked).output().map_err(|error| format!("run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("run cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("read cargo metadata: {error}"))?;
    read(&metadata, packages).ok_or_else(|| "find the packages in cargo metadata".to_owned())
}

fn read(metadata: &Value, packages: &[&str]) -> Option<Vec<Component>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let by_id: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
    let linked: BTreeMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let is_linked = |used: &&Value| list(&used["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            let used = list(&node["deps"]);
            (text(&node["id"]), used.iter().filter(is_linked).map(|used| text(&used["pkg"])).collect())
        })
        .collect();
    let identity = |id: &str| Some(format!("{}@{}", text(&by_id.get(id)?["name"]), text(&by_id.get(id)?["version"])));
    let mut open: Vec<String> = by_id
        .iter()
        .filter(|(_, package)| packages.contains(&package["name"].as_str().unwrap_or_default()))
        .map(|(id, _)| id.clone())
        .collect();
    if open.len() != packages.len() {
        return None;
    }
    let mut seen = BTreeSet::new();
    let mut components = Vec::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        let (package, used) = (by_id.get(&id)?, linked.get(&id)?);
        open.extend(used.iter().cloned());
        let folder = Path::new(package["manifest_path"].as_str()?).parent()?.to_owned();
        let texts = licence_texts(&folder);
        let authors = list(&package["authors"]).iter().map(text).collect();
        let mut uses: Vec<String> = used.iter().filter_map(|id| identity(id)).collect();
        uses.sort();
        components.push(Component {
            name: text(&package["name"]),
            version: text(&package["version"]),
            // An older way to write it.
            licence: text(&package["license"]).replace('/', " OR "),
            repository: text(&package["repository"]),
            description: text(&package["description"]),
            is_foreign: !package["source"].is_null(),
            holders: holders(&texts, authors, package["name"].as_str()?),
            texts,
            uses,
        });
    }
    components.sort_by_key(Component::identity);
    Some(components)
}

/// The texts of the files in a crate's folder that hold licences.
fn licence_texts(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_licence = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        ["LICEN", "COPYING", "UNLICENSE", "NOTICE"].iter().any(|start| name.starts_with(start))
    };
    let mut files: Vec<_> = names.filter(is_licence).collect();
    files.sort();
    files.iter().filter_map(|file| fs::read_to_string(file).ok()).map(|text| text.replace('\r', "")).collect()
}

/// The copyright lines of the texts, or else the authors.
fn holders(texts: &[String], authors: Vec<String>, name: &str) -> Vec<String> {
    let lines = texts.iter().flat_map(|text| text.lines()).map(str::trim);
    let named: BTreeSet<String> = lines
        .filter(|line| line.starts_with("Copyright") && line.chars().any(|c| c.is_ascii_digit()) && line.len() < 120)
        // The form to fill in at the end of the Apache licence.
        .filter(|line| !line.contains(['[', '{']))
        .map(|line| {
            line.trim_start_matches("Copyright")
                .trim_start()
                .trim_start_matches("(c)")
                .trim_start_matches("(C)")
                .trim()
                .to_owned()
        })
        .collect();
    match (named.is_empty(), authors.is_empty()) {
        (false, _) => named.into_iter().collect(),
        (true, false) => authors,
        (true, true) => vec![format!("the authors of {name}")],
    }
}

/// The texts of all licences of other people's crates, each once, after the crates that it is for.
pub(crate) fn notices(components: &[Component]) -> String {
    let mut text =
        "These crates of others are linked into Hairspring. Each is named with its licence; the texts follow.\n\n"
            .to_owned();
    let mut texts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for component in components.iter().filter(|component| component.is_foreign) {
        let _ = writeln!(
            text,
            "{} {}: {}; {}",
            component.name,
            component.version,
            component.licence,
            component.holders.join(", ")
        );
        for licence in &component.texts {
            texts.entry(licence).or_default().push(component.identity());
        }
    }
    for (licence, crates) in texts {
        let _ = write!(text, "\n{}\n{}:\n\n{}\n", "-".repeat(80), crates.join(", "), licence.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_listed_and_tools_of_the_build_are_not() {
        let package = |id: &str, source: Value| {
            serde_json::json!({"id": id, "name": id, "version": "1.0.0", "license": "MIT/Apache-2.0",
            "manifest_path": "/nowhere/Cargo.toml", "source": source, "authors": []})
        };
        let used = |id: &str, kind: Value| serde_json::json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let metadata = serde_json::json!({
            "packages": [package("ours", Value::Null), package("linked", "registry".into()), package("tool", "registry".into())],
            "resolve": {"nodes": [
                {"id": "ours", "deps": [used("linked", Value::Null), used("tool", "build".into())]},
                {"id": "linked", "deps": []}, {"id": "tool", "deps": []}]},
        });
        let found = read(&metadata, &["ours"]).unwrap();
        assert_eq!(found.iter().map(Component::identity).collect::<Vec<_>>(), ["linked@1.0.0", "ours@1.0.0"]);
        assert_eq!(
            (found[0].licence.as_str(), found[1].uses.as_slice()),
            ("MIT OR Apache-2.0", &["linked@1.0.0".to_owned()][..])
        );
        assert!(notices(&found).contains("linked 1.0.0: MIT OR Apache-2.0") && !notices(&found).contains("ours"));
        assert!(read(&metadata, &["absent"]).is_none());
    }

    #[test]
    fn holders_come_from_the_texts_or_from_the_manifest() {
        let text = "Copyright (c) 2019 Ann Author\nCopyright [yyyy] [name]\nno Copyright 3\n".to_owned();
        assert_eq!(holders(&[text], vec!["B".into()], "x"), ["2019 Ann Author"]);
        assert_eq!(holders(&[], vec!["B".into()], "x"), ["B"]);
        assert_eq!(holders(&[], vec![], "x"), ["the authors of x"]);
    }
}
