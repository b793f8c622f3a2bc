//! Boards, locks and pulses on this machine, with real processes.

mod adopt;
mod exposure;
mod gone;
mod instrument;
mod lock;
mod pulse;
mod stopped;

use std::path::Path;

use hairspring_device::{AccessTimes, Device as _, Lines, Protocol, VirtualBoard};
use hairspring_time::{Host, Timebase};

fn timebase() -> Timebase<Host> {
    Timebase::calibrate(Host).expect("a time base")
}

/// A board in a folder; the same board for all users of the name.
fn board<'t>(folder: &Path, protocol: Protocol, timebase: &'t Timebase<Host>) -> VirtualBoard<'t, Host> {
    let opened = VirtualBoard::open(&folder.join("board"), AccessTimes::ZERO, Lines(0), protocol, timebase);
    opened.expect("a board")
}

/// In the test harness this is an ordinary test; it does something only in a child.
#[test]
fn a_job() {
    testing::process::do_job(do_job);
}

/// Runs the job of a child process.
fn do_job(name: &str, folder: &Path, protocol: &str, ready: &dyn Fn()) {
    let protocol = protocol.parse().expect("a protocol");
    let timebase = timebase();
    let mut board = board(folder, protocol, &timebase);
    match name {
        "hold" => lock::hold(&board, ready),
        "count" => {
            board.init().expect("it is initialised");
            ready();
            lock::count(&mut board, 3000);
        }
        "survive" => {
            ready();
            gone::survive(folder, protocol, &timebase);
        }
        "forget" => {
            ready();
            gone::forget(folder, protocol);
        }
        "pulses" => {
            board.init().expect("it is initialised");
            ready();
            stopped::pulses(&mut board, &timebase);
        }
        "stranger" => {
            ready();
            gone::stranger(&board);
        }
        other => panic!("no job {other}"),
    }
}
