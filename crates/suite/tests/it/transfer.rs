//! The chapter *Transfer*: on this computer, whose memory it goes through, and on a simulated one, which has none.

use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use hairspring_machine::Host;
use hairspring_machine::sim::Script;
use hairspring_sheet::{Sheet, Value};
use hairspring_suite::{Effort, take_sheet};

use crate::{absent, figure, request, take};

/// A quick sheet of this chapter on this computer.
static HERE: LazyLock<Sheet> = LazyLock::new(|| {
    let request = request(&["transfer"], Effort::Quick);
    take_sheet(&Host, &request, &AtomicBool::new(false), &mut |_| {}).expect("a good request")
});

#[test]
fn a_simulated_machine_has_no_memory_to_go_through_and_says_so() {
    let sheet = take(Script::default(), &["transfer"]);
    assert!(sheet.rows().count() > 150);
    for row in sheet.rows() {
        let absent = absent(&sheet, &row.id);
        assert!(absent.reason.contains("real machine") && absent.remedy.is_some(), "{}: {}", row.id, absent.reason);
    }
}

#[test]
fn every_row_has_a_figure_of_its_kind_or_a_reason_that_is_no_defect() {
    let declared: Vec<_> = hairspring_suite::registry()
        .into_iter()
        .filter(|chapter| chapter.id == "transfer")
        .flat_map(|chapter| chapter.tables)
        .flat_map(|table| table.rows)
        .collect();
    assert_eq!(
        HERE.rows().map(|row| &row.id).collect::<Vec<_>>(),
        declared.iter().map(|row| &row.id).collect::<Vec<_>>()
    );
    for (row, declared) in HERE.rows().zip(&declared) {
        match &row.value {
            Value::Figure(figure) => {
                assert_eq!((figure.unit, figure.method), (declared.unit, declared.method), "{}", row.id);
                assert!(figure.n >= 5 && (figure.median.is_some() || figure.at_most.is_some()), "{}", row.id);
            }
            Value::Absent(absent) => {
                let honest = !absent.reason.is_empty() && !absent.reason.contains("defect");
                assert!(honest, "{}: {}", row.id, absent.reason);
            }
        }
    }
    // Rows that need no disk and no huge pages are measured everywhere: without these nothing has been shown.
    for part in ["transfer.memory.", "transfer.ring.", "transfer.word."] {
        let measured = HERE.rows().filter(|row| row.id.starts_with(part) && row.figure().is_some()).count();
        assert!(measured >= 6, "{part}: {measured} figures");
    }
}

#[test]
fn pages_that_were_not_given_name_the_setting_that_brings_them() {
    for pages in ["small", "thp", "huge2m"] {
        for id in [format!("transfer.memory.copy.4kib.{pages}.rate"), format!("transfer.ring.4kib.{pages}.rate")] {
            if let Value::Absent(absent) = &HERE.row(&id).expect("declared").value {
                let remedy = absent.remedy.as_deref().unwrap_or_default();
                assert!(remedy.contains("hugepage") || remedy.contains("memory"), "{id}: {} → {remedy}", absent.reason);
            }
        }
    }
}

#[test]
fn there_is_a_plot_for_each_sweep_with_pages_and_its_fits_follow_their_lines() {
    let series = &HERE.chapters[0].series;
    assert!(series.iter().any(|series| series.id == "transfer.ring"));
    for series in series {
        assert!(series.lines.first().is_some_and(|line| !line.fitted), "{}", series.id);
        for line in series.lines.iter().filter(|line| !line.fitted) {
            assert!(line.points.len() >= 6 && line.points.is_sorted_by_key(|point| point.x), "{}", line.name);
        }
    }
}

#[test]
fn copying_memory_and_checking_a_word_are_measured_on_every_machine() {
    // Whichever pages the kernel gives, one of the first two kinds is present.
    let rate = |pages: &str| HERE.row(&format!("transfer.memory.copy.1mib.{pages}.rate")).and_then(|row| row.figure());
    assert!(rate("small").or(rate("thp")).is_some());
    assert!(figure(&HERE, "transfer.word.read.pointer.checked").n >= 50);
}
