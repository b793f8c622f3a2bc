//! `hairspring expose`: a board, the simulator of an instrument, and signals while the shutter is open.

use std::net::TcpListener;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use hairspring_device::instrument::simulator::{Manner, Simulator};
use serde_json::Value;

use crate::{code, folder, hairspring, json, stderr, stdout};

/// A simulator at a socket of its own, as long as the tests run; as `--instrument` takes it.
fn instrument(manner: Manner, delay: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    let mut simulator = Simulator { manner, delay, ..Simulator::default() };
    std::thread::spawn(move || simulator.serve_all(&listener));
    format!("tcp:127.0.0.1:{port}")
}

/// The lines of a board: the lower half of its second word.
pub(crate) fn lines(board: &Path) -> Option<u32> {
    let bytes = std::fs::read(board).ok()?;
    bytes.get(8..12)?.try_into().ok().map(u32::from_le_bytes)
}

#[track_caller]
fn exposed(arguments: &[&str], expected: i32) -> (Value, Output) {
    let output = hairspring(arguments).output().expect("it starts");
    assert_eq!(code(&output), expected, "{}{}", stdout(&output), stderr(&output));
    (json(&stdout(&output)), output)
}

/// Checks the properties of every exposure that was not stopped.
#[track_caller]
fn check(exposure: &Value, asked_ns: i64) {
    let number = |value: &Value| value.as_i64().expect("a number");
    let parts = exposure["parts_ns"].as_object().expect("parts");
    let [at_least, at_most] = ["at_least_ns", "at_most_ns"].map(|name| number(&exposure[name]));
    assert_eq!(parts.values().map(number).sum::<i64>(), at_most, "{exposure:#}");
    let open: i64 = ["first_half", "reading", "rest"].map(|part| number(&parts[part])).iter().sum();
    assert_eq!([open, at_least], [number(&exposure["measured_exp_time_ns"]); 2], "{exposure:#}");
    assert!(at_least >= asked_ns, "{exposure:#}");
}

#[test]
fn exposures_are_logged_with_their_parts_and_readings() {
    let folder = folder();
    let board = format!("virtual:{},safe=0x00000100", folder.path().join("board").display());
    let address = instrument(Manner::Plain, Duration::from_millis(1));
    let arguments = ["expose", "400ms", "--device", &board, "--line", "3", "--count", "3", "--instrument", &address];
    let (made, output) = exposed(&[&arguments[..], &["--format", "json"]].concat(), 0);
    assert_eq!(stderr(&output), "");
    let exposures = made["exposures"].as_array().expect("a list");
    assert_eq!((exposures.len(), &made["too_short"], &made["stopped"]), (3, &0.into(), &false.into()), "{made:#}");
    for (number, exposure) in exposures.iter().enumerate() {
        check(exposure, 400_000_000);
        assert_eq!(exposure["reading"]["text"], format!("+1.{:06}E+00", number + 1), "{exposure:#}");
    }
    assert_eq!((&made["instrument"]["query"], &made["safe_state"]), (&"MEAS:VOLT?".into(), &"0x00000100".into()));
    assert_eq!(lines(&folder.path().join("board")), Some(0x100));

    let text = hairspring(&[&arguments[..], &["--period", "1s"]].concat()).output().expect("it starts");
    assert_eq!((code(&text), stderr(&text)), (0, String::new()));
    let text = stdout(&text);
    for said in ["0.4", "+1.000006E+00", "measured_exp_time", "asked MEAS:VOLT?", "every 1 s", "0x00000100"] {
        assert!(text.contains(said), "{text}\nwithout {said}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn an_instrument_that_fails_is_told_and_the_shutter_closes_on_time() {
    let folder = folder();
    let board = format!("virtual:{}", folder.path().join("board").display());
    let silent = instrument(Manner::Silent, Duration::ZERO);
    let arguments = ["expose", "40ms", "--device", &board, "--count", "2", "--format", "json", "--instrument"];
    let (made, output) = exposed(&[&arguments[..], &[&silent]].concat(), 1);
    assert!(stderr(&output).contains("hairspring: 2 of 2 readings failed"), "{}", stderr(&output));
    for exposure in made["exposures"].as_array().expect("a list") {
        check(exposure, 40_000_000);
        let error = exposure["reading"]["error"].as_str().expect("an error");
        assert!(error.contains("no answer in time; check that the instrument is on"), "{error}");
    }
    let slow = instrument(Manner::Plain, Duration::from_millis(100));
    let (made, output) = exposed(&[&arguments[..], &[&slow, "--timeout", "60s"]].concat(), 1);
    assert!(stderr(&output).contains("2 of 2 exposures were too long"), "{}", stderr(&output));
    for exposure in made["exposures"].as_array().expect("a list") {
        check(exposure, 120_000_000);
        assert_eq!((&exposure["end"], exposure["reading"]["text"].is_string()), (&"reading_too_long".into(), true));
    }
    assert_eq!((&made["too_long"], lines(&folder.path().join("board"))), (&2.into(), Some(0)));
}

/// Sends a signal while the shutter is open, and expects one of these ends.
#[track_caller]
fn check_signal(signal: &str, time: &str, options: &[&str], ends: &[&str]) {
    let folder = folder();
    let path = folder.path().join("board");
    let board = format!("virtual:{},safe=0x00000001", path.display());
    let arguments = ["expose", time, "--device", &board, "--line", "4", "--count", "3", "--format", "json"];
    let mut exposing = hairspring(&[&arguments[..], options].concat());
    let mut exposing = exposing.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    while lines(&path) != Some(0x11) {
        assert_eq!(exposing.try_wait().expect("a child"), None, "it has ended too early");
        std::thread::sleep(Duration::from_millis(5));
    }
    // A line that no other process restores.
    let registers = std::fs::File::options().write(true).open(&path).expect("the board");
    registers.write_all_at(&[0x51], 8).expect("written");
    let sent = Command::new("kill").args(["-s", signal, &exposing.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let output = exposing.wait_with_output().expect("it ends");
    assert_eq!((code(&output), stderr(&output)), (130, String::new()));
    let made = json(&stdout(&output));
    let exposures = made["exposures"].as_array().expect("a list");
    assert_eq!((exposures.len(), &made["stopped"]), (1, &true.into()), "{made:#}");
    assert!(ends.iter().any(|end| exposures[0]["end"] == *end), "{made:#}");
    assert_eq!(lines(&path), Some(1));
}

#[test]
fn a_signal_while_the_shutter_is_open_leaves_the_lines_in_their_safe_state() {
    check_signal("INT", "1h", &[], &["stopped"]);
    check_signal("TERM", "1h", &[], &["stopped"]);
    // While it waits for an instrument; hardly ever before.
    let silent = instrument(Manner::Silent, Duration::ZERO);
    let options = ["--instrument", &silent, "--timeout", "1h"];
    check_signal("TERM", "1ms", &options, &["reading_too_long", "stopped"]);
}

#[test]
fn what_makes_no_exposure_is_refused_with_what_to_write() {
    let folder = folder();
    let path = folder.path().join("board");
    let board = format!("virtual:{}", path.display());
    for (arguments, expected, hint) in [
        (&["expose", "0s", "--device", &board][..], 2, "write a time like 10s"),
        (&["expose", "-1s", "--device", &board], 2, "is negative"),
        (&["expose", "1000d", "--device", &board], 2, "more than 100 days"),
        (&["expose", "1s", "--device", &board, "--period", "1s"], 2, "choose a longer one"),
        (&["expose", "1s", "--device", &board, "--period", "1000d"], 2, "more than 100 days"),
        (&["expose", "1s", "--device", &board, "--line", "32"], 2, "--line"),
        (&["expose", "1s", "--device", &board, "--count", "0"], 2, "--count"),
        (&["expose", "1s", "--device", &board, "--query", "*IDN?"], 2, "--instrument"),
        (&["expose", "1s", "--device", &board, "--instrument", "meter"], 2, "choose tcp, serial, usbtmc"),
        (&["expose", "1s", "--device", "virtual:/nowhere/x"], 2, "may be written"),
        (&["expose", "1s", "--device", "gpio:/dev/gpiochip0,out=3", "--line", "3"], 2, "its output is line 0"),
        (&["expose", "1s", "--device", "parport:/dev/parport0", "--line", "12"], 2, "its outputs are lines 0 to 11"),
        (&["expose", "1s", "--device", "pci:0000:00:04.0,in=0x8"], 2, "it has no outputs"),
        (&["expose", "1s"], 2, "--device"),
        (&["expose", "1s", "--device", &board, "--instrument", "serial:/nowhere/tty"], 1, "check the line's name"),
    ] {
        let output = hairspring(arguments).output().expect("it starts");
        assert_eq!((code(&output), stdout(&output)), (expected, String::new()), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(hint), "{arguments:?} said {:?}, without {hint:?}", stderr(&output));
        assert_eq!(lines(&path), None, "{arguments:?} has made the board");
    }
}
