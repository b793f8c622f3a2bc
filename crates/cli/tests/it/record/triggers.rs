//! Triggers of `record`: which frames they keep.

use std::time::{Duration, Instant};

use super::{CARD, PATIENCE, about, begin, number, recorded, report, signal};
use crate::{folder, json, names};

#[test]
fn a_trigger_keeps_what_was_asked_for_around_it() {
    let folder = folder();
    let card = "virtual:1ch,16bit,1MS/s,data=counter";
    let arguments = ["--card", card, "--for", "500ms", "--to", "x", "--trigger", "level:ch0>1000cnt"];
    let report = recorded(folder.path(), &[&arguments[..], &["--pre", "100", "--post", "400"]].concat(), 0);
    assert_eq!((number(&report, "shots"), number(&report, "stored_bytes")), (1, 1000));
    assert_eq!(report["verdict"], "complete");
    about(folder.path(), &["verify", "x"], 0);
}

/// Regression: the converter's full scale was taken for that of its low bits, and the trigger fired at a sixteenth of
/// the level.
#[test]
fn a_level_of_left_justified_samples_is_a_part_of_their_full_scale() {
    let folder = folder();
    let ramp: Vec<u8> = (-2048..2048_i16).flat_map(|code| (code * 16).to_le_bytes()).collect();
    std::fs::write(folder.path().join("ramp"), ramp).expect("a file");
    let card = ["--card", "file:ramp,1ch,12bit", "--channel", "0=justified:high", "--to", "x"];
    for (level, first) in [("0.5", 3073), ("-0.5", 1025), ("30000cnt", 3924)] {
        let trigger = format!("level:ch0>{level}");
        let report = recorded(folder.path(), &[&card[..], &["--trigger", &trigger, "--post", "10"]].concat(), 0);
        assert_eq!((number(&report, "shots"), number(&report, "stored_bytes")), (1, 20), "{level}: {report:#}");
        let meta = json(&std::fs::read_to_string(folder.path().join("x.sigmf-meta")).expect("metadata"));
        assert_eq!(meta["captures"][0]["core:global_index"], first, "{level}");
        for name in names(folder.path()).iter().filter(|name| name.starts_with("x.")) {
            std::fs::remove_file(folder.path().join(name)).expect("it is there");
        }
    }
}

#[test]
fn the_signal_usr1_triggers_from_outside() {
    let folder = folder();
    let arguments = ["--card", CARD, "--for", "50s", "--to", "x", "--trigger", "external", "--post", "1000"];
    let mut child = begin(folder.path(), &arguments);
    // Blocks are only written once something is kept; that it records is seen by its metadata and a second's rest.
    let start = Instant::now();
    while child.child().try_wait().expect("it can be asked").is_none() {
        assert!(start.elapsed() < PATIENCE, "no signal triggers");
        if folder.path().join("x.sigmf-meta").exists() {
            signal(child.child(), "USR1");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let report = report(&child.output(), 0);
    assert_eq!((number(&report, "shots"), number(&report, "stored_bytes")), (1, 4000));
    assert!(number(&report, "produced_bytes") < 4 * 50_000_000, "one shot was asked for, and it ended then");
}

/// Regression: the first frame triggers, so the requested frames before it do not exist. No report showed that.
#[test]
fn a_shot_that_is_not_whole_is_said_in_report_and_metadata() {
    let folder = folder();
    let shot = ["--trigger", "level:ch0>-1", "--pre", "500", "--post", "1000"];
    let arguments = [&["--card", "virtual:1ch,16bit,1MS/s,data=zero", "--for", "5s", "--to", "x"][..], &shot].concat();
    let report = recorded(folder.path(), &arguments, 0);
    assert_eq!((number(&report, "shots"), number(&report["missed_triggers"], "short_shots")), (1, 1), "{report:#}");
    let meta = json(&std::fs::read_to_string(folder.path().join("x.sigmf-meta")).expect("metadata"));
    assert_eq!(meta["global"]["hairspring:result"]["missed_triggers"], report["missed_triggers"]);
    assert!(report["reason"].as_str().is_some_and(|reason| reason.contains("frames before the trigger")), "{report:#}");
}
