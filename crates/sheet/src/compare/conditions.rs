//! Differences in the conditions of two sides.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::ComparedSheets;
use crate::Sheet;

/// A fact that differs between sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DifferingFact {
    /// Id of the fact.
    pub id: String,
    /// Its label, for people.
    pub label: String,
    /// Its value on each side, in their order; different values of a side's sheets are joined. `None` if no sheet of
    /// the side has it.
    pub values: Vec<Option<String>>,
}

/// The facts that differ between sides.
pub(super) fn differing(sides: &[ComparedSheets]) -> Vec<DifferingFact> {
    let sheets = || sides.iter().flat_map(|side| &side.sheets);
    let mut seen = HashSet::new();
    let facts = sheets().flat_map(|sheet| &sheet.conditions.facts).filter(|fact| seen.insert(fact.id.as_str()));
    let facts = facts.map(|fact| {
        let values = |sheet: &Sheet| sheet.conditions.value(&fact.id).map(str::to_owned);
        on_sides(sides, &fact.id, &fact.label, &values)
    });
    let build = |sheet: &Sheet| {
        let build = &sheet.hairspring;
        let commit = build.commit.as_deref().map_or(String::new(), |commit| format!(" ({commit})"));
        Some(format!("{}{commit}, {}, {}", build.version, build.compiler, build.flags))
    };
    let own = [
        on_sides(sides, "hairspring", "Build of hairspring", &build),
        on_sides(sides, "taken.effort", "Effort", &|sheet| Some(sheet.taken.effort.clone())),
    ];
    own.into_iter().chain(facts).filter(|fact| fact.values.iter().any(|value| *value != fact.values[0])).collect()
}

fn on_sides(
    sides: &[ComparedSheets],
    id: &str,
    label: &str,
    value: &dyn Fn(&Sheet) -> Option<String>,
) -> DifferingFact {
    let joined = |side: &ComparedSheets| {
        let mut values: Vec<String> = side.sheets.iter().filter_map(value).collect();
        values.sort_unstable();
        values.dedup();
        (!values.is_empty()).then(|| values.join("; "))
    };
    DifferingFact { id: id.to_owned(), label: label.to_owned(), values: sides.iter().map(joined).collect() }
}

/// The title that distinguishes a sheet from the others.
pub(super) fn machine_and_time(sheet: &Sheet) -> String {
    let value = |id: &str| sheet.conditions.value(id);
    let parts = [value("host.name"), value("cpu.model"), Some(&sheet.taken.when())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
