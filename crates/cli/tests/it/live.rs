//! `scope --live`: readers of a recording in processes of their own, in the terminal and in a browser; and that they
//! cannot disturb it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use testing::skip;

use crate::{code, folder, hairspring, json, stderr, stdout, works};

/// Time limit for something that is sure to happen, only against hanging.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process that a failed test does not leave behind.
struct Running(Option<Child>);

impl Running {
    fn start(command: &mut Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Self(Some(child.expect("the binary can be started")))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("not ended yet")
    }

    fn output(mut self) -> Output {
        self.0.take().expect("not ended yet").wait_with_output().expect("it ends")
    }

    fn signal(&mut self, name: &str) {
        let id = self.child().id().to_string();
        assert!(works(Command::new("kill").args(["-s", name, &id])), "kill -s {name}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until a reader has mapped the ring.
fn is_looking_on(reader: &mut Running) {
    let maps = format!("/proc/{}/maps", reader.child().id());
    let begun = Instant::now();
    while !std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("memfd:hairspring-ring")) {
        assert!(begun.elapsed() < PATIENCE, "it does not look on");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A recording with a tap `./adc` in a folder; it returns when the tap is there.
fn record(folder: &Path, card: &str, more: &[&str]) -> Running {
    let mut command = hairspring(&["record", "--buffer", "4MiB", "--format", "json", "--to", "x", "--tap", "./adc"]);
    let mut running = Running::start(command.args(["--card", card]).args(more).current_dir(folder));
    let begun = Instant::now();
    while !folder.join("adc").exists() {
        assert!(begun.elapsed() < PATIENCE && running.child().try_wait().expect("asked").is_none(), "no tap");
        std::thread::sleep(Duration::from_millis(5));
    }
    running
}

fn scope(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = hairspring(&["scope", "--live", "./adc"]);
    command.args(arguments).current_dir(folder);
    command
}

#[track_caller]
fn report(output: &Output, expected: i32) -> Value {
    assert_eq!(code(output), expected, "{} {}", stdout(output), stderr(output));
    json(&stdout(output))
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name} is no number in {value:#}"))
}

/// The pattern is a sine of full scale, a thousandth of a turn for each frame: 100 Hz at 100 kS/s. A line is 24.4 Hz
/// wide.
#[test]
fn a_sine_has_its_wave_form_level_and_line() {
    let folder = folder();
    let channel = ["--channel", "0=name:pressure,unit:kPa,scale:0.5"];
    let recording = record(folder.path(), "virtual:2ch,16bit,100kS/s,data=sine", &channel);
    let text = scope(folder.path(), &["--for", "500ms", "--span", "500ms"]).output().expect("it starts");
    assert_eq!((code(&text), stderr(&text)), (0, String::new()));
    let text = stdout(&text);
    for part in [
        "2 channels × 16 bit in i16, 100 kS/s",
        "channel 0 pressure: ",
        " kPa, ",
        "channel 1: ",
        "spectrum: 0 Hz to 50 kHz",
        " dB  mean ",
        "missed by this reader 0",
        "lost by the source 0",
        "⣿",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "no colours in a pipe");
    let report = report(&scope(folder.path(), &["--for", "500ms", "--format", "json"]).output().expect("it starts"), 0);
    assert_eq!((&report["state"], number(&report, "channels")), (&"running".into(), 2));
    assert!(number(&report, "read_frames") > 0);
    let level = &report["levels"][0];
    assert_eq!(
        (&level["name"], level["max_stored"].as_f64(), level["min_stored"].as_f64()),
        (&"pressure".into(), Some(32767.0), Some(-32768.0))
    );
    assert!((level["level_db"].as_f64().expect("a level") + 3.01).abs() < 0.3, "{level}");
    assert!(level["peak_db"].as_f64().expect("a line") > -1.5, "{level}");
    assert!((level["peak_hz"].as_f64().expect("a line") - 100.0).abs() < 25.0, "{level}");
    drop(recording);
}

/// Of ten readers, one is stopped for longer than the ring lasts, and one is killed. The recording loses nothing. Each
/// of the others reads or counts every frame; the stopped one counts the frames that it missed.
#[test]
fn ten_readers_of_which_one_stops_and_one_dies_cost_the_recording_nothing() {
    const FRAMES: u64 = 4_000_000;
    let folder = folder();
    let recording = record(folder.path(), "virtual:2ch,16bit,1MS/s", &["--frames", &FRAMES.to_string()]);
    let begin = |_| Running::start(&mut scope(folder.path(), &["--format", "json", "--for", "3600s"]));
    let mut readers: Vec<Running> = (0..10).map(begin).collect();
    readers.iter_mut().for_each(is_looking_on);
    readers[0].signal("STOP");
    readers[1].signal("KILL");
    let ended = recording.output();
    let recorded = report(&ended, 0);
    assert_eq!((&recorded["verdict"], number(&recorded, "lost_bytes")), (&"complete".into(), 0));
    assert_eq!(number(&recorded, "stored_bytes"), FRAMES * 4);
    readers[0].signal("CONT");
    for (place, reader) in readers.into_iter().enumerate() {
        let output = reader.output();
        if place == 1 {
            continue;
        }
        let seen = report(&output, 0);
        assert_eq!(seen["state"], "finished", "{seen:#}");
        assert!(number(&seen, "read_frames") + number(&seen, "missed_frames") <= FRAMES, "{seen:#}");
        if place == 0 {
            assert!(number(&seen, "missed_frames") > 0, "{seen:#}");
        }
    }
}

#[test]
fn a_recorder_that_is_killed_is_told_with_what_to_do() {
    let folder = folder();
    let mut recording = record(folder.path(), "virtual:2ch,16bit,1MS/s", &[]);
    let mut watching = Running::start(&mut scope(folder.path(), &["--format", "json", "--for", "3600s"]));
    is_looking_on(&mut watching);
    recording.signal("KILL");
    let output = watching.output();
    let seen = report(&output, 1);
    assert_eq!(seen["state"], "gone");
    assert!(
        stderr(&output).contains("has died") && stderr(&output).contains("hairspring recover"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_is_no_tap_is_refused_with_what_to_write_instead() {
    let folder = folder();
    let refused = |arguments: &[&str], hint: &str| {
        let output = hairspring(arguments).current_dir(folder.path()).output().expect("it starts");
        assert_eq!((code(&output), stdout(&output)), (2, String::new()), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(hint), "{arguments:?}: {}", stderr(&output));
    };
    refused(&["scope"], "--live");
    refused(&["scope", "--live", "./adc"], "record --tap");
    refused(&["scope", "--live", "a b"], "letters, digits");
    refused(&["scope", "--live", "./adc", "--out", "x.vcd"], "--out");
    refused(&["scope", "--live", "./adc", "--device", "virtual:x"], "--device");
    refused(&["scope", "--live", "./adc", "--span", "0s"], "--span");
    refused(&["scope", "--device", "virtual:x", "--serve", "127.0.0.1:0"], "--serve");
    std::fs::write(folder.path().join("adc"), "a file").expect("written");
    refused(&["scope", "--live", "./adc"], "./adc");
}

/// Starts a server; its address.
fn serve(folder: &Path, more: &[&str]) -> (Running, String) {
    let mut running = Running::start(scope(folder, &["--serve", "127.0.0.1:0"]).args(more));
    let mut line = Vec::new();
    let stdout = running.child().stdout.as_mut().expect("piped");
    let mut byte = [0];
    while stdout.read(&mut byte).expect("it says its address") == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    let line = String::from_utf8(line).expect("text");
    let address = line.strip_prefix("http://").and_then(|rest| rest.strip_suffix('/')).unwrap_or_default().to_owned();
    assert!(!address.is_empty(), "{line}");
    (running, address)
}

/// Sends a request; the whole answer.
fn get(address: &str, target: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn trace(address: &str, from: u64) -> Value {
    let answer = get(address, &format!("/trace?from={from}"), address);
    let (head, body) = answer.split_once("\r\n\r\n").expect("head and body");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    json(body)
}

/// Browsers that never read, never send, or send nonsense: the good one beside them gets every point, and the recording
/// loses nothing.
#[test]
fn browsers_of_ill_will_harm_neither_the_recording_nor_each_other() {
    let folder = folder();
    let recording = record(folder.path(), "virtual:2ch,16bit,1MS/s,data=sine", &["--frames", "3000000"]);
    let (server, address) = serve(folder.path(), &[]);
    let connect = || TcpStream::connect(&address).expect("it listens");
    let silent: Vec<TcpStream> = (0..10).map(|_| connect()).collect();
    let unread: Vec<TcpStream> = (0..10)
        .map(|_| {
            let mut stream = connect();
            stream
                .write_all(format!("GET /trace?from=0 HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
                .expect("sent");
            stream
        })
        .collect();
    connect().write_all(&[0x16, 3, 1, 0, 0, 0xff, b'\r', b'\n', b'\r', b'\n']).expect("sent");
    assert!(get(&address, "/", &address).contains("<canvas>"));
    assert!(get(&address, "/nothing", &address).starts_with("HTTP/1.1 404"));
    assert!(get(&address, "/", "evil.example").starts_with("HTTP/1.1 421"));
    let (mut next, mut seen) = (0, 0_u64);
    let begun = Instant::now();
    let last = loop {
        let answer = trace(&address, next);
        for point in answer["points"].as_array().expect("points") {
            let number = point[0].as_u64().expect("a number");
            assert!(next == 0 || number == next, "point {number} instead of {next}");
            (next, seen) = (number + 1, seen + 1);
        }
        if seen > 500 || answer["state"] != "running" {
            break answer;
        }
        assert!(begun.elapsed() < PATIENCE, "{answer:.300}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(seen > 0 && last["lost_frames"] == 0, "{seen} points");
    let recorded = report(&recording.output(), 0);
    assert_eq!((&recorded["verdict"], number(&recorded, "lost_bytes")), (&"complete".into(), 0));
    drop((silent, unread, server));
}

/// The page in a real browser draws both channels, and its text for screen readers states that.
#[test]
fn a_browser_draws_the_recording() {
    let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter();
    let Some(browser) = browser.into_iter().find(|name| works(Command::new(name).arg("--version"))) else {
        return skip("a_browser_draws_the_recording", "chromium is not installed");
    };
    let folder = folder();
    let recording = record(
        folder.path(),
        "virtual:2ch,16bit,1MS/s,data=sine",
        &["--channel", "1=name:pressure,unit:kPa,scale:0.5"],
    );
    let (server, address) = serve(folder.path(), &[]);
    let begun = Instant::now();
    while trace(&address, 0)["points"].as_array().is_none_or(|points| points.len() < 100) {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    let picture = folder.path().join("page.png");
    let mut command = Command::new(browser);
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--enable-logging=stderr",
        "--v=0",
        "--window-size=1200,900",
        "--virtual-time-budget=3000",
        "--dump-dom",
    ]);
    command.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
    command.arg(format!("--screenshot={}", picture.display()));
    let output = command.arg(format!("http://{address}/")).output().expect("it starts");
    let (page, log) = (stdout(&output), stderr(&output));
    assert!(!log.contains(":CONSOLE"), "{log}");
    let canvases: Vec<&str> = page.split("<canvas").skip(1).filter(|canvas| canvas.contains("data-drawn")).collect();
    assert_eq!(canvases.len(), 2, "{page}");
    let value = |canvas: &str, name: &str| -> f64 {
        let rest = canvas.split(&format!("data-{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        rest.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {name} in {canvas}"))
    };
    for (canvas, scale) in canvases.iter().zip([1.0, 0.5]) {
        assert!(value(canvas, "drawn") >= 100.0, "{canvas}");
        assert_eq!((value(canvas, "low"), value(canvas, "high")), (-32768.0 * scale, 32767.0 * scale));
    }
    assert!(page.contains("channel 1 pressure: -16384 to 16384 kPa"), "{page}");
    assert!(page.contains("data-state=\"running\"") && page.contains("lost by the source 0"), "{page}");
    assert!(std::fs::metadata(&picture).is_ok_and(|file| file.len() > 5_000), "no picture");
    drop((recording, server));
}
