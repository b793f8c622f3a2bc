//! A calibrated time base, delays that are never early, and profiling.
//!
//! # Background
//! A CPU's counter is the cheapest clock: a read takes 10 ns and resolves less than 1 ns. But its rate is unknown and
//! may change, a hypervisor may intercept it, and the operating system may preempt the thread at any moment. Sleeps of
//! the operating system miss by tens of microseconds.
//!
//! # What this crate does
//! * [`Timebase`] calibrates the counter against the kernel's clock and states its error bound: about 10 ppm after 4
//!   ms, below 1 ppm after 100 ms, less as it ages.
//! * [`Timebase::delay`] waits by polling. It is never early, and late by a poll step.
//! * [`LongDelay`] sleeps and polls only the end. A delay of seconds ends to well below a microsecond and uses less
//!   than 0.1 % of a CPU.
//! * Every delay returns a [`Report`]: requested, actual, late, slept, polled, and a [`Verdict`] on its disturbances.
//! * [`Profile`] times code call by call.
//! * [`RealTime`] asks the system for a policy, a CPU and locked memory, and restores the former settings.
//!
//! # What can go wrong, and what happens then
//! * The counter is not trustworthy: the time base reads `CLOCK_MONOTONIC` instead; [`Timebase::source`] and
//!   [`Timebase::trust`] report it.
//! * The machine is suspended, its clock is stepped, or the kernel gives the counter up: [`Timebase::refine`] begins a
//!   new epoch. [`Instant::since`] refuses to subtract instants across that border.
//! * The thread is interrupted, preempted, migrated, throttled: the report contains counts and lengths.
//! * NTP changes the kernel's rate: [`Timebase::refine`] notices and begins a new baseline. Between two refinements the
//!   scale keeps its rate; it follows `CLOCK_MONOTONIC`, not the SI second. Delays from [`CONFIRMED_FROM`] on end by
//!   the kernel's clock whatever its rate does; shorter ones can be early by the change of the rate times their length.
//!
//! ```
//! use hairspring_time::{Host, LongDelay, Nanos, Timebase};
//!
//! let timebase = Timebase::calibrate(Host)?;
//! let start = timebase.now();
//! let report = timebase.delay(Nanos::from_micros(50))?;
//! assert!(report.late >= Nanos::ZERO);
//! assert!(timebase.now().since(start)? >= Nanos::from_micros(50));
//!
//! let mut long = LongDelay::new(&timebase);
//! let report = long.delay(Nanos::from_millis(20))?;
//! assert!(report.actual >= Nanos::from_millis(20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod calibration;
mod counter_step;
mod delay;
mod ending;
mod goal;
mod held;
mod learned;
mod long_delay;
mod poll;
mod profile;
mod real_time;
mod report;
mod scale;
mod skew;
mod timebase;
mod timer_slack;
mod trust;
mod verdict;

pub use calibration::{Anchors, AnchorsError, BRACKETS, Bracket, Calibration};
pub use counter_step::{CounterStep, STEP_READINGS};
pub use delay::CONFIRMED_FROM;
pub use hairspring_machine::{Cpu, Epoch, EpochMismatch, Host, Instant, Machine, Nanos, Policy, Refused, Sim, Ticks};
pub use held::HeldTimebase;
pub use long_delay::{LongDelay, lead_for};
pub use poll::Watch;
pub use profile::{Ordering, Profile, Start, Summary};
pub use real_time::{Grant, RealTime, RealTimeGuard};
pub use report::{DelayError, POLL_MOST, REQUEST_MOST, Report};
pub use skew::{Skew, SkewError};
pub use timebase::{CalibrationError, Continuity, Cost, FIRST_BASELINE, GAP_LEAST, Refined, Timebase};
pub use trust::{TimeSource, Trust, TrustReason};
pub use verdict::{Cause, Gaps, Verdict};
