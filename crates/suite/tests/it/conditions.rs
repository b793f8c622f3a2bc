//! The conditions of a sheet, and the facts left out of them on request.

use hairspring_machine::Sim;
use hairspring_machine::sim::Script;
use hairspring_sheet::render::{html, markdown, text, to_json};
use hairspring_sheet::{FactValue, TextStyle};
use hairspring_suite::{Effort, SheetRequest};

use crate::{request, take, take_watched};

const ROW: &str = "clocks.read.counter.later";

#[test]
fn the_machines_facts_and_threads_stand_in_the_conditions() {
    let conditions = take(Script::default(), &[ROW]).conditions;
    assert_eq!(conditions.value("cpu.model"), Some("Simulated processor"));
    assert_eq!(conditions.value("host.name"), Some("simulated"));
    assert_eq!(conditions.threads[0].name.as_deref(), Some("sim"));
    let governor = conditions.facts.iter().find(|fact| fact.id == "cpu.governor").expect("it is a fact of Sim");
    assert!(matches!(&governor.value, FactValue::Absent(absent) if absent.reason.contains("no governor")));
}

#[test]
fn what_is_redacted_says_so_and_occurs_in_no_rendering() {
    let redacted = SheetRequest { redact: true, ..request(&[ROW], Effort::Quick) };
    let sheet = take_watched(&Sim::new(Script::default()), &redacted, |_, _| {});
    let host = sheet.conditions.facts.iter().find(|fact| fact.id == "host.name").expect("it is a fact of Sim");
    assert!(matches!(&host.value, FactValue::Absent(absent) if absent.reason.contains("--redact")));
    assert_eq!((sheet.conditions.threads.len(), &sheet.conditions.threads[0].name), (1, &None));
    let absent = sheet.conditions.threads_absent.as_ref().expect("names are missing");
    assert!(absent.reason.contains("--redact"));
    let verbose = TextStyle { verbose: true, ..TextStyle::default() };
    for rendering in [to_json(&sheet), html(&sheet), markdown(&sheet), text(&sheet, &verbose)] {
        // Another fact, which is not private, has the same word.
        let rendering = rendering.replace("a simulated CPU", "");
        assert!(!rendering.contains("simulated"), "{rendering}");
    }
}
