//! `hairspring sheet`: the formats, the ids of the contract, and where everything goes.

use std::collections::HashSet;
use std::process::Stdio;

use serde_json::Value;

use crate::{ROW, code, folder, hairspring, items, json, json_file, names, row, rows, run, stderr, stdout, succeed};

/// One id of each kind that programs may rely on.
const CONTRACT: [&str; 30] = [
    "clocks.read.counter.later",
    "clocks.read.counter_ordered.later",
    "clocks.read.now.later",
    "clocks.read.now.first",
    "clocks.read.std_instant.later",
    "clocks.read.clock_monotonic.later",
    "clocks.calibration.rate",
    "clocks.calibration.bound",
    "clocks.calibration.wall",
    "clocks.calibration.cpu",
    "delays.minimum.fifo.2us.late",
    "delays.minimum.fifo.2us.early",
    "delays.minimum.other.2us.late",
    "delays.minimum.other.2us.early",
    "delays.long.fifo.10ms.late",
    "delays.long.fifo.10ms.early",
    "delays.long.fifo.10ms.cpu_share",
    "delays.long.other.1ms.late",
    "delays.long.other.1ms.early",
    "delays.long.other.1ms.cpu_share",
    "sleeps.nanosleep.1ms.late",
    "sleeps.usleep.1ms.late",
    "sleeps.std_sleep.1ms.late",
    "sleeps.clock_nanosleep.1ms.late",
    "sleeps.hairspring.1ms.late",
    "disturbance.gaps.interrupted.count",
    "disturbance.gaps.preempted.length",
    "disturbance.wakeup.late",
    "disturbance.wakeup.missed",
    "disturbance.wakeup_other.late",
];

/// It takes half a minute, so one test looks at all of it, and no other waits meanwhile.
#[test]
fn a_whole_sheet_keeps_every_promise() {
    let sheet = json(&succeed(&["sheet", "--quick", "--format", "json"]));
    has_the_ids_that_programs_rely_on(&sheet);
    has_every_probe_each_with_a_figure_or_a_reason(&sheet);
    fits_the_schema_that_the_command_prints(&sheet);
    says_when_how_and_by_what_it_was_taken(&sheet);
    has_no_early_delay(&sheet);
    begins_with_its_first_page(&sheet);
}

#[track_caller]
fn has_the_ids_that_programs_rely_on(sheet: &Value) {
    for id in CONTRACT {
        row(sheet, id);
    }
}

#[track_caller]
fn has_every_probe_each_with_a_figure_or_a_reason(sheet: &Value) {
    let probes = json(&succeed(&["probes", "--format", "json"]));
    let declared: HashSet<_> = items(&probes, "probes").map(|probe| probe["id"].to_string()).collect();
    let taken: HashSet<_> = rows(sheet).map(|row| row["id"].to_string()).collect();
    assert_eq!(taken, declared);
    for row in rows(sheet) {
        let reason = row["absent"]["reason"].as_str();
        assert!(row["figure"]["n"].as_u64() > Some(0) || reason.is_some_and(|reason| !reason.is_empty()), "{row}");
        assert!(!reason.unwrap_or_default().contains("defect"), "{row}");
    }
}

#[track_caller]
fn fits_the_schema_that_the_command_prints(sheet: &Value) {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("sheet.json", json(&succeed(&["schema"]))).expect("the schema is one");
    let index = compiler.compile("sheet.json", &mut schemas).expect("the schema is one");
    let fault = schemas.validate(sheet, index).err().map(|error| error.to_string());
    assert_eq!(fault, None);
}

#[track_caller]
fn says_when_how_and_by_what_it_was_taken(sheet: &Value) {
    assert_eq!(sheet["schema"], "hairspring.sheet/1");
    assert_eq!(sheet["hairspring"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(sheet["hairspring"]["compiler"].as_str().is_some_and(|compiler| compiler.starts_with("rustc")));
    assert!(sheet["hairspring"].as_object().is_some_and(|build| build.contains_key("commit")));
    assert_eq!((&sheet["taken"]["effort"], &sheet["taken"]["interrupted"]), (&"quick".into(), &false.into()));
    assert!(sheet["taken"]["start"].as_str().is_some_and(|start| start.ends_with('Z') && start.contains('T')));
    assert!(sheet["taken"]["duration_s"].as_f64() > Some(0.0));
    assert!(items(&sheet["conditions"], "facts").count() > 20);
}

#[track_caller]
fn has_no_early_delay(sheet: &Value) {
    let mut measured = Vec::new();
    for row in rows(sheet).filter(|row| row["id"].as_str().is_some_and(|id| id.ends_with(".early"))) {
        if !row["figure"].is_null() {
            assert_eq!(row["figure"]["max"].as_f64(), Some(0.0), "{row}");
            measured.extend(row["id"].as_str());
        }
    }
    // Rows that need no permission are measured everywhere: without these nothing has been shown.
    for id in ["1us", "2us", "10us"].map(|request| format!("delays.minimum.other.{request}.early")) {
        assert!(measured.contains(&id.as_str()), "{id} has no figure");
    }
    for id in ["1ms", "10ms"].map(|request| format!("delays.long.other.{request}.early")) {
        assert!(measured.contains(&id.as_str()), "{id} has no figure");
    }
}

#[track_caller]
fn begins_with_its_first_page(sheet: &Value) {
    let summary = &sheet["summary"];
    assert!(items(summary, "characteristics").count() > 10, "{summary}");
    for line in items(summary, "characteristics") {
        let row = rows(sheet).find(|row| row["id"] == line["row"]).expect("the row that it names");
        assert!(row["figure"]["n"].as_u64().is_some(), "{row}");
    }
}

#[test]
fn a_chapter_that_does_not_exist_is_refused_with_those_that_do() {
    for bad in ["--chapter=cooking", "--chapter=clocks,cooking"] {
        let output = run(&["sheet", "--quick", bad]);
        assert_eq!(code(&output), 2, "{}", stdout(&output));
        assert!(stderr(&output).contains("no chapter is called cooking: choose from clocks"), "{}", stderr(&output));
    }
}

#[test]
fn only_what_was_asked_for_is_measured() {
    let text = succeed(&["sheet", "--quick", "--format", "json", "--only", "clocks.read.now.later,disturbance.wakeup"]);
    let sheet = json(&text);
    let ids: Vec<&str> = rows(&sheet).filter_map(|row| row["id"].as_str()).collect();
    assert_eq!(ids, ["clocks.read.now.later", "disturbance.wakeup.late", "disturbance.wakeup.missed"]);
}

#[test]
fn the_ending_of_the_file_chooses_the_format_unless_it_is_said() {
    let folder = folder();
    let formats = [
        (vec!["sheet.json"], "{"),
        (vec!["sheet.html"], "<!DOCTYPE html>"),
        (vec!["sheet.htm"], "<!DOCTYPE html>"),
        (vec!["sheet.md"], "# "),
        (vec!["sheet.markdown"], "# "),
        (vec!["sheet.txt"], "Timing data sheet"),
        (vec!["sheet"], "Timing data sheet"),
        (vec!["data.txt", "--format", "json"], "{"),
        (vec!["data.pdf", "--format", "md"], "# "),
    ];
    for (out, beginning) in &formats {
        let output = hairspring(&["sheet", "--quick", "--only", ROW, "--out"])
            .args(out)
            .current_dir(folder.path())
            .output()
            .expect("the binary can be started");
        assert_eq!((code(&output), output.stdout.len(), stderr(&output)), (0, 0, String::new()), "{out:?}");
        let text = std::fs::read_to_string(folder.path().join(out[0])).expect("the file is there");
        assert!(text.to_lowercase().starts_with(&beginning.to_lowercase()), "{out:?} begins with {text:.40}");
        assert!(text.ends_with('\n'), "{out:?}");
    }
    let mut written: Vec<&str> = formats.iter().map(|(out, _)| out[0]).collect();
    written.sort_unstable();
    assert_eq!(names(folder.path()), written);
    assert_eq!(json_file(&folder.path().join("sheet.json"))["schema"], "hairspring.sheet/1");
}

#[test]
fn a_sheet_on_the_standard_output_writes_nothing_else_anywhere() {
    let folder = folder();
    let output = hairspring(&["sheet", "--quick", "--only", ROW])
        .current_dir(folder.path())
        .envs([("HOME", folder.path()), ("TMPDIR", folder.path()), ("XDG_CACHE_HOME", folder.path())])
        .output()
        .expect("the binary can be started");
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("Timing data sheet"));
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn text_that_goes_into_a_pipe_has_no_colours_and_is_100_columns_wide() {
    let text = succeed(&["sheet", "--quick", "--only", "clocks.read"]);
    assert!(!text.contains('\u{1b}'));
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert_eq!(widest, Some(100));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = hairspring(&["sheet", "--quick", "--only", ROW])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
}

#[test]
fn a_standard_output_that_is_full_is_a_failure_that_is_told() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else {
        return testing::skip("a_standard_output_that_is_full_is_a_failure_that_is_told", "there is no /dev/full");
    };
    for arguments in [vec!["sheet", "--quick", "--only", ROW], vec!["probes"], vec!["schema"], vec!["delay", "1us"]] {
        let output = hairspring(&arguments).stdout(full.try_clone().expect("a copy")).output().expect("it starts");
        assert_eq!(code(&output), 1, "{arguments:?}");
        assert!(stderr(&output).contains("write to the standard output"), "{}", stderr(&output));
    }
}

#[test]
fn a_historic_sheet_can_stand_beside() {
    let output = run(&["sheet", "--quick", "--only", ROW, "--beside", "fermilab-2007"]);
    assert_eq!(code(&output), 0);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("Timing data sheet") && text.contains("Comparison of timing data sheets"), "{text}");
}
