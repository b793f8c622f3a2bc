//! `hairspring serve`: a front end from a file, run as users run it.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{HAIRSPRING, code, folder, hairspring, json, stderr, stdout};

/// A station in a folder: a beat, a shutter that lines of a pipe release, and a board whose safe state is line 8.
fn station(folder: &tempfile::TempDir, more: &str) -> PathBuf {
    let at = |name: &str| folder.path().join(name).display().to_string();
    let text = format!(
        "[source.beat]\nfrom = \"timer:1ms\"\n[source.shot]\nfrom = \"fifo:{}\"\n[device.board]\ndriver = \
         \"virtual:{},safe=0x00000100\"\n[unit.heartbeat]\non = \"beat\"\ndevice = \"board\"\ndo = {{ toggle = {{ line = 0 }} \
         }}\n[unit.shutter]\non = \"shot\"\ndevice = \"board\"\ndo = {{ pulse = {{ line = 3, width = \"20us\" }} }}\n{more}",
        at("shot"),
        at("board")
    );
    assert!(Command::new("mkfifo").arg(at("shot")).status().is_ok_and(|status| status.success()));
    let file = folder.path().join("station.toml");
    std::fs::write(&file, text).expect("written");
    file
}

/// The board's output lines: the lower half of its second word.
fn lines(folder: &tempfile::TempDir) -> Option<u32> {
    let bytes = std::fs::read(folder.path().join("board")).ok()?;
    bytes.get(8..12)?.try_into().ok().map(u32::from_le_bytes)
}

fn unit<'v>(served: &'v Value, name: &str) -> &'v Value {
    let units = served["units"].as_array().expect("units");
    units.iter().find(|unit| unit["name"] == name).unwrap_or_else(|| panic!("no unit {name}: {served:#}"))
}

#[test]
fn a_station_serves_events_and_ends_with_every_one_accounted_for() {
    let folder = folder();
    let file = station(&folder, "");
    let mut serve = hairspring(&["serve", "--for", "1500ms", "--format", "json", "-q"]);
    let serve = serve.arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // It is there when the heart beats.
    let begun = Instant::now();
    while lines(&folder).is_none_or(|lines| lines & 1 == 0) && begun.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::fs::write(folder.path().join("shot"), "17\n18\n19\n").expect("written");
    let output = serve.wait_with_output().expect("it ends");
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
    let served = json(&stdout(&output));
    assert_eq!((&unit(&served, "shutter")["events"], &unit(&served, "shutter")["missed"]), (&3.into(), &0.into()));
    let beat = unit(&served, "heartbeat");
    assert!(beat["events"].as_u64() >= Some(1000) && beat["accounted"] == true, "{beat:#}");
    assert!(beat["total_ns"]["min"].as_u64() <= beat["total_ns"]["median"].as_u64(), "{beat:#}");
    assert_eq!((&beat["stamped_by"], &beat["priority"]), (&"due".into(), &Value::Null));
    assert_eq!((&served["devices"][0]["is_safe"], lines(&folder)), (&true.into(), Some(0x100)));
}

#[test]
fn signals_end_it_cleanly_with_the_device_in_its_safe_state() {
    for signal in ["INT", "TERM", "HUP", "QUIT"] {
        let folder = folder();
        let file = station(&folder, "");
        // As from a terminal, even if the tests were started without one.
        let mut serve = Command::new("env");
        let serve = serve.args(["--default-signal", HAIRSPRING, "serve"]).arg(&file);
        let serve = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let begun = Instant::now();
        while lines(&folder).is_none_or(|lines| lines & 1 == 0) && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let sent = Command::new("kill").args(["-s", signal, &serve.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        let output = serve.wait_with_output().expect("it ends");
        assert_eq!(code(&output), 130, "{}", stderr(&output));
        let text = stdout(&output);
        assert!(text.starts_with("every event is accounted for; every device is in its safe state\n"), "{text}");
        assert_eq!(lines(&folder), Some(0x100), "SIG{signal}");
    }
}

/// A user who starts it with `nohup` wants it to go on without the terminal.
#[test]
fn a_hangup_that_was_ignored_stays_ignored() {
    let folder = folder();
    let file = station(&folder, "");
    let mut serve = Command::new("env");
    let serve = serve.args(["--ignore-signal=HUP", HAIRSPRING, "serve", "--for", "1500ms"]).arg(&file);
    let serve = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let begun = Instant::now();
    while lines(&folder).is_none_or(|lines| lines & 1 == 0) && begun.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let sent = Command::new("kill").args(["-s", "HUP", &serve.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let output = serve.wait_with_output().expect("it ends");
    assert_eq!((code(&output), lines(&folder)), (0, Some(0x100)), "{}", stderr(&output));
}

#[test]
fn a_unit_that_fails_ends_the_station_and_is_named() {
    let folder = folder();
    let more = "[unit.wrong]\non = \"beat\"\ndevice = \"board\"\ndo = { pulse = { line = 1, width = \"9000000s\" } }\n";
    let output = hairspring(&["serve"]).arg(station(&folder, more)).output().expect("it starts");
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("wrong: failed to make a pulse"), "{}", stderr(&output));
    assert_eq!(lines(&folder), Some(0x100));
}

/// There is room for the stack of the first unit's thread and not for that of the second. The command panicked, and
/// waited for ever for the first one.
#[test]
fn a_thread_that_cannot_be_had_ends_the_station_with_the_reason() {
    let folder = folder();
    let file = station(&folder, "");
    let mut serve = Command::new("sh");
    serve.args(["-c", "ulimit -v 1000000; exec \"$0\" serve \"$1\"", HAIRSPRING]).arg(&file);
    serve.env("RUST_MIN_STACK", "600000000").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut serve = serve.spawn().expect("it starts");
    let begun = Instant::now();
    while serve.try_wait().expect("it can be asked").is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            serve.kill().expect("it runs");
            panic!("it goes on: {}", stderr(&serve.wait_with_output().expect("it has ended")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = serve.wait_with_output().expect("it has ended");
    assert_eq!((code(&output), lines(&folder)), (1, Some(0x100)), "{}", stderr(&output));
    assert!(stderr(&output).contains("start a thread for the unit shutter"), "{}", stderr(&output));
}

#[test]
fn mistakes_in_the_file_are_told_with_their_place() {
    let folder = folder();
    let file = station(&folder, "[unit.typo]\non = \"beet\"\ndo = { fire = \"/dev/shm/x\" }\n");
    let output = hairspring(&["serve"]).arg(&file).output().expect("it starts");
    assert_eq!((code(&output), stdout(&output)), (2, String::new()));
    let said = stderr(&output);
    assert!(
        said.contains("station.toml: line 16, column 6: there is no source \"beet\"; there are beat, shot"),
        "{said}"
    );
    assert!(said.contains("16 | on = \"beet\"\n   |      ^"), "{said}");
    let output = hairspring(&["serve", "nowhere.toml"]).output().expect("it starts");
    assert!(code(&output) == 2 && stderr(&output).contains("failed to read nowhere.toml"), "{}", stderr(&output));
}

#[test]
fn the_example_is_understood_and_its_defaults_are_printed() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/station.toml");
    let output = hairspring(&["serve", "--check", example]).output().expect("it starts");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    for expected in ["SCHED_OTHER", "safe state    0x00000000", "pulse of 10 µs on line 3", "timer:1ms", "after 200 µs"]
    {
        assert!(text.contains(expected), "without {expected:?}: {text}");
    }
    let output = hairspring(&["serve", "--check", "--format", "json", example]).output().expect("it starts");
    let station = json(&stdout(&output));
    assert_eq!(
        (&station["schema"], &station["units"][0]["name"]),
        (&"hairspring.station/1".into(), &"heartbeat".into())
    );
}

/// A screen has each published name, and is well-formed XML.
#[test]
fn a_screen_has_the_variables_of_the_station_with_the_prefix_of_its_file() {
    let folder = folder();
    let file = station(&folder, "settable = { enable = true, width = { least = \"5us\", most = \"1ms\" } }\n");
    let text = std::fs::read_to_string(&file).expect("read");
    std::fs::write(&file, format!("{text}[publish]\nprefix = \"LAB:\"\n")).expect("written");
    let file = file.display().to_string();
    let screen = crate::succeed(&["serve", &file, "--screen"]);
    for part in [
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<display version=\"2.0.0\">",
        "<P>LAB:</P>",
        "<pv_name>pva://$(P)State</pv_name>",
        "<pv_name>pva://$(P)heartbeat:LatP99</pv_name>",
        "<widget type=\"textentry\" version=\"2.0.0\">\n    <name>shutter:Width-SP</name>",
        "<widget type=\"combo\" version=\"2.0.0\">\n    <name>shutter:Enable-SP</name>",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    assert_eq!(screen.matches("<widget ").count(), screen.matches("</widget>").count());
    assert!(!screen.contains("heartbeat:Width"), "{screen}");
}

#[test]
fn names_that_would_be_one_variable_are_refused() {
    let folder = folder();
    let more = "[unit.\"a b\"]\non = \"beat\"\ndo = { fire = \"/dev/shm/x\" }\n[unit.a_b]\non = \"beat\"\ndo = { fire = \"/dev/shm/x\" }\n";
    let file = station(&folder, more);
    let output = hairspring(&["serve", "--screen"]).arg(&file).output().expect("it ends");
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("the units a_b and a"), "{}", stderr(&output));
}
