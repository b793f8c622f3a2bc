//! `hairspring pulse` and `hairspring scope`: two processes at one board.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::expose::lines;
use crate::{code, folder, hairspring, json, stderr, stdout};

#[track_caller]
fn succeeded(output: &Output) -> Value {
    assert_eq!((code(output), stderr(output)), (0, String::new()), "{}", stdout(output));
    json(&stdout(output))
}

#[test]
fn pulses_are_made_by_one_process_and_seen_by_another() {
    let folder = folder();
    let board = format!("virtual:{},safe=0x00000100", folder.path().join("board").display());
    let dump = folder.path().join("seen.vcd");
    let mut scope = hairspring(&["scope", "--device", &board, "--for", "30s", "--format", "json", "--out"]);
    let scope = scope.arg(&dump).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let arguments = ["pulse", "50us", "--device", &board, "--line", "3", "--count", "200", "--format", "json"];
    let mut made;
    let begun = std::time::Instant::now();
    loop {
        made = succeeded(&hairspring(&arguments).output().expect("it starts"));
        assert_eq!(made["pulses"].as_u64().zip(made["left_out"].as_u64()).map(|(made, left)| made + left), Some(200));
        assert_eq!((&made["too_short"], &made["safe_state"]), (&0.into(), &"0x00000100".into()), "{made:#}");
        assert!(made["at_least_ns"]["min"].as_f64() >= Some(50_000.0), "{made:#}");
        // The scope calibrates first; a second train is certainly seen.
        if begun.elapsed().as_secs() >= 2 {
            break;
        }
    }
    let sent = Command::new("kill").args(["-s", "INT", &scope.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let seen = succeeded(&scope.wait_with_output().expect("it ends"));
    let edges = seen["edges"].as_u64().expect("a number") + seen["missed_writes"].as_u64().expect("a number");
    assert!(edges >= 400, "{seen:#}");
    let text = std::fs::read_to_string(dump).expect("written");
    assert!(text.starts_with("$timescale 1 ns $end") && text.contains("line3 $end"), "{text}");
}

#[test]
fn pulses_are_drawn_against_a_marker_at_the_width_that_was_asked_for() {
    let folder = folder();
    let board = format!("virtual:{}", folder.path().join("board").display());
    let [made, seen] = ["made.svg", "seen.svg"].map(|name| folder.path().join(name).display().to_string());
    let arguments = ["pulse", "30us", "--device", &board, "--line", "3", "--count", "50", "--period", "10ms", "--out"];
    let output = hairspring(&[&arguments[..], &[&made]].concat()).output().expect("it starts");
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
    assert!(stdout(&output).contains(&made), "{}", stdout(&output));
    let drawing = std::fs::read_to_string(&made).expect("written");
    for said in ["<svg xmlns=", "pulses of 30 µs on line 3 of virtual:", "undisturbed", ">30 µs</text>"] {
        assert!(drawing.contains(said), "no {said:?} in {drawing}");
    }
    // No process makes any edges while this one looks.
    let output =
        hairspring(&["scope", "--device", &board, "--for", "1ms", "--out", &seen, "--marker", "30us"]).output();
    assert_eq!(code(&output.expect("it starts")), 0);
    assert!(std::fs::read_to_string(&seen).expect("written").contains("no pulses"));
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
}

/// Starts a command that brings the lines of a board to this, and then keeps running until it is stopped.
#[track_caller]
fn driving(arguments: &[&str], board: &Path, expected: u32) -> Child {
    let child = hairspring(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("it starts");
    while lines(board) != Some(expected) {
        assert_eq!(child.try_wait().expect("a child"), None, "it has ended too early");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// Regression: a signal had no effect until the pulse was over, even if that took ten minutes.
#[test]
fn a_signal_cuts_a_wide_pulse_short_which_is_told() {
    for name in ["INT", "TERM"] {
        let folder = folder();
        let path = folder.path().join("board");
        let board = format!("virtual:{},safe=0x00000001", path.display());
        let arguments = ["pulse", "1h", "--device", &board, "--line", "4", "--format", "json"];
        let child = driving(&arguments, &path, 0x11);
        signal(&child, name);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((code(&output), stderr(&output)), (130, String::new()), "SIG{name}");
        let made = json(&stdout(&output));
        assert_eq!((&made["pulses"], &made["stopped"], &made["too_short"]), (&0.into(), &true.into(), &0.into()));
        assert!(made["cut_short"]["at_most_ns"].as_u64() >= made["cut_short"]["at_least_ns"].as_u64(), "{made:#}");
        assert!(made["cut_short"]["at_most_ns"].as_u64() < made["width_ns"].as_u64(), "{made:#}");
        assert_eq!(lines(&path), Some(1), "SIG{name}");
    }
}

/// The second process initialised the board, and so closed the shutter of the first, whose report did not show it.
#[test]
fn two_at_one_board_wait_for_each_other() {
    let folder = folder();
    let path = folder.path().join("board");
    let board = format!("virtual:{}", path.display());
    let exposing = driving(&["expose", "1h", "--device", &board, "--line", "4"], &path, 0x10);
    let pulsing = ["pulse", "10us", "--device", &board, "--format", "json"];
    let mut pulsing = hairspring(&pulsing).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // Much longer than it takes to make the pulse, if the board is available.
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(10));
        assert_eq!((lines(&path), pulsing.try_wait().expect("a child")), (Some(0x10), None));
    }
    signal(&exposing, "TERM");
    assert_eq!(code(&exposing.wait_with_output().expect("it ends")), 130);
    let made = succeeded(&pulsing.wait_with_output().expect("it ends"));
    // A process that is stopped until the pulse's time has passed leaves it out, and says so.
    let either = made["pulses"].as_u64().zip(made["left_out"].as_u64()).map(|(made, left_out)| made + left_out);
    assert_eq!((either, lines(&path)), (Some(1), Some(0)), "{made:#}");
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_write() {
    let folder = folder();
    let board = format!("virtual:{}", folder.path().join("board").display());
    for (arguments, hint) in [
        (&["pulse", "10us", "--device", &board, "--period", "10us"][..], "choose a longer one"),
        (&["pulse", "-1us", "--device", &board], "is negative"),
        (&["pulse", "10us", "--device", &board, "--line", "32"], "--line"),
        (&["pulse", "10us", "--device", "parallel:0"], "virtual, parport, gpio, serial, comedi, pci"),
        (&["pulse", "10us", "--device", "parport:/dev/nowhere"], "ppdev"),
        (&["pulse", "10us", "--device", "gpio:/dev/gpiochip0,out=3", "--line", "3"], "its output is line 0"),
        (&["pulse", "10us", "--device", "serial:/dev/ttyS0", "--line", "2"], "its outputs are lines 0 to 1"),
        (&["pulse", "10us", "--device", "serial:/dev/ttyS0,safe=0x4"], "its outputs are lines 0 to 1"),
        (&["scope", "--device", "serial:/dev/ttyS0"], "only the lines of a virtual board"),
        (&["pulse", "10us", "--device", "virtual:/nowhere/x"], "may be written"),
        (&["pulse", "10us"], "--device"),
        (&["scope", "--device", &board, "--for", "0s"], "--for 0s"),
        (&["pulse", "10us", "--device", &board, "--out", "x.png"], "ends in .svg"),
        (&["pulse", "10us", "--device", &board, "--out", "/nowhere/x.svg"], "cannot write /nowhere/x.svg"),
        (&["scope", "--device", &board, "--out", "x.png"], "ends in .vcd or .svg"),
        (&["scope", "--device", &board, "--marker", "1us"], "--out"),
        (&["scope", "--device", &board, "--out", "x.vcd", "--marker", "1us"], "--marker needs a drawing"),
        (&["scope", "--device", &board, "--out", "x.svg", "--marker", "1us,2us,3us,4us,5us"], "at most 4"),
        (&["scope", "--device", &board, "--out", "x.svg", "--marker", "0us"], "each more than 0"),
        (&["scope", "--device", &board, "--cpu", "4095", "--for", "1ms"], "--cpu 4095"),
    ] {
        let output = hairspring(arguments).output().expect("it starts");
        assert_eq!((code(&output), stdout(&output)), (2, String::new()), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(hint), "{arguments:?} said {:?}, without {hint:?}", stderr(&output));
    }
}

#[test]
fn ctrl_c_ends_a_train_with_the_lines_in_their_safe_state() {
    let folder = folder();
    let board = format!("virtual:{},safe=0x00000001", folder.path().join("board").display());
    let arguments = ["pulse", "1ms", "--device", &board, "--line", "4", "--count", "100000", "--format", "json"];
    let mut train = hairspring(&arguments);
    let train = train.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    std::thread::sleep(std::time::Duration::from_secs(1));
    let sent = Command::new("kill").args(["-s", "INT", &train.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let output = train.wait_with_output().expect("it ends");
    assert_eq!(code(&output), 130, "{}", stderr(&output));
    let made = json(&stdout(&output));
    assert_eq!((&made["stopped"], &made["too_short"]), (&true.into(), &0.into()), "{made:#}");
    // The lower half of the board's second word: the lines.
    let bytes = std::fs::read(folder.path().join("board")).expect("the board");
    assert_eq!(bytes[8..12], 1_u32.to_le_bytes());
}
