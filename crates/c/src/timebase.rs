//! The time base: calibration, trust, readings, differences.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{CString, c_char, c_int};

use hairspring_time::{CalibrationError, Continuity, Host, Instant, Nanos, TimeSource, Timebase, TrustReason};

use crate::error::{
    Failure, HS_ABSENT_NS, HS_E_CALIBRATION, HS_E_EPOCH, HS_E_NAN, HS_E_NEGATIVE, HS_E_NOT_FOUND, door,
};
use crate::handle::{Kind, Shared, free, make, peek};
use crate::pointer::{Numbers, Place, read};

/// Time is taken from the CPU's counter.
pub const HS_SOURCE_COUNTER: c_int = 0;
/// Time is taken from the kernel's clock, because the counter is not trusted: right, but slower to read.
pub const HS_SOURCE_KERNEL_CLOCK: c_int = 1;

/// Same epoch, longer baseline.
pub const HS_CONTINUED: c_int = 0;
/// Same epoch; the kernel's clock changed its rate, so the baseline begins anew.
pub const HS_RERATED: c_int = 1;
/// A new epoch: the machine was suspended.
pub const HS_SUSPENDED: c_int = 2;
/// A new epoch: the kernel's clock and the counter have diverged.
pub const HS_STEPPED: c_int = 3;
/// A new epoch: the kernel no longer trusts the counter.
pub const HS_DISTRUSTED: c_int = 4;

/// A calibrated time base. Never changes; any number of threads may use it.
pub struct hs_timebase(());

pub(crate) struct OwnedTimebase {
    pub(crate) timebase: Timebase<Host>,
    reasons: Vec<CString>,
    trust: CString,
}

impl Kind for hs_timebase {
    type Owned = OwnedTimebase;
    const WORD: u64 = u64::from_le_bytes(*b"timebase");
    const NAME: &'static str = "time base";
    // So that hs_now_ns need not count its use.
    const GOES_AT_ONCE: bool = false;
}

/// A moment on the scale of a time base.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_instant {
    /// The reading of CLOCK_MONOTONIC (on Windows: of the performance counter) that it stands for.
    pub monotonic_ns: i64,
    /// The epoch: the unbroken stretch of the scale to which it belongs. Instants of different epochs have no
    /// difference.
    pub epoch: u32,
}

/// The calibrated rate.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_calibration {
    /// The rate of the time source.
    pub frequency_hz: f64,
    /// The largest error against the kernel's clock in parts per million: a hard bound.
    pub bound_ppm: f64,
    /// The length of the measurement.
    pub baseline_ns: i64,
    /// The rate of CLOCK_MONOTONIC_RAW against CLOCK_MONOTONIC, in parts per million.
    pub discipline_ppm: f64,
    /// The wall time of the first calibration,
    pub wall_ns: i64,
    /// and its CPU time.
    pub cpu_ns: i64,
    /// The assumed largest distance between the counters of two CPUs.
    pub skew_ns: i64,
    /// The present epoch.
    pub epoch: u32,
}

/// The verdict on the counter.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_trust {
    /// Whether the counter is trusted and used.
    pub trusted: bool,
    /// Whether this is a virtual machine, where the hypervisor can take time away unseen.
    pub guest: bool,
    /// HS_SOURCE_…: the time source.
    pub source: c_int,
    /// The number of reasons of hs_timebase_reason().
    pub reasons: u32,
    /// A summary in one line; lives as long as the time base.
    pub text: *const c_char,
}

/// How a successor continues its predecessor.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_continuity {
    /// HS_CONTINUED to HS_DISTRUSTED.
    pub kind: c_int,
    /// How long the machine was suspended, or by how much the clocks have diverged; otherwise 0.
    pub by_ns: i64,
}

// SAFETY: two integers.
unsafe impl Numbers for hs_instant {}

impl hs_instant {
    pub(crate) fn new(instant: Instant) -> Self {
        Self { monotonic_ns: instant.as_monotonic().count(), epoch: instant.epoch().number() }
    }

    /// Checks that an instant is of the present epoch of this time base.
    pub(crate) fn on(self, timebase: &Timebase<Host>) -> Result<Instant, Failure> {
        if self.epoch != timebase.epoch().number() {
            return Err(Failure::new(HS_E_EPOCH, "use an instant of another epoch: take it from this time base"));
        }
        Ok(Instant::of_epoch(timebase.epoch(), Nanos::new(self.monotonic_ns)))
    }
}

fn new_handle(timebase: Timebase<Host>) -> *mut hs_timebase {
    let trust = timebase.trust();
    let line = |reason: &TrustReason| format!("{} {}", if reason.supports { "+" } else { "-" }, reason.text);
    let reasons: Vec<String> = trust.reasons.iter().map(line).collect();
    let verdict = if trust.trusted { "trusted" } else { "not trusted" };
    let guest = if trust.guest { ", a guest" } else { "" };
    let text = |text: String| CString::new(text).unwrap_or_default();
    make(OwnedTimebase {
        trust: text(format!("{verdict}{guest}: {}", reasons.join("; "))),
        reasons: reasons.into_iter().map(text).collect(),
        timebase,
    })
}

fn calibrated(timebase: Result<Timebase<Host>, CalibrationError>) -> Result<*mut hs_timebase, Failure> {
    timebase.map(new_handle).map_err(|error| Failure::new(HS_E_CALIBRATION, error.to_string()))
}

/// Calibrates the counter against the kernel's clock. Sleeps 4 to 5 ms; the bound is then about 10 ppm. Free the time
/// base with hs_timebase_free(). HS_E_CALIBRATION.
#[unsafe(no_mangle)]
pub extern "C" fn hs_calibrate(timebase: *mut *mut hs_timebase) -> c_int {
    door(|| {
        let place = Place::new(timebase)?;
        place.put(calibrated(Timebase::calibrate(Host))?);
        Ok(())
    })
}

/// Calibrates until the bound is at most `bound_ppm` (positive), or for `patience_ns` (0 or more), sleeping meanwhile:
/// 1 ppm takes about 100 ms. HS_E_NAN, HS_E_NEGATIVE, HS_E_CALIBRATION.
#[unsafe(no_mangle)]
pub extern "C" fn hs_calibrate_to(bound_ppm: f64, patience_ns: i64, timebase: *mut *mut hs_timebase) -> c_int {
    door(|| {
        let place = Place::new(timebase)?;
        if bound_ppm.is_nan() {
            return Err(Failure::new(HS_E_NAN, "calibrate to a bound: it is NaN"));
        }
        if bound_ppm <= 0.0 || patience_ns < 0 {
            let text =
                format!("calibrate to {bound_ppm} ppm within {patience_ns} ns: no bound is below zero, no time either");
            return Err(Failure::new(HS_E_NEGATIVE, text));
        }
        place.put(calibrated(Timebase::calibrate_to(Host, bound_ppm, Nanos::new(patience_ns)))?);
        Ok(())
    })
}

/// Looks at the kernel's clock again and makes a successor with a longer baseline, hence a smaller bound. The successor
/// continues the scale without a step. Free each of the two. Takes some 20 us and opens a file; takes 4 to 5 ms if a
/// new epoch begins. `continuity` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hs_timebase_refine(
    timebase: *const hs_timebase,
    successor: *mut *mut hs_timebase,
    continuity: *mut hs_continuity,
) -> c_int {
    door(|| {
        let (place, told) = (Place::new(successor)?, Place::wanted(continuity)?);
        let refined = Shared::of(timebase)?.timebase.refine();
        let (kind, by_ns) = match refined.continuity {
            Continuity::Continued => (HS_CONTINUED, 0),
            Continuity::Rerated => (HS_RERATED, 0),
            Continuity::Suspended(by) => (HS_SUSPENDED, by.count()),
            Continuity::Stepped(by) => (HS_STEPPED, by.count()),
            Continuity::Distrusted => (HS_DISTRUSTED, 0),
        };
        place.put(new_handle(refined.timebase));
        if let Some(told) = told {
            told.put(hs_continuity { kind, by_ns });
        }
        Ok(())
    })
}

/// Frees a time base; long delays and profiles made from it stay usable. NULL is allowed. HS_E_FREED, HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_timebase_free(timebase: *mut hs_timebase) -> c_int {
    door(|| free(timebase))
}

/// Rate of the time base, with its bounds.
#[unsafe(no_mangle)]
pub extern "C" fn hs_timebase_calibration(timebase: *const hs_timebase, calibration: *mut hs_calibration) -> c_int {
    door(|| {
        let place = Place::new(calibration)?;
        let owned = Shared::of(timebase)?;
        let (known, cost) = (owned.timebase.calibration(), owned.timebase.cost());
        place.put(hs_calibration {
            frequency_hz: known.rate_hz,
            bound_ppm: known.bound_ppm,
            baseline_ns: known.baseline.count(),
            discipline_ppm: known.discipline_ppm,
            wall_ns: cost.wall.count(),
            cpu_ns: cost.cpu.count(),
            skew_ns: owned.timebase.skew().count(),
            epoch: owned.timebase.epoch().number(),
        });
        Ok(())
    })
}

/// The verdict on the counter, with its evidence.
#[unsafe(no_mangle)]
pub extern "C" fn hs_timebase_trust(timebase: *const hs_timebase, trust: *mut hs_trust) -> c_int {
    door(|| {
        let place = Place::new(trust)?;
        let owned = Shared::of(timebase)?;
        let verdict = owned.timebase.trust();
        place.put(hs_trust {
            trusted: verdict.trusted,
            guest: verdict.guest,
            source: match owned.timebase.source() {
                TimeSource::Counter => HS_SOURCE_COUNTER,
                TimeSource::KernelClock => HS_SOURCE_KERNEL_CLOCK,
            },
            reasons: u32::try_from(owned.reasons.len()).unwrap_or(u32::MAX),
            text: owned.trust.as_ptr(),
        });
        Ok(())
    })
}

/// One piece of evidence, from 0: "+ …" speaks for the counter, "- …" against it. Lives as long as the time base.
/// HS_E_NOT_FOUND after the last.
#[unsafe(no_mangle)]
pub extern "C" fn hs_timebase_reason(timebase: *const hs_timebase, index: u32, text: *mut *const c_char) -> c_int {
    door(|| {
        let place = Place::new(text)?;
        let owned = Shared::of(timebase)?;
        let reason = usize::try_from(index).ok().and_then(|index| owned.reasons.get(index));
        let reason = reason.ok_or_else(|| Failure::new(HS_E_NOT_FOUND, format!("find reason {index}")))?;
        place.put(reason.as_ptr());
        Ok(())
    })
}

/// The largest distance of an instant of this time base from the kernel's clock, in nanoseconds. HS_E_EPOCH.
#[unsafe(no_mangle)]
pub extern "C" fn hs_timebase_offset_bound_ns(
    timebase: *const hs_timebase,
    at: *const hs_instant,
    offset_bound_ns: *mut i64,
) -> c_int {
    door(|| {
        let place = Place::new(offset_bound_ns)?;
        let owned = Shared::of(timebase)?;
        place.put(owned.timebase.offset_bound(read(at)?.on(&owned.timebase)?).count());
        Ok(())
    })
}

/// The time now, on the scale of CLOCK_MONOTONIC: the cheapest call. Real-time safe. HS_ABSENT_NS if the handle is
/// invalid; hs_last_error() says why. The result has no epoch, so use hs_now() for differences across a suspend.
#[unsafe(no_mangle)]
pub extern "C" fn hs_now_ns(timebase: *const hs_timebase) -> i64 {
    match peek(timebase) {
        Ok(owned) => owned.timebase.now().as_monotonic().count(),
        Err(failure) => {
            failure.tell();
            HS_ABSENT_NS
        }
    }
}

/// The same in microseconds, for languages without 64-bit integers; exact to a nanosecond for the first 100 days after
/// the start of the machine. NaN if the handle is invalid.
#[unsafe(no_mangle)]
pub extern "C" fn hs_now_us(timebase: *const hs_timebase) -> f64 {
    match hs_now_ns(timebase) {
        HS_ABSENT_NS => f64::NAN,
        now_ns => now_ns as f64 / 1e3,
    }
}

/// The time now as an instant. Real-time safe.
#[unsafe(no_mangle)]
pub extern "C" fn hs_now(timebase: *const hs_timebase, now: *mut hs_instant) -> c_int {
    door(|| {
        let place = Place::new(now)?;
        place.put(hs_instant::new(peek(timebase)?.timebase.now()));
        Ok(())
    })
}

/// The time now, read after every earlier instruction has completed. Real-time safe.
#[unsafe(no_mangle)]
pub extern "C" fn hs_now_ordered(timebase: *const hs_timebase, now: *mut hs_instant) -> c_int {
    door(|| {
        let place = Place::new(now)?;
        place.put(hs_instant::new(peek(timebase)?.timebase.now_ordered()));
        Ok(())
    })
}

/// How much later one instant is than another, in nanoseconds; negative if it is earlier. Real-time safe. HS_E_EPOCH.
#[unsafe(no_mangle)]
pub extern "C" fn hs_difference_ns(
    later: *const hs_instant,
    earlier: *const hs_instant,
    difference_ns: *mut i64,
) -> c_int {
    door(|| {
        let place = Place::new(difference_ns)?;
        let (later, earlier) = (read(later)?, read(earlier)?);
        if later.epoch != earlier.epoch {
            return Err(Failure::new(HS_E_EPOCH, "subtract instants: they belong to different epochs or time bases"));
        }
        place.put(later.monotonic_ns.saturating_sub(earlier.monotonic_ns));
        Ok(())
    })
}
