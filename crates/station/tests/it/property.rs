//! Properties of units that run: set, bound to cycles, kept, and refused.

use std::path::Path;
use std::time::{Duration, Instant};

use hairspring_device::{AccessTimes, Lines, Protocol, VirtualBoard};
use hairspring_machine::Host;
use hairspring_station::command::{COMMAND_FILE, CommandSocket, PropertyRequest};
use hairspring_station::restore::{keep, set_points};
use hairspring_station::run::{StationOutcome, Watched};
use hairspring_station::{Property, Signal, Station, Stop, UnitControl, file};
use hairspring_time::Timebase;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send, socket_with,
};

use crate::timebase;

/// However loaded the machine is.
const LONGEST: Duration = Duration::from_secs(30);

fn station(folder: &Path, more: &str) -> Station {
    let at = folder.display();
    let text = format!(
        "[source.shot]\nfrom = \"signal:{at}/shot\"\n[device.board]\ndriver = \"virtual:{at}/board\"\n\
         [unit.set]\non = \"shot\"\ndevice = \"board\"\ndo = {{ write = {{ mask = 0xff, value = 1 }} }}\nlate_after = \"1h\"\n\
         settable = {{ enable = true, value = {{ least = 0, most = 200 }}, late_after = {{ least = \"0s\", most = \"2h\" }} }}\n{more}"
    );
    file::read(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a station; `act` is called again and again until it returns false.
fn run(
    station: &Station,
    timebase: &Timebase<Host>,
    mut act: impl FnMut(&mut UnitControl, &[u64]) -> bool,
) -> StationOutcome {
    let stop = Stop::new().expect("a stop");
    let (begun, mut cycles) = (Instant::now(), Vec::new());
    let outcome = station.run(timebase, &stop, &mut |units: &mut [Watched]| {
        cycles.extend(units[0].log.by_ref().filter_map(|stages| stages.cycle));
        let control = units[0].control.as_mut().expect("settable");
        if !stop.is_set() && (!act(control, &cycles) || begun.elapsed() > LONGEST) {
            stop.set();
        }
    });
    outcome.unwrap_or_else(|error| panic!("{error}"))
}

/// A step of the test below: the change before the event, its cycle, and the lines after it.
struct Step(Option<(Property, i64, Option<u64>)>, u64, u32);

#[test]
fn a_value_is_applied_at_the_next_event_or_at_the_event_of_its_cycle() {
    use Property::{Enable, Value};
    let folder = tempfile::tempdir().expect("a folder");
    let (station, timebase) = (station(folder.path(), ""), timebase());
    let firing = Signal::open(&folder.path().join("shot")).expect("a signal");
    let steps = [
        Step(None, 1, 1),
        Step(Some((Value, 7, None)), 2, 7),
        Step(Some((Value, 9, Some(4))), 3, 7),
        Step(None, 4, 9),
        Step(None, 5, 9),
        // Its cycle has passed.
        Step(Some((Value, 11, Some(5))), 6, 9),
        Step(Some((Enable, 0, None)), 7, 9),
        Step(Some((Value, 13, None)), 8, 9),
        Step(Some((Enable, 1, Some(10))), 9, 9),
        Step(None, 10, 13),
    ];
    let board = folder.path().join("board");
    let outputs = || {
        let board = VirtualBoard::open(&board, AccessTimes::ZERO, Lines(0), Protocol::None, &timebase);
        board.expect("a board").outputs().0.0
    };
    let (mut next, mut is_fired) = (0, false);
    let outcome = run(&station, &timebase, |control, cycles| {
        let Step(set, cycle, lines) = &steps[next];
        if !is_fired {
            if let Some((property, value, bound)) = *set {
                control.put(property, value, bound).expect("accepted");
            }
            firing.fire(Some(*cycle), &timebase).expect("fired");
            is_fired = true;
        } else if cycles.contains(cycle) {
            assert_eq!(outputs(), *lines, "after cycle {cycle}");
            assert_eq!(control.set_points(), control.read_back(), "after cycle {cycle}");
            (next, is_fired) = (next + 1, false);
        }
        if next == steps.len() {
            assert_eq!((control.waiting(), control.expired()), (0, 1));
        }
        next < steps.len()
    });
    assert_eq!(next, steps.len());
    let counts = outcome.units[0].counts;
    assert_eq!((counts.events, counts.activations, counts.missed, counts.skipped), (10, 7, 0, 3));
    assert!(counts.holds());
}

#[test]
fn set_points_are_kept_and_the_next_run_begins_with_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, timebase, kept) = (station(folder.path(), ""), timebase(), folder.path().join("kept"));
    let stop = Stop::new().expect("a stop");
    first
        .run(&timebase, &stop, &mut |units: &mut [Watched]| {
            if !stop.is_set() {
                let control = units[0].control.as_mut().expect("settable");
                control.put(Property::Value, 42, None).expect("accepted");
                control.put(Property::Enable, 0, None).expect("accepted");
                control.put(Property::Value, 50, Some(9)).expect("accepted");
                stop.set();
                // Without an event: accepted values are kept, values that wait for their cycles are not.
                keep(&set_points(units), &kept).expect("written");
            }
        })
        .unwrap_or_else(|error| panic!("{error}"));
    let text = std::fs::read_to_string(&kept).expect("read");
    assert!(text.ends_with("set.enable = 0\nset.late_after = 3600000000000\nset.value = 42\n"), "{text}");
    let mut second = station(folder.path(), "");
    assert_eq!(second.restore(&kept).expect("read"), (3, vec![]));
    assert_eq!(second.units[0].property_values().0, [0, 3_600_000_000_000, 0, 42]);
    // Properties that are not settable, or whose stored values are outside today's limits, begin with the values of the
    // file.
    std::fs::write(&kept, "set.value = 201\nset.width = 5\nother.enable = 0\nset.enable = 0\n").expect("written");
    let mut third = station(folder.path(), "");
    let (restored, faults) = third.restore(&kept).expect("read");
    assert_eq!((restored, faults.len(), third.units[0].property_values().of(Property::Value)), (1, 3, 1), "{faults:?}");
    assert!(faults[0].contains("set.value = 201 was kept, and is outside the limits: 0 to 200"), "{faults:?}");
    assert_eq!(third.restore(&folder.path().join("none")).expect("none is no error"), (0, vec![]));
}

/// One client sends requests while the station answers.
fn asked(socket: &mut CommandSocket, path: &Path, requests: &[&[u8]]) -> Vec<String> {
    let client = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).expect("a socket");
    connect(&client, &SocketAddrUnix::new(path).expect("a path")).expect("connected");
    let mut answers = Vec::new();
    for request in requests {
        send(&client, request, SendFlags::NOSIGNAL).expect("sent");
        socket.look(&mut |peer, request| match request {
            PropertyRequest::Get { .. } => Ok(i64::from(peer.process)),
            PropertyRequest::Set { value, .. } if *value < 0 => Err("less than nothing".to_owned()),
            PropertyRequest::Set { value, .. } => Ok(*value),
        });
        let mut buffer = [0; 1024];
        let (length, _) = recv(&client, &mut buffer, RecvFlags::DONTWAIT).expect("an answer in the same look");
        answers.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
    }
    answers
}

#[test]
fn requests_are_answered_in_one_look_and_bad_ones_get_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(COMMAND_FILE);
    // A socket that a dead station left.
    std::fs::write(&path, "").expect("written");
    let mut socket = CommandSocket::bind(folder.path()).expect("a socket");
    let long = [b'x'; 600];
    let requests: [&[u8]; 6] =
        [b"get a.width", b"set a.width 5 cycle 7", b"set a.width -5", b"rubbish", &[0xff, 0xfe], &long];
    let answers = asked(&mut socket, &path, &requests);
    assert_eq!(answers[0], format!("ok {}", std::process::id()));
    assert_eq!(answers[1..3], ["ok 5", "no less than nothing"]);
    for (answer, says) in answers[3..].iter().zip(["write: get", "UTF-8", "at most 512 bytes"]) {
        assert!(answer.starts_with("no ") && answer.contains(says), "{answer}");
    }
    // A client that sends and never takes an answer is disconnected, and the station has not waited for it.
    let client =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::NONBLOCK, None).expect("a socket");
    connect(&client, &SocketAddrUnix::new(&path).expect("a path")).expect("connected");
    let gone = (0..10_000).any(|_| {
        let sent = send(&client, b"get a.width", SendFlags::NOSIGNAL);
        socket.look(&mut |_, _| Ok(1));
        sent == Err(rustix::io::Errno::PIPE)
    });
    assert!(gone, "it is still connected");
    assert_eq!(asked(&mut socket, &path, &[b"set a.width 6"]), ["ok 6"]);
    drop(socket);
    assert!(!path.exists());
}
