//! The JSON form and its schema.

use hairspring_sheet::render::{ReadError, comparison_json, from_json, pairs_schema, schema, to_json, verdicts_schema};
use hairspring_sheet::{
    CompareTerms, ComparedSheets, Figure, Interleaved, Method, Point, Sheet, Unit, Value, compare, compare_interleaved,
};
use proptest::prelude::*;
use serde_json::json;

use crate::compare::{drifting, interleaved};
use crate::example;

/// The violations of the schema in a document.
pub(crate) fn faults(document: serde_json::Value) -> Option<String> {
    faults_by(&schema(), document)
}

fn faults_by(schema: &str, document: serde_json::Value) -> Option<String> {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("sheet.json", serde_json::from_str(schema).unwrap()).unwrap();
    let index = compiler.compile("sheet.json", &mut schemas).unwrap();
    schemas.validate(&document, index).err().map(|error| error.to_string())
}

fn document(sheet: &Sheet) -> serde_json::Value {
    serde_json::from_str(&to_json(sheet)).unwrap()
}

#[track_caller]
fn check_error(json: &str, expected: &str) {
    let error = from_json(json).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_sheet_that_was_written_is_read_as_it_was() {
    let sheet = example::sheet();
    assert!(to_json(&sheet).ends_with("}\n"));
    assert_eq!(from_json(&to_json(&sheet)).unwrap(), sheet);
}

#[test]
fn what_is_written_fits_the_schema() {
    assert_eq!(faults(document(&example::sheet())), None);
}

#[test]
fn pairs_and_verdicts_fit_their_schemas_and_others_do_not() {
    let mut measured = interleaved(&[drifting(1.3), drifting(1.0)[..1].to_vec(), Vec::new()]);
    measured.builds = 2;
    measured.limits.insert("sentinels.call".to_owned(), 0.07);
    measured.sentinels = measured.rows.clone();
    let pairs = json!(measured);
    assert_eq!(faults_by(&pairs_schema(), pairs.clone()), None);
    assert_eq!(serde_json::from_value::<Interleaved>(pairs.clone()).unwrap(), measured);
    let side = |name: &str| ComparedSheets { name: name.to_owned(), sheets: vec![example::sheet()] };
    let single = compare(&[side("old"), side("new")], &CompareTerms::default());
    for comparison in [compare_interleaved(&measured, None), single] {
        let verdicts: serde_json::Value = serde_json::from_str(&comparison_json(&comparison)).unwrap();
        assert_eq!(faults_by(&verdicts_schema(), verdicts.clone()), None);
        assert!(faults_by(&pairs_schema(), verdicts.clone()).is_some(), "each says which form it is");
        let mut unknown = verdicts;
        unknown["rows"][0]["others"][0]["verdict"] = json!("better");
        assert!(faults_by(&verdicts_schema(), unknown).is_some());
    }
    let mut without = pairs;
    without["rows"][0]["pairs"][0].as_object_mut().unwrap().remove("void");
    assert!(faults_by(&pairs_schema(), without).is_some());
}

#[test]
fn the_schema_finds_faults() {
    let mut other_version = document(&example::sheet());
    other_version["schema"] = json!("hairspring.sheet/2");
    assert!(faults(other_version).is_some());
    let mut no_value = document(&example::sheet());
    no_value["chapters"][0]["tables"][0]["rows"][0].as_object_mut().unwrap().remove("figure");
    assert!(faults(no_value).is_some());
    let mut no_such_unit = document(&example::sheet());
    no_such_unit["chapters"][0]["tables"][0]["rows"][0]["figure"]["unit"] = json!("fortnights");
    assert!(faults(no_such_unit).is_some());
}

#[test]
fn fields_that_a_later_version_adds_are_accepted_by_reader_and_schema() {
    let mut later = document(&example::sheet());
    for pointer in ["", "/taken", "/conditions", "/conditions/facts/0", "/chapters/0", "/chapters/0/tables/0"] {
        later.pointer_mut(pointer).unwrap()["added_later"] = json!({"of": ["any", "kind"]});
    }
    later["chapters"][0]["tables"][0]["rows"][0]["added_later"] = json!(1);
    later["chapters"][0]["tables"][0]["rows"][0]["figure"]["added_later"] = json!(null);
    assert_eq!(from_json(&later.to_string()).unwrap(), example::sheet());
    assert_eq!(faults(later), None);
}

#[test]
fn what_is_not_a_sheet_is_refused_with_what_to_do() {
    check_error("", "it ends too early");
    check_error(&to_json(&example::sheet())[..500], "was it cut short?");
    check_error("# Timing data sheet", "give a sheet that was written with --format json");
    check_error("[1, 2]", "there is no \"schema\": \"hairspring.sheet/1\"");
    check_error("{\"schema\": 1}", "there is no \"schema\"");
    check_error("{\"schema\": \"hairspring.sheet/2\"}", "version \"hairspring.sheet/2\": this build reads");
    check_error("{\"schema\": \"hairspring.sheet/1\"}", "missing field `hairspring`");
    let mut no_row = document(&example::sheet());
    no_row["chapters"][0]["tables"][0]["rows"][0].as_object_mut().unwrap().remove("figure");
    assert!(matches!(from_json(&no_row.to_string()), Err(ReadError::Malformed(_))));
}

#[test]
fn numbers_that_are_not_finite_never_reach_the_json_and_never_vanish_in_silence() {
    let mut sheet = example::sheet();
    sheet.taken.duration_s = f64::NAN;
    sheet.chapters[2].series[0].lines[0].points[0].y = f64::INFINITY;
    sheet.chapters[2].series[0].lines[1].points[0].high = Some(f64::NAN);
    let row = &mut sheet.chapters[0].tables[0].rows[0];
    let Value::Figure(figure) = &mut row.value else { panic!("the first row is a figure") };
    figure.mean = Some(f64::NAN);
    figure.median_interval = Some([f64::NEG_INFINITY, 1.0]);
    figure.histogram.as_mut().unwrap().buckets[0].to = f64::INFINITY;
    let read = from_json(&to_json(&sheet)).unwrap();
    assert_eq!(faults(document(&sheet)), None);
    assert_eq!(read.notes.last().unwrap().text, "the duration of the sheet is unknown");
    let left_out = "2 values of sleeps.late were not finite numbers and are left out";
    assert_eq!(read.chapters[2].notes.last().unwrap().text, left_out);
    let figure = read.rows().next().unwrap().figure().unwrap();
    assert_eq!((figure.mean, figure.median_interval, &figure.histogram), (None, None, &None));
    assert_eq!(figure.caveats, ["statistics that were not finite numbers are left out"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_samples_and_texts_survive_the_round_trip(
        mut samples in prop::collection::vec(prop::num::f64::ANY, 0..200),
        overhead in prop::num::f64::ANY,
        text in ".{0,40}",
        point in (-1e300..1e300f64, prop::num::f64::NORMAL),
    ) {
        let mut sheet = example::sheet();
        let figure = Figure::from_samples(Unit::Hz, Method::Rate, &mut samples).with_overhead(overhead).with_caveat(&text);
        sheet.chapters[0].tables[0].rows.push(example::row("clocks.cost.any", &text, figure));
        sheet.chapters[2].series[0].lines[0].points = vec![Point { x: point.0, y: point.1, low: None, high: Some(1.0) }];
        prop_assert_eq!(from_json(&to_json(&sheet)).unwrap(), sheet);
    }
}
