//! An incident: one gap or late wake-up, with the occupants of its CPU from moment to moment.
//!
//! It is plain data. A document may come from anywhere, so renderers pass over spans that make no sense.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One gap or late wake-up on a line of time, with a little of what was before and after. Times are nanoseconds from
/// its beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Incident {
    /// What happened.
    pub kind: IncidentKind,
    /// The time of day at which it began, RFC 3339 in UTC.
    pub began: String,
    /// The CPU on which it happened.
    pub cpu: u32,
    /// How long the thread went without its CPU, or how late it was woken; above zero.
    pub length_ns: i64,
    /// Who had the CPU, in the order of time. Those between 0 and `length_ns` share the lost time without a hole,
    /// unless some are left out. Times before 0 and after `length_ns` have a span only where the kernel's records
    /// reach.
    pub spans: Vec<IncidentSpan>,
    /// How many shorter spans are left out; missing where none is.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u32,
}

/// What an incident is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IncidentKind {
    /// A polling loop did not run.
    Gap,
    /// A thread that slept ran later than it was due.
    Wakeup,
}

/// A stretch of time in which one had the CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IncidentSpan {
    /// Its beginning; negative before the incident.
    pub from_ns: i64,
    /// Its end, after its beginning.
    pub to_ns: i64,
    /// Who, for people: `timer interrupt`, `task backup, pid 200, nice 0`.
    pub who: String,
    /// Which kind of culprit, as in the ids of `disturbance.culprits`; `thread` is the thread that lost the time, and
    /// `idle` a CPU with nothing to do.
    pub kind: String,
    /// Whether this is concluded because the kernel has no record of anybody else: the hypervisor or the firmware.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub concluded: bool,
}

/// The kind of a span of the thread that lost the time.
pub const INCIDENT_THREAD: &str = "thread";

/// Whether a count is left out of the JSON.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
