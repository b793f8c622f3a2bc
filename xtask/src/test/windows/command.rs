//! `hairspring.exe` under Wine: its help, its clock, delays that are never early, exit codes, and a sheet.

use serde_json::Value;

use super::Place;
use crate::tally::Tally;

/// One run of the command: its arguments, its exit status, and the check of its output.
struct Case {
    about: &'static str,
    words: &'static [&'static str],
    status: i32,
    judge: fn(&str) -> Result<(), String>,
}

const CASES: &[Case] = &[
    Case { about: "help names what there is", words: &["--help"], status: 0, judge: help },
    Case { about: "the clock is calibrated", words: &["clock", "--format", "json"], status: 0, judge: clock },
    Case {
        about: "no minimum delay is early",
        words: &["delay", "20us", "--count", "2000", "--format", "json"],
        status: 0,
        judge: delays,
    },
    Case {
        about: "no long delay is early",
        words: &["delay", "3ms", "--long", "--count", "50", "--format", "json"],
        status: 0,
        judge: delays,
    },
    Case { about: "a bad request is refused", words: &["delay", "200ms"], status: 2, judge: refused },
    Case { about: "a sheet is taken", words: &["sheet", "--quick", "--format", "json"], status: 0, judge: sheet },
    Case {
        about: "a sheet is titled as made under Wine",
        words: &["sheet", "--quick", "--only", "clocks.read.now.later"],
        status: 0,
        judge: title,
    },
];

pub(super) fn check(place: &Place, name: &str) -> Tally {
    let mut tally = Tally::default();
    for case in CASES {
        let ended = place.run("hairspring.exe", case.words);
        let outcome = if ended.how == crate::child::Ending::Exit(case.status) {
            (case.judge)(&ended.output)
        } else {
            Err(format!("{} instead of exit status {}", ended.how, case.status))
        };
        match outcome {
            Ok(()) => tally.passed += 1,
            Err(why) => tally.failure(&format!("{name}: {}", case.about), why, ended.tail()),
        }
    }
    tally
}

fn expect(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("not so: {what}")) }
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))
}

fn help(text: &str) -> Result<(), String> {
    for word in ["sheet", "delay", "clock", "compare", "probes"] {
        expect(text.contains(&format!("\n  {word} ")), word)?;
    }
    expect(!text.contains("\n  record "), "what only Linux has is not offered")
}

fn clock(text: &str) -> Result<(), String> {
    let clock = json(text)?;
    expect(clock["schema"] == "hairspring.clock/1", "the schema")?;
    let (rate, bound) = (clock["rate_hz"].as_f64(), clock["bound_ppm"].as_f64());
    expect(rate.is_some_and(|rate| rate > 8e6), "a rate")?;
    expect(bound.is_some_and(|bound| bound > 0.0 || clock["source"] == "clock_monotonic"), "a bound")
}

fn delays(text: &str) -> Result<(), String> {
    let delays = json(text)?;
    expect(delays["n"].as_u64().is_some_and(|n| n >= 50), "all were performed")?;
    expect(delays["early"] == 0, "none was early")?;
    expect(delays["late_ns"]["min"].as_f64().is_some_and(|late| late >= 0.0), "the least lateness is not negative")
}

fn refused(text: &str) -> Result<(), String> {
    expect(text.contains("--long"), "the message says what to write instead")
}

fn title(text: &str) -> Result<(), String> {
    let first = text.lines().next().unwrap_or_default();
    expect(first.starts_with("Timing data sheet, made under Wine ") && first.contains(" on Linux "), first)
}

/// Each row is a figure or a reason, the chapters are those that Windows has, and no text claims to be about Windows.
fn sheet(text: &str) -> Result<(), String> {
    let sheet = json(text)?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let facts = list(&sheet["conditions"]["facts"]);
    let made = facts.iter().find(|fact| fact["id"] == "host.wine").map(|fact| fact["value"].clone());
    expect(made.is_some_and(|made| made.as_str().is_some_and(|made| made.starts_with("Wine "))), "it names Wine")?;
    let warned = |note: &Value| note["text"].as_str().is_some_and(|text| text.contains("nothing about Windows"));
    expect(list(&sheet["notes"]).iter().any(warned), "it says what it does not say")?;
    let chapters = list(&sheet["chapters"]);
    let ids: Vec<&str> = chapters.iter().filter_map(|chapter| chapter["id"].as_str()).collect();
    expect(
        ids == ["clocks", "delays", "sleeps", "callers", "disturbance"],
        &format!("the chapters, which are {ids:?}"),
    )?;
    let tables = chapters.iter().flat_map(|chapter| list(&chapter["tables"]));
    let rows: Vec<Value> = tables.flat_map(|table| list(&table["rows"])).collect();
    let called =
        |row: &Value| row["id"].as_str().is_some_and(|id| id.starts_with("callers.dll.")) && row["figure"].is_object();
    expect(rows.iter().filter(|row| called(row)).count() == 8, "what calls of the DLL cost")?;
    let mut figures = 0;
    for row in &rows {
        let absent = row["absent"]["reason"].as_str().is_some_and(|reason| !reason.is_empty());
        expect(row["figure"].is_object() != absent, &format!("{} is a figure or a reason", row["id"]))?;
        figures += u32::from(!absent);
        let late = row["id"].as_str().is_some_and(|id| id.starts_with("delays.") && id.ends_with(".late"));
        let least = row["figure"]["min"].as_f64();
        expect(!late || absent || least.is_some_and(|least| least >= 0.0), &format!("{} is never early", row["id"]))?;
        // Wine grants real-time priorities without effect.
        let urgent = row["id"].as_str().is_some_and(|id| id.contains(".fifo."));
        expect(!urgent || absent, &format!("{} is no figure", row["id"]))?;
    }
    expect(figures >= 50, &format!("there are figures ({figures} of {} rows)", rows.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_delay_and_a_title_without_wine_are_seen() {
        assert!(delays(r#"{"n": 50, "early": 0, "late_ns": {"min": 0.0}}"#).is_ok());
        assert!(delays(r#"{"n": 50, "early": 1, "late_ns": {"min": 0.0}}"#).is_err());
        assert!(delays(r#"{"n": 50, "early": 0, "late_ns": {"min": -1.0}}"#).is_err());
        assert!(title("Timing data sheet, made under Wine 8.0 on Linux 6.1\n").is_ok());
        assert!(title("Timing data sheet\n").is_err());
    }
}
