//! `hairspring plan`: verdict, limit and sizes.

use serde_json::Value;

use crate::{code, folder, items, json, run, stderr, stdout};

/// The seed's 4 channels of 14 bit at 40 MS/s: 320 MB/s.
const CARD: &str = "virtual:4ch,14bit,40MS/s";

#[track_caller]
fn planned(arguments: &[&str]) -> Value {
    let output = run(&[&["plan", "--format", "json", "--card"], arguments].concat());
    let plan = json(&stdout(&output));
    // The answers and the exit codes of `can`.
    let answer = match plan["verdict"].as_str() {
        Some("fits") => ("yes", 0),
        Some("exceeds") => ("no", 10),
        _ => ("not shown", 11),
    };
    assert_eq!((plan["answer"].as_str().unwrap_or_default(), code(&output)), answer, "{arguments:?}: {plan}");
    plan
}

/// Checks that a plan is refused with this hint.
#[track_caller]
fn refused(arguments: &[&str], hint: &str) {
    let output = run(&[&["plan", "--card"], arguments].concat());
    assert_eq!((code(&output), output.stdout.len()), (2, 0), "{arguments:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(hint), "{arguments:?} said {:?}, without {hint:?}", stderr(&output));
}

#[test]
fn a_bus_that_is_too_slow_is_named_and_moving_the_card_helps() {
    let change = "move card0 to pcix-1";
    let card = "virtual:2ch,14bit,40MS/s";
    let plan = planned(&[card, "--topology", "an006-shared-pcix", "--to", "disk0", "--what-if", change]);
    assert_eq!(plan["schema"], "hairspring.plan/1");
    assert_eq!(plan["verdict"], "exceeds");
    let limit = |plan: &Value| {
        let limiting = &plan["limiting"];
        let number = |name: &str| limiting[name].as_f64().expect("a number");
        let segment = limiting["segment"].as_str().expect("a name").to_owned();
        (segment, number("load_bytes_per_s"), number("capacity_bytes_per_s"))
    };
    assert_eq!(limit(&plan), ("pcix-2".to_owned(), 320e6, 264e6));
    assert_eq!(plan["most_bytes_per_s"], 132e6);
    let changed = &plan["what_if"];
    assert_eq!((&changed["change"], &changed["verdict"]), (&change.into(), &"unknown".into()));
    assert_eq!(limit(changed), ("pcix-1".to_owned(), 160e6, 264e6));
    assert_eq!(changed["most_bytes_per_s"], 264e6);
}

#[test]
fn sizes_and_volumes_are_there_for_programs() {
    let plan = planned(&[CARD, "--for", "90s"]);
    assert_eq!(plan["rate_bytes_per_s"], 320e6);
    assert_eq!((&plan["duration_ns"], &plan["volume_bytes"]), (&90_000_000_000_i64.into(), &28_800_000_000_i64.into()));
    assert_eq!(
        (&plan["notify_bytes"], &plan["cards"][0]["buffer_wanted_bytes"]),
        (&4_194_304.into(), &536_870_912.into())
    );
    assert_eq!(items(&plan, "volumes").count(), 7);
    assert!(plan["buffer_bytes"].as_u64() > Some(0) && plan["memory"]["available_bytes"].as_u64() > Some(0));
    assert_eq!(plan["what_if"], Value::Null);
}

#[test]
fn a_sheet_says_what_the_disks_sustain() {
    let plan = |card: &str| {
        let plan = planned(&[card, "--topology", "an006-own-bus", "--to", "disk0", "--sheet", "an006-reference-1"]);
        assert_eq!(plan["sustainable"]["rate_bytes_per_s"], 60.0 * 1_048_576.0);
        let of_sheet = items(&plan, "reasons")
            .find(|reason| reason["text"].as_str().is_some_and(|text| text.contains("transfer.stream.record.8mib")));
        of_sheet.expect("it is a reason")["verdict"].clone()
    };
    assert_eq!(plan("virtual:1ch,8bit,50MS/s"), "fits");
    assert_eq!(plan("virtual:1ch,8bit,62MS/s"), "tight");
    assert_eq!(plan("virtual:1ch,8bit,70MS/s"), "exceeds");
}

#[test]
fn a_folder_here_has_room_and_memory_is_that_of_this_computer() {
    let folder = folder();
    let name = folder.path().to_str().expect("a plain name");
    let plan = planned(&["virtual:1ch,8bit,1kS/s", "--to", name]);
    assert!(plan["targets"][0]["free_bytes"].as_u64() > Some(0), "{plan}");
    assert!(plan["room_lasts_ns"].as_i64() > Some(0) && plan["memory"]["total_bytes"].as_u64() > Some(0));
    assert_eq!(planned(&[CARD, "--topology", "an006-own-bus", "--to", "disk0"])["memory"], Value::Null);
}

#[test]
fn people_see_the_verdict_first_and_the_units_that_they_asked_for() {
    let arguments = ["plan", "--card", CARD, "--topology", "an006-shared-pci", "--to", "disk0"];
    let text = stdout(&run(&arguments));
    assert!(text.starts_with("Verdict\n  NO: exceeds"), "{text}");
    for words in ["− pci (PCI bus of 32 bit at 33 MHz", "320.0 MB/s (305.2 MiB/s)", "idle: pcix-1", "1.152 TB"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    let an006 = stdout(&run(&[&arguments[..], &["--units", "an006"]].concat()));
    assert!(
        an006.contains("305.2 MB/s") && an006.contains("1 MB = 1,048,576 bytes") && !an006.contains("MiB"),
        "{an006}"
    );
}

#[test]
fn a_topology_file_is_read_and_its_faults_have_line_and_column() {
    let folder = folder();
    let file = folder.path().join("mine.json");
    let name = file.to_str().expect("a plain name");
    let good = "{ \"schema\": \"hairspring.topology/1\", \"name\": \"mine\",\n  \"segments\": [\n    \
                { \"name\": \"slot\", \"below\": \"memory\", \"rate\": \"300MB/s\" } ],\n  \"devices\": [\n    \
                { \"name\": \"card0\", \"kind\": \"card\", \"on\": \"slot\" } ] }\n";
    std::fs::write(&file, good).expect("there is room");
    let plan = planned(&[CARD, "--topology", name]);
    assert_eq!((&plan["verdict"], &plan["limiting"]["segment"]), (&"exceeds".into(), &"slot".into()));
    std::fs::write(&file, good.replace("\"on\": \"slot\"", "\"on\": \"slit\"")).expect("there is room");
    refused(&[CARD, "--topology", name], "mine.json: line 5, column 46: no segment 'slit' comes before this one");
}

#[test]
fn plans_that_make_no_sense_are_refused_with_what_to_write() {
    refused(&["virtual:4ch"], "--card virtual:4ch");
    refused(&["unpaced:1ch,8bit"], "has no rate: write frames per second");
    refused(&[CARD, "--to", "/nowhere/at/all"], "name a folder that exists");
    refused(&[CARD, "--to", "/dev/null"], "it is not a folder");
    refused(&[CARD, "--topology", "nobody"], "an006-shared-pcix");
    refused(&[CARD, "--topology", "/dev/null"], "line 1, column 0");
    refused(&[CARD, "--what-if", "move"], "'move card0 to SEGMENT'");
    refused(
        &[CARD, "--what-if", "move card0 to isa", "--topology", "an006-own-bus"],
        "there are: memory, hub, pci, pcix-1",
    );
    refused(&[CARD, "--also", "a>b"], "net0>memory:110MB/s");
    refused(&[CARD, "--also", "net7>memory:1MB/s"], "there is no device 'net7'");
    refused(&[CARD, "--for", "0s"], "for instance 10min");
    refused(&[CARD, "--for", "-1s"], "is negative");
    refused(&[CARD, "--stall", "2h"], "write less");
    refused(&[CARD, "--sheet", "nobody"], "an006-reference-1");
    refused(&[CARD, "--units", "imperial"], "possible values: si, an006");
}
