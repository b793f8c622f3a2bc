//! Figures over months.

use std::collections::HashMap;

use fastrand::Rng;
use hairspring_sheet::render::{trend_html, trend_json, trend_text};
use hairspring_sheet::{CutVerdict, History, HistoryRow, TextStyle, Trend, Unit, trends};
use unicode_width::UnicodeWidthStr;

/// Medians with 1 % of noise: levels with how many sheets each, and the conditions of each.
fn history(levels: &[(f64, usize, i64)]) -> History {
    let mut rng = Rng::with_seed(4);
    let mut history = History::default();
    let mut medians = Vec::new();
    for (level, count, conditions) in levels {
        for _ in 0..*count {
            let noise = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
            medians.push(Some(level * (1.0 + 0.01 * noise)));
            let day = medians.len();
            history.taken.push(format!("2025-{:02}-{:02} 04:00:00 UTC", 1 + day / 28, 1 + day % 28));
            history.taken_s.push(1.7e9 + 86_400.0 * day as f64);
            history.conditions.push(*conditions);
        }
    }
    let facts = |kernel: &str| vec![("Kernel".to_owned(), kernel.to_owned()), ("Board".to_owned(), "X".to_owned())];
    history.facts = HashMap::from([(1, facts("6.8")), (2, facts("6.9"))]);
    let (id, label) = ("clocks.read.now.later".to_owned(), "Reading the time".to_owned());
    history.rows = vec![HistoryRow { id, label, unit: Unit::Ns, medians }];
    history
}

fn trend(levels: &[(f64, usize, i64)]) -> Trend {
    trends(&history(levels)).remove(0)
}

#[test]
fn a_new_kernel_is_a_cut_with_a_verdict_and_no_change_without_a_cause() {
    let worse = trend(&[(100.0, 30, 1), (120.0, 12, 2)]);
    assert_eq!((worse.cuts.len(), worse.changes.len()), (1, 0), "{worse:?}");
    let cut = &worse.cuts[0];
    assert_eq!(
        (cut.sheet, cut.conditions.as_slice()),
        (30, [("Kernel".to_owned(), "6.8".to_owned(), "6.9".to_owned())].as_slice())
    );
    assert!(matches!(cut.verdict, CutVerdict::Changed(least) if (0.15..0.2).contains(&least)), "{cut:?}");
    let same = trend(&[(100.0, 30, 1), (100.0, 12, 2)]);
    assert!(matches!(same.cuts[0].verdict, CutVerdict::Same(_)), "{same:?}");
    let early = trend(&[(100.0, 30, 1), (104.0, 2, 2)]);
    let CutVerdict::CannotTell { smallest: Some(_), more: Some(more) } = early.cuts[0].verdict else {
        panic!("{early:?}")
    };
    assert!((1..30).contains(&more), "{more}");
    assert!(early.undecided[0].contains("after 8 more"), "{:?}", early.undecided);
}

#[test]
fn a_change_without_a_cause_is_found_between_two_sheets() {
    let found = trend(&[(100.0, 20, 1), (130.0, 20, 1)]);
    assert_eq!(found.cuts, []);
    let [change] = found.changes.as_slice() else { panic!("{:?}", found.changes) };
    assert_eq!((change.sheet, change.between), (20, [19, 20]));
    assert!((99.0..101.0).contains(&change.before) && (128.0..132.0).contains(&change.after), "{change:?}");
    assert_eq!(trend(&[(100.0, 40, 1)]).changes, []);
}

#[test]
fn in_ten_thousand_sheets_a_change_is_found_to_the_sheet() {
    let found = trend(&[(100.0, 6_003, 1), (110.0, 3_997, 1)]);
    let [change] = found.changes.as_slice() else { panic!("{:?}", found.changes) };
    assert!(change.sheet.abs_diff(6_003) <= 1 && change.between[0] < 6_003 && change.between[1] >= 6_003, "{change:?}");
}

#[test]
fn near_the_end_it_says_how_many_more_sheets_it_needs() {
    let odd = trend(&[(100.0, 30, 1), (120.0, 2, 1)]);
    assert_eq!(odd.changes, []);
    assert!(
        odd.undecided[0].contains("2 sheets lie far above") && odd.undecided[0].contains("would"),
        "{:?}",
        odd.undecided
    );
    assert_eq!(trend(&[(100.0, 32, 1)]).undecided.len(), 0);
}

#[test]
fn a_row_that_most_sheets_lack_is_counted_among_those_that_have_it() {
    let mut history = history(&[(100.0, 30, 1), (150.0, 30, 2)]);
    for sheet in (0..60).filter(|sheet| sheet % 2 == 1) {
        history.rows[0].medians[sheet] = None;
    }
    let trend = trends(&history).remove(0);
    assert_eq!((trend.medians.len(), trend.cuts[0].sheet), (30, 15));
    assert_eq!(trend.taken[15], history.taken[30]);
    history.rows[0].medians = vec![None; 60];
    assert_eq!(trend_text(&trends(&history), &TextStyle::default()), "");
}

#[test]
fn a_trend_is_shown_in_letters_on_a_page_and_as_json() {
    let trends = [trend(&[(100.0, 30, 1), (120.0, 12, 2), (90.0, 14, 2)])];
    insta::assert_snapshot!(trend_text(&trends, &TextStyle::default()));
    for width in [60, 120] {
        let text = trend_text(&trends, &TextStyle { width, ..TextStyle::default() });
        assert!(text.lines().all(|line| line.width() <= width), "{text}");
    }
    let html = trend_html(&trends);
    assert_eq!((html.matches("<circle").count(), html.matches("class=\"change\"").count()), (56, 2));
    assert!(html.contains("<b>Kernel</b> 6.8 → 6.9") && html.contains("although no condition changed"));
    let json: serde_json::Value = serde_json::from_str(&trend_json(&trends)).unwrap();
    assert_eq!(json[0]["cuts"][0]["sheet"], 30);
}
