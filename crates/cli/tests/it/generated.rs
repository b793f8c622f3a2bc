//! Texts generated from the declarations: probes, schema, exit codes, completions, man page, help.

use std::io::Write;
use std::process::{Command, Stdio};

use testing::skip;

use crate::{code, folder, items, json, names, run, stderr, stdout, succeed, works};

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
    for code in [0, 1, 2, 3, 4, 5, 6, 7, 130] {
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

/// The manual pages as `hairspring man --out` writes them: name and text of each.
fn manual() -> Vec<(String, String)> {
    let folder = folder();
    let path = folder.path().to_str().expect("a path in UTF-8");
    assert_eq!(succeed(&["man", "--out", path]), "");
    let read = |name: String| (name.clone(), std::fs::read_to_string(folder.path().join(name)).expect("it is there"));
    names(folder.path()).into_iter().map(read).collect()
}

#[test]
fn every_command_has_a_manual_page_with_all_sections() {
    let pages = manual();
    let help = succeed(&["--help"]);
    let commands = help.lines().filter_map(|line| line.strip_prefix("  ")?.split("  ").next());
    let commands: Vec<&str> = commands.filter(|name| !name.starts_with(['-', ' '])).collect();
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        let name = format!("hairspring-{command}.1");
        let (_, page) = pages.iter().find(|page| page.0 == name).unwrap_or_else(|| panic!("no page {name}"));
        assert_eq!(&succeed(&["man", command]), page);
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "\"EXIT STATUS\"", "ENVIRONMENT", "\"SEE ALSO\""]
        {
            assert!(page.contains(&format!("\n.SH {section}\n")), "{name} has no section {section}");
        }
    }
    let (_, whole) = pages.iter().find(|page| page.0 == "hairspring.1").expect("the page of all commands");
    assert_eq!(&succeed(&["man"]), whole);
    assert!(
        pages.len() > 1
            && pages.iter().all(|(name, _)| whole.contains(name.trim_end_matches(".1").replace('-', "\\-").as_str()))
    );
    let record = succeed(&["man", "record"]).replace('\\', "");
    for words in ["--on-overrun", ".SS Trigger", "least-loaded", "NAME.sigmf-data", "time of --wait"] {
        assert!(record.contains(words), "{words:?} is not in the page of record");
    }
    let output = run(&["man", "recrod"]);
    assert_eq!((code(&output), stdout(&output)), (2, String::new()));
    assert!(stderr(&output).contains("there is no command recrod"), "{}", stderr(&output));
}

#[test]
fn manual_pages_are_set_in_80_columns_without_a_warning() {
    if !works(Command::new("groff").arg("--version")) {
        return skip("manual_pages_are_set_in_80_columns_without_a_warning", "there is no groff");
    }
    for (name, page) in manual() {
        let mut setter = Command::new("groff");
        setter.args(["-man", "-Tutf8", "-P-cbou", "-rLL=80n", "-wall"]);
        setter.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut setter = setter.spawn().expect("it starts");
        let mut stdin = setter.stdin.take().expect("it is a pipe");
        let feeder = std::thread::spawn(move || stdin.write_all(page.as_bytes()));
        let output = setter.wait_with_output().expect("it ends");
        feeder.join().expect("no panic").expect("it reads");
        assert_eq!((output.status.success(), stderr(&output)), (true, String::new()), "{name}");
        let set = stdout(&output);
        assert!(set.lines().count() > 20, "{name}: {set}");
        let wide = set.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{name}");
    }
}

#[test]
fn help_goes_to_the_standard_output() {
    for arguments in [vec!["--help"], vec!["sheet", "--help"], vec!["delay", "-h"], vec!["--version"]] {
        assert!(succeed(&arguments).contains("hairspring"), "{arguments:?}");
    }
}
