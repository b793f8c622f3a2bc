//! Changes over time.

use fastrand::Rng;
use hairspring_sheet::render::{drift_html, drift_json, drift_text};
use hairspring_sheet::statistics::change_points;
use hairspring_sheet::{Drift, DriftError, RowPattern, Sheet, TextStyle, drift};
use unicode_width::UnicodeWidthStr;

use crate::compare::{ID, median, sheet};
use crate::example;

/// Noise of one unit, and a step of this height from the given place on.
fn series(seed: u64, n: usize, steps: &[(usize, f64)]) -> Vec<f64> {
    let mut rng = Rng::with_seed(seed);
    let normal = |rng: &mut Rng| (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
    let level = |i: usize| steps.iter().filter(|(at, _)| *at <= i).map(|(_, height)| height).sum::<f64>();
    (0..n).map(|i| normal(&mut rng) + level(i)).collect()
}

fn places(values: &[f64]) -> Vec<usize> {
    change_points(values, 0.01, 7).iter().map(|change| change.at).collect()
}

#[test]
fn steps_are_found_where_they_are() {
    assert_eq!(places(&series(1, 30, &[(12, 8.0)])), [12]);
    assert_eq!(places(&series(2, 40, &[(10, 9.0), (25, -15.0)])), [10, 25]);
    assert_eq!(places(&series(3, 40, &[(20, -9.0), (30, 9.0)])), [20, 30], "there and back");
}

#[test]
fn what_does_not_change_or_is_too_short_has_no_change() {
    assert_eq!(places(&[5.0; 30]), [0; 0]);
    assert_eq!(places(&[1.0, 1.0, 9.0, 9.0]), [0; 0]);
    let mut single = series(4, 30, &[]);
    single[15] = 40.0;
    assert_eq!(places(&single), [0; 0], "one odd value is no change that stays");
    let by_chance = (0..200).filter(|seed| !places(&series(100 + seed, 20, &[])).is_empty()).count();
    assert!(by_chance <= 8, "{by_chance} of 200 at a level of 1 %");
}

/// Sixteen sheets; one row and the kernel change with sheet 9, the load with every sheet.
fn sheets() -> Vec<Sheet> {
    let values = series(5, 16, &[]);
    let of = |(day, noise): (usize, &f64)| {
        let late = day >= 9;
        let mut sheet = sheet(vec![
            median(ID, (if late { 130.0 } else { 100.0 }) + noise),
            median("delays.long.1s.late", 60e3 + 900.0 * noise),
        ]);
        sheet.taken.start = format!("2025-03-{:02}T09:26:53Z", day + 1);
        let release = if late { "6.9.0" } else { "6.8.0" };
        sheet.conditions.facts = vec![
            example::fact("cpu.model", "Processor", "AMD EPYC"),
            example::fact("kernel.release", "Kernel", release),
            example::fact("load.average", "Load average", &day.to_string()),
        ];
        sheet
    };
    // In another order than they were taken in.
    values.iter().enumerate().map(of).rev().collect()
}

fn found() -> Drift {
    drift(&sheets(), &[]).unwrap()
}

#[test]
fn a_row_that_changed_for_good_comes_with_the_moment_and_what_changed_then() {
    let found = found();
    assert!(found.taken.is_sorted());
    let [moment] = found.moments.as_slice() else { panic!("{:?}", found.moments) };
    assert_eq!((moment.sheet, moment.rows.as_slice()), (9, [ID.to_owned()].as_slice()));
    assert_eq!(moment.conditions, [("Kernel".to_owned(), "6.8.0".to_owned(), "6.9.0".to_owned())]);
    let change = found.rows[0].changes[0];
    assert!((99.0..101.0).contains(&change.before) && (129.0..131.0).contains(&change.after), "{change:?}");
    assert_eq!(drift(&sheets(), &[RowPattern::parse("delays").unwrap()]).unwrap().moments, []);
}

#[test]
fn too_few_sheets_and_two_machines_are_refused() {
    let mut sheets = sheets();
    assert_eq!(drift(&sheets[..9], &[]), Err(DriftError::TooFew(9)));
    sheets[3].conditions.facts[0] = example::fact("cpu.model", "Processor", "another");
    assert!(matches!(drift(&sheets, &[]), Err(DriftError::Machines(_))));
}

#[test]
fn figures_over_time_are_shown_as_reviewed() {
    insta::assert_snapshot!(drift_text(&found(), &TextStyle::default()));
    for width in [60, 120] {
        let text = drift_text(&found(), &TextStyle { width, ..TextStyle::default() });
        assert!(text.lines().all(|line| line.width() <= width), "{text}");
    }
}

#[test]
fn the_page_has_a_dot_for_every_sheet_and_the_change_as_a_line() {
    let html = drift_html(&found());
    assert_eq!((html.matches("<circle").count(), html.matches("class=\"change\"").count()), (32, 1));
    assert!(html.contains("<b>Kernel</b> 6.8.0 → 6.9.0"), "{html}");
    // The axis shows the first and last date, and the date of the change.
    let drift = found();
    let day = |sheet: usize| format!(">{}</text>", drift.taken[sheet].split(' ').next().unwrap());
    for sheet in [0, drift.moments[0].sheet, drift.taken.len() - 1] {
        assert!(html.contains(&day(sheet)), "{} in {html}", day(sheet));
    }
    let json: serde_json::Value = serde_json::from_str(&drift_json(&found())).unwrap();
    assert_eq!(json["moments"][0]["sheet"], 9);
}
