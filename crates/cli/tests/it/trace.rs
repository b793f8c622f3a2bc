//! `hairspring trace`: examples on the executive, and the traces that they write.

use std::path::Path;

use crate::{code, folder, json_file, names, run, stderr, succeed};

/// Runs an example with `--out`; returns its output.
#[track_caller]
fn traced(example: &str, backend: &str, file: &Path) -> String {
    let out = file.to_str().expect("temporary names are text");
    let text = succeed(&["trace", example, "--backend", backend, "--out", out]);
    assert!(text.contains(&format!("calls in {out}")), "{text}");
    text
}

#[test]
fn every_example_prints_a_table_of_events_its_report_and_how_the_run_went() {
    for example in ["sampler", "shutter", "inversion"] {
        let text = succeed(&["trace", example]);
        assert!(text.starts_with(&format!("example    {example}: ")), "{text}");
        for words in ["back-end   sim\n", "time in µs", "is started, runs", "\nended      ", "\nstrict     yes"] {
            assert!(text.contains(words), "{words} is not in {text}");
        }
        assert_eq!(text, succeed(&["trace", example]), "virtual time is the same in every run");
    }
}

#[test]
fn the_ending_says_the_format_and_nothing_else_appears() {
    let folder = folder();
    let (dump, events) = (folder.path().join("t.vcd"), folder.path().join("t.json"));
    for backend in ["sim", "fiber", "thread-up", "thread-smp"] {
        let text = traced("inversion", backend, &dump);
        assert!(text.contains("GTKWave") && text.contains("high waited"), "{text}");
        assert!(text.contains(&format!("back-end   {}\n", backend.replace('-', "_"))), "{text}");
        let dump = std::fs::read_to_string(&dump).expect("it is there");
        assert!(dump.contains("$timescale 1 ns $end") && dump.contains(" high_run $end"), "{dump:.500}");
        assert!(traced("inversion", backend, &events).contains("perfetto"));
        let events = json_file(&events);
        assert!(events["traceEvents"].as_array().is_some_and(|events| events.len() > 50), "{backend}");
    }
    assert_eq!(names(folder.path()), ["t.json", "t.vcd"]);
}

#[test]
fn people_are_told_what_to_write_instead_before_anything_runs() {
    #[track_caller]
    fn check(arguments: &[&str], hint: &str) {
        let output = run(&[&["trace"], arguments].concat());
        assert_eq!(code(&output), 2, "{arguments:?}");
        assert!(stderr(&output).contains(hint), "{arguments:?} said {:?}, without {hint:?}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
    check(&["nonsense"], "sampler, shutter, inversion");
    check(&[], "<EXAMPLE>");
    check(&["sampler", "--backend", "thread"], "sim, fiber, thread-up, thread-smp");
    check(&["sampler", "--out", "t.txt"], "name the file .vcd (for GTKWave and PulseView) or .json (for Perfetto)");
    check(&["sampler", "--out", "t"], "name the file .vcd");
    check(&["sampler", "--out", "/nowhere/at/all/t.vcd"], "choose another file for --out");
    check(&["sampler", "--out", "/proc/t.json"], "choose another file for --out");
}
