//! `hairspring compare`: sides, verdicts, gates, and refused input.

use hairspring_sheet::render::{from_json, to_json};
use hairspring_sheet::{Figure, Method, Sheet, Unit, Value};
use tempfile::TempDir;

use crate::{code, folder, run, stderr, stdout};

const ID: &str = "clocks.read.now.later";

/// A small sheet: a historic one with two rows of ours, whose medians are multiplied.
fn sheet(factor: f64) -> Sheet {
    let text = include_str!("../../../../sheets/historic/fermilab-2007.json");
    let mut sheet = from_json(text).expect("it is a sheet");
    sheet.taken.effort = "quick".to_owned();
    let mut row = sheet.chapters[0].tables[0].rows[0].clone();
    sheet.chapters.truncate(1);
    sheet.chapters[0].tables.truncate(1);
    let mut with = |id: &str, median: f64| {
        row.id = id.to_owned();
        row.value = Value::Figure(Figure::from_samples(Unit::Ns, Method::Diff, &mut [median; 12]));
        row.clone()
    };
    sheet.chapters[0].tables[0].rows = vec![with(ID, 20.0 * factor), with("delays.long.1s.late", 60e3)];
    sheet
}

/// Two sides of three sheets each, `old` and `new`; every sheet is a little off its side.
fn two_sides(ratio: f64, noise: f64) -> TempDir {
    let folder = folder();
    for (side, ratio) in [("old", 1.0), ("new", ratio)] {
        std::fs::create_dir(folder.path().join(side)).expect("a folder");
        for (number, off) in [1.0 - noise, 1.0, 1.0 + noise].into_iter().enumerate() {
            let file = folder.path().join(side).join(format!("{number}.json"));
            std::fs::write(file, to_json(&sheet(ratio * off))).expect("written");
        }
    }
    folder
}

/// Compares in the folder; returns code, result and the rest. `OLD` and `NEW` stand for the two sides' folders.
#[track_caller]
fn compare(folder: &TempDir, arguments: &[&str]) -> (i32, String, String) {
    let path = |name: &str| folder.path().join(name).display().to_string();
    let arguments: Vec<String> = arguments
        .iter()
        .map(|argument| argument.replace("OLD", &path("old")).replace("NEW", &path("new")).replace("HERE", &path("")))
        .collect();
    let all: Vec<&str> = std::iter::once("compare").chain(arguments.iter().map(String::as_str)).collect();
    let output = run(&all);
    (code(&output), stdout(&output), stderr(&output))
}

#[test]
fn three_sheets_a_side_say_what_differs_and_what_is_the_same() {
    let folder = two_sides(1.3, 0.01);
    let (code, text, complaints) = compare(&folder, &["OLD", "NEW"]);
    assert_eq!((code, complaints.as_str()), (0, ""));
    let after = text.split_once(ID).map(|(_, after)| after).unwrap_or_default();
    assert!(after.contains("higher by 30 % (at least 2"), "{text}");
    assert!(text.contains("1 differ, 1 same") && !text.contains("hairspring ab"), "{text}");
    let named = compare(&folder, &["before=OLD/0.json,OLD/1.json,OLD/2.json", "after=NEW"]);
    assert!(named.1.contains("A before (3 sheets)") && named.1.contains("B after (3 sheets)"), "{}", named.1);
    assert!(named.1.contains("1 differ, 1 same"), "{}", named.1);
}

#[test]
fn single_sheets_are_not_judged_and_the_command_that_would_is_named() {
    let (code, text, _) =
        compare(&two_sides(9.0, 0.01), &["OLD/0.json", "NEW/0.json", "--fail-if", &format!("{ID}>1.2")]);
    assert_eq!(code, 8, "the ratio of 9 decides nothing");
    assert!(text.contains("→ hairspring ab") && text.contains("2 cannot tell"), "{text}");
}

#[test]
fn a_gate_fails_holds_or_is_undecided_and_each_has_a_code() {
    let gate = format!("{ID}>1.2");
    for (ratio, noise, usual, strict, lenient) in
        [(1.0, 0.01, 0, 0, 0), (1.5, 0.01, 6, 6, 6), (1.2, 0.01, 8, 6, 0), (1.5, 0.4, 8, 6, 0)]
    {
        let folder = two_sides(ratio, noise);
        let with = |more: &[&str]| compare(&folder, &[&["OLD", "NEW", "--fail-if", &gate], more].concat());
        assert_eq!(with(&[]).0, usual, "{ratio} {noise}");
        assert_eq!(with(&["--strict"]).0, strict, "{ratio} {noise}");
        let (code, text, complaints) = with(&["--lenient"]);
        assert_eq!(code, lenient, "{ratio} {noise}");
        assert_eq!(complaints.contains("undecided, and passes by --lenient"), usual == 8, "{complaints}");
        assert!(text.contains("Comparison"), "the comparison is printed all the same");
    }
}

#[test]
fn what_is_mistyped_is_refused_before_anything_is_compared() {
    let folder = two_sides(1.0, 0.01);
    for (arguments, expected) in [
        (
            ["--fail-if", "clocks.read.nosuch>1.2"],
            "--fail-if clocks.read.nosuch>1.2: no row of these sheets has this id; did you mean clocks.read.now",
        ),
        (
            ["--fail-if", "clocks>20%"],
            "--fail-if: \"clocks>20%\" is not a gate: the limit is a ratio of medians, not a percentage; write clocks>1.2",
        ),
        (["--only", "clock.read"], "--only clock.read: no row of these sheets has this id; did you mean clocks.read"),
        (["--only", "a b"], "--only \"a b\" is not an id"),
        (["--margin", "no"], "write a percentage above 0"),
        (["--ledger", "OLD"], "it has 3 sheets, and at least 5"),
        (["--out", "comparison.xls"], "no format has the ending .xls"),
    ] {
        let (code, text, complaints) = compare(&folder, &[&["OLD", "NEW"], arguments.as_slice()].concat());
        assert_eq!((code, text.as_str()), (2, ""), "{arguments:?}: {complaints}");
        assert!(complaints.contains(expected), "{arguments:?}: {complaints}");
    }
    assert_eq!(compare(&folder, &["OLD", "NEW", "--strict"]).0, 2, "there is no gate to be strict about");
    assert!(compare(&folder, &["OLD/0.json"]).2.contains("is one sheet, and a comparison needs two"));
}

#[test]
fn what_is_no_sheet_is_named_for_what_it_is() {
    let folder = two_sides(1.0, 0.01);
    let whole = to_json(&sheet(1.0));
    for (name, content, expected) in [
        ("readme.md", "# Read me", "is not a sheet: it is not JSON"),
        ("sheet.html", "<!DOCTYPE html>\n<html>", "is not a sheet: it is HTML"),
        ("empty.json", "", "is not a sheet: it is empty"),
        ("cut.json", &whole[..whole.len() / 2], "is cut short: it ends in line"),
        ("bad.json", "{\"schema\": nonsense}", "is damaged: line 1, column"),
        ("plan.json", "{\"schema\": \"hairspring.plan/1\"}", "is not a sheet: it is a plan"),
        (
            "pulse.json",
            "{\"schema\": \"hairspring.pulse/1\"}",
            "is not a sheet: it is a document of the kind hairspring.pulse/1",
        ),
        ("new.json", "{\"schema\": \"hairspring.sheet/9\"}", "is a sheet of another version, hairspring.sheet/9"),
        ("x.sigmf-meta", "{\"global\": {}}", "is not a sheet: it is the description of a recording"),
        ("schema.json", "{\"$schema\": \"x\"}", "is not a sheet: it is a JSON Schema"),
        ("other.json", "{}", "is not a sheet: it is JSON of another kind"),
        ("half.json", "{\"schema\": \"hairspring.sheet/1\"}", "is damaged: missing field"),
    ] {
        std::fs::write(folder.path().join(name), content).expect("written");
        let (code, text, complaints) = compare(&folder, &["OLD/0.json", &format!("HERE{name}")]);
        assert_eq!((code, text.as_str()), (2, ""), "{name}");
        assert!(complaints.contains(expected) && complaints.contains(name), "{name}: {complaints}");
        assert!(!complaints.contains("failed to"), "{name}: {complaints}");
    }
}

#[test]
fn only_the_chosen_rows_in_the_chosen_format_go_to_the_chosen_file() {
    let folder = two_sides(1.3, 0.01);
    let (_, json, _) = compare(&folder, &["OLD", "NEW", "--only", "delays", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (json["rows"].as_array().map(Vec::len), &json["rows"][0]["id"]),
        (Some(1), &"delays.long.1s.late".into())
    );
    for (name, begins) in
        [("c.html", "<!DOCTYPE html>"), ("c.md", "# Comparison"), ("c.json", "{"), ("c.txt", "Comparison")]
    {
        let (code, text, _) = compare(&folder, &["OLD", "NEW", "--out", &format!("HERE{name}")]);
        assert_eq!((code, text.as_str()), (0, ""));
        assert!(std::fs::read_to_string(folder.path().join(name)).expect("written").starts_with(begins), "{name}");
    }
}

#[test]
fn sides_of_one_name_get_names_that_differ() {
    let folder = two_sides(1.3, 0.01);
    let names = |arguments: &[&str]| {
        let (code, json, complaints) = compare(&folder, &[arguments, &["--format", "json"]].concat());
        assert_eq!((code, complaints.as_str()), (0, ""));
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        json["sides"].as_array().expect("sides").iter().map(|side| side["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["OLD/0.json", "NEW/0.json"]), ["old/0", "new/0"]);
    assert_eq!(names(&["OLD/0.json", "NEW/1.json"]), ["0", "1"]);
    // Named alike by the user: then the time at which they were taken, or nothing that could.
    assert_eq!(names(&["a=OLD/0.json", "a=NEW/0.json"]), ["old/a", "new/a"]);
}

#[test]
fn a_ledger_of_this_machine_judges_single_sheets() {
    let folder = two_sides(1.3, 0.01);
    std::fs::create_dir(folder.path().join("ledger")).expect("a folder");
    for number in 0..6 {
        let file = folder.path().join("ledger").join(format!("{number}.json"));
        std::fs::write(file, to_json(&sheet(1.0 + 0.002 * f64::from(number)))).expect("written");
    }
    let (code, text, complaints) = compare(&folder, &["OLD/1.json", "NEW/1.json", "--ledger", "HEREledger"]);
    assert_eq!((code, complaints.as_str()), (0, ""));
    assert!(text.contains("6 sheets of one build") && text.contains("higher by 30 %"), "{text}");
}

#[test]
fn historic_sheets_are_compared_by_their_names_and_every_ratio_is_shown() {
    let output = run(&["compare", "amx86-486sx", "amx86-net186"]);
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
    assert!(stdout(&output).contains("× "), "{}", stdout(&output));
    let folder = two_sides(1.0, 0.01);
    let (code, text, complaints) = compare(&folder, &["fermilab-2007", "OLD/0.json"]);
    assert_eq!((code, complaints.as_str()), (0, ""));
    assert!(text.contains(ID) || text.contains("only in A"), "{text}");
}

#[test]
fn the_sheets_of_one_machine_show_when_a_figure_changed_for_good() {
    let folder = two_sides(1.0, 0.01);
    let series = folder.path().join("series");
    std::fs::create_dir(&series).expect("a folder");
    for day in 1..=14 {
        let mut sheet = sheet(if day > 7 { 1.5 } else { 1.0 } + 0.002 * f64::from(day % 3));
        sheet.taken.start = format!("2025-03-{day:02}T09:26:53Z");
        std::fs::write(series.join(format!("{day}.json")), to_json(&sheet)).expect("written");
    }
    let (code, text, complaints) = compare(&folder, &["--drift", "HEREseries"]);
    assert_eq!((code, complaints.as_str()), (0, ""));
    assert!(text.contains("From 2025-03-08") && text.contains("× 1.5"), "{text}");
    for (arguments, expected) in [
        (vec!["--drift", "OLD"], "there are 3 sheets, and at least 10"),
        (vec!["--drift", "HEREnowhere"], "it is not a folder"),
        (vec!["--drift", "HEREseries", "--only", "nosuch"], "no row with such an id"),
        (vec!["--drift", "HEREseries", "--format", "md"], "there is no Markdown"),
        (vec!["--drift", "HEREseries", "OLD", "NEW"], "cannot be used with"),
        (vec!["OLD/0.json,OLD/0.json", "NEW"], "names a sheet twice"),
    ] {
        let (code, text, complaints) = compare(&folder, &arguments);
        assert_eq!((code, text.as_str()), (2, ""), "{arguments:?}");
        assert!(complaints.contains(expected), "{arguments:?}: {complaints}");
    }
}
