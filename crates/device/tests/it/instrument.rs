//! Instruments at a socket and at a serial line, played by the simulator.

use std::fs::File;
use std::net::TcpListener;
use std::path::PathBuf;

use hairspring_device::instrument::simulator::{Manner, NAME, Simulator};
use hairspring_device::instrument::{ANSWER_MOST, Address, Instrument};
use hairspring_machine::Nanos;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::timebase;

/// Enough for any answer.
pub(crate) const PATIENT: Nanos = Nanos::from_secs(20);
/// Too short for an answer: for waits that must fail.
const IMPATIENT: Nanos = Nanos::from_millis(60);

/// A simulator at a socket of its own, as long as the test runs.
pub(crate) fn at_a_socket(mut simulator: Simulator) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    std::thread::spawn(move || simulator.serve_all(&listener));
    Address::Tcp { host: "127.0.0.1".to_owned(), port }
}

/// A simulator at the far end of a pseudo-terminal. The near end stays open as well, or the far one would see it hang
/// up.
fn at_a_serial_line(mut simulator: Simulator) -> (Address, File) {
    let far = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&far).and_then(|()| unlockpt(&far)).expect("its other end");
    let path = PathBuf::from(ptsname(&far, Vec::new()).expect("its name").into_string().expect("text"));
    let near = File::options().read(true).write(true).open(&path).expect("it opens");
    let far = File::from(far);
    std::thread::spawn(move || simulator.serve(far));
    (Address::Serial { path, baud: 115_200 }, near)
}

/// After an answer of this manner the next answer is the right one, without remains of the one before.
#[track_caller]
fn check_after(manner: Manner, hint: Option<&str>, on_serial: bool) {
    let timebase = timebase();
    let (address, _near) = if on_serial {
        let (address, near) = at_a_serial_line(Simulator::default());
        (address, Some(near))
    } else {
        (at_a_socket(Simulator::default()), None)
    };
    let mut instrument = Instrument::open(&address, PATIENT, &timebase).expect("it opens");
    assert_eq!(instrument.query("*IDN?", PATIENT).expect("a name").text, NAME);
    instrument.tell(&format!("SIM:NEXT {manner:?}"), PATIENT).expect("told");
    let answer = instrument.query("MEAS:VOLT?", if manner == Manner::Silent { IMPATIENT } else { PATIENT });
    match (answer, hint) {
        (Ok(answer), None) => assert_eq!(answer.text, "+1.000001E+00"),
        (Err(error), Some(hint)) => assert!(error.to_string().contains(hint), "{error}"),
        (answer, hint) => panic!("{answer:?} where {hint:?} was expected"),
    }
    let next = instrument.query("MEAS:VOLT?", PATIENT).expect("an answer");
    assert_eq!(next.text, "+1.000002E+00", "after {manner:?}");
    assert_eq!(instrument.query("*IDN?", PATIENT).expect("a name").text, NAME, "after {manner:?}");
}

#[test]
fn an_instrument_at_a_socket_is_in_step_after_whatever_it_did() {
    for (manner, hint) in [
        (Manner::Plain, None),
        (Manner::Trickle, None),
        (Manner::Twice, None),
        (Manner::Silent, Some("no answer in time; check that the instrument is on")),
        (Manner::Garbage, Some("not text: \"\\xff\\x00\\x80oops\\xfe\"")),
        (Manner::Endless, Some("more than 65536 bytes; ask for less")),
        (Manner::Hangup, Some("it hung up")),
    ] {
        check_after(manner, hint, false);
    }
}

#[test]
fn an_instrument_at_a_serial_line_is_in_step_after_whatever_it_did() {
    for (manner, hint) in [
        (Manner::Plain, None),
        (Manner::Trickle, None),
        (Manner::Garbage, Some("not text")),
        (Manner::Endless, Some("more than 65536 bytes")),
    ] {
        check_after(manner, hint, true);
    }
}

#[test]
fn the_late_answer_of_a_slow_instrument_is_thrown_away() {
    let timebase = timebase();
    let slow = Simulator { delay: std::time::Duration::from_secs(1), ..Simulator::default() };
    let (serial, _near) = at_a_serial_line(slow.clone());
    for address in [at_a_socket(slow), serial] {
        let mut instrument = Instrument::open(&address, PATIENT, &timebase).expect("it opens");
        let error = instrument.query("MEAS:VOLT?", IMPATIENT).expect_err("too slow");
        assert!(error.to_string().contains("no answer in time"), "{error}");
        let second = instrument.query("*IDN?", PATIENT).expect("an answer");
        assert_eq!(second.text, NAME, "at {address}");
        assert!(second.took >= Nanos::from_secs(1), "{second:?} at {address}");
        let is_serial = matches!(address, Address::Serial { .. });
        assert_eq!(second.discarded, if is_serial { "+1.000001E+00\n".len() as u64 } else { 0 });
    }
}

#[test]
fn a_serial_instrument_that_owes_an_answer_is_not_asked_again() {
    let timebase = timebase();
    let (address, _near) = at_a_serial_line(Simulator { manner: Manner::Silent, ..Simulator::default() });
    let mut instrument = Instrument::open(&address, PATIENT, &timebase).expect("it opens");
    for hint in ["no answer in time", "outstanding", "outstanding"] {
        let error = instrument.query("*IDN?", IMPATIENT).expect_err("silent").to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn a_flag_ends_the_waiting() {
    let timebase = timebase();
    let address = at_a_socket(Simulator { manner: Manner::Silent, ..Simulator::default() });
    let stop = std::sync::atomic::AtomicBool::new(false);
    let opened = Instrument::open(&address, PATIENT, &timebase).expect("it opens");
    let mut instrument = opened.cancelled_by(&stop);
    let begun = timebase.now();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        instrument.query("*IDN?", Nanos::from_secs(3600)).expect_err("stopped")
    });
    assert_eq!(error.said, "stopped");
    assert!(timebase.now().since(begun).is_ok_and(|took| took < Nanos::from_secs(3600)));
}

#[test]
fn what_cannot_be_asked_or_reached_is_refused_with_what_to_do() {
    let timebase = timebase();
    let address = at_a_socket(Simulator::default());
    let mut instrument = Instrument::open(&address, PATIENT, &timebase).expect("it opens");
    let long = "9".repeat(ANSWER_MOST);
    for line in ["", "  ", "*IDN?\n*IDN?", "*IDN?\r", &long] {
        let error = instrument.query(line, PATIENT).expect_err("no line").to_string();
        assert!(error.contains("write one line of at most 4096 bytes"), "{error}");
    }
    assert_eq!(instrument.query("*IDN?", PATIENT).expect("nothing was sent").discarded, 0);
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    for (address, hint) in [
        (format!("tcp:127.0.0.1:{closed}"), "check that the instrument is on"),
        ("serial:/dev/null".to_owned(), "check the line's name"),
        ("serial:/nowhere/tty".to_owned(), "No such file"),
        ("usbtmc:/nowhere/usbtmc0".to_owned(), "check that the usbtmc driver is loaded"),
    ] {
        let parsed = address.parse().expect("an address");
        let error = Instrument::open(&parsed, PATIENT, &timebase).map(drop).expect_err(&address).to_string();
        assert!(error.contains(hint) && error.contains(&address), "{error}");
    }
}
