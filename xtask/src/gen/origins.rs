//! `docs/origins.md`: the features of the four documents that Hairspring began with, the parts of Hairspring that
//! implement them, and their figures beside ours.
//!
//! The page is made from `docs/origins.toml`. Figures are taken from committed sheets and proofs, never typed. The step
//! `book` checks that each command, row and path of the API exists (`faults`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use toml::{Table, Value};

use super::figures::{self, Sheet, thousands};

const SOURCE: &str = "docs/origins.toml";
const PROBES: &str = "docs/probes.md";

const OPENING: &str = "---
hide: [toc]
---

# Where it comes from

!!! example \"Your task\"
    You know one of four documents, or the machine that it describes: a test stand of 2007, a real-time kernel of 2001, a data acquisition
    card of 2009, an accelerator's front end of 2006. You look for the same feature here, and for what it does on a computer of today.

Each table names the command, the path of the API and the rows of the sheet ([Probes](probes.md)) that do what the document does. The
path is written without the crate's prefix `hairspring_`; `cargo doc --open` shows it.
";

const ENDING: &str = "## What can go wrong

!!! failure \"The comparison is unfair\"
    It is. Twenty years and a different machine lie between the columns, and some documents print neither counts nor spread. The figures
    show what a sheet of today has instead of each printed number. They do not say that one method is better than the other.

!!! failure \"A figure of ours differs from your machine's\"
    Ours are those of one virtual machine on one day. `hairspring sheet --beside NAME` prints a document's figures beside yours.
";

/// The page.
pub(super) fn page(root: &Path, _: &[&str]) -> Result<String, String> {
    let source = read(root)?;
    let mut sheets = Sheets { root, read: BTreeMap::new() };
    let main = text(&source, "sheet")?;
    let ours = sheets.get(&main)?;
    let cpu = ours.fact("cpu.model").unwrap_or("an unknown CPU").to_owned();
    let online = ours.fact("cpu.online").unwrap_or("an unknown number of CPUs").to_owned();
    let mut page = OPENING.to_owned();
    let _ = writeln!(
        page,
        "Our figures are medians of `{main}`, taken on {} on a virtual machine (KVM guest, {cpu}, CPUs online: {online}), unless another \
         file is named.",
        ours.day
    );
    for document in tables(&source, "document") {
        let _ = write!(page, "\n## {}\n\n*{}.*\n\n", text(document, "name")?, text(document, "source")?);
        let _ = writeln!(page, "{}\n", text(document, "about")?);
        page += "| what it does | command | API | rows |\n|---|---|---|---|\n";
        for feature in tables(document, "feature") {
            let mut cells =
                ["commands", "api", "rows"].map(|key| code(&strings(feature, key)).replace("`hairspring_", "`"));
            if let Ok(also) = text(feature, "also") {
                cells[0] = also;
            }
            let _ = writeln!(page, "| {} | {} |", text(feature, "what")?, cells.join(" | "));
        }
        page += "\n| figure | in the document | here | from |\n|---|---:|---:|---|\n";
        for figure in tables(document, "figure") {
            let theirs = match text(figure, "document") {
                Ok(place) => {
                    let (name, row) =
                        place.split_once(':').ok_or_else(|| format!("read {SOURCE}: {place} names no row"))?;
                    sheets.get(&format!("sheets/historic/{name}.json"))?.figure(row)?.typical()
                }
                Err(_) => text(figure, "printed")?,
            };
            let (said, from) = sheets.ours(&main, &text(figure, "ours")?)?;
            let _ = writeln!(page, "| {} | {theirs} | {said} | {from} |", text(figure, "what")?);
        }
        let names: Vec<String> = strings(document, "beside").iter().map(|name| format!("`--beside {name}`")).collect();
        let _ =
            writeln!(page, "\nThe whole document beside your machine: `hairspring sheet` with {}.", names.join(", "));
    }
    Ok(page + "\n" + ENDING)
}

/// Whether a name exists.
type Exists<'f> = &'f dyn Fn(&str) -> bool;

/// All names on the page that do not exist. `has_command` looks up a command, `has_item` a path of the API.
pub(crate) fn faults(root: &Path, has_command: Exists<'_>, has_item: Exists<'_>) -> Result<Vec<String>, String> {
    let source = read(root)?;
    let probes = fs::read_to_string(root.join(PROBES)).map_err(|error| format!("read {PROBES}: {error}"))?;
    let mut faults = Vec::new();
    let mut named = 0_usize;
    for feature in tables(&source, "document").flat_map(|document| tables(document, "feature")) {
        let has_row = |row: &str| has_row(&probes, row);
        let checks: [(&str, Exists<'_>); 3] = [("commands", has_command), ("api", has_item), ("rows", &has_row)];
        for (key, exists) in checks {
            let names = strings(feature, key);
            named += names.len();
            faults.extend(
                names.into_iter().filter(|name| !exists(name)).map(|name| format!("{key}: {name} does not exist")),
            );
        }
    }
    if named == 0 { Err(format!("find a name to check in {SOURCE}")) } else { Ok(faults) }
}

/// Whether a row has this id, or an id that begins with it.
fn has_row(probes: &str, row: &str) -> bool {
    probes.match_indices(&format!("`{row}")).any(|(at, found)| probes[at + found.len()..].starts_with(['`', '.']))
}

struct Sheets<'r> {
    root: &'r Path,
    read: BTreeMap<String, Sheet>,
}

impl Sheets<'_> {
    fn get(&mut self, path: &str) -> Result<&Sheet, String> {
        if !self.read.contains_key(path) {
            self.read.insert(path.to_owned(), Sheet::read(self.root, path)?);
        }
        self.read.get(path).ok_or_else(|| format!("read {path}"))
    }

    /// A figure of ours, and its source.
    fn ours(&mut self, main: &str, place: &str) -> Result<(String, String), String> {
        let (file, row) = place.split_once('#').unwrap_or((main, place));
        if file.starts_with("proofs/") {
            let figure = row.split([':', '.']).nth(1).unwrap_or(row);
            return Ok((figures::of_proof(self.root, file, row)?, format!("`{file}`, {figure}")));
        }
        let sheet = self.get(file)?;
        let figure = sheet.figure(row)?;
        let from = if file == main { format!("`{row}`") } else { format!("`{row}` of `{file}`, {}", sheet.day) };
        Ok((figure.typical(), format!("{from}, n = {}", thousands(figure.n()))))
    }
}

fn read(root: &Path) -> Result<Table, String> {
    let text = fs::read_to_string(root.join(SOURCE)).map_err(|error| format!("read {SOURCE}: {error}"))?;
    text.parse().map_err(|error| format!("read {SOURCE}: {error}"))
}

fn text(table: &Table, key: &str) -> Result<String, String> {
    let value = table.get(key).and_then(Value::as_str).ok_or_else(|| format!("read {SOURCE}: a {key} is missing"))?;
    Ok(value.replace('\n', " "))
}

fn tables<'t>(table: &'t Table, key: &str) -> impl Iterator<Item = &'t Table> {
    table.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table)
}

fn strings(table: &Table, key: &str) -> Vec<String> {
    let values = table.get(key).and_then(Value::as_array).into_iter().flatten();
    values.filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

fn code(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "–".to_owned() } else { names.join("<br>") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_exist_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("docs")).unwrap();
        let source = "sheet = 's'\n[[document]]\n[[document.feature]]\ncommands = ['hairspring a', 'hairspring b']\napi = ['x::Y', 'x::Z']\n\
                      rows = ['clocks.read', 'clocks.re', 'clocks.read.now.later']\n";
        fs::write(folder.path().join(SOURCE), source).unwrap();
        fs::write(folder.path().join(PROBES), "| `clocks.read.now.later` | ns |\n").unwrap();
        let found = faults(folder.path(), &|command| command.ends_with('a'), &|item| item.ends_with('Y')).unwrap();
        let expected =
            ["commands: hairspring b", "api: x::Z", "rows: clocks.re"].map(|name| format!("{name} does not exist"));
        assert_eq!(found, expected);
        fs::write(folder.path().join(SOURCE), "sheet = 's'\n").unwrap();
        assert!(faults(folder.path(), &|_| true, &|_| true).is_err());
    }
}
