//! Figures of committed sheets and proofs, for the pages that quote them: looked up by id, formatted for people.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// The rows of one sheet, with its file, its date and its conditions.
pub(super) struct Sheet {
    /// Its file, relative to the root.
    pub(super) path: String,
    /// The day on which it was taken.
    pub(super) day: String,
    facts: BTreeMap<String, String>,
    rows: BTreeMap<String, Value>,
}

impl Sheet {
    pub(super) fn read(root: &Path, path: &str) -> Result<Sheet, String> {
        let mut json = fs::read(root.join(path)).map_err(|error| format!("read {path}: {error}"))?;
        if path.ends_with(".zst") {
            json = zstd::decode_all(&*json).map_err(|error| format!("decompress {path}: {error}"))?;
        }
        let sheet: Value = serde_json::from_slice(&json).map_err(|error| format!("read {path}: {error}"))?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let tables = list(&sheet["chapters"]).into_iter().flat_map(|chapter| list(&chapter["tables"]));
        let rows = tables.flat_map(|table| list(&table["rows"]));
        let rows = rows.filter_map(|row| Some((row["id"].as_str()?.to_owned(), row))).collect();
        let facts = list(&sheet["conditions"]["facts"]).into_iter();
        let facts =
            facts.filter_map(|fact| Some((fact["id"].as_str()?.to_owned(), fact["value"].as_str()?.to_owned())));
        let day = sheet["taken"]["start"].as_str().and_then(|start| start.split('T').next());
        let day = day.ok_or_else(|| format!("find the day on which {path} was taken"))?.to_owned();
        Ok(Sheet { path: path.to_owned(), day, facts: facts.collect(), rows })
    }

    /// The figure of a row.
    pub(super) fn figure(&self, id: &str) -> Result<Figure, String> {
        let row = self.rows.get(id).ok_or_else(|| format!("find the row {id} in {}", self.path))?;
        Figure::of(&row["figure"])
            .ok_or_else(|| format!("find a figure in the row {id} of {}: it is absent", self.path))
    }

    /// A fact of its conditions.
    pub(super) fn fact(&self, id: &str) -> Option<&str> {
        self.facts.get(id).map(String::as_str)
    }
}

/// The numbers of a row that pages quote.
pub(super) struct Figure {
    unit: String,
    n: u64,
    numbers: BTreeMap<&'static str, f64>,
}

impl Figure {
    fn of(figure: &Value) -> Option<Figure> {
        let numbers = ["min", "median", "mean", "p99", "max"];
        let numbers = numbers.into_iter().filter_map(|name| Some((name, figure[name].as_f64()?)));
        Some(Figure { unit: figure["unit"].as_str()?.to_owned(), n: figure["n"].as_u64()?, numbers: numbers.collect() })
    }

    pub(super) fn n(&self) -> u64 {
        self.n
    }

    /// One of its numbers, as the sheet has it.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied()
    }

    /// One of its numbers with its unit.
    pub(super) fn said(&self, name: &str) -> Option<String> {
        self.number(name).map(|number| written(number, &self.unit))
    }

    /// Its main number: the median, else the mean, else its range.
    pub(super) fn typical(&self) -> String {
        let range = || match (self.said("min"), self.said("max")) {
            (Some(least), Some(most)) => Some(format!("{least} to {most}")),
            (least, most) => least.or(most),
        };
        self.said("median")
            .or_else(|| Some(format!("{} (mean)", self.said("mean")?)))
            .or_else(range)
            .unwrap_or_default()
    }
}

/// A number with three digits and a unit for its size.
pub(super) fn written(number: f64, unit: &str) -> String {
    let scales: &[(f64, &str)] = match unit {
        "ns" => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
        "bytes_per_s" => &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")],
        "hz" => &[(1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz"), (1.0, "Hz")],
        other => &[(1.0, other)][..0],
    };
    let fits = scales.iter().find(|(scale, _)| number.abs() >= *scale).or(scales.last());
    match fits {
        Some((scale, name)) => format!("{} {name}", digits(number / scale)),
        None => format!("{} {unit}", digits(number)),
    }
}

/// Three significant digits, without further decimals.
fn digits(number: f64) -> String {
    let whole = number.abs();
    let decimals = if whole >= 99.95 || whole == 0.0 {
        0
    } else if whole >= 9.995 {
        1
    } else {
        2
    };
    let text = format!("{number:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// With commas between thousands.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group).into_owned());
    groups.collect::<Vec<_>>().join(",")
}

/// A field of a figure in a proof's report: `FILE#PROOF:FIGURE.FIELD`. Fields that end in `_ns` are times.
pub(super) fn of_proof(root: &Path, path: &str, place: &str) -> Result<String, String> {
    let lost = || format!("find the figure {place} in {path}");
    let text = fs::read_to_string(root.join(path)).map_err(|error| format!("read {path}: {error}"))?;
    let (proof, name) = place.split_once(':').ok_or_else(lost)?;
    let (figure, field) = name.split_once('.').unwrap_or((name, ""));
    let section = text.split("\n## ").find(|section| section.split(':').next() == Some(proof)).ok_or_else(lost)?;
    let line = section.lines().find_map(|line| line.strip_prefix(&format!("| {figure} | "))).ok_or_else(lost)?;
    let value: Value = serde_json::from_str(line.trim_end_matches([' ', '|'])).map_err(|_| lost())?;
    let value = if field.is_empty() { &value } else { &value[field] };
    let number = value.as_f64().ok_or_else(lost)?;
    Ok(written(number, if name.ends_with("_ns") { "ns" } else { "" }).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit_that_suits() {
        let said = |number, unit| written(number, unit);
        assert_eq!([said(10.82, "ns"), said(0.2655, "ns"), said(430_000.0, "ns")], ["10.8 ns", "0.27 ns", "430 µs"]);
        assert_eq!([said(1_200.0, "ns"), said(19e6, "ns"), said(0.0, "ns")], ["1.2 µs", "19 ms", "0 ns"]);
        assert_eq!([said(7.608e9, "bytes_per_s"), said(999_600.0, "hz")], ["7.61 GB/s", "1000 kHz"]);
        assert_eq!(said(2.5, "ppm"), "2.5 ppm");
    }

    #[test]
    fn a_figure_without_a_median_says_what_it_has() {
        let figure = |json: &str| Figure::of(&serde_json::from_str(json).unwrap()).unwrap().typical();
        assert_eq!(figure(r#"{"unit":"ns","n":9,"median":12,"mean":13}"#), "12 ns");
        assert_eq!(figure(r#"{"unit":"ns","n":100,"median":null,"mean":15700}"#), "15.7 µs (mean)");
        assert_eq!(figure(r#"{"unit":"ns","n":2,"min":1e6,"max":2e6}"#), "1 ms to 2 ms");
        assert_eq!(figure(r#"{"unit":"ns","n":1,"min":1e6}"#), "1 ms");
    }

    #[test]
    fn a_figure_of_a_proof_is_found_by_its_section() {
        let folder = tempfile::tempdir().unwrap();
        let text = "# Proofs\n\n## one: passed\n\n| late | {\"median_ns\":1} |\n\n## two: passed\n\n| late | {\"median_ns\":662} |\n| n | 5 |\n";
        fs::write(folder.path().join("p.md"), text).unwrap();
        let said = |place| of_proof(folder.path(), "p.md", place);
        assert_eq!((said("two:late.median_ns"), said("two:n")), (Ok("662 ns".to_owned()), Ok("5".to_owned())));
        assert!(said("three:n").is_err() && said("two:late.max_ns").is_err() && said("one:n").is_err());
    }
}
