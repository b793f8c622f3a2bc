//! [`Results`]: the guest's results as lines of JSON, and the effects that the host saw: bytes of the parallel port,
//! changes of lines.
//!
//! The first line names all tests, so that a test that never ended is noticed. The bytes and changes that the host saw
//! are compared with those that the tests report, in order.

use serde_json::{Map, Value};

use super::kind::Kind;
use super::sheet::Sheet;
use crate::tally::Tally;

/// The test that takes a sheet.
const SHEET: &str = "sheet.quick";

/// Results of one test.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    name: String,
    /// `None` if the test never ended.
    outcome: Option<Outcome>,
    took_ms: u64,
    exact: Map<String, Value>,
    measured: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

/// Results of a run.
pub(super) struct Results {
    kind: Kind,
    tests: Vec<Found>,
    sent: Vec<u8>,
    captured: Vec<u8>,
    /// The text, and the parsed sheet.
    sheet: Option<(Value, Result<Sheet, String>)>,
}

/// Comparison of two runs.
pub(super) struct Compared {
    /// For people.
    pub(super) told: String,
    /// Differences between values that must be equal.
    pub(super) differences: Vec<String>,
}

impl Results {
    /// Reads the guest's lines; fails if there are none.
    pub(super) fn read(kind: Kind, lines: &str, captured: &[u8]) -> Result<Results, String> {
        // The last line may be cut off.
        let lines: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if let Some(fatal) = lines.iter().find_map(|line| line["fatal"].as_str()) {
            return Err(format!("the guest gave up: {fatal}"));
        }
        let named = lines.iter().find_map(|line| line["tests"].as_array()).ok_or("the guest never began")?;
        let mut sent = Vec::new();
        let tests = named.iter().filter_map(Value::as_str).map(|name| {
            let line = lines.iter().find(|line| line["test"] == name);
            let bytes = line.and_then(|line| line["captured"].as_array()).into_iter().flatten();
            sent.extend(bytes.filter_map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok())));
            Found::read(name, line)
        });
        let tests = tests.collect();
        let sheet = lines.iter().find_map(|line| line.get("sheet")).map(|sheet| (sheet.clone(), Sheet::read(sheet)));
        Ok(Results { kind, tests, sent, captured: captured.to_owned(), sheet })
    }

    /// One line for each test: its outcome, its time, its measurements.
    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        for test in &self.tests {
            let verdict = match &test.outcome {
                Some(Outcome::Passed) => "pass",
                Some(Outcome::Skipped(_)) => "skip",
                Some(Outcome::Failed(_)) | None => "FAIL",
            };
            text += &format!("  {verdict}  {:<20} {:>6} ms  {}\n", test.name, test.took_ms, test.told());
        }
        text += &format!(
            "  {:<26} {} bytes or changes sent, {} captured",
            self.kind.seen(),
            self.sent.len(),
            self.captured.len()
        );
        if let Some((_, Ok(sheet))) = &self.sheet {
            text += &format!("\n  {:<26} {}", "sheet of the guest", sheet.told());
        }
        text + "\n"
    }

    /// The text of the guest's sheet.
    pub(super) fn sheet(&self) -> Option<&Value> {
        self.sheet.as_ref().map(|(document, _)| document)
    }

    /// One case for each test, one for the effects that the host saw, and one for the sheet.
    pub(super) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for test in &self.tests {
            let name = format!("lab {}", test.name);
            match &test.outcome {
                Some(Outcome::Passed) => tally.passed += 1,
                Some(Outcome::Failed(why)) => tally.failure(&name, why, ""),
                Some(Outcome::Skipped(reason)) => tally.add(Tally::skip(&name, reason, false)),
                None => tally.failure(&name, "it never ended", ""),
            }
        }
        // Not when the tests that use the port were left out.
        let used = self.tests.iter().any(|test| self.kind.senders().iter().any(|sender| test.name.starts_with(sender)));
        match self.port() {
            _ if !used => {}
            Ok(()) => tally.passed += 1,
            Err(why) => tally.failure(&format!("lab: {}", self.kind.seen()), why, ""),
        }
        let asked = self.tests.iter().any(|test| test.name == SHEET);
        match &self.sheet {
            _ if !asked => {}
            Some((_, Ok(_))) => tally.passed += 1,
            Some((_, Err(why))) => tally.failure("lab: the sheet of the guest", why, ""),
            None => tally.failure("lab: the sheet of the guest", "there is none", ""),
        }
        tally
    }

    fn port(&self) -> Result<(), String> {
        if self.sent.is_empty() {
            return Err("nothing was sent".to_owned());
        }
        let (sent, captured) = (&self.sent, &self.captured);
        let same = sent.iter().zip(captured).take_while(|(sent, captured)| sent == captured).count();
        if same == sent.len() && same == captured.len() {
            return Ok(());
        }
        let at = |bytes: &[u8]| bytes.get(same).map_or_else(|| "nothing".to_owned(), |byte| format!("{byte:#04x}"));
        Err(format!(
            "byte {same} of {} was sent as {} and captured as {}; {} were captured",
            sent.len(),
            at(sent),
            at(captured),
            captured.len()
        ))
    }

    /// Compares two boots of one machine.
    pub(super) fn compared_with(&self, other: &Results) -> Compared {
        let mut differences = Vec::new();
        let mut same_times = 0;
        if self.captured != other.captured {
            differences.push(format!("{}: other bytes or changes", self.kind.seen()));
        }
        let names = |results: &Results| results.tests.iter().map(|test| test.name.clone()).collect::<Vec<_>>();
        if names(self) != names(other) {
            differences.push("the tests have other names".to_owned());
        }
        for (first, second) in self.tests.iter().zip(&other.tests) {
            if first.outcome != second.outcome {
                differences.push(format!("{}: {:?} and {:?}", first.name, first.outcome, second.outcome));
            }
            if first.exact != second.exact {
                let shown = [&first.exact, &second.exact].map(|map| Value::Object(map.clone()).to_string());
                differences.push(format!("{}: {} and {}", first.name, shown[0], shown[1]));
            }
            same_times += usize::from((first.took_ms, &first.measured) == (second.took_ms, &second.measured));
        }
        let count = self.tests.len();
        let mut told = format!(
            "{} tests: {} differences in outcomes and counts; the guest's clocks agree to the last digit in {same_times}",
            count,
            differences.len()
        );
        if let (Some((_, Ok(first))), Some((_, Ok(second)))) = (&self.sheet, &other.sheet) {
            let (more, different) = first.compared_with(second);
            told += &format!("\n{more}");
            differences.extend(different);
        }
        Compared { told, differences }
    }
}

impl Found {
    fn read(name: &str, line: Option<&Value>) -> Found {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let outcome = line.map(|line| match (text(&line["skipped"]), line["passed"].as_bool()) {
            (Some(reason), _) => Outcome::Skipped(reason),
            (None, Some(true)) => Outcome::Passed,
            (None, _) => Outcome::Failed(text(&line["why"]).unwrap_or_else(|| "it does not say why".to_owned())),
        });
        let map = |key: &str| line.and_then(|line| line[key].as_object()).cloned().unwrap_or_default();
        let took_ms = line.and_then(|line| line["took_ms"].as_u64()).unwrap_or(0);
        Found { name: name.to_owned(), outcome, took_ms, exact: map("exact"), measured: map("measured") }
    }

    /// The results in one line.
    fn told(&self) -> String {
        match &self.outcome {
            Some(Outcome::Failed(why)) => return why.clone(),
            Some(Outcome::Skipped(reason)) => return reason.clone(),
            None => return "it never ended".to_owned(),
            Some(Outcome::Passed) => {}
        }
        let exact = self.exact.iter().map(|(name, value)| format!("{name} {value}"));
        let measured = self.measured.iter().map(|(name, spread)| match spread.as_str() {
            Some(text) => format!("{name} {text}"),
            None => format!(
                "{name} {} / {} / {} ns (least, median, greatest of {})",
                spread["min_ns"], spread["median_ns"], spread["max_ns"], spread["n"]
            ),
        });
        exact.chain(measured).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{"tests":["parport.a","b","c"]}
{"begin":"parport.a"}
{"test":"parport.a","passed":true,"took_ms":5,"exact":{"n":3},"measured":{"late":{"n":2,"min_ns":1,"median_ns":2,"max_ns":3}},"captured":[1,2]}
{"test":"b","passed":false,"skipped":"no chip","took_ms":0,"exact":{},"measured":{},"captured":[]}
{"begin":"c"}
{"test":"c","pas"#;

    fn run(lines: &str, captured: &[u8]) -> Results {
        Results::read(Kind::Pc, lines, captured).unwrap()
    }

    #[test]
    fn a_test_that_never_ended_has_failed() {
        let results = run(RUN, &[1, 2]);
        let tally = results.tally();
        assert_eq!(tally.closing_line(), "2 passed, 1 failed, 1 skipped");
        assert!(tally.details().contains("lab c: it never ended"), "{}", tally.details());
        let table = results.table();
        assert!(table.contains("n 3; late 1 / 2 / 3 ns (least, median, greatest of 2)"), "{table}");
    }

    #[test]
    fn bytes_that_are_missing_doubled_or_wrong_are_told() {
        for (captured, told) in [
            (&[1, 3][..], "byte 1 of 2 was sent as 0x02 and captured as 0x03"),
            (&[1], "captured as nothing; 1 were"),
            (&[1, 2, 2], "byte 2 of 2 was sent as nothing and captured as 0x02"),
        ] {
            let why = run(RUN, captured).port().unwrap_err();
            assert!(why.contains(told), "{why}");
        }
        assert!(run("{\"tests\":[\"a\"]}", &[]).port().is_err_and(|why| why.contains("nothing was sent")));
    }

    #[test]
    fn boots_differ_in_what_must_be_the_same_only() {
        let first = run(RUN, &[1, 2]);
        let slower = run(&RUN.replace("\"took_ms\":5", "\"took_ms\":6"), &[1, 2]);
        let compared = first.compared_with(&slower);
        assert!(compared.differences.is_empty() && compared.told.contains("last digit in 2"), "{}", compared.told);
        for other in [RUN.replace("\"n\":3}", "\"n\":4}"), RUN.replace("\"passed\":true", "\"passed\":false")] {
            assert_eq!(first.compared_with(&run(&other, &[1, 2])).differences.len(), 1);
        }
        assert_eq!(first.compared_with(&run(RUN, &[1])).differences.len(), 1);
    }

    #[test]
    fn a_sheet_that_is_missing_or_none_is_a_failure() {
        let told = |sheet: &Value| {
            let tally =
                run(&format!("{{\"tests\":[\"sheet.quick\"]}}\n{}", serde_json::json!({ "sheet": sheet })), &[])
                    .tally();
            tally.details()
        };
        assert!(!told(&crate::lab::sheet::tests::document()).contains("sheet of the guest"));
        assert!(told(&serde_json::json!({ "schema": "other" })).contains("its schema is"));
        assert!(run("{\"tests\":[\"sheet.quick\"]}", &[]).tally().details().contains("there is none"));
    }

    #[test]
    fn a_guest_that_never_began_is_an_error() {
        assert!(Results::read(Kind::Pc, "", &[]).is_err_and(|why| why.contains("never began")));
        let fatal = Results::read(Kind::Pc, "{\"fatal\":\"failed to calibrate\"}", &[]);
        assert!(fatal.is_err_and(|why| why.contains("failed to calibrate")));
    }
}
