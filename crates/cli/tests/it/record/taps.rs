//! Taps of a recording: readers get its frames, and do not disturb it.

use std::path::Path;
use std::time::{Duration, Instant};

use hairspring_ring::Frames;
use hairspring_tap::{TapPlace, TapReader, TapState};

use super::{CARD, Ended, PATIENCE, begin, number, recorded, refused, report, signal};
use crate::folder;

/// Bytes of a frame of [`CARD`].
const FRAME: usize = 4;

fn place(folder: &Path) -> TapPlace {
    TapPlace::Path(folder.join("adc"))
}

/// Opens the tap as soon as the recorder offers it.
#[track_caller]
fn open(folder: &Path) -> TapReader {
    let start = Instant::now();
    loop {
        match TapReader::open(&place(folder)) {
            Ok(reader) => return reader,
            Err(error) => assert!(start.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn begin_watched(folder: &Path, more: &[&str]) -> Ended {
    begin(folder, &[&["--card", CARD, "--to", "x", "--tap", "./adc"], more].concat())
}

#[test]
fn what_a_reader_gets_is_what_the_files_have() {
    let folder = folder();
    let recording = begin_watched(folder.path(), &["--frames", "400_000"]);
    let mut reader = open(folder.path());
    assert_eq!(reader.rate().map(hairspring_ring::SampleRate::as_fraction), Some((1_000_000, 1)));
    let (mut got, mut buffer) = (Vec::new(), vec![0; 8192 * FRAME]);
    let state = loop {
        let state = reader.wait(Frames(8192), PATIENCE);
        let piece = reader.read(&mut buffer);
        if piece.frames.0 > 0 {
            let first = piece.first_frame.expect("nothing is lost").0 as usize;
            got.push((first, buffer[..piece.frames.0 as usize * FRAME].to_vec()));
        } else if state != TapState::Running {
            break state;
        }
    };
    assert_eq!(state, TapState::Ended(hairspring_ring::End::Finished));
    let clocks = reader.clocks().expect("whole");
    assert!(!clocks.pairs.is_empty());
    let report = report(&recording.output(), 0);
    assert_eq!((report["verdict"].as_str(), number(&report, "lost_bytes")), (Some("complete"), 0));
    let data = std::fs::read(folder.path().join("x.sigmf-data")).expect("samples");
    assert!(!got.is_empty());
    for (first, bytes) in got {
        assert!(data[first * FRAME..].starts_with(&bytes), "frames from {first} on");
    }
    assert!(!folder.path().join("adc").exists(), "the socket is gone");
}

/// A recorder that is killed sends no message: readers notice all the same, and the next recorder takes the name.
#[test]
fn a_recorder_that_is_killed_is_noticed_and_leaves_its_name_free() {
    let folder = folder();
    let mut recording = begin_watched(folder.path(), &[]);
    let reader = open(folder.path());
    assert_eq!(reader.wait(Frames(1), PATIENCE), TapState::Running);
    refused(folder.path(), &["record", "--card", CARD, "--to", "y", "--tap", "./adc"], 2, "another recorder");
    signal(recording.child(), "KILL");
    let start = Instant::now();
    while reader.state() == TapState::Running {
        assert!(start.elapsed() < PATIENCE, "nobody notices");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(reader.state(), TapState::Gone);
    drop(recording);
    let again = recorded(folder.path(), &["--card", CARD, "--to", "z", "--tap", "./adc", "--frames", "1000"], 0);
    assert_eq!(again["verdict"], "complete");
}
