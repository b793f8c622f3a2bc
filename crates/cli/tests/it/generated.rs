//! What is generated from the declarations: probes, schema, exit codes, completions, man page, help.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::{items, json, skip, succeed, works};

#[test]
fn every_probe_says_what_it_measures_its_unit_and_its_method() {
    let probes = json(&succeed(&["probes", "--format", "json"]));
    assert!(items(&probes, "probes").count() > 100);
    for probe in items(&probes, "probes") {
        for field in ["id", "label", "unit", "method", "measures"] {
            assert!(probe[field].as_str().is_some_and(|text| !text.is_empty()), "{field} of {probe}");
        }
    }
    for format in ["text", "md"] {
        let text = succeed(&["probes", "--format", format]);
        for probe in items(&probes, "probes") {
            assert!(probe["id"].as_str().is_some_and(|id| text.contains(id)), "{} is not in {format}", probe["id"]);
        }
    }
}

#[test]
fn the_schema_is_that_of_a_sheet() {
    let schema = json(&succeed(&["schema"]));
    assert_eq!(schema["properties"]["schema"]["const"], "hairspring.sheet/1");
}

#[test]
fn every_exit_code_has_a_meaning() {
    let table = succeed(&["exit-codes"]);
    for code in [0, 1, 2, 3, 4, 5, 6, 130] {
        assert!(table.contains(&format!("| {code} | ")), "{table}");
    }
}

#[test]
fn completions_exist_for_the_shells_and_name_the_commands() {
    for (shell, words) in [("bash", "complete -F"), ("zsh", "#compdef hairspring"), ("fish", "complete -c hairspring")]
    {
        let text = succeed(&["completions", shell]);
        assert!(text.contains(words) && text.contains("--redact") | text.contains("redact"), "{shell}");
    }
}

#[test]
fn completions_are_understood_by_the_shells_that_are_here() {
    for shell in ["bash", "zsh", "fish"] {
        if !works(Command::new(shell).args(["-c", "true"])) {
            skip(
                &format!("completions_are_understood_by_the_shells_that_are_here ({shell})"),
                "the shell is not here; `cargo xtask test --setup` installs it",
            );
            continue;
        }
        let mut checker = Command::new(shell).arg("-n").stdin(Stdio::piped()).spawn().expect("it starts");
        let mut stdin = checker.stdin.take().expect("it is a pipe");
        stdin.write_all(succeed(&["completions", shell]).as_bytes()).expect("it reads");
        drop(stdin);
        assert!(checker.wait().is_ok_and(|status| status.success()), "{shell} finds a fault");
    }
}

#[test]
fn the_man_page_names_every_command_and_option_and_is_set_without_a_warning() {
    let page = succeed(&["man"]);
    let plain = page.replace('\\', "");
    for words in [
        "--only",
        "--fail-if",
        "--long",
        "--age",
        "OPTIONS OF SHEET",
        "hairspring-compare(1)",
        "--what-if",
        "--backend",
        "thread-up",
    ] {
        assert!(plain.contains(words), "{words} is not in the page");
    }
    if !works(Command::new("groff").arg("--version")) {
        return skip("the_man_page_names_every_command_and_option_and_is_set_without_a_warning", "there is no groff");
    }
    let mut setter = Command::new("groff");
    setter.args(["-man", "-Tutf8", "-wall"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut setter = setter.spawn().expect("it starts");
    let mut stdin = setter.stdin.take().expect("it is a pipe");
    let feeder = std::thread::spawn(move || stdin.write_all(page.as_bytes()));
    let output = setter.wait_with_output().expect("it ends");
    feeder.join().expect("no panic").expect("it reads");
    assert!(output.status.success() && !output.stdout.is_empty());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn help_goes_to_the_standard_output() {
    for arguments in [vec!["--help"], vec!["sheet", "--help"], vec!["delay", "-h"], vec!["--version"]] {
        assert!(succeed(&arguments).contains("hairspring"), "{arguments:?}");
    }
}
