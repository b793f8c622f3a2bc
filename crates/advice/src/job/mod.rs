//! Jobs: their requirements, and whether this computer meets them, with what margin.
//!
//! | noun | meaning |
//! |---|---|
//! | [`Requirement`] | a loop, a reaction or a delay, its limit, and the permitted frequency of misses |
//! | [`Evidence`] | the watched events: their number, and the number beyond the limit |
//! | [`JobAnswer`] | yes, no or not shown; the margin; the measurement that would decide |
//! | [`RecordRequirement`], [`RecordAnswer`] | a recording without loss, and its answer from a plan and a watch |
//! | [`Trial`] | watches the requirement on this computer, unchanged and with idle states off |
//!
//! An answer is a statement with 95 % confidence about the machine as it was while it was watched. **Yes** needs the
//! upper limit of the share of misses inside the requirement, **no** the lower limit outside. Everything else is **not
//! shown**, and the answer gives the time to watch. The answer does not cover events that did not occur during the
//! watch (a backup, a log rotation, a hot summer).
//!
//! [`Requirement`] and [`JobAnswer::of`] are pure. [`Trial::run`] blocks for its given time and starts the threads that
//! [`Workload`](hairspring_suite::workload::Workload) names.
//!
//! ```
//! use hairspring_advice::job::{JobAnswer, Evidence, AnswerKind, Requirement};
//!
//! let requirement: Requirement = "loop 1 kHz jitter 50us p99.9".parse()?;
//! let evidence = Evidence::of_samples(&requirement, &vec![12_000.0; 5_000], hairspring_machine::Nanos::from_secs(5));
//! let answer = JobAnswer::of(&requirement, &evidence);
//! assert_eq!(answer.outcome, AnswerKind::Yes);
//! # Ok::<(), hairspring_describe::DescriptionError>(())
//! ```

mod answer;
mod bounds;
mod evidence;
mod ready_made;
mod recording;
mod requirement;
mod trial;

pub use answer::{AnswerKind, JobAnswer, Undecided};
pub use evidence::Evidence;
pub use ready_made::{JOBS, Job};
pub use recording::{JobNeed, RecordAnswer, RecordEvidence, RecordRequirement};
pub use requirement::{Requirement, Tolerance};
pub use trial::{Arm, Trial, TrialRequest};
