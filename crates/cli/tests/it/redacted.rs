//! `--redact`: the sheet identifies neither the user nor the machine.
//!
//! Names that occur nowhere else are given to everything private in name spaces of their own: the host, the kernel's
//! command line, a process, the home folder, the working folder. None may occur in a redacted sheet.

use std::path::Path;
use std::process::{Command, Stdio};

use testing::skip;

use crate::{HAIRSPRING, ROW, code, folder, is_root, items, json, may_unshare, run, stderr};

/// Private names, each a word that occurs nowhere else.
const PRIVATE: [&str; 6] = ["zzhost", "zzoption", "zzprocess", "zzhome", "zzplace", "zzargument"];

/// Takes a sheet of a machine with private names; returns it as text.
fn taken(place: &Path, format: &str, redact: &[&str]) -> String {
    let script = format!(
        "hostname zzhost-17 && echo 'root=/dev/zzoption quiet zzoption=1' > cmdline && mount --bind cmdline /proc/cmdline \
         && exec '{HAIRSPRING}' sheet --quick --only {ROW} --format {format} \"$@\""
    );
    let output = Command::new("unshare")
        .args(["--mount", "--uts", "sh", "-c", &script, "sh"])
        .args(redact)
        .current_dir(place)
        .envs([("HOME", "/zzhome"), ("USER", "zzhome"), ("PWD", "/zzhome/zzplace")])
        .output()
        .expect("unshare can be started");
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn no_private_name_occurs_in_a_redacted_sheet_of_any_format() {
    if !is_root() || !may_unshare() {
        return skip("no_private_name_occurs_in_a_redacted_sheet_of_any_format", "name spaces are not permitted here");
    }
    let folder = folder();
    let place = folder.path().join("zzplace");
    std::fs::create_dir(&place).expect("made");
    let sleeper = place.join("zzprocess");
    let sleep = ["/bin/sleep", "/usr/bin/sleep"].into_iter().find(|sleep| Path::new(sleep).exists());
    let Some(sleep) = sleep else {
        return skip("no_private_name_occurs_in_a_redacted_sheet_of_any_format", "there is no program to rename");
    };
    // Not a link: a program that is several in one goes by its name.
    std::fs::copy(sleep, &sleeper).expect("copied");
    let mut process = Command::new(&sleeper).arg("600").stdout(Stdio::null()).spawn().expect("it starts");
    let open = taken(&place, "json", &[]);
    let closed = ["json", "html", "md", "text"].map(|format| (format, taken(&place, format, &["--redact"])));
    process.kill().expect("it runs");
    process.wait().expect("it ends");
    // The names can be found where they are not left out, or this test would prove nothing.
    for word in ["zzhost", "zzoption", "zzprocess"] {
        assert!(open.contains(word), "{word} is not in the sheet that is not redacted");
    }
    for (format, text) in &closed {
        for word in PRIVATE {
            assert!(!text.contains(word), "{word} is in the redacted {format}");
        }
        // The text form has only the most important facts, none of which is private.
        assert!(*format == "text" || text.contains("--redact"), "{format} does not say that something was left out");
    }
}

#[test]
fn what_is_left_out_is_marked_absent_and_the_rest_stays() {
    let sheet = |arguments: &[&str]| {
        let mut all = vec!["sheet", "--quick", "--only", ROW, "--format", "json"];
        all.extend(arguments);
        json(&String::from_utf8_lossy(&run(&all).stdout))
    };
    let (open, redacted) = (sheet(&[]), sheet(&["--redact"]));
    let ids = |sheet: &serde_json::Value| -> Vec<String> {
        items(&sheet["conditions"], "facts").map(|fact| fact["id"].to_string()).collect()
    };
    assert_eq!(ids(&redacted), ids(&open));
    let left_out = |id: &str| {
        let fact = items(&redacted["conditions"], "facts").find(|fact| fact["id"] == id);
        fact.is_some_and(|fact| fact["absent"]["reason"].as_str().is_some_and(|reason| reason.contains("--redact")))
    };
    for id in ["host.name", "kernel.command_line"] {
        assert!(left_out(id), "{id} is not marked");
    }
    assert!(!left_out("cpu.model") && !left_out("kernel.release"));
    assert!(items(&redacted["conditions"], "threads").all(|thread| thread["name"].is_null()));
    assert!(items(&redacted["conditions"], "threads").count() > 0);
    assert!(redacted["conditions"]["threads_absent"]["reason"].as_str().is_some_and(|text| text.contains("--redact")));
}
