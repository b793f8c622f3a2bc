//! Recordings on the real command: the requested data are recorded to the frame; loss is reported, with its exit code.

mod exports;
mod owned;
mod pairs;
mod senders;
mod series;
mod taps;
mod triggers;

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{code, folder, hairspring, is_root, items, json, may_unshare, names, stderr, stdout, works};

/// Time limit for something that is sure to happen, only against hanging.
const PATIENCE: Duration = Duration::from_secs(60);
/// Two channels of 16 bits, 4 MB/s.
const CARD: &str = "virtual:2ch,16bit,1MS/s";

/// `record` with small buffers, to a name in a folder.
fn record(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = hairspring(&["record", "--buffer", "4MiB", "--format", "json"]);
    command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The report; checks that the command ended with this code and printed nothing else.
#[track_caller]
fn report(output: &Output, expected: i32) -> Value {
    assert_eq!((code(output), stderr(output)), (expected, String::new()), "{}", stdout(output));
    json(&stdout(output))
}

#[track_caller]
fn recorded(folder: &Path, arguments: &[&str], expected: i32) -> Value {
    report(&record(folder, arguments).output().expect("the binary can be started"), expected)
}

/// A command about a recording in a folder, with its report as JSON.
#[track_caller]
fn about(folder: &Path, arguments: &[&str], expected: i32) -> Value {
    let mut command = hairspring(arguments);
    report(&command.args(["--format", "json"]).current_dir(folder).output().expect("it starts"), expected)
}

/// Checks a command that must fail: its code, its message, and an empty standard output.
#[track_caller]
fn refused(folder: &Path, arguments: &[&str], expected: i32, hint: &str) {
    let output = hairspring(arguments).current_dir(folder).output().expect("the binary can be started");
    assert_eq!((code(&output), stdout(&output)), (expected, String::new()), "{arguments:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(hint), "{arguments:?} said {:?}, without {hint:?}", stderr(&output));
    assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name} is no number in {value:#}"))
}

/// Records in a journal; behind them is space that was reserved.
fn written(journal: &Path) -> u64 {
    let bytes = std::fs::read(journal).unwrap_or_default();
    bytes.chunks_exact(64).take_while(|record| record.iter().any(|byte| *byte != 0)).count() as u64
}

/// Waits until a recording has `records` records in its journal.
#[track_caller]
fn wait_for_records(child: &mut Child, journal: &Path, records: u64) {
    let start = Instant::now();
    while written(journal) < records {
        assert!(start.elapsed() < PATIENCE, "it does not record");
        assert!(child.try_wait().expect("it can be asked").is_none(), "it ended too early");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill -s {name}");
}

/// Ends a child that a failed test leaves behind.
struct Ended(Option<Child>);

impl Ended {
    fn output(mut self) -> Output {
        self.0.take().expect("not ended yet").wait_with_output().expect("it ends")
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("not ended yet")
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn begin(folder: &Path, arguments: &[&str]) -> Ended {
    Ended(Some(record(folder, arguments).spawn().expect("the binary can be started")))
}

#[test]
fn what_was_asked_for_is_recorded_to_the_frame_and_proven() {
    let folder = folder();
    let report = recorded(folder.path(), &["--card", CARD, "--for", "300ms", "--to", "x"], 0);
    assert_eq!(report["verdict"], "complete");
    for name in ["produced_bytes", "stored_bytes", "durable_bytes"] {
        assert_eq!(report[name], 300_000 * 4, "{name}");
    }
    assert_eq!(names(folder.path()), ["x.hairspring-journal", "x.sigmf-data", "x.sigmf-meta"]);
    let data = std::fs::metadata(folder.path().join("x.sigmf-data")).expect("it is there");
    assert_eq!(data.len(), 300_000 * 4);
    for name in ["x", "x.sigmf-meta", "x.sigmf-data", "x.hairspring-journal"] {
        let verified = about(folder.path(), &["verify", name], 0);
        assert_eq!((&verified["verdict"], number(&verified, "proven_bytes")), (&"complete".into(), 1_200_000));
        assert_eq!((&verified["generator"], &verified["mismatch"]), (&"noise".into(), &Value::Null));
    }
    let recovered = about(folder.path(), &["recover", "x"], 0);
    assert_eq!(recovered["changed"], Value::Array(Vec::new()), "a whole recording needs no mending");
}

#[test]
fn the_report_has_every_member_of_the_contract_with_its_type() {
    let folder = folder();
    let cards = ["--card", CARD, "--card", "virtual:1ch,8bit,500kS/s"];
    let report = recorded(folder.path(), &[&cards[..], &["--frames", "50_000", "--to", "x"]].concat(), 0);
    let cards = items(&report, "cards").collect::<Vec<_>>();
    assert_eq!(cards.len(), 2);
    assert_eq!(cards.iter().map(|card| number(card, "stored_bytes")).collect::<Vec<_>>(), [200_000, 50_000]);
    assert_eq!(number(&report, "stored_bytes"), 250_000);
    for report in [&report, cards[0], cards[1]] {
        for name in ["verdict", "reason"] {
            assert!(report[name].is_string(), "{name}");
        }
        for name in [
            "produced_bytes",
            "durable_bytes",
            "lost_bytes",
            "lost_samples",
            "left_out_bytes",
            "worst_stall_ns",
            "buffer_high_water",
            "buffer_bytes",
            "recorder_cpu_ns",
            "checksum_ns",
            "elapsed_ns",
        ] {
            number(report, name);
        }
        assert!(report["rate_wanted_bytes_per_s"].as_f64() > Some(0.0));
        assert!(report["rate_reached_bytes_per_s"].as_f64() > Some(0.0));
        assert!(report["direct_io_proven"].is_boolean() && report["gaps"].is_array());
        assert!(items(report, "files").all(Value::is_string) && items(report, "files").len() >= 3);
        assert!(items(report, "ladder").len() > 0);
        for fallback in items(report, "ladder") {
            assert!(fallback["name"].is_string() && fallback["used"].is_boolean());
            assert_eq!(
                fallback["refused"].is_null(),
                fallback["used"] == true,
                "what is not used has a reason: {fallback}"
            );
        }
    }
    assert!(names(folder.path()).contains(&"x-card1.sigmf-data".to_owned()));
    for name in ["x-card0", "x-card1"] {
        about(folder.path(), &["verify", name], 0);
    }
}

#[test]
fn the_text_says_first_what_the_recording_is_worth_and_leaves_out_what_is_as_usual() {
    let folder = folder();
    let record = |name: &str, more: &[&str]| {
        let arguments = ["record", "--card", CARD, "--frames", "1000", "--pages", "huge1g", "--to", name];
        let command = &mut hairspring(&[&arguments[..], more].concat());
        let output = command.current_dir(folder.path()).output().expect("it starts");
        assert_eq!((code(&output), stderr(&output)), (0, String::new()));
        output
    };
    let verbose = stdout(&record("v", &["--verbose"]));
    assert!(verbose.contains("  processor   "), "{verbose}");
    let output = record("x", &[]);
    assert!(stdout(&output).starts_with("complete: "), "{}", stdout(&output));
    // Pages of 1 GiB are set aside on hardly any machine. That costs a word, and the reasons are in the longer text.
    assert_eq!(stdout(&output).contains("pages (fallback)"), verbose.contains("  refused   "), "{verbose}");
    let lines = stdout(&output).lines().count();
    assert!(
        lines <= 10 && !stdout(&output).contains("refused") && !stdout(&output).contains("processor"),
        "{}",
        stdout(&output)
    );
    for fact in ["recorded ", "1,000 frames, 2,000 samples, 4,000 bytes", "lost          nothing", "worst stall "] {
        assert!(stdout(&output).contains(fact), "{fact} is not in {}", stdout(&output));
    }
    let output = hairspring(&["verify", "x"]).current_dir(folder.path()).output().expect("it starts");
    assert!(stdout(&output).starts_with("complete: every byte is as written"), "{}", stdout(&output));
}

#[test]
fn a_recording_says_what_its_channels_measure_and_when_its_frames_were_taken() {
    let folder = folder();
    let pressure = "1=name:pressure,unit:kPa,scale:0.02";
    recorded(folder.path(), &["--card", CARD, "--to", "x", "--for", "600ms", "--channel", pressure], 0);
    let meta = crate::json_file(&folder.path().join("x.sigmf-meta"));
    let channel = serde_json::json!({ "name": "pressure", "unit": "kPa", "scale": 0.02, "offset": 0.0 });
    assert_eq!(meta["global"]["hairspring:channels"], serde_json::json!([{}, channel]));
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot");
    assert_eq!(meta["global"]["hairspring:clock"]["boot_id"], boot.trim());
    let clock = about(folder.path(), &["verify", "x"], 0)["clock"].clone();
    assert_eq!((&clock["how"], &clock["off_line_ns"]), (&"card".into(), &0.into()), "{clock:#}");
    // Its clock is this computer's.
    let [low, high] = [0, 1].map(|end| clock["rate_ppb"][end].as_f64().expect("a bound"));
    assert!(low <= 0.0 && high >= 0.0 && high - low < 100.0, "{clock:#}");
    assert!(number(&clock, "marks") >= 3, "{clock:#}");
    let told = hairspring(&["verify", "x"]).current_dir(folder.path()).output().expect("it starts");
    assert!(stdout(&told).contains("(card); rate"), "{}", stdout(&told));
    about(folder.path(), &["export", "x", "--out", "x.csv", "--frames", "1"], 0);
    let text = std::fs::read_to_string(folder.path().join("x.csv")).expect("there");
    assert!(text.starts_with("frame [1],time [s],channel 0 [code],pressure [code; kPa = 0.02 * code + 0]\n"), "{text}");
    // A file has the same effect; for a contradiction with the card the error names the place, and nothing is recorded.
    std::fs::write(folder.path().join("set.toml"), "[channel.1]\nunit = \"V\"\nclip = [0, 40000]\n").expect("written");
    let file = |card| ["record", "--card", card, "--to", "y", "--for", "10ms", "--channels", "set.toml"];
    refused(folder.path(), &file(CARD), 2, "line 1, column 10: clip: the card's codes are -32768 to 32767");
    let unsigned = "virtual:2ch,16bit,u,1MS/s";
    let output = hairspring(&file(unsigned)).current_dir(folder.path()).output().expect("it starts");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let arguments = ["record", "--card", CARD, "--to", "z", "--channel", "0=name:a,clip:0..40000"];
    refused(folder.path(), &arguments, 2, "               ^^^^^^^^");
    refused(
        folder.path(),
        &["record", "--card", CARD, "--to", "z", "--channels", "none.toml"],
        2,
        "failed to read none.toml",
    );
    assert!(!names(folder.path()).iter().any(|name| name.starts_with('z')));
}

#[test]
fn lower_ways_are_taken_on_request_and_the_report_says_so() {
    let folder = folder();
    let arguments = ["--card", CARD, "--frames", "100000", "--to", "x", "--engine", "pwrite", "--no-direct"];
    let report = recorded(folder.path(), &[&arguments[..], &["--pages", "small", "--placement", "static"]].concat(), 0);
    let used: Vec<_> = items(&report, "ladder")
        .filter(|fallback| fallback["used"] == true)
        .map(|fallback| &fallback["name"])
        .collect();
    assert!(used.contains(&&"pwrite".into()) && !used.contains(&&"io_uring".into()), "{used:?}");
    assert_eq!((&report["direct_io_proven"], &report["pages"]), (&false.into(), &"small".into()));
}

#[test]
fn a_loss_is_declared_frame_by_frame_and_has_its_code() {
    let folder = folder();
    // The bus is busy for longer than the FIFO lasts: 64 KiB are 33 ms.
    let card = "virtual:1ch,16bit,1MS/s,fifo=64KiB,hiccup=100ms+200ms";
    let arguments = ["--card", card, "--for", "600ms", "--to", "gap", "--on-overrun", "gap"];
    let report = recorded(folder.path(), &arguments, 4);
    assert_eq!(report["verdict"], "incomplete");
    assert_eq!(number(&report, "produced_bytes"), 1_200_000);
    assert_eq!(number(&report, "stored_bytes") + number(&report, "lost_bytes"), 1_200_000);
    let frames: u64 = items(&report, "gaps").map(|gap| number(gap, "frames")).sum();
    assert_eq!((frames * 2, frames), (number(&report, "lost_bytes"), number(&report, "lost_samples")));
    assert_eq!(items(&report, "gaps").next().map(|gap| &gap["cause"]), Some(&"served_late".into()));
    let verified = about(folder.path(), &["verify", "gap"], 4);
    assert_eq!(verified["gaps"], report["gaps"]);
    assert_eq!(verified["mismatch"], Value::Null, "what is there is at its place");

    let report = recorded(folder.path(), &["--card", card, "--for", "600ms", "--to", "stop"], 4);
    assert_eq!((&report["verdict"], &report["source_end"]), (&"incomplete".into(), &"overrun".into()));
    assert!(number(&report, "produced_bytes") < 1_200_000, "it stopped at the first loss");
}

#[test]
fn ctrl_c_ends_a_recording_in_order_without_loss() {
    for name in ["INT", "TERM"] {
        let folder = folder();
        let mut child = begin(folder.path(), &["--card", CARD, "--to", "x"]);
        wait_for_records(child.child(), &folder.path().join("x.hairspring-journal"), 4);
        signal(child.child(), name);
        let report = report(&child.output(), 0);
        assert_eq!(report["verdict"], "stopped");
        assert_eq!(number(&report, "durable_bytes"), number(&report, "produced_bytes"));
        assert_eq!(about(folder.path(), &["verify", "x"], 0)["verdict"], "stopped");
    }
}

#[test]
fn a_process_that_is_stopped_for_a_while_declares_what_it_missed() {
    let folder = folder();
    let card = "virtual:2ch,16bit,1MS/s,fifo=64KiB";
    let mut child = begin(folder.path(), &["--card", card, "--to", "x", "--on-overrun", "gap"]);
    let journal = folder.path().join("x.hairspring-journal");
    wait_for_records(child.child(), &journal, 4);
    signal(child.child(), "STOP");
    // 64 KiB are 16 ms: this is more in any case.
    std::thread::sleep(Duration::from_millis(500));
    signal(child.child(), "CONT");
    let seen = written(&journal);
    wait_for_records(child.child(), &journal, seen + 4);
    signal(child.child(), "INT");
    let report = report(&child.output(), 4);
    assert_eq!((&report["verdict"], number(&report, "unaccounted_bytes")), (&"incomplete".into(), 0));
    assert!(number(&report, "lost_bytes") > 4_000_000 / 4, "a quarter of a second at least");
    assert!(items(&report, "gaps").any(|gap| gap["cause"] == "served_late"), "{report:#}");
    assert_eq!(about(folder.path(), &["verify", "x"], 4)["mismatch"], Value::Null);
}

#[test]
fn what_a_killed_recording_had_written_is_recovered() {
    let folder = folder();
    let mut child = begin(folder.path(), &["--card", CARD, "--to", "x", "--sync", "100ms"]);
    let journal = folder.path().join("x.hairspring-journal");
    wait_for_records(child.child(), &journal, 10);
    child.child().kill().expect("it runs");
    child.output();
    let before = names(folder.path())
        .iter()
        .map(|name| std::fs::read(folder.path().join(name)).expect("it is there"))
        .collect::<Vec<_>>();
    let planned = about(folder.path(), &["recover", "x", "--dry-run"], 4);
    let after = names(folder.path())
        .iter()
        .map(|name| std::fs::read(folder.path().join(name)).expect("it is there"))
        .collect::<Vec<_>>();
    assert!(before == after, "a dry run changes nothing");
    let recovered = about(folder.path(), &["recover", "x"], 4);
    assert_eq!((&recovered["verdict"], &recovered["stored_bytes"]), (&"incomplete".into(), &planned["stored_bytes"]));
    assert!(number(&recovered, "stored_bytes") > 0);
    let verified = about(folder.path(), &["verify", "x"], 4);
    assert_eq!(
        (number(&verified, "proven_bytes"), &verified["damaged_blocks"]),
        (number(&recovered, "stored_bytes"), &0.into())
    );
    assert_eq!(verified["mismatch"], Value::Null);
    assert_eq!(about(folder.path(), &["recover", "x"], 4)["changed"], Value::Array(Vec::new()), "the second time");
}

#[test]
fn a_bit_that_flipped_or_bytes_that_are_gone_are_found() {
    let folder = folder();
    recorded(folder.path(), &["--card", CARD, "--frames", "1000000", "--to", "x"], 0);
    let data = folder.path().join("x.sigmf-data");
    let whole = std::fs::read(&data).expect("it is there");
    let mut flipped = whole.clone();
    flipped[1_234_567] ^= 4;
    std::fs::write(&data, &flipped).expect("written");
    let verified = about(folder.path(), &["verify", "x"], 4);
    assert_eq!((&verified["verdict"], &verified["damaged_blocks"]), (&"incomplete".into(), &1.into()));
    let damage = &verified["damages"][0];
    let range =
        number(damage, "file_offset_bytes")..number(damage, "file_offset_bytes") + number(damage, "length_bytes");
    assert!(range.contains(&1_234_567) && damage["file"] == "x.sigmf-data", "{damage}");
    std::fs::write(&data, &whole[..3_000_000]).expect("written");
    let verified = about(folder.path(), &["verify", "x"], 4);
    assert!(number(&verified, "lost_bytes") >= 1_000_000, "{verified:#}");
    std::fs::write(&data, &whole).expect("written");
    about(folder.path(), &["verify", "x"], 0);

    let journal = folder.path().join("x.hairspring-journal");
    let mut records = std::fs::read(&journal).expect("it is there");
    records[100] ^= 1;
    std::fs::write(&journal, &records).expect("written");
    let output = hairspring(&["verify", "x"]).current_dir(folder.path()).output().expect("it starts");
    assert!(matches!(code(&output), 4 | 5), "{}: {}", code(&output), stdout(&output));
    std::fs::write(folder.path().join("x.sigmf-meta"), "{").expect("written");
    refused(folder.path(), &["verify", "x"], 5, "x.sigmf-meta");
}

#[test]
fn a_stripe_is_verified_from_either_folder_and_joined_and_misses_its_members() {
    let folder = folder();
    for part in ["a", "b", "moved"] {
        std::fs::create_dir(folder.path().join(part)).expect("there is room");
    }
    let arguments = ["--card", CARD, "--frames", "1000000", "--to", "a/x,b/x", "--notify", "256KiB"];
    let report = recorded(folder.path(), &arguments, 0);
    assert_eq!(items(&report, "files").len(), 6);
    for name in ["a/x", "b/x"] {
        assert_eq!(number(&about(folder.path(), &["verify", name], 0), "proven_bytes"), 4_000_000);
    }
    let joined = about(folder.path(), &["join", "a/x", "--to", "joined"], 0);
    assert_eq!((&joined["verdict"], &joined["members"]), (&"complete".into(), &2.into()));
    assert_eq!(number(&about(folder.path(), &["verify", "joined"], 0), "proven_bytes"), 4_000_000);
    refused(folder.path(), &["join", "a/x", "--to", "joined"], 2, "exists already");
    for file in names(&folder.path().join("b")) {
        std::fs::rename(folder.path().join("b").join(&file), folder.path().join("moved").join(&file)).expect("moved");
    }
    refused(folder.path(), &["verify", "a/x"], 5, "member 2 of 2 is missing");
    refused(folder.path(), &["join", "a/x", "--to", "part"], 5, "member 2 of 2 is missing");
    assert_eq!(number(&about(folder.path(), &["verify", "a/x", "moved/x"], 0), "proven_bytes"), 4_000_000);
}

#[test]
fn what_was_recorded_is_played_byte_for_byte_and_exported() {
    let folder = folder();
    recorded(folder.path(), &["--card", CARD, "--frames", "200000", "--to", "x"], 0);
    let data = std::fs::read(folder.path().join("x.sigmf-data")).expect("it is there");
    let played = about(folder.path(), &["play", "x", "--to", "file:out", "--buffer", "8MiB"], 0);
    assert_eq!((&played["verdict"], number(&played, "played_frames")), (&"complete".into(), 200_000));
    assert!(std::fs::read(folder.path().join("out")).expect("it is there") == data, "it played something else");
    refused(folder.path(), &["play", "x", "--to", "file:out"], 2, "exists already");

    let output = hairspring(&["play", "x", "--to", "stdout", "--loop", "2", "--format", "json", "--buffer", "8MiB"])
        .current_dir(folder.path())
        .output()
        .expect("it starts");
    assert_eq!((code(&output), output.stdout.len()), (0, data.len() * 2), "{}", stderr(&output));
    assert!(output.stdout == [&data[..], &data[..]].concat(), "it played something else");
    assert_eq!(json(&stderr(&output))["verdict"], "complete", "the report is beside the samples");

    let fast = about(folder.path(), &["play", "x", "--to", "virtual", "--speed", "0.5", "--buffer", "8MiB"], 0);
    assert_eq!(fast["rate_wanted_bytes_per_s"], 2_000_000.0);
    for (arguments, hint) in [
        (["--to", "nul", "--loop", "1"], "choose file, null, stdout, virtual"),
        (["--to", "null", "--speed", "0"], "write 0.5 for half"),
        (["--to", "null", "--loop", "0"], "a number from 1 on, or forever"),
        (["--to", "null", "--rate", "40"], "write for instance 40MS/s"),
        (["--to", "null", "--gaps", "fill"], "zero"),
        (["--to", "file:/nowhere/x", "--loop", "1"], "choose another file"),
    ] {
        refused(folder.path(), &[&["play", "x"], &arguments[..]].concat(), 2, hint);
    }

    let cut = ["export", "x", "--from", "1000", "--frames", "10", "--out"];
    let exported = about(folder.path(), &[&cut[..], &["cut.npy"]].concat(), 0);
    assert_eq!((number(&exported, "first_frame"), number(&exported, "frames")), (1000, 10));
    let array = std::fs::read(folder.path().join("cut.npy")).expect("it is there");
    assert!(array.ends_with(&data[4000..4040]), "the samples of the cut are the last of the file");
    about(folder.path(), &[&cut[..], &["cut.csv"]].concat(), 0);
    refused(folder.path(), &[&cut[..], &["cut.npy"]].concat(), 2, "exists already");
    refused(folder.path(), &[&cut[..], &["cut.txt"]].concat(), 2, "add --as");
    refused(folder.path(), &[&cut[..], &["cut.h5"]].concat(), 2, "leave out --from");
    refused(folder.path(), &[&cut[..], &["/nowhere/cut.npy"]].concat(), 2, "choose another file");
}

#[test]
fn what_cannot_be_recorded_is_refused_with_what_to_write_instead_and_leaves_nothing() {
    let folder = folder();
    let check = |arguments: &str, hint: &str| {
        let arguments: Vec<&str> = ["record"].into_iter().chain(arguments.split_whitespace()).collect();
        refused(folder.path(), &arguments, 2, hint);
    };
    for (card, hint) in [
        ("nonsense", "choose virtual"),
        ("nonsense", "or comedi:/dev/comedi0,2ch,10kS/s"),
        ("comedi:/dev/comedi0,2ch", "write the rate"),
        ("comedi:/dev/comedi999,2ch,10kS/s", "load the card's comedi driver"),
        ("comedi:/dev/null,2ch,10kS/s", "comedi driver"),
        ("virtual:4ch,14bit", "as in 40MS/s"),
        ("virtual:4ch,14bit,0S/s", "not a possible sample rate"),
        ("virtual:4ch,14bit,999GS/s", "choose 100 GB/s or less"),
        ("virtual:0ch,14bit,1MS/s", "choose 1 to 4096"),
        ("virtual:4ch,14bit,1MS/s,what=3", "choose 4ch"),
    ] {
        check(&format!("--card {card} --to x"), hint);
    }
    for (arguments, hint) in [
        ("--to x --buffer 10MiB --notify 4MiB", "does not divide a buffer of 10 MiB: choose"),
        ("--to x --notify 0B", "choose one that divides the buffer"),
        ("--to x --buffer 4M", "write MB for"),
        ("--to x --on-overrun block", "cannot wait; choose stop, gap or overwrite"),
        ("--to x --for 0s", "record for longer"),
        ("--to x --for 1ns", "record for longer"),
        ("--to x --for 10", "write 10ns, 10us, 10ms or 10s"),
        ("--to x --frames 0", "record for longer"),
        ("--to x --frames many", "write a whole number of frames"),
        ("--to x --for 1s --frames 5", "cannot be used with"),
        ("--to x --sync 0s", "for instance 1s"),
        ("--to x --depth 0", "write a whole number from 1 to 256"),
        ("--to x --trigger level:ch5>0.5 --post 10", "write ch0 to ch1"),
        ("--to x --trigger level:ch0 --post 10", "write level:ch0>0.5"),
        ("--to x --trigger level:ch0>0.5", "--post"),
        ("--to x --frames 1000000000000", "are free: record less"),
        ("--to /nowhere/x", "does not exist: create it (mkdir -p /nowhere)"),
        ("--to .", "is not a name: write a folder and a name"),
        ("--to /", "is not a name: write a folder and a name"),
        ("--to /tmp", "is a folder: add a name"),
        ("--to x.sigmf-data", "write x"),
        ("--to x,x", "names x twice"),
        ("", "--to"),
    ] {
        check(&format!("--card {CARD} {arguments}"), hint);
        assert_eq!(names(folder.path()), [""; 0], "{arguments}");
    }
    for file in ["x.sigmf-data", "x.sigmf-meta", "x.hairspring-journal"] {
        std::fs::write(folder.path().join(file), "").expect("written");
        check(
            &format!("--card {CARD} --to x"),
            &format!("{file} exists already, and recordings are never overwritten"),
        );
        assert_eq!(names(folder.path()), [file]);
        std::fs::remove_file(folder.path().join(file)).expect("removed");
    }
    for command in ["verify", "recover"] {
        refused(folder.path(), &[command, "nobody"], 2, "no recording nobody");
    }
}

/// A shell in which a small file system is mounted on the working folder.
fn on_a_small_disk(options: &str, script: &str) -> Output {
    let folder = folder();
    let script = format!("mount -t tmpfs -o {options} none . && cd \"$PWD\" && {script}");
    Command::new("unshare")
        .args(["--mount", "sh", "-c", &script, crate::HAIRSPRING])
        .current_dir(folder.path())
        .output()
        .expect("unshare can be started")
}

fn may_mount(test: &str) -> bool {
    let may = is_root()
        && may_unshare()
        && works(Command::new("unshare").args(["--mount", "sh", "-c", "mount -t tmpfs none /mnt"]));
    if !may {
        testing::skip(test, "only root, in a name space of its own, can mount a small disk");
    }
    may
}

#[test]
fn a_disk_that_fills_up_ends_in_a_readable_recording_that_says_so() {
    if !may_mount("a_disk_that_fills_up_ends_in_a_readable_recording_that_says_so") {
        return;
    }
    let record = format!("$0 record --card {CARD},data=counter --buffer 4MiB --to x --format json");
    let output = on_a_small_disk("size=6m", &format!("{record}; echo $?; $0 verify x --format json; echo $?"));
    let text = stdout(&output);
    assert_eq!(stderr(&output), "", "{text}");
    let (report, rest) = text.split_once("\n4\n").unwrap_or_else(|| panic!("no code 4 in {text}"));
    let report = json(report);
    assert_eq!((&report["verdict"], number(&report, "unaccounted_bytes")), (&"incomplete".into(), 0));
    assert!(report["reason"].as_str().is_some_and(|reason| reason.contains("No space left")), "{report:#}");
    assert!(number(&report, "stored_bytes") > 0, "{report:#}");
    let verified = json(rest.strip_suffix("4\n").unwrap_or_else(|| panic!("no code 4 at the end of {rest}")));
    assert_eq!((&verified["damaged_blocks"], &verified["mismatch"]), (&0.into(), &Value::Null));
    assert_eq!(verified["stored_bytes"], report["stored_bytes"]);
}

#[test]
fn a_disk_that_cannot_be_written_is_refused() {
    if !may_mount("a_disk_that_cannot_be_written_is_refused") {
        return;
    }
    let record = format!("$0 record --card {CARD} --to x");
    let output = on_a_small_disk("ro,size=6m", &record);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("read-only"), "{}", stderr(&output));
    let output = on_a_small_disk("size=6m", &format!("{record} --for 100s; echo $?; ls"));
    assert!(stderr(&output).contains("record less, or add a target"), "{}", stderr(&output));
    assert_eq!(stdout(&output), "2\n", "nothing is left behind");
}
