//! Proof: of a million events for two units on one board, each leads to an action or counts as missed, and each action
//! reaches the board.

use std::sync::atomic::{AtomicU64, Ordering};

use hairspring_device::{AccessTimes, DeviceError, Guarded, Lines, Protocol, VirtualBoard};
use hairspring_machine::{Host, Machine, Nanos};
use hairspring_station::{Action, Activation, Counts, EventSource, Poller, SchedulingUnit, Signal, Sleeper, Stop};
use hairspring_time::Timebase;
use serde_json::{Map, Value, json};

use crate::Verdict;

/// Events in a burst; a pause follows in which the units react.
const STORM: u64 = 16;
const MOMENT: Nanos = Nanos::from_micros(20);
/// By then the units have received the last event.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// Fires `count` events at two units, of which one sleeps and one polls.
pub(crate) fn prove(count: u64) -> Verdict {
    let mut figures = Map::new();
    let passed = storm(count, &mut figures).unwrap_or_else(|why| {
        figures.insert("defect".to_owned(), json!(why));
        false
    });
    Verdict { passed, figures }
}

fn said(error: DeviceError) -> String {
    error.to_string()
}

fn storm(count: u64, figures: &mut Map<String, Value>) -> Result<bool, String> {
    let timebase = Timebase::calibrate_to(Host, 1.0, Nanos::from_millis(100)).map_err(|error| error.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let board = || {
        let path = folder.path().join("board");
        VirtualBoard::open(&path, AccessTimes::ZERO, Lines(0), Protocol::Inherit, &timebase).map_err(said)
    };
    let signal = || Signal::open(&folder.path().join("signal")).map_err(said);
    let device = Guarded::new(Box::new(board()?), Box::new(board()?));
    device.lock().and_then(|mut held| held.device().init()).map_err(said)?;
    let (observer, firing, stop) = (board()?, signal()?, Stop::new().map_err(said)?);
    let before = observer.outputs().1;
    // Made before the first event, so that both wait for it.
    let sources: [Box<dyn EventSource<Host> + '_>; 2] = [
        Box::new(Sleeper::new(signal()?, &timebase, &stop)),
        Box::new(Poller::new(signal()?, &timebase, &stop).map_err(said)?),
    ];
    let heard = [AtomicU64::new(0), AtomicU64::new(0)];
    let monotonic = || Host.monotonic();
    let counts = std::thread::scope(|scope| {
        let mut units = Vec::new();
        for ((line, source), heard) in (0..).zip(sources).zip(&heard) {
            let action = toggling(line, heard);
            let (mut unit, _log) = SchedulingUnit::new(source, action, Some(&device), &timebase, 1);
            units.push(scope.spawn(move || unit.run().map(|()| unit.counts())));
        }
        for number in 1..=count {
            drop(firing.fire(Some(number), &timebase));
            if number % STORM == 0 {
                Host.sleep_until(monotonic() + MOMENT);
            }
        }
        let end = monotonic() + PATIENCE;
        while heard.iter().any(|heard| heard.load(Ordering::Acquire) < count) && monotonic() < end {
            Host.sleep_until(monotonic() + MOMENT);
        }
        stop.set();
        let ended =
            units.into_iter().map(|unit| unit.join().map_err(|_| "run a unit: it panicked".to_owned())?.map_err(said));
        ended.collect::<Result<Vec<Counts>, String>>()
    })?;
    let written = u64::from(observer.outputs().1.wrapping_sub(before));
    let acted: u64 = counts.iter().map(|counts| counts.activations).sum();
    for (name, counts) in ["asleep", "polling"].into_iter().zip(&counts) {
        let told = json!({
            "events": counts.events,
            "activations": counts.activations,
            "missed": counts.missed,
            "overrun": counts.overrun,
            "unaccounted": count.abs_diff(counts.activations + counts.missed),
        });
        figures.insert(name.to_owned(), told);
    }
    figures.insert("fired".to_owned(), json!(count));
    figures.insert("writes that the board counted".to_owned(), json!(written));
    Ok(counts.iter().all(|counts| counts.holds() && counts.events == count) && written == acted)
}

/// Changes a line, and counts the events.
fn toggling<'a>(line: u32, heard: &'a AtomicU64) -> Box<dyn Action<Host> + 'a> {
    let (line, mut lines) = (Lines::one(line), Lines(0));
    Box::new(move |activation: &mut Activation<'_, '_, Host>| {
        lines.0 ^= line.0;
        activation.device(|device| device.write(line, lines))?;
        // Release: the write is before it.
        heard.fetch_add(1 + activation.event().missed, Ordering::Release);
        Ok(())
    })
}
