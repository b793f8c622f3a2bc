//! Series on the real command: segments, retention, kills across cuts, resumption.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{CARD, Ended, PATIENCE, about, begin, number, record, recorded, refused, report, signal};
use crate::{code, folder, hairspring, items, json, names, stderr, stdout, wait_until};

/// The segments that are there, by the names of their data files.
fn segments(folder: &Path) -> Vec<String> {
    names(folder).iter().filter_map(|name| Some(name.strip_suffix(".sigmf-data")?.to_owned())).collect()
}

#[test]
fn a_series_is_recorded_in_segments_that_are_proven_joined_and_exported_as_one() {
    let folder = folder();
    let asked = ["--card", CARD, "--frames", "400_000", "--to", "x", "--segment", "100ms", "--notify", "32KiB"];
    let report = recorded(folder.path(), &asked, 0);
    assert_eq!((&report["verdict"], number(&report, "stored_bytes")), (&"complete".into(), 1_600_000));
    let count = number(&report["series"], "segments");
    assert!(count >= 2 && count == number(&report["series"], "kept_segments"), "{report:#}");
    let parts = segments(folder.path());
    assert_eq!(parts.len() as u64, count);
    let mut frames = 0;
    for part in &parts {
        let verified = about(folder.path(), &["verify", part], 0);
        assert_eq!(verified["verdict"], "complete", "{part}: {verified:#}");
        frames += number(&verified, "proven_bytes") / 4;
    }
    assert_eq!(frames, 400_000, "no frame is lost or twice");
    for name in ["x", "x.sigmf-collection", "x.hairspring-series"] {
        let verified = about(folder.path(), &["verify", name], 0);
        assert_eq!((&verified["verdict"], number(&verified, "proven_bytes")), (&"complete".into(), 1_600_000));
        assert_eq!((&verified["generator"], &verified["mismatch"]), (&"noise".into(), &Value::Null));
    }
    let recovered = about(folder.path(), &["recover", "x"], 0);
    assert_eq!(recovered["changed"], Value::Array(Vec::new()), "{recovered:#}");
    about(folder.path(), &["join", "x", "--to", "y"], 0);
    let joined = about(folder.path(), &["verify", "y"], 0);
    assert_eq!((&joined["verdict"], number(&joined, "proven_bytes")), (&"complete".into(), 1_600_000));
    let exported = about(folder.path(), &["export", "x", "--out", "x.npy"], 0);
    assert_eq!(number(&exported, "frames"), 400_000);
    refused(folder.path(), &["record", "--card", CARD, "--for", "1s", "--to", "x"], 2, "exists already");
}

#[test]
fn a_compressed_series_is_read_as_before_resumed_and_restored() {
    let folder = folder();
    let card = "virtual:2ch,16bit,1MS/s,data=sine";
    let asked = ["--card", card, "--to", "x", "--segment", "100ms", "--notify", "32KiB", "--resume"];
    recorded(folder.path(), &[&asked[..], &["--frames", "300_000"]].concat(), 0);
    let before: Vec<Vec<u8>> = segments(folder.path()).iter().map(|part| bytes_of(folder.path(), part)).collect();
    assert!(before.len() >= 2);
    let report = about(folder.path(), &["compress", "x"], 0);
    assert_eq!((number(&report, "plain_bytes"), &report["passed_over"]), (1_200_000, &Value::Array(Vec::new())));
    assert!(number(&report, "compressed_bytes") < 1_200_000, "{report:#}");
    assert!(segments(folder.path()).is_empty(), "{:?}", names(folder.path()));
    let verified = about(folder.path(), &["verify", "x"], 0);
    assert_eq!((&verified["verdict"], number(&verified, "proven_bytes")), (&"complete".into(), 1_200_000));
    assert_eq!(verified["mismatch"], Value::Null);
    let recovered = about(folder.path(), &["recover", "x", "--all"], 0);
    assert_eq!(recovered["changed"], Value::Array(Vec::new()), "{recovered:#}");
    assert_eq!(number(&about(folder.path(), &["export", "x", "--out", "x.npy"], 0), "frames"), 300_000);
    let array = std::fs::read(folder.path().join("x.npy")).expect("there");
    assert!(array.ends_with(&before.concat()));
    refused(folder.path(), &["export", "x-000000", "--out", "x.h5"], 2, "compress --undo");
    // The one segment of a later run is not compressed, and for it retention deletes the oldest.
    let keep = before.len().to_string();
    recorded(folder.path(), &[&asked[..], &["--frames", "50_000", "--keep", &keep]].concat(), 4);
    assert_eq!(number(&about(folder.path(), &["verify", "x"], 4), "damaged_blocks"), 0);
    assert!(!folder.path().join("x-000000.sigmf-data.zst").exists(), "{:?}", names(folder.path()));
    about(folder.path(), &["compress", "x", "--undo"], 0);
    let last = before.len() - 1;
    assert!(bytes_of(folder.path(), &format!("x-{last:06}")) == before[last]);
    assert!(!names(folder.path()).iter().any(|name| name.ends_with(".zst") || name.ends_with(".part")));
}

#[test]
fn a_series_is_compressed_while_it_is_recorded_and_its_oldest_segments_are_deleted() {
    let folder = folder();
    let card = "virtual:2ch,16bit,1MS/s,data=sine";
    let limits = ["--segment", "50ms", "--notify", "32KiB", "--keep", "4"];
    let mut recorder = std::process::Command::new(env!("CARGO_BIN_EXE_hairspring"))
        .args(["record", "--card", card, "--to", "x", "--frames", "3_000_000", "--quiet"])
        .args(limits)
        .current_dir(folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("starts");
    let mut compressed = 0;
    while recorder.try_wait().expect("waits").is_none() {
        if folder.path().join("x.sigmf-collection").exists() {
            compressed += number(&about(folder.path(), &["compress", "x"], 0), "compressed_bytes");
        }
    }
    assert!(recorder.wait().expect("ended").success());
    assert!(compressed > 0);
    about(folder.path(), &["compress", "x"], 0);
    let verified = about(folder.path(), &["verify", "x"], 0);
    assert_eq!((&verified["verdict"], number(&verified, "damaged_blocks")), (&"complete".into(), 0));
    let recovered = about(folder.path(), &["recover", "x", "--all"], 0);
    assert_eq!(recovered["changed"], Value::Array(Vec::new()), "{recovered:#}");
    let names = names(folder.path());
    // The segments that are kept, each with three files; index and collection.
    let kept = names.iter().filter(|name| name.ends_with(".sigmf-meta")).count();
    assert!(kept >= 4 && names.len() == 3 * kept + 2, "{names:?}");
    assert!(!names.iter().any(|name| name.ends_with(".sigmf-data") || name.contains(".part")), "{names:?}");
}

fn bytes_of(folder: &Path, segment: &str) -> Vec<u8> {
    std::fs::read(folder.join(format!("{segment}.sigmf-data"))).expect("there")
}

#[test]
fn retention_deletes_the_oldest_segments_and_never_a_pinned_one() {
    let folder = folder();
    let mut card = vec!["--card", CARD, "--for", "60s", "--to", "x", "--segment", "50ms", "--notify", "16KiB"];
    card.extend(["--keep", "2"]);
    // Any process may pin, at any time: here before the segment exists.
    std::fs::write(folder.path().join("x-000001.keep"), b"").expect("pinned");
    let mut running = begin(folder.path(), &card);
    let start = Instant::now();
    let wait_for = |running: &mut Ended, name: &str| {
        while !folder.path().join(name).exists() {
            assert!(start.elapsed() < PATIENCE, "{name} does not come: {:?}", segments(folder.path()));
            assert!(running.child().try_wait().expect("it can be asked").is_none(), "it ended too early");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let pinned = "x-000001";
    wait_for(&mut running, "x-000009.sigmf-meta");
    signal(running.child(), "INT");
    let report = report(&running.output(), 0);
    assert_eq!(report["verdict"], "stopped", "{report:#}");
    assert!(number(&report, "dropped_bytes") > 0 && number(&report["series"], "dropped_segments") > 0, "{report:#}");
    let left = segments(folder.path());
    assert!(left.contains(&pinned.to_owned()) && left.len() == 3, "{left:?}");
    assert_eq!(report["series"]["troubles"], Value::Array(Vec::new()));
    let verified = about(folder.path(), &["verify", "x"], 0);
    assert_eq!(number(&verified, "proven_bytes"), number(&report, "stored_bytes"), "{verified:#}");
    about(folder.path(), &["keep", pinned, "--release"], 0);
    assert!(!folder.path().join("x-000001.keep").exists());
    about(folder.path(), &["keep", pinned], 0);
    assert!(folder.path().join("x-000001.keep").exists());
    refused(folder.path(), &["keep", "x"], 2, "no segment");
}

/// Regression: a segment whose last block was the last of a silent source was not closed before the source went on or
/// ended.
#[test]
fn a_segment_is_closed_though_the_source_falls_silent_where_it_ends() {
    let folder = folder();
    let asked = ["--card", "stdin:1ch,16bit", "--segment", "128KiB", "--notify", "64KiB", "--to", "x"];
    let started = record(folder.path(), &asked).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut child = Ended(Some(started));
    let mut source = child.child().stdin.take().expect("a pipe");
    let is_closed = |name: &str| {
        let meta = std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        meta.contains("\"verdict\"")
    };
    for segment in ["x-000000.sigmf-meta", "x-000001.sigmf-meta"] {
        // The next segment is made in advance, and the cut needs it.
        source.write_all(&[7; 128 * 1024]).expect("it reads");
        wait_until("the segment is closed", || is_closed(segment));
    }
    drop(source);
    let report = report(&child.output(), 0);
    assert_eq!((&report["verdict"], number(&report, "stored_bytes")), (&"complete".into(), 256 * 1024), "{report:#}");
    let verified = about(folder.path(), &["verify", "x"], 0);
    assert_eq!((&verified["verdict"], number(&verified, "proven_bytes")), (&"complete".into(), 256 * 1024));
}

#[test]
fn a_trigger_pins_the_segments_around_it() {
    let folder = folder();
    // The counter is at its highest once in 65,536 frames: at 32,767, 98,303, 163,839 and so on.
    let card = "virtual:1ch,16bit,500kS/s,data=counter";
    let asked = ["--card", card, "--frames", "200_000", "--segment", "20ms", "--notify", "4KiB", "--keep", "1"];
    let trigger = ["--keep-on", "level:ch0>32766cnt", "--pre", "8_000"];
    let report = recorded(folder.path(), &[&asked[..], &trigger, &["--to", "x"]].concat(), 0);
    let pins: Vec<String> = names(folder.path()).into_iter().filter(|name| name.ends_with(".keep")).collect();
    assert_eq!(number(&report["series"], "pinned_segments"), pins.len() as u64, "{report:#}");
    assert!(!pins.is_empty(), "{report:#}");
    let left = segments(folder.path());
    assert!(pins.iter().all(|pin| left.iter().any(|name| *pin == format!("{name}.keep"))), "{pins:?} {left:?}");
    for at in [24_767, 32_767, 98_303, 163_839] {
        let has = |name: &String| {
            let meta = std::fs::read(folder.path().join(format!("{name}.sigmf-meta"))).expect("there");
            let meta: Value = serde_json::from_slice(&meta).expect("JSON");
            let (begin, frames) =
                (&meta["captures"][0]["core:global_index"], &meta["captures"][0]["hairspring:frames"]);
            let (begin, frames) = (begin.as_u64().expect("a frame"), frames.as_u64().expect("a number"));
            (begin..begin + frames).contains(&at)
        };
        assert!(left.iter().any(has), "frame {at}: {left:?}");
    }
    let wrong = [&asked[..], &["--to", "y", "--keep-on", "level:ch7>0"]].concat();
    refused(folder.path(), &[&["record"], &wrong[..]].concat(), 2, "ch7 does not exist");
    let both = [&asked[..], &trigger, &["--to", "y", "--trigger", "external", "--post", "1"]].concat();
    refused(folder.path(), &[&["record"], &both[..]].concat(), 2, "cannot be used with");
}

#[test]
fn the_signal_usr1_pins_the_segment_that_is_being_recorded() {
    let folder = folder();
    let asked = ["--card", CARD, "--to", "x", "--segment", "50ms", "--notify", "16KiB", "--for", "60s", "--keep", "1"];
    let mut running = begin(folder.path(), &[&asked[..], &["--keep-on", "external"]].concat());
    let pins = || names(folder.path()).into_iter().filter(|name| name.ends_with(".keep")).collect::<Vec<_>>();
    wait_until("the second segment", || folder.path().join("x-000001.sigmf-meta").exists());
    assert_eq!(pins(), Vec::<String>::new());
    signal(running.child(), "USR1");
    wait_until("a pin", || !pins().is_empty());
    let pinned = pins()[0].replace(".keep", "");
    let number: u32 = pinned["x-".len()..].parse().expect("a number");
    // By then retention has deleted those before and after it.
    let later = format!("x-{:06}.sigmf-meta", number + 4);
    wait_until("four more segments", || folder.path().join(&later).exists());
    signal(running.child(), "INT");
    let report = report(&running.output(), 0);
    assert_eq!(report["series"]["pinned_segments"], 1, "{report:#}");
    let left = segments(folder.path());
    assert!(left.contains(&pinned) && !left.contains(&format!("x-{:06}", number + 1)), "{pinned}: {left:?}");
    about(folder.path(), &["verify", &pinned], 0);
}

#[test]
fn segments_are_kept_for_a_time_after_their_end() {
    let folder = folder();
    let asked = ["--card", CARD, "--to", "x", "--segment", "50ms", "--notify", "16KiB", "--for", "60s"];
    let mut running = begin(folder.path(), &[&asked[..], &["--keep-time", "100ms"]].concat());
    let start = Instant::now();
    let is_there = |number: u32| folder.path().join(format!("x-{number:06}.sigmf-meta")).exists();
    while !is_there(4) || is_there(0) || is_there(1) {
        assert!(start.elapsed() < PATIENCE, "they are not deleted: {:?}", segments(folder.path()));
        assert!(running.child().try_wait().expect("it can be asked").is_none(), "it ended too early");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(running.child(), "INT");
    let report = report(&running.output(), 0);
    let series = &report["series"];
    assert!(number(series, "dropped_segments") >= 2 && number(&report, "dropped_bytes") > 0, "{report:#}");
    let left = segments(folder.path());
    let newest: Vec<String> = (0..=number(series, "last_number")).map(|number| format!("x-{number:06}")).collect();
    assert!(!left.is_empty() && newest.ends_with(&left), "the newest are kept: {left:?}");
    let verified = about(folder.path(), &["verify", "x"], 0);
    assert_eq!(number(&verified, "proven_bytes"), number(&report, "stored_bytes"), "{verified:#}");
    refused(
        folder.path(),
        &["record", "--card", CARD, "--to", "y", "--segment", "1s", "--keep-time", "0s"],
        2,
        "--keep-time",
    );
}

/// A series of 16 MB/s on a disk of 64 MiB: output and messages of `record`, its code, and the report of `verify`.
fn series_on_a_small_disk(options: &str) -> (Value, i32, String, Value) {
    let card = "--card virtual:2ch,16bit,4MS/s --buffer 32MiB --notify 256KiB --to x --segment 1MiB";
    let record = format!("$0 record {card} {options} --quiet --format json");
    let output = super::on_a_small_disk("size=64m", &format!("{record}; echo code=$?; $0 verify x --format json"));
    let (text, said) = (stdout(&output), stderr(&output));
    let (report, verified) = text.split_once("\ncode=").unwrap_or_else(|| panic!("no code in {text}: {said}"));
    let (code, verified) = verified.split_once('\n').unwrap_or_else(|| panic!("no report of verify in {text}: {said}"));
    (json(report), code.parse().expect("a code"), said, json(verified))
}

#[test]
fn a_disk_with_too_little_free_space_is_warned_of_and_ends_the_series_with_a_code_of_its_own() {
    if !super::may_mount("a_disk_with_too_little_free_space_is_warned_of_and_ends_the_series_with_a_code_of_its_own") {
        return;
    }
    let (report, code, said, verified) = series_on_a_small_disk("--free 16MiB --frames 100_000_000");
    assert_eq!((code, &report["verdict"]), (12, &"stopped".into()), "{said} {report:#}");
    let series = &report["series"];
    assert_eq!(series["out_of_space"], true, "{report:#}");
    assert!(number(series, "low_space_bytes") < 16 << 20, "{report:#}");
    assert!(said.starts_with("hairspring: warning: only") && said.contains("--make-room"), "{said}");
    assert!(report["reason"].as_str().is_some_and(|reason| reason.contains("are free")), "{report:#}");
    assert_eq!((&verified["mismatch"], number(&verified, "missing_bytes")), (&Value::Null, 0), "{verified:#}");
    assert_eq!(number(&verified, "proven_bytes"), number(&report, "stored_bytes"), "{verified:#}");
    assert!(number(&report, "stored_bytes") > 0, "{report:#}");
}

#[test]
fn segments_make_room_only_where_that_is_allowed() {
    if !super::may_mount("segments_make_room_only_where_that_is_allowed") {
        return;
    }
    // 60 MiB, where 48 MiB may be used.
    let (report, code, said, verified) = series_on_a_small_disk("--free 16MiB --make-room --frames 15_728_640");
    assert_eq!((code, &report["verdict"], &said[..]), (0, &"complete".into(), ""), "{report:#}");
    assert!(number(&report["series"], "dropped_segments") > 0, "{report:#}");
    assert_eq!(number(&report, "stored_bytes") + number(&report, "dropped_bytes"), 60 << 20, "{report:#}");
    // The rate is that at which it was written, even if segments were deleted since.
    let rate = report["rate_reached_bytes_per_s"].as_f64().unwrap_or_default();
    let written = rate * number(&report, "elapsed_ns") as f64 / 1e9;
    assert!((written / f64::from(60 << 20) - 1.0).abs() < 1e-6, "{written}: {report:#}");
    assert_eq!(
        (&report["series"]["low_space_bytes"], &report["series"]["out_of_space"]),
        (&Value::Null, &false.into())
    );
    assert_eq!(verified["mismatch"], Value::Null, "{verified:#}");
    assert_eq!(number(&verified, "proven_bytes"), number(&report, "stored_bytes"), "{verified:#}");
}

#[test]
fn a_series_that_was_killed_at_a_cut_is_recovered_every_time() {
    for round in 0..6_u64 {
        let folder = folder();
        let asked =
            ["--card", CARD, "--for", "60s", "--to", "x", "--segment", "30ms", "--notify", "16KiB", "--keep", "3"];
        let mut running = begin(folder.path(), &asked);
        let start = Instant::now();
        let wanted = format!("x-{:06}.sigmf-meta", 2 + round);
        while !folder.path().join(&wanted).exists() {
            assert!(start.elapsed() < PATIENCE, "it does not get on: {:?}", segments(folder.path()));
            std::thread::sleep(Duration::from_micros(300 * round));
        }
        signal(running.child(), "KILL");
        drop(running);
        let output =
            hairspring(&["recover", "x", "--format", "json"]).current_dir(folder.path()).output().expect("starts");
        assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
        let again =
            hairspring(&["recover", "x", "--format", "json"]).current_dir(folder.path()).output().expect("starts");
        assert_eq!(json(&stdout(&again))["changed"], Value::Array(Vec::new()), "{}", stdout(&again));
        let verified =
            hairspring(&["verify", "x", "--format", "json"]).current_dir(folder.path()).output().expect("starts");
        let verified = json(&stdout(&verified));
        assert_eq!(
            (&verified["mismatch"], &verified["faults"]),
            (&Value::Null, &Value::Array(Vec::new())),
            "{verified:#}"
        );
        assert_eq!(number(&verified, "damaged_blocks") + number(&verified, "missing_bytes"), 0, "{verified:#}");
    }
}

#[test]
fn a_series_that_was_killed_is_resumed_with_a_gap_that_the_clocks_bound() {
    let folder = folder();
    let asked = ["--card", CARD, "--to", "x", "--segment", "100ms", "--notify", "16KiB", "--resume"];
    let mut running = begin(folder.path(), &[&asked[..], &["--for", "60s"]].concat());
    let start = Instant::now();
    while !folder.path().join("x-000003.sigmf-meta").exists() {
        assert!(start.elapsed() < PATIENCE, "it does not get on: {:?}", segments(folder.path()));
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(running.child(), "KILL");
    drop(running);
    let report = recorded(folder.path(), &[&asked[..], &["--frames", "150_000"]].concat(), 4);
    assert_eq!((&report["verdict"], number(&report, "stored_bytes")), (&"incomplete".into(), 600_000), "{report:#}");
    let gaps: Vec<&Value> = items(&report, "gaps").collect();
    assert_eq!((gaps.len(), &gaps[0]["cause"]), (1, &"resumed".into()), "{report:#}");
    let (first, missing) = (number(gaps[0], "first_frame"), number(gaps[0], "frames"));
    assert!(first > 0 && missing > 0, "{report:#}");
    let resumed = format!("x-{:06}", number(&report["series"], "first_number"));
    let meta = std::fs::read_to_string(folder.path().join(format!("{resumed}.sigmf-meta"))).expect("metadata");
    let meta: Value = serde_json::from_str(&meta).expect("JSON");
    let bounds = &meta["global"]["hairspring:result"]["gaps"][0]["bounds"];
    let (least, most) = (bounds[0].as_u64().expect("a number"), bounds[1].as_u64().expect("a number"));
    // A minute at most, at a million frames per second.
    assert!(least == missing && most > least && most < 60_000_000, "{bounds}");
    assert_eq!(meta["global"]["hairspring:series"]["epoch"], 1);
    assert_eq!(number(&meta["global"]["hairspring:series"], "epoch_frame"), first + missing);
    let whole = about(folder.path(), &["verify", "x"], 4);
    assert_eq!(whole["faults"], Value::Array(Vec::new()), "{whole:#}");
    assert_eq!(number(&whole, "unaccounted_bytes"), 0);
    let alone = about(folder.path(), &["verify", &resumed], 4);
    assert_eq!(
        (&alone["mismatch"], &alone["generator"]),
        (&Value::Null, &"noise".into()),
        "its own data, from its frame 0 on"
    );
    // The settings of the recording do not fit.
    let other = ["--card", "virtual:1ch,16bit,1MS/s", "--for", "1s", "--to", "x", "--segment", "100ms", "--resume"];
    refused(folder.path(), &[&["record"][..], &other].concat(), 2, "another than that of this card");
}

/// A power cut soon after a series went on leaves any beginning of its new journal: zeros, or some records.
#[test]
fn a_resumed_segment_whose_journal_was_lost_does_not_make_the_frames_begin_anew() {
    const RECORD: usize = 64;
    let folder = folder();
    let asked = ["--card", CARD, "--to", "x", "--segment", "30s", "--notify", "16KiB", "--resume"];
    recorded(folder.path(), &[&asked[..], &["--frames", "150_000"]].concat(), 0);
    let ended = Instant::now();
    let mut running = begin(folder.path(), &[&asked[..], &["--for", "60s"]].concat());
    let journal = "x-000001.hairspring-journal";
    let size = || std::fs::metadata(folder.path().join(journal)).map_or(0, |data| data.len());
    wait_until("the journal of the resumed segment", || size() > 0);
    signal(running.child(), "KILL");
    drop(running);
    let whole = std::fs::read(folder.path().join(journal)).expect("a journal");
    for records in 0..16 {
        let copy = crate::folder();
        for name in names(folder.path()) {
            std::fs::copy(folder.path().join(&name), copy.path().join(&name)).expect("copied");
        }
        let left = &whole[..(records * RECORD).min(whole.len())];
        std::fs::write(copy.path().join(journal), [left, &[0; RECORD]].concat()).expect("written");
        let missed = ended.elapsed().as_micros() as u64;
        let report = recorded(copy.path(), &[&asked[..], &["--frames", "20_000"]].concat(), 4);
        let gap = items(&report, "gaps").next().expect("a gap");
        assert!(number(gap, "first_frame") >= 150_000, "{records} records are left: {report:#}");
        let verified = about(copy.path(), &["verify", "x"], 4);
        assert_eq!(verified["faults"], Value::Array(Vec::new()), "{records} records are left: {verified:#}");
        assert_eq!(number(&verified, "unaccounted_bytes"), 0, "{records} records are left: {verified:#}");
        let resumed = format!("x-{:06}.sigmf-meta", number(&report["series"], "first_number"));
        let meta = json(&std::fs::read_to_string(copy.path().join(resumed)).expect("metadata"));
        // All the time since the last frame that is known is in the gaps: a million frames a second.
        let epoch = number(&meta["global"]["hairspring:series"], "epoch_frame");
        assert!(epoch > 150_000 + missed / 2, "{records} records are left: {meta:#}");
    }
}

#[test]
fn shots_of_a_trigger_are_recorded_in_segments() {
    let folder = folder();
    // A sine of one turn a millisecond: a shot each time, of half of it.
    let card = "virtual:1ch,16bit,1MS/s,data=sine";
    let shots = ["--trigger", "rising:ch0@0.5~0.1", "--pre", "100", "--post", "400", "--shots", "400"];
    let asked = ["--card", card, "--to", "x", "--segment", "8KiB", "--notify", "4KiB"];
    let report = recorded(folder.path(), &[&asked[..], &shots].concat(), 0);
    assert_eq!((number(&report, "shots"), &report["verdict"]), (400, &"complete".into()), "{report:#}");
    assert!(number(&report["series"], "segments") >= 2, "{report:#}");
    let verified = about(folder.path(), &["verify", "x"], 0);
    assert_eq!((&verified["mismatch"], &verified["faults"]), (&Value::Null, &Value::Array(Vec::new())), "{verified:#}");
    assert_eq!(number(&verified, "proven_bytes"), number(&report, "stored_bytes"));
    let mut in_segments = 0;
    for segment in segments(folder.path()) {
        let verified = about(folder.path(), &["verify", &segment], 0);
        assert_eq!(verified["verdict"], "complete", "{segment}: {verified:#}");
        let meta = std::fs::read_to_string(folder.path().join(format!("{segment}.sigmf-meta"))).expect("metadata");
        in_segments += items(&json(&meta)["global"]["hairspring:result"], "triggers").count();
    }
    assert_eq!(in_segments, 400, "each in one segment");
    let exported = about(folder.path(), &["export", "x", "--gaps", "skip", "--out", "x.npy"], 0);
    assert_eq!(number(&exported, "frames"), number(&report, "frames"));
}

#[test]
fn a_unit_is_printed_and_the_report_says_what_the_threads_were_granted() {
    let folder = folder();
    let line = ["record", "--card", CARD, "--to", "x", "--segment", "10min", "--keep", "3", "--unit"];
    let output = hairspring(&line).current_dir(folder.path()).output().expect("it starts");
    let unit = stdout(&output);
    assert!(code(&output) == 0 && unit.contains("--segment 10min --keep 3 --resume --quiet\n"), "{unit}");
    assert!(names(folder.path()).is_empty(), "nothing is recorded");
    let report = recorded(folder.path(), &["--card", CARD, "--frames", "50_000", "--to", "x", "--cpu", "0"], 0);
    let threads: Vec<&Value> = items(&report, "threads").collect();
    let told: Vec<_> = threads.iter().map(|one| (one["thread"].as_str(), one["setting"].as_str())).collect();
    assert_eq!(told, [(Some("source"), Some("cpu")), (Some("recorder"), Some("cpu"))], "{report:#}");
    refused(folder.path(), &["record", "--card", CARD, "--to", "y", "--node", "99"], 2, "no such node");
}

#[test]
fn a_series_does_not_go_on_in_the_place_of_another_recording() {
    let folder = folder();
    recorded(folder.path(), &["--card", CARD, "--frames", "10_000", "--to", "x"], 0);
    let before = names(folder.path());
    let asked = ["record", "--card", CARD, "--for", "1s", "--to", "x", "--segment", "100ms", "--resume"];
    refused(folder.path(), &asked, 2, "exists already");
    assert_eq!(names(folder.path()), before);
}
