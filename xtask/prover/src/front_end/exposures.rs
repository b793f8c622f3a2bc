//! Proof: exposures of a shutter with an instrument read in the middle are never short, and undisturbed ones end within
//! 10 µs of their time.
//!
//! The proof decides whether an exposure was disturbed without looking at its error. It uses the gaps that the last
//! delay saw, the gap between that delay's return and the closing write, and the time that the thread waited for its
//! CPU after the reading (`schedstat`). If more than 5 percent are disturbed, there is no result. Gaps that together
//! are shorter than the promise are no excuse, so they do not count as a disturbance; neither do a late wake-up and a
//! lateness without a known cause. The error is the one in the exposure's report. `CLOCK_MONOTONIC`, read before the
//! opening write and after the closing one, is independent of our scale. Its difference must lie within the bounds of
//! the report. The report must flag an exposure that is longer by more than the promise and two writes.

use std::net::TcpListener;
use std::time::Duration;

use hairspring_device::exposure::ExposureEnd;
use hairspring_device::instrument::Address;
use hairspring_device::instrument::simulator::Simulator;
use hairspring_device::{
    AccessTimes, Device, DeviceError, Exposure, ExposureReport, Instrument, Lines, Protocol, VirtualBoard,
};
use hairspring_machine::{Host, Instant, Machine, Nanos};
use hairspring_time::{Cause, GAP_LEAST, LongDelay, Policy, RealTime, Timebase};
use serde_json::{Map, Value, json};

use crate::placement::take;
use crate::{Verdict, order_statistics};

/// An exposure is good when its length differs from the requested one by at most this.
const GOOD_NS: i64 = 10_000;
/// The largest share of disturbed exposures with which there is a result.
const EXCLUDED_MOST: f64 = 0.05;
/// Response time of the instrument.
const ANSWER: Duration = Duration::from_millis(20);
/// The required bound of the calibration, in parts per million.
const SCALE_PPM: f64 = 0.1;
/// Time reserved for the end of the exposure if the instrument is late.
const SPARE: Nanos = Nanos::from_millis(5);
/// Number of bad exposures that the report lists one by one.
const BEYOND_MOST: usize = 10;
/// Exposures between two refinements of the time base.
const BLOCK: u32 = 10;

/// A board that reads the kernel's clock before the write that opens and after the one that closes. Between them a
/// rehearsal writes the open state again.
struct Clocked<D> {
    board: D,
    is_open: bool,
    opening: Instant,
    closed: Instant,
}

impl<D: Device> Device for Clocked<D> {
    fn name(&self) -> String {
        self.board.name()
    }

    fn init(&mut self) -> Result<(), DeviceError> {
        self.board.init()
    }

    fn output_lines(&self) -> Lines {
        self.board.output_lines()
    }

    fn write(&mut self, mask: Lines, value: Lines) -> Result<(), DeviceError> {
        if !self.is_open {
            self.opening = Host.monotonic();
        }
        let written = self.board.write(mask, value);
        self.closed = Host.monotonic();
        self.is_open = value != Lines(0);
        written
    }

    fn read(&mut self) -> Result<Lines, DeviceError> {
        self.board.read()
    }

    fn safe_state(&self) -> Lines {
        self.board.safe_state()
    }
}

struct Sample {
    report: ExposureReport<String>,
    /// The length with the two writes, by the kernel's clock.
    by_kernel: Nanos,
    /// Time the thread waited for its CPU after the reading, as far as the kernel shows it.
    waited: Nanos,
}

/// Makes `count` exposures of this length.
pub(crate) fn prove(count: u32, time: Nanos) -> Verdict {
    let mut figures = Map::new();
    let passed = match samples(count, time, &mut figures) {
        Ok(samples) => judge(&samples, &mut figures),
        Err(why) => {
            figures.insert("defect".to_owned(), json!(why));
            false
        }
    };
    Verdict { passed, figures }
}

fn samples(count: u32, time: Nanos, figures: &mut Map<String, Value>) -> Result<Vec<Sample>, String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| told(&error))?;
    let port = listener.local_addr().map_err(|error| told(&error))?.port();
    let address = Address::Tcp { host: "127.0.0.1".to_owned(), port };
    let mut simulator = Simulator { delay: ANSWER, ..Simulator::default() };
    // Before this thread is pinned to its CPU, or the simulator would inherit that CPU.
    std::thread::spawn(move || simulator.serve_all(&listener));
    let mut timebase = Timebase::calibrate_to(Host, SCALE_PPM, Nanos::from_secs(1)).map_err(|error| told(&error))?;
    let _guard = take(Policy::Fifo(50))?;
    // Kernels reclaim pages that were not touched for some seconds (DAMON) or write them out; the closing write would
    // wait for them.
    let locked = RealTime { lock_memory: true, ..RealTime::default() }.apply(&Host);
    if let Some(refused) = locked.refused() {
        return Err(refused.to_string());
    }
    let folder = tempfile::tempdir_in("/dev/shm").map_err(|error| told(&error))?;
    let path = folder.path().join("board");
    let mut samples = Vec::new();
    while samples.len() < count as usize {
        drop(std::fs::remove_file(&path));
        let board = VirtualBoard::open(&path, AccessTimes::FESA, Lines(0), Protocol::None, &timebase);
        let board = board.map_err(|error| told(&error))?;
        let mut device = Clocked { board, is_open: false, opening: Host.monotonic(), closed: Host.monotonic() };
        device.init().map_err(|error| told(&error))?;
        let opened = Instrument::open(&address, Nanos::from_secs(5), &timebase);
        let mut instrument = opened.map_err(|error| told(&error))?;
        let mut delay = LongDelay::new(&timebase);
        for _ in 0..BLOCK.min(count - samples.len() as u32) {
            samples.push(sample(time, &mut device, &mut instrument, &timebase, &mut delay)?);
        }
        let refined = timebase.refine();
        drop((device, instrument, delay));
        timebase = refined.timebase;
    }
    figures.insert("final_bound_ppm".to_owned(), json!(timebase.calibration().bound_ppm));
    Ok(samples)
}

fn sample<D: Device>(
    time: Nanos,
    device: &mut Clocked<D>,
    instrument: &mut Instrument<'_>,
    timebase: &Timebase,
    delay: &mut LongDelay<'_, Host>,
) -> Result<Sample, String> {
    let waited = || Host.usage().run_delay.unwrap_or(Nanos::ZERO);
    let mut waited_before = Nanos::ZERO;
    let reading = |left: Nanos| {
        let answer = instrument.query("MEAS:VOLT?", left - SPARE);
        waited_before = waited();
        answer.map(|answer| answer.text)
    };
    let report = Exposure { lines: Lines::one(0), time }.make(device, timebase, delay, reading);
    let report = report.map_err(|error| error.to_string())?;
    Ok(Sample { report, by_kernel: device.closed - device.opening, waited: waited() - waited_before })
}

/// Whether the thread lost its CPU at the end, by evidence independent of the error: gaps that alone could have broken
/// the promise, or a wait for the CPU longer than the reserved time.
fn is_disturbed(sample: &Sample) -> bool {
    let seen = [Cause::Preempted, Cause::Interrupted, Cause::InterruptedOrStolen];
    let gone = seen.iter().fold(Nanos::ZERO, |gone, cause| gone + sample.report.verdict().gaps(*cause).total);
    // Only a return lies between these two readings, so a longer time is a gap, like those in the delay.
    let unreturned = sample.report.before_close();
    let gone = if unreturned > GAP_LEAST { gone + unreturned } else { gone };
    gone.count() >= GOOD_NS || sample.report.delay.is_none_or(|delay| sample.waited > delay.window)
}

fn judge(samples: &[Sample], figures: &mut Map<String, Value>) -> bool {
    let (disturbed, clean): (Vec<&Sample>, Vec<&Sample>) = samples.iter().partition(|sample| is_disturbed(sample));
    let mut late: Vec<i64> = clean.iter().map(|sample| sample.report.late().count()).collect();
    let by_kernel = |sample: &Sample| (sample.by_kernel - sample.report.asked).count();
    let mut late_by_kernel: Vec<i64> = clean.iter().map(|sample| by_kernel(sample)).collect();
    let good = late.iter().filter(|late| late.abs() <= GOOD_NS).count();
    let good_by_kernel = late_by_kernel.iter().filter(|late| late.abs() <= GOOD_NS).count();
    // Counted among all exposures, disturbed or not.
    let short = samples.iter().filter(|sample| sample.report.late() < Nanos::ZERO).count();
    let outside = samples.iter().filter(|sample| !is_within(sample)).count();
    let writes = 2 * AccessTimes::FESA.write.count();
    let silent = samples.iter().filter(|sample| by_kernel(sample) > GOOD_NS + writes && !sample.report.is_disturbed());
    let (silent, unread) = (silent.count(), samples.iter().filter(|sample| !is_read(sample)).count());
    let too_long = samples.iter().filter(|sample| matches!(sample.report.end, ExposureEnd::ReadingTooLong(_))).count();
    let mut waited: Vec<i64> = samples.iter().map(|sample| sample.waited.count()).collect();
    let windows = samples.iter().filter_map(|sample| Some(sample.report.delay?.window.count()));
    let mut windows: Vec<i64> = windows.collect();
    let beyond = clean.iter().filter(|sample| sample.report.late().count() > GOOD_NS || by_kernel(sample) > GOOD_NS);
    let beyond: Vec<Value> = beyond.take(BEYOND_MOST).map(|sample| why(sample, by_kernel(sample))).collect();
    let mut names = Map::new();
    for sample in samples {
        let count = names.entry(sample.report.name()).or_insert(json!(0));
        *count = json!(count.as_u64().unwrap_or(0) + 1);
    }
    let excluded = disturbed.len() as f64 / samples.len().max(1) as f64;
    let is_result = excluded <= EXCLUDED_MOST && !clean.is_empty();
    let told = json!({
        "exposures": samples.len(),
        "asked_ns": samples.first().map(|sample| sample.report.asked.count()),
        "excluded": disturbed.len(),
        "is_result": is_result,
        "undisturbed": clean.len(),
        "within_10us": good,
        "within_10us_by_kernel": good_by_kernel,
        "shorter_than_asked": short,
        "outside_their_bounds_by_kernel": outside,
        "late_without_saying_so": silent,
        "not_read": unread,
        "reading_too_long": too_long,
        "late": order_statistics::figures(&mut late),
        "late_by_kernel": order_statistics::figures(&mut late_by_kernel),
        "waited_for_the_cpu": order_statistics::figures(&mut waited),
        "window": order_statistics::figures(&mut windows),
        "beyond_10us": beyond,
        "verdicts": names,
    });
    figures.extend(told.as_object().cloned().unwrap_or_default());
    short + outside + silent == 0 && is_result && good == clean.len()
}

/// Whether the kernel's clock agrees that the exposure was within its bounds, which are those of a scale.
fn is_within(sample: &Sample) -> bool {
    let scale = Nanos::new((sample.report.asked.count() as f64 * SCALE_PPM / 1e6) as i64 + 100);
    (sample.report.at_least() - scale..=sample.report.at_most() + scale).contains(&sample.by_kernel)
}

/// Describes an undisturbed exposure that is not good.
fn why(sample: &Sample, late_by_kernel_ns: i64) -> Value {
    let (report, verdict) = (&sample.report, sample.report.verdict());
    json!({
        "late_ns": report.late().count(),
        "late_by_kernel_ns": late_by_kernel_ns,
        "end": report.name(),
        "overslept_ns": verdict.overslept.count(),
        "unknown_gaps_ns": verdict.gaps(Cause::Unknown).total.count(),
        "open_write_ns": report.parts.open_write.count(),
        "close_write_ns": report.parts.close_write.count(),
        "delay_late_ns": report.delay.map(|delay| delay.late.count()),
        "window_ns": report.delay.map(|delay| delay.window.count()),
        "polled_ns": report.delay.map(|delay| delay.polled.count()),
    })
}

fn is_read(sample: &Sample) -> bool {
    matches!(&sample.report.reading, Some(Ok(text)) if text.starts_with("+1."))
}
