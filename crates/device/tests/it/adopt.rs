//! Objects that live long follow their time base when it is refined.

use hairspring_device::instrument::Instrument;
use hairspring_device::instrument::simulator::{NAME, Simulator};
use hairspring_device::{AccessTimes, Device, Lines, Protocol, VirtualBoard};
use hairspring_machine::sim::{Disturbance, Script};
use hairspring_machine::{Machine, Nanos, Sim};
use hairspring_time::{Host, Timebase};

use crate::instrument::{PATIENT, at_a_socket};
use crate::timebase;

/// The counter runs twice as fast from some moment on. Until the board adopts a successor it takes half of its time for
/// an access.
#[test]
fn a_board_takes_its_access_times_by_the_successor_that_it_adopted() {
    const WRITE: Nanos = Nanos::from_micros(10);
    let sim = Sim::new(Script::default());
    let timebase = Timebase::calibrate(sim.clone()).expect("a time base");
    let folder = tempfile::tempdir().expect("a folder");
    let (path, times) = (folder.path().join("board"), AccessTimes { write: WRITE, ..AccessTimes::ZERO });
    let mut board = VirtualBoard::open(&path, times, Lines(0), Protocol::None, &timebase).expect("a board");
    board.init().expect("initialised");
    let write = |board: &mut VirtualBoard<'_, Sim>| {
        let before = sim.true_time();
        board.write(Lines(1), Lines(1)).expect("written");
        sim.true_time() - before
    };
    assert!(write(&mut board) >= WRITE);
    sim.disturb(sim.true_time(), Disturbance::CounterRate(2 * Script::default().rate_hz));
    sim.sleep_until(sim.monotonic() + Nanos::from_millis(50));
    assert!(write(&mut board) < WRITE * 3 / 4);
    board.adopt(timebase.refine().timebase);
    let took = write(&mut board);
    assert!(took >= WRITE && took < WRITE * 5 / 4, "{took}");
}

#[test]
fn an_instrument_measures_by_the_successor_that_it_adopted() {
    let timebase = timebase();
    let mut instrument = Instrument::open(&at_a_socket(Simulator::default()), PATIENT, &timebase).expect("it opens");
    Host.sleep_until(Host.monotonic() + Nanos::from_millis(50));
    let successor = timebase.refine().timebase;
    let bound_ppm = successor.calibration().bound_ppm;
    assert!(bound_ppm < timebase.calibration().bound_ppm);
    instrument.adopt(successor);
    assert_eq!(instrument.timebase().calibration().bound_ppm, bound_ppm);
    let answer = instrument.query("*IDN?", PATIENT).expect("a name");
    assert!(answer.text == NAME && answer.took > Nanos::ZERO, "{answer:?}");
}
