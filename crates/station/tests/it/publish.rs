//! The published state: whole, by one writer, and still there when the station is not.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use hairspring_machine::{Host, Nanos};
use hairspring_station::publish::{Phase, STATE_FILE, StatePublisher, StateReader, StationState, UnitState, Validity};
use testing::process::Other;

/// A state in which all parts contain this number.
fn state(number: u64) -> StationState {
    let unit = |name: &str| {
        let mut unit = UnitState { name: name.to_owned(), ..UnitState::default() };
        unit.counts.events = number;
        unit
    };
    StationState {
        name: "it".to_owned(),
        phase: Phase::Running,
        message: number.to_string(),
        units: vec![unit("a"), unit("b")],
        ..StationState::default()
    }
}

/// Job of the other process: publishes states at the highest possible rate until it is killed.
pub(crate) fn publish(folder: &Path) {
    let mut publisher = StatePublisher::open(folder).expect("nobody else publishes");
    let begun = Instant::now();
    // Ends after a minute if the killer has died.
    for number in (1..).take_while(|_| begun.elapsed() < Duration::from_secs(60)) {
        publisher.publish(&state(number), &Host).expect("published");
        std::thread::sleep(Duration::from_micros(100));
    }
}

#[track_caller]
fn check_whole(state: &StationState) -> u64 {
    let number = state.message.parse().expect("a number");
    assert!(state.units.iter().all(|unit| unit.counts.events == number), "{state:?}");
    number
}

#[test]
fn a_reader_in_another_process_gets_whole_states_until_the_station_is_killed_and_then_the_last_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let station = Other::start("publish", folder.path(), "plain");
    let begun = Instant::now();
    let mut reader = loop {
        match StateReader::open(folder.path()) {
            Ok(reader) => break reader.silent_after(Nanos::from_secs(5)),
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(20), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let (mut last, mut states) = (0, 0);
    while states < 200 && begun.elapsed() < Duration::from_secs(30) {
        let Ok(view) = reader.read(&Host) else { continue };
        let number = check_whole(&view.state);
        assert!(number >= last, "{number} after {last}");
        (states, last) = (states + u64::from(number > last), number);
    }
    assert_eq!(states, 200);
    station.kill();
    let mut reader = reader.silent_after(Nanos::new(0));
    let view = reader.read(&Host).expect("the last one");
    assert_ne!(view.validity, Validity::Live);
    assert!(check_whole(&view.state) >= last);
}

#[test]
fn a_station_that_died_in_mid_write_is_torn_and_its_successor_is_read_by_the_same_reader() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut publisher = StatePublisher::open(folder.path()).expect("a page");
    publisher.publish(&state(7), &Host).expect("published");
    let mut reader = StateReader::open(folder.path()).expect("a page").silent_after(Nanos::from_secs(60));
    assert_eq!(reader.read(&Host).map(|view| (view.validity, check_whole(&view.state))), Ok((Validity::Live, 7)));
    drop(publisher);
    let file = File::options().read(true).write(true).open(folder.path().join(STATE_FILE)).expect("the page");
    let mut sequence = [0; 8];
    file.read_exact_at(&mut sequence, 8).expect("read");
    // As after a kill between two words: the sequence is odd, and a unit is half new.
    file.write_all_at(&(u64::from_ne_bytes(sequence) + 1).to_ne_bytes(), 8).expect("written");
    file.write_all_at(&8_u64.to_ne_bytes(), 16 + 64 * 8 + 8 * 8).expect("written");
    assert_eq!(reader.read(&Host).map(|view| (view.validity, check_whole(&view.state))), Ok((Validity::Torn, 7)));
    let fresh = StateReader::open(folder.path()).expect("a page").read(&Host);
    assert!(fresh.is_err_and(|error| error.to_string().contains("no station has written a whole state")));
    let mut successor = StatePublisher::open(folder.path()).expect("nobody publishes");
    successor.publish(&state(9), &Host).expect("published");
    assert_eq!(reader.read(&Host).map(|view| (view.validity, check_whole(&view.state))), Ok((Validity::Live, 9)));
}

#[test]
fn two_stations_cannot_publish_in_one_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = StatePublisher::open(folder.path()).expect("a page");
    let refused = StatePublisher::open(folder.path()).expect_err("one writer").to_string();
    assert!(refused.contains("another station publishes there"), "{refused}");
    drop(first);
    StatePublisher::open(folder.path()).expect("it is free");
}

#[test]
fn a_page_that_is_silent_truncated_or_removed_keeps_its_last_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut publisher = StatePublisher::open(folder.path()).expect("a page");
    publisher.publish(&state(3), &Host).expect("published");
    let mut reader = StateReader::open(folder.path()).expect("a page").silent_after(Nanos::new(0));
    let silent = reader.read(&Host).expect("a state");
    assert!(matches!(silent.validity, Validity::Silent(age) if age > Nanos::ZERO), "{silent:?}");
    let path = folder.path().join(STATE_FILE);
    File::options().write(true).open(&path).expect("the page").set_len(0).expect("truncated");
    assert!(publisher.publish(&state(4), &Host).is_err_and(|error| error.to_string().contains("truncated")));
    let cut = reader.read(&Host).expect("a state");
    assert_eq!(check_whole(&cut.state), 3);
    std::fs::remove_file(&path).expect("removed");
    let mut successor = StatePublisher::open(folder.path()).expect("a new page");
    successor.publish(&state(5), &Host).expect("published");
    // The reader finds the new file under the old name.
    assert_eq!(reader.read(&Host).map(|view| check_whole(&view.state)), Ok(5));
}

#[test]
fn what_is_no_page_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(StateReader::open(folder.path()).is_err_and(|error| error.to_string().contains("start the station")));
    std::fs::write(folder.path().join(STATE_FILE), "Dear Sir or Madam").expect("written");
    assert!(StateReader::open(folder.path()).is_err_and(|error| error.to_string().contains("another content")));
    assert!(StatePublisher::open(folder.path()).is_err());
    assert_eq!(std::fs::read(folder.path().join(STATE_FILE)).expect("read"), b"Dear Sir or Madam");
}
