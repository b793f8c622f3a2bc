//! `hairspring expose`: opens a shutter for an exact time, reads an instrument after half of it, and logs
//! `measured_exp_time`.

mod report;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use hairspring_device::exposure::{ExposureEnd, ExposureError};
use hairspring_device::instrument::{Address, Answer};
use hairspring_device::{DeviceDescription, DeviceError, Exposure, ExposureReport, Instrument, Lend, Lines};
use hairspring_machine::Host;
use hairspring_time::{DelayError, LongDelay, Nanos, REQUEST_MOST, Timebase};

use crate::arguments::{Plain, duration, number, parsed};
use crate::exit::{Exit, Failure};
use crate::page::{Example, Page};
use crate::placement::Placement;
use crate::{interrupt, output};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    name: "expose",
    examples: &[
        Example {
            does: "Open a shutter on a virtual board for two seconds",
            line: "hairspring expose 2s --device virtual:/dev/shm/board --line 1",
        },
        Example {
            does: "Make twenty exposures, and read a voltmeter in the middle of each",
            line: "hairspring expose 10s --device parport:/dev/parport0 --count 20 --period 15s --instrument tcp:192.0.2.7:5025 --query 'MEAS:VOLT?'",
        },
    ],
    files: &[super::BOARD],
    environment: &[],
};

/// Open a shutter for an exact time, and read an instrument
///
/// The shutter is never open for less than the requested time. The report gives the measured exposure time and its
/// parts.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Least time that the shutter is open, for instance 10s
    #[arg(value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    time: Nanos,
    /// Shutter's device, for instance virtual:/dev/shm/board. The device is initialised; a virtual board that does not
    /// exist is created
    #[arg(long, value_name = "DEVICE", value_parser = parsed::<DeviceDescription>)]
    device: DeviceDescription,
    /// Shutter's line, 0 to 31. The safe state closes the shutter; the opposite level opens it
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    #[arg(value_parser = number::<u32>(0, 31))]
    line: u32,
    /// Read this instrument after half the time: tcp:HOST:PORT, serial:DEVICE,baud=N or usbtmc:DEVICE
    #[arg(long, value_name = "INSTRUMENT", value_parser = parsed::<Address>)]
    instrument: Option<Address>,
    /// Question for the instrument
    #[arg(long, value_name = "LINE", default_value = "MEAS:VOLT?", requires = "instrument")]
    query: String,
    /// How long to wait for the answer [default: until 5 ms before the shutter has to close, or half of the time left
    /// if that is less]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true, requires = "instrument")]
    timeout: Option<Nanos>,
    /// Number of exposures
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    #[arg(value_parser = number::<u32>(1, 100_000))]
    count: u32,
    /// Time from the start of one exposure to the start of the next [default: each starts when the previous one has
    /// ended]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    period: Option<Nanos>,
    #[command(flatten)]
    placement: Placement,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
}

/// Bound of the calibration before the first exposure, and the most time it may take. 0.1 ppm of 10 s are 1 µs.
const BOUND_PPM: f64 = 0.1;
const AGE: Nanos = Nanos::from_secs(1);
/// Most time to open an instrument.
const OPENING: Nanos = Nanos::from_secs(5);
/// Time reserved for the end of an exposure if the instrument does not answer, but at most half of the time left.
const SPARE: Nanos = Nanos::from_millis(5);

type Made = ExposureReport<Option<Answer>>;

/// The exposures made.
#[derive(Default)]
struct Series {
    /// Every exposure and how late it started, in order.
    exposures: Vec<(Nanos, Made)>,
    /// Exposures left out because their time had passed.
    left_out: u64,
    /// Whether the series was stopped before its end.
    stopped: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    check(arguments)?;
    let timebase = Timebase::calibrate_to(Host, BOUND_PPM, AGE).map_err(Failure::failed_to)?;
    let stop = Arc::new(AtomicBool::new(false));
    let opened = arguments.instrument.as_ref().map(|address| Instrument::open(address, OPENING, &timebase));
    let opened = opened.transpose().map_err(|error| Failure::failed(error.to_string()))?;
    let instrument = opened.map(|instrument| instrument.cancelled_by(&stop));
    let board = arguments.device.open_guarded(Lines::one(arguments.line), None, &timebase);
    let mut board = board.map_err(|error| Failure::bad_request(error.to_string()))?.cancelled_by(&stop);
    let in_force = arguments.device.in_force(&timebase).map_err(|error| Failure::bad_request(error.to_string()))?;
    let arguments = &Arguments { device: in_force, ..arguments.clone() };
    let guard = arguments.placement.apply()?;
    // Until here a signal ends the program at once. From here on the shutter must first reach its safe state.
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

/// The exit code; prints an error message for each kind of failure.
fn ended(made: &Series) -> Exit {
    let count = |wrong: fn(&Made) -> bool| made.exposures.iter().filter(|(_, exposure)| wrong(exposure)).count();
    let failures = [
        (count(|exposure| matches!(exposure.reading, Some(Err(_)))), "readings failed"),
        (
            count(|exposure| matches!(exposure.end, ExposureEnd::ReadingTooLong(_))),
            "exposures were too long because their readings were",
        ),
    ];
    let mut exit = Exit::Success;
    // A reading that failed because of a signal to stop is not a failure.
    for (count, what) in failures.into_iter().filter(|(count, _)| *count > 0 && !made.stopped) {
        output::complain(&format!("{count} of {} {what}", made.exposures.len()));
        exit = Exit::Failed;
    }
    if made.stopped { Exit::Interrupted } else { exit }
}

/// Checks the request before anything is opened.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    let bad = |text: String| Err(Failure::bad_request(text));
    let time = arguments.time;
    match arguments.period {
        _ if time <= Nanos::ZERO => bad(format!("an exposure cannot last {time}; write a time like 10s")),
        _ if time > REQUEST_MOST => bad(format!("{time} is more than 100 days: write a shorter time")),
        Some(period) if period <= time => {
            bad(format!("--period {period} is not longer than the exposures: choose a longer one"))
        }
        Some(period) if period > REQUEST_MOST => {
            bad(format!("--period {period} is more than 100 days: write a shorter time"))
        }
        _ => Ok(()),
    }
}

fn series(
    arguments: &Arguments,
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
                series.stopped = made.end == ExposureEnd::Stopped;
                series.exposures.push((late, made));
            }
            Some(None) => series.left_out += 1,
            // Another process held the device when the signal to stop came.
            None => series.stopped = true,
        }
    }
    Ok(series)
}
