//! [`Sheet`]: the guest's timing data sheet, read from its JSON.
//!
//! It checks the form, and compares two sheets. The figures come from an emulation, so only their order is checked.

use std::collections::BTreeSet;

use serde_json::Value;

const SCHEMA: &str = "hairspring.sheet/1";
/// Chapters that the guest measures; each must have rows.
const CHAPTERS: [&str; 3] = ["clocks.", "delays.minimum.", "reaction.call."];
/// Figures of a distribution, in ascending order.
const ORDERED: [&str; 6] = ["min", "p1", "q1", "q3", "p99", "max"];

/// A sheet whose form has been checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sheet {
    rows: Vec<Row>,
}

#[derive(Clone, Debug, PartialEq)]
struct Row {
    id: String,
    /// Or why there is none.
    figure: Result<Value, String>,
}

impl Sheet {
    /// Reads a sheet.
    pub(super) fn read(document: &Value) -> Result<Sheet, String> {
        if document["schema"] != SCHEMA {
            return Err(format!("its schema is {}, not {SCHEMA}", document["schema"]));
        }
        if document["taken"]["interrupted"] != false {
            return Err("it does not say that it was taken to its end".to_owned());
        }
        let inner = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
        let tables = inner(document, "chapters").into_iter().flat_map(|chapter| inner(&chapter, "tables"));
        let rows: Vec<Row> =
            tables.flat_map(|table| inner(&table, "rows")).map(|row| Row::read(&row)).collect::<Result<_, _>>()?;
        if let Some(missing) = CHAPTERS.iter().find(|begin| !rows.iter().any(|row| row.id.starts_with(**begin))) {
            return Err(format!("it has no row of {missing}"));
        }
        let ids: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        if ids.len() != rows.len() {
            return Err("two rows have one id".to_owned());
        }
        if rows.iter().all(|row| row.figure.is_err()) {
            return Err("every row is absent".to_owned());
        }
        Ok(Sheet { rows })
    }

    /// Summary: number of rows.
    pub(super) fn told(&self) -> String {
        let absent = self.rows.iter().filter(|row| row.figure.is_err()).count();
        format!("{} rows, {absent} of them absent with their reasons", self.rows.len())
    }

    /// Number of rows that are the same to the last digit, histograms included, and the names of the others: two boots
    /// with a clock that counts instructions repeat one experiment.
    pub(super) fn compared_with(&self, other: &Sheet) -> (String, Vec<String>) {
        let (first, second) = (&self.rows, &other.rows);
        let mut differences = Vec::new();
        if first.len() != second.len() {
            differences.push(format!("sheets of {} and {} rows", first.len(), second.len()));
        }
        let differing = first.iter().zip(second).filter(|(first, second)| first != second);
        differences.extend(differing.map(|(first, second)| format!("row {first:?} and row {second:?}")));
        let same = first.iter().zip(second).filter(|(first, second)| first == second).count();
        let told = format!("sheets of {} rows: {same} are the same to the last digit", first.len());
        (told, differences)
    }
}

impl Row {
    fn read(row: &Value) -> Result<Row, String> {
        let id = row["id"].as_str().filter(|id| !id.is_empty()).ok_or_else(|| format!("a row without an id: {row}"))?;
        let figure = match (row.get("figure"), row.get("absent")) {
            (Some(figure), None) => Ok(figure.clone()),
            (None, Some(absent)) => Err(absent["reason"].as_str().unwrap_or_default().to_owned()),
            _ => return Err(format!("row {id} has not exactly one of a figure and an absence")),
        };
        match &figure {
            Err(reason) if reason.is_empty() => return Err(format!("row {id} is absent without a reason")),
            Ok(figure) if figure["unit"].as_str().is_none() || figure["n"].as_u64().is_none_or(|n| n == 0) => {
                return Err(format!("row {id} has a figure without a unit or without values"));
            }
            // An event too short for the stamps has only an upper limit.
            Ok(figure) if figure["at_most"].is_number() && figure["median"].is_null() => {}
            Ok(figure) => {
                // The median is that of the rounds' medians. It lies between the least and the greatest value, but with
                // two modes not always between the quartiles of all values.
                for ordered in [&ORDERED[..], &["min", "median", "max"]] {
                    let known: Vec<f64> = ordered.iter().filter_map(|name| figure[name].as_f64()).collect();
                    if known.is_empty() || !known.is_sorted() {
                        return Err(format!("row {id} is out of order: {known:?}"));
                    }
                }
            }
            Err(_) => {}
        }
        Ok(Row { id: id.to_owned(), figure })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    pub(in super::super) fn document() -> Value {
        let figure = json!({ "unit": "ns", "n": 3, "min": 1.0, "median": 2.0, "max": 3.0 });
        let rows = |rows: &[Value]| json!({ "tables": [{ "rows": rows }] });
        json!({ "schema": SCHEMA, "taken": { "interrupted": false }, "chapters": [
            rows(&[json!({ "id": "clocks.a", "figure": figure }), json!({ "id": "clocks.b", "absent": { "reason": "none" } })]),
            rows(&[json!({ "id": "delays.minimum.c", "figure": figure })]),
            rows(&[json!({ "id": "reaction.call.d", "figure": figure })]),
        ] })
    }

    #[track_caller]
    fn refused(pointer: &str, value: Value, hint: &str) {
        let mut spoiled = document();
        *spoiled.pointer_mut(pointer).unwrap() = value;
        let why = Sheet::read(&spoiled).unwrap_err();
        assert!(why.contains(hint), "{why}");
    }

    #[test]
    fn what_is_no_sheet_is_refused() {
        assert_eq!(Sheet::read(&document()).unwrap().told(), "4 rows, 1 of them absent with their reasons");
        let first = "/chapters/0/tables/0/rows/0";
        refused("/schema", json!("hairspring.sheet/0"), "schema");
        refused("/taken/interrupted", json!(true), "to its end");
        refused("/chapters/1/tables", json!([]), "no row of delays");
        refused(&format!("{first}/id"), json!("clocks.b"), "two rows");
        refused(first, json!({ "id": "clocks.a" }), "exactly one");
        refused(first, json!({ "id": "clocks.a", "absent": { "reason": "" } }), "without a reason");
        refused(&format!("{first}/figure/n"), json!(0), "without values");
        refused(&format!("{first}/figure/median"), json!(0.5), "out of order");
        refused(&format!("{first}/figure"), json!({ "unit": "ns", "n": 5 }), "out of order");
        let mut limited = document();
        *limited.pointer_mut(&format!("{first}/figure")).unwrap() = json!({ "unit": "ns", "n": 5, "at_most": 9.0 });
        assert!(Sheet::read(&limited).is_ok());
    }

    #[test]
    fn one_other_digit_is_a_difference() {
        let (first, mut other) = (Sheet::read(&document()).unwrap(), document());
        assert_eq!(first.compared_with(&Sheet::read(&other).unwrap()).1, [""; 0]);
        other["chapters"][2]["tables"][0]["rows"][0]["figure"]["max"] = json!(4.0);
        let (told, differences) = first.compared_with(&Sheet::read(&other).unwrap());
        assert!(
            told == "sheets of 4 rows: 3 are the same to the last digit" && differences[0].contains("reaction.call.d"),
            "{told}"
        );
    }
}
