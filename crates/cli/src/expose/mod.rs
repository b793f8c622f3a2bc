//! `hairspring expose`: opens a shutter for an exact time, reads an instrument in the middle, and logs `measured_exp_time`.

mod report;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_device::exposure::{End, ExposureError};
use hairspring_device::instrument::Answer;
use hairspring_device::{DeviceError, Exposure, ExposureReport, Instrument, Lend, Lines};
use hairspring_machine::Host;
use hairspring_time::{DelayError, LongDelay, Nanos, REQUEST_MOST, Timebase};

use crate::arguments::{ExposeArguments, Plain};
use crate::exit::{Exit, Failure};
use crate::{interrupt, output, placement};

/// How well the counter is calibrated before the exposures begin, and how long that may take: 0.1 ppm of 10 s are 1 µs.
const BOUND_PPM: f64 = 0.1;
const AGE: Nanos = Nanos::from_secs(1);
/// How long an instrument may take to be opened.
const OPENING: Nanos = Nanos::from_secs(5);
/// What is kept free for the end of an exposure if the instrument does not answer; but no more than half of what is left.
const SPARE: Nanos = Nanos::from_millis(5);

type Made = ExposureReport<Option<Answer>>;

/// What was made.
#[derive(Default)]
struct Series {
    /// Every exposure with how late it began, in order.
    exposures: Vec<(Nanos, Made)>,
    /// Those that were left out because their time had passed.
    left_out: u64,
    /// Whether it was stopped before its end.
    stopped: bool,
}

pub(crate) fn run(arguments: &ExposeArguments) -> Result<Exit, Failure> {
    check(arguments)?;
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("failed to {error}"));
    let timebase = Timebase::calibrate_to(Host, BOUND_PPM, AGE).map_err(|error| failed(&error))?;
    let stop = Arc::new(AtomicBool::new(false));
    let opened = arguments.instrument.as_ref().map(|address| Instrument::open(address, OPENING, &timebase));
    let opened = opened.transpose().map_err(|error| Failure::failed(error.to_string()))?;
    let instrument = opened.map(|instrument| instrument.cancelled_by(&stop));
    let board = arguments.device.open_guarded(Lines::one(arguments.line), None, &timebase);
    let mut board = board.map_err(|error| Failure::bad_request(error.to_string()))?.cancelled_by(&stop);
    let in_force = arguments.device.in_force(&timebase).map_err(|error| Failure::bad_request(error.to_string()))?;
    let arguments = &ExposeArguments { device: in_force, ..arguments.clone() };
    let guard = placement::apply(arguments.priority, arguments.cpu)?;
    // Until here a signal ends the program as usual; from here on there are lines to be left in their safe state.
    interrupt::flag_only(&stop)?;
    let refused = |error: DeviceError| Failure::failed(error.to_string());
    board.lend(|device| device.init()).and_then(Option::transpose).map_err(refused)?;
    let made = series(arguments, &mut board, instrument, &timebase, &stop);
    drop(guard);
    let made = made.map_err(|error| Failure::failed(error.to_string()))?;
    board.make_safe().map_err(refused)?;
    let safe = board.safe_state();
    output::print(&match arguments.format {
        Plain::Text => report::text(arguments, &made, safe, output::style(false).width),
        Plain::Json => report::json(arguments, &made, safe),
    })?;
    Ok(ended(&made))
}

/// How the command ends, with a word about what went wrong.
fn ended(made: &Series) -> Exit {
    let count = |wrong: fn(&Made) -> bool| made.exposures.iter().filter(|(_, exposure)| wrong(exposure)).count();
    let failures = [
        (count(|exposure| matches!(exposure.reading, Some(Err(_)))), "readings failed"),
        (
            count(|exposure| matches!(exposure.end, End::ReadingTooLong(_))),
            "exposures were too long, as their readings were",
        ),
    ];
    let mut exit = Exit::Success;
    // What failed because the program was told to stop did not go wrong.
    for (count, what) in failures.into_iter().filter(|(count, _)| *count > 0 && !made.stopped) {
        output::complain(&format!("{count} of {} {what}", made.exposures.len()));
        exit = Exit::Failed;
    }
    if made.stopped { Exit::Interrupted } else { exit }
}

/// Whether the request makes sense, before anything is opened.
fn check(arguments: &ExposeArguments) -> Result<(), Failure> {
    let bad = |text: String| Err(Failure::bad_request(text));
    let time = arguments.time;
    match arguments.period {
        _ if time <= Nanos::ZERO => bad(format!("{time}: an exposure takes some time; write one like 10s")),
        _ if time > REQUEST_MOST => {
            bad(format!("{time} is more than 100 days, which is taken for a mistake; write less"))
        }
        Some(period) if period <= time => {
            bad(format!("--period: a period of {period} is no longer than the exposures: choose a longer one"))
        }
        Some(period) if period > REQUEST_MOST => {
            bad(format!("--period: {period} is more than 100 days, which is taken for a mistake; write less"))
        }
        _ => Ok(()),
    }
}

fn series(
    arguments: &ExposeArguments,
    device: &mut impl Lend,
    mut instrument: Option<Instrument<'_>>,
    timebase: &Timebase,
    stop: &AtomicBool,
) -> Result<Series, ExposureError> {
    let exposure = Exposure { lines: Lines::one(arguments.line), time: arguments.time };
    let mut delay = LongDelay::new(timebase).cancelled_by(stop);
    let mut series = Series::default();
    let mut reading = |left: Nanos| -> Result<Option<Answer>, DeviceError> {
        let Some(instrument) = &mut instrument else { return Ok(None) };
        let spare = SPARE.min(Nanos::new(left.count() / 2));
        instrument.query(&arguments.query, arguments.timeout.unwrap_or(left - spare)).map(Some)
    };
    let start = timebase.now_ordered();
    for number in 0..i64::from(arguments.count) {
        // Relaxed: a plain flag.
        if stop.load(Ordering::Relaxed) {
            series.stopped = true;
            break;
        }
        let due = arguments.period.map(|period| start + Nanos::new(period.count().saturating_mul(number)));
        match due.map_or(Ok(()), |due| delay.delay_until(due).map(drop)) {
            Ok(()) => {}
            Err(DelayError::Cancelled(_)) => {
                series.stopped = true;
                break;
            }
            Err(error) => return Err(error.into()),
        }
        let made = device.lend(|device| {
            let late = due.map_or(Ok(Nanos::ZERO), |due| timebase.now_ordered().since(due));
            let late = late.map_err(|_| DelayError::OtherEpoch)?;
            if arguments.period.is_some_and(|period| late > period) {
                return Ok(None);
            }
            exposure.make(device, timebase, &mut delay, &mut reading).map(|made| Some((late, made)))
        });
        match made?.transpose()? {
            Some(Some((late, made))) => {
                series.stopped = made.end == End::Stopped;
                series.exposures.push((late, made));
            }
            Some(None) => series.left_out += 1,
            // Others had the device when it was told to stop.
            None => series.stopped = true,
        }
    }
    Ok(series)
}
