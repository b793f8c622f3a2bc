//! The expected output of the examples. Every language has the same ten, which print the same keys in the same order,
//! with equal values where the machine allows.
//!
//! `bindings/shapes.toml` has a section for each example with a line for each line of output: the key, the kind of its
//! value, and relations between numbers. A key that ends in `late_ns` is never negative, because a delay is never
//! early.

use std::collections::BTreeMap;
use std::fs;

use crate::workspace::Workspace;

const FILE: &str = "bindings/shapes.toml";

/// One example's name, and the keys it prints with the kinds of their values.
pub(crate) struct Shape {
    pub(crate) name: String,
    lines: Vec<(String, String)>,
}

/// Reads all shapes.
pub(crate) fn read(workspace: &Workspace) -> Result<Vec<Shape>, String> {
    let text = fs::read_to_string(workspace.root.join(FILE)).map_err(|error| format!("read {FILE}: {error}"))?;
    let shapes = parse(&text)?;
    if shapes.is_empty() { Err(format!("find a shape in {FILE}")) } else { Ok(shapes) }
}

/// Parses the subset of TOML that the file uses: sections, and keys with a text.
fn parse(text: &str) -> Result<Vec<Shape>, String> {
    let mut shapes: Vec<Shape> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            shapes.push(Shape { name: name.to_owned(), lines: Vec::new() });
            continue;
        }
        let unclear = || format!("read {FILE}: {line:?} is neither a section nor a key with its kind");
        let (key, kind) = line.split_once(" = ").ok_or_else(unclear)?;
        let kind = kind.strip_prefix('"').and_then(|kind| kind.strip_suffix('"')).ok_or_else(unclear)?;
        shapes.last_mut().ok_or_else(unclear)?.lines.push((key.to_owned(), kind.to_owned()));
    }
    Ok(shapes)
}

impl Shape {
    /// Checks an example's output against its shape; the error says what differs.
    pub(crate) fn check(&self, output: &str) -> Result<(), String> {
        let mut lines = output.lines();
        let mut numbers = BTreeMap::new();
        for (key, kind) in &self.lines {
            let line = lines.next().ok_or_else(|| format!("the line {key} is missing"))?;
            let (found, value) = line.split_once(' ').unwrap_or((line, ""));
            if found != key {
                return Err(format!("a line {key} should stand where {line:?} does"));
            }
            suits(value, kind_of(kind)).map_err(|why| format!("{key}: {why}"))?;
            if key.ends_with("late_ns") && value.starts_with('-') {
                return Err(format!("{key} is {value}: a delay was early"));
            }
            if let Ok(number) = value.parse::<f64>() {
                numbers.insert(key.as_str(), number);
            }
        }
        if let Some(line) = lines.next() {
            return Err(format!("one line too many: {line:?}"));
        }
        self.lines.iter().try_for_each(|(key, kind)| relations(kind).try_for_each(|told| holds(key, told, &numbers)))
    }
}

/// The kind before the relations.
fn kind_of(kind: &str) -> &str {
    if kind.starts_with("is ") { kind } else { kind.split(", ").next().unwrap_or(kind) }
}

fn relations(kind: &str) -> impl Iterator<Item = &str> {
    kind.strip_prefix(kind_of(kind)).unwrap_or_default().split(", ").filter(|relation| !relation.is_empty())
}

fn suits(value: &str, kind: &str) -> Result<(), String> {
    let good = match kind {
        "int" => value.parse::<i64>().is_ok(),
        "float" => value.parse::<f64>().is_ok_and(f64::is_finite),
        "word" => !value.is_empty() && !value.contains(char::is_whitespace),
        "text" => !value.trim().is_empty(),
        exact if exact.starts_with("is ") => Some(value) == exact.strip_prefix("is "),
        words if words.contains('|') => words.split('|').any(|word| word == value),
        other => return Err(format!("there is no kind {other:?}")),
    };
    if good { Ok(()) } else { Err(format!("{value:?} is no {kind}")) }
}

/// Checks a relation between a number and a sum of numbers and keys. All are far below 2⁵³, so the sums are exact.
fn holds(key: &str, relation: &str, numbers: &BTreeMap<&str, f64>) -> Result<(), String> {
    let unclear = || format!("read {FILE}: {key}: {relation:?} is no relation of numbers that are there");
    let mut words = relation.split(' ');
    let sign = words.next().ok_or_else(unclear)?;
    let term = |word: &str| word.parse().ok().or_else(|| numbers.get(word).copied()).ok_or_else(unclear);
    let mut sum: f64 = term(words.next().ok_or_else(unclear)?)?;
    while let Some(operation) = words.next() {
        let next = term(words.next().ok_or_else(unclear)?)?;
        match operation {
            "+" => sum += next,
            "-" => sum -= next,
            _ => return Err(unclear()),
        }
    }
    let number = term(key)?;
    let good = match sign {
        "=" => number.total_cmp(&sum).is_eq(),
        ">=" => number >= sum,
        "<=" => number <= sum,
        _ => return Err(unclear()),
    };
    if good { Ok(()) } else { Err(format!("{key} is {number}, not {relation} ({sum})")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A comment.\n[delay]\nasked_ns = \"int\"\nlate_ns = \"int\"\nverdict = \"word\"\n\n[other]\nhost = \"text\"\n";

    #[track_caller]
    fn check(output: &str, told: Option<&str>) {
        let shapes = parse(TEXT).unwrap();
        assert_eq!(shapes.iter().map(|shape| shape.name.as_str()).collect::<Vec<_>>(), ["delay", "other"]);
        match (shapes[0].check(output), told) {
            (Ok(()), None) => {}
            (Err(why), Some(told)) => assert!(why.contains(told), "{why}"),
            (outcome, _) => panic!("{outcome:?}"),
        }
    }

    #[test]
    fn an_output_of_the_shape_passes_and_others_are_told() {
        check("asked_ns 5\nlate_ns 0\nverdict clean\n", None);
        check("asked_ns 5\nlate_ns -1\nverdict clean\n", Some("early"));
        check("asked_ns 5.5\nlate_ns 0\nverdict clean\n", Some("no int"));
        check("asked_ns 5\nverdict clean\n", Some("should stand"));
        check("asked_ns 5\nlate_ns 0\n", Some("verdict is missing"));
        check("asked_ns 5\nlate_ns 0\nverdict so so\n", Some("no word"));
        check("asked_ns 5\nlate_ns 0\nverdict clean\nmore 1\n", Some("too many"));
    }

    #[test]
    fn a_value_is_one_of_the_words_that_there_are() {
        assert_eq!(suits("some", "none|some|all"), Ok(()));
        assert_eq!(suits("yes", "none|some|all"), Err("\"yes\" is no none|some|all".to_owned()));
        assert!(suits("none|some|all", "none|some|all").is_err());
    }

    #[track_caller]
    fn check_values(output: &str, told: Option<&str>) {
        let text =
            "[delay]\nasked_ns = \"int, = 50\"\nactual_ns = \"int, >= 50, = asked_ns + late_ns\"\nlate_ns = \"int\"\n";
        match (parse(text).unwrap()[0].check(output), told) {
            (Ok(()), None) => {}
            (Err(why), Some(told)) => assert!(why.contains(told), "{why}"),
            (outcome, _) => panic!("{outcome:?}"),
        }
    }

    #[test]
    fn what_is_planned_is_exact_and_what_has_elapsed_adds_up() {
        check_values("asked_ns 50\nactual_ns 53\nlate_ns 3\n", None);
        check_values("asked_ns 51\nactual_ns 54\nlate_ns 3\n", Some("asked_ns is 51"));
        check_values("asked_ns 50\nactual_ns 50\nlate_ns 3\n", Some("not = asked_ns + late_ns (53)"));
        check_values("asked_ns 50\nactual_ns 49\nlate_ns 0\n", Some(">= 50"));
        let numbers = BTreeMap::from([("a", 1.0)]);
        for unclear in ["", "=", "= b", "~ 1", "= 1 +", "= 1 * 2"] {
            assert!(holds("a", unclear, &numbers).is_err_and(|why| why.contains("no relation")), "{unclear}");
        }
        assert_eq!((suits("a, b", "is a, b"), kind_of("is a, = 5")), (Ok(()), "is a, = 5"));
        assert!(suits("a", "is b").is_err());
    }

    #[test]
    fn a_line_that_is_no_shape_is_told() {
        assert!(parse("[a]\nb\n").is_err_and(|why| why.contains("\"b\"")));
        assert!(parse("b = \"int\"\n").is_err());
    }
}
