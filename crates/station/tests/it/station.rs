//! Stations on this machine, with real threads, boards and signals.

use std::time::{Duration, Instant};

use hairspring_device::{AccessTimes, DeviceError, Lines, Protocol, VirtualBoard};
use hairspring_station::run::{StationOutcome, Watched};
use hairspring_station::{Signal, Stages, Station, Stop, file};

use crate::timebase;

fn station(folder: &tempfile::TempDir, text: &str) -> Station {
    let text = text.replace("FOLDER", &folder.path().display().to_string());
    file::read(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// Limit for a run, however loaded the machine is.
const LONGEST: Duration = Duration::from_secs(20);

/// Runs a station for some time; `act` is called while it runs. Returns the outcome, and the stages of all units by
/// name.
fn run(
    station: &Station,
    length: Duration,
    mut act: impl FnMut(),
) -> (Result<StationOutcome, DeviceError>, Vec<(String, Stages)>) {
    let begun = Instant::now();
    run_while(station, |_| {
        act();
        begun.elapsed() < length
    })
}

/// Runs a station as long as `act`, which is called repeatedly with the stages until now, returns true; with a time
/// limit.
fn run_while(
    station: &Station,
    mut act: impl FnMut(&[(String, Stages)]) -> bool,
) -> (Result<StationOutcome, DeviceError>, Vec<(String, Stages)>) {
    let (timebase, stop) = (timebase(), Stop::new().expect("a stop"));
    let begun = Instant::now();
    let mut stages = Vec::new();
    let outcome = station.run(&timebase, &stop, &mut |units: &mut [Watched]| {
        for unit in units {
            stages.extend(unit.log.by_ref().map(|one| (unit.name.clone(), one)));
        }
        if !act(&stages) || begun.elapsed() >= LONGEST {
            stop.set();
        }
    });
    (outcome, stages)
}

const BOARD: &str = "[device.board]\ndriver = \"virtual:FOLDER/board,safe=0x00000100\"\n";

#[test]
fn units_react_side_by_side_on_one_device_and_leave_it_safe() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "[source.tick]\nfrom = \"timer:1ms\"\n[source.shot]\nfrom = \"signal:FOLDER/shot\"\n[source.done]\nfrom = \
         \"signal:FOLDER/done\"\n{BOARD}
         [unit.blink]\non = \"tick\"\ndevice = \"board\"\ndo = {{ toggle = {{ line = 0 }} }}\n\
         [unit.shutter]\non = \"shot\"\ndevice = \"board\"\ndo = {{ pulse = {{ line = 3, width = \"50us\" }} }}\n\
         [unit.tell]\non = \"shot\"\ndo = {{ fire = \"FOLDER/done\" }}\n\
         [unit.told]\non = \"done\"\ndevice = \"board\"\ndo = \"read\"\n"
    );
    let station = station(&folder, &text);
    let (firing, timebase) = (Signal::open(&folder.path().join("shot")).expect("a signal"), timebase());
    let mut fired = 0;
    let begun = Instant::now();
    let (outcome, stages) = run_while(&station, |stages| {
        if begun.elapsed() < Duration::from_millis(500) {
            fired += 1;
            firing.fire(Some(fired), &timebase).expect("fired");
            return true;
        }
        // Each unit may still be at work on its last event.
        let done = |unit: &str| stages.iter().any(|(name, one)| name == unit && one.cycle == Some(fired));
        !(done("shutter") && done("told"))
    });
    let outcome = outcome.expect("it ran");
    for unit in &outcome.units {
        assert!(unit.counts.holds() && unit.failed.is_none(), "{unit:?}");
        let seen = stages.iter().filter(|(name, _)| *name == unit.name).count() as u64;
        assert_eq!(seen, unit.counts.activations, "{unit:?}");
    }
    let of = |name: &str| outcome.units.iter().find(|unit| unit.name == name).expect(name).counts;
    assert!(of("blink").events >= 400, "{:?}", of("blink"));
    // A signal fired while its unit is stopped counts as missed. Each activation of the one unit fired the signal of
    // the other.
    let (shutter, tell, told) = (of("shutter"), of("tell"), of("told"));
    assert_eq!((shutter.events, tell.events, told.events), (fired, fired, tell.activations), "{outcome:?}");
    let cycles: Vec<_> = stages.iter().filter(|(name, _)| name == "told").map(|(_, one)| one.cycle).collect();
    assert!(cycles.is_sorted() && cycles.first() < cycles.last() && cycles.last() == Some(&Some(fired)), "{cycles:?}");
    assert!(outcome.devices[0].unsafe_because.is_none() && outcome.devices[0].safe == Lines(0x100));
    let board = folder.path().join("board");
    let board = VirtualBoard::open(&board, AccessTimes::ZERO, Lines(0), Protocol::None, &timebase).expect("a board");
    assert_eq!(board.outputs().0, Lines(0x100), "safe");
}

#[test]
fn a_unit_that_fails_ends_the_station_with_its_reason_and_safe_outputs() {
    let folder = tempfile::tempdir().expect("a folder");
    // The pulse is longer than any delay may be.
    let text = format!(
        "[source.tick]\nfrom = \"timer:10ms\"\n{BOARD}[unit.blink]\non = \"tick\"\ndevice = \"board\"\ndo = {{ toggle = {{ \
         line = 0 }} }}\n[unit.long]\non = \"tick\"\ndevice = \"board\"\ndo = {{ pulse = {{ line = 1, width = \"9000000s\" }} }}\n"
    );
    let (outcome, _) = run(&station(&folder, &text), LONGEST, || {});
    let outcome = outcome.expect("it began");
    let failed = outcome.units[1].failed.as_ref().expect("it failed");
    assert!(failed.to_string().contains("pulse"), "{failed}");
    assert!(outcome.units[0].failed.is_none() && outcome.devices[0].unsafe_because.is_none(), "{outcome:?}");
}

/// A station whose pulse was ten minutes wide ended after ten minutes, even after a stop.
#[test]
fn a_wide_pulse_does_not_keep_a_station_from_its_end_and_is_told_to_be_cut_short() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "[source.tick]\nfrom = \"timer:10ms\"\n{BOARD}[unit.wide]\non = \"tick\"\ndevice = \"board\"\ndo = {{ pulse = {{ \
         line = 1, width = \"10h\" }} }}\n"
    );
    let (outcome, _) = run(&station(&folder, &text), Duration::from_millis(500), || {});
    let outcome = outcome.expect("it began");
    let failed = outcome.units[0].failed.as_ref().expect("it was up").to_string();
    assert!(failed.contains("cut short"), "{failed}");
    assert!(outcome.units[0].counts.holds() && outcome.devices[0].unsafe_because.is_none(), "{outcome:?}");
    let board = folder.path().join("board");
    let timebase = timebase();
    let board = VirtualBoard::open(&board, AccessTimes::ZERO, Lines(0), Protocol::None, &timebase).expect("a board");
    assert_eq!(board.outputs().0, Lines(0x100), "safe");
}

#[test]
fn what_cannot_begin_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let unit = "[unit.blink]\non = \"tick\"\ndevice = \"board\"\ndo = { toggle = { line = 0 } }\n";
    for (text, hint) in [
        (format!("[source.tick]\nfrom = \"timer:10ms\"\n{BOARD}{unit}cpu = 4095\n"), "leave out priority and cpu"),
        (format!("[source.tick]\nfrom = \"fifo:FOLDER/none\"\n{BOARD}{unit}"), "check the name"),
        (
            format!("[source.tick]\nfrom = \"timer:10ms\"\n[device.board]\ndriver = \"parport:FOLDER/none\"\n{unit}"),
            "none",
        ),
    ] {
        let (outcome, stages) = run(&station(&folder, &text), LONGEST, || {});
        let error = outcome.expect_err("it did not begin").to_string();
        assert!(error.contains(hint) && stages.is_empty(), "{error}");
    }
}

/// A unit that was in its place acted at once, while others were still refused theirs, and no report contained its
/// actions.
#[test]
fn no_unit_acts_before_all_are_in_their_places() {
    const EARLY: usize = 8;
    let folder = tempfile::tempdir().expect("a folder");
    let unit = |name: &str| format!("[unit.{name}]\non = \"tick\"\ndo = {{ fire = \"FOLDER/acted\" }}\n");
    let early: String = (0..EARLY).map(|number| unit(&format!("early{number}"))).collect();
    let text = format!("[source.tick]\nfrom = \"timer:10us\"\n{early}{}cpu = 4095\n", unit("refused"));
    let station = station(&folder, &text);
    let acted = Signal::open(&folder.path().join("acted")).expect("a signal");
    let (outcome, stages) = run(&station, LONGEST, || {});
    let error = outcome.expect_err("it did not begin").to_string();
    assert!(error.contains("for the unit refused"), "{error}");
    assert_eq!((acted.fired(), stages.len()), (0, 0));
}

/// Only the watching thread could stop the units: after its panic they went on, and no thread could end them.
#[test]
fn a_panic_of_who_watches_ends_the_units_and_leaves_the_outputs_safe() {
    let folder = tempfile::tempdir().expect("a folder");
    let unit = "[unit.blink]\non = \"tick\"\ndevice = \"board\"\ndo = { toggle = { line = 0 } }\n";
    let station = station(&folder, &format!("[source.tick]\nfrom = \"timer:1ms\"\n{BOARD}{unit}"));
    let (tell, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (timebase, stop) = (timebase(), Stop::new().expect("a stop"));
        let watch = &mut |_: &mut [Watched]| panic!("who watches has had enough");
        let run = std::panic::AssertUnwindSafe(|| station.run(&timebase, &stop, watch));
        let panicked = std::panic::catch_unwind(run).is_err();
        tell.send(panicked && stop.is_set()).expect("somebody waits");
    });
    assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(true), "it goes on, or has not panicked");
    let (board, timebase) = (folder.path().join("board"), timebase());
    let board = VirtualBoard::open(&board, AccessTimes::ZERO, Lines(0), Protocol::None, &timebase).expect("a board");
    assert_eq!(board.outputs().0, Lines(0x100), "safe");
}
