//! [`ExecStatus`]: the content of the file, as JSON.

use hairspring_exec_core::{TaskState, Waiting};
use hairspring_machine::{Instant, Nanos};
use serde::{Deserialize, Deserializer, Serialize};

use super::error::StatusError;
use super::sample::{Sample, TaskSample};
use crate::system::clock::instant_of;
use crate::system::stack::StackUse;

/// The number of the format; a reader of another number refuses.
const FORMAT: u64 = 1;

/// A published executive, at one time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExecStatus {
    /// The number of the file's format. Must be the first field, so that another format is refused by its number.
    #[serde(rename = "hairspring_executive", deserialize_with = "this_format")]
    format: u64,
    /// The name that it is published under.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Its back-end, as in [`Backend::name`](crate::Backend::name).
    pub backend: String,
    /// When it answered last, on `CLOCK_MONOTONIC`. An executive between two runs and a carrier that computes do not
    /// answer; a carrier that sleeps answers five times a second.
    #[serde(rename = "at_ns", with = "count")]
    pub at: Instant,
    /// Whether a run was under way.
    pub running: bool,
    /// How often the CPU had nothing to do; only on fibers.
    pub idle: Option<IdleSamples>,
    /// Its tasks.
    pub tasks: Vec<TaskStatus>,
}

/// How many samples of a carrier found no task with the CPU, since its executive was published.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IdleSamples {
    /// Samples without a task.
    pub idle: u64,
    /// All samples.
    pub taken: u64,
}

/// A task of a published executive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Its id as one number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// State: `idle`, `ready`, `waiting`, `suspended`, `killed` or `dead`.
    pub state: String,
    /// The object or event that it waits for, in words; empty if it does not wait.
    pub waits_for: String,
    /// Its own priority.
    pub priority: u8,
    /// The priority that it runs at.
    pub effective: u8,
    /// Starts that are pending.
    pub starts: u16,
    /// Messages that wait in its mailboxes.
    pub messages: u64,
    /// When its wait ends by time.
    #[serde(rename = "wait_ends_ns", with = "count")]
    pub wait_ends: Option<Instant>,
    /// The CPU time that it has used. On fibers from samples since the executive is published, unless it measures
    /// usage.
    #[serde(rename = "cpu_ns", with = "count")]
    pub cpu: Nanos,
    /// How often it was given the CPU since it was made; none on fibers that do not measure it.
    pub switches: Option<u64>,
    /// For how long it has been ready at each sample without running at any.
    #[serde(rename = "starved_ns", with = "count")]
    pub starved: Nanos,
    /// Its stack, and the most that it has used of it, to the page.
    #[serde(rename = "stack_bytes", with = "count")]
    pub stack: Option<StackUse>,
    /// The kernel's number of its thread.
    pub thread: Option<i32>,
}

impl ExecStatus {
    pub(super) fn of(name: &str, backend: &str, sample: &Sample) -> Self {
        Self {
            format: FORMAT,
            name: name.to_owned(),
            pid: std::process::id(),
            backend: backend.to_owned(),
            at: instant_of(sample.at),
            running: sample.running,
            idle: (sample.taken > 0).then_some(IdleSamples { idle: sample.idle, taken: sample.taken }),
            tasks: sample.tasks.iter().flatten().map(|task| TaskStatus::of(task, sample)).collect(),
        }
    }

    /// The text of a file.
    pub(super) fn to_json(&self) -> String {
        // Numbers, texts and lists can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// [`StatusError::Format`] names the field that is missing or has another type, or the number of another format.
    pub fn from_json(text: &str) -> Result<Self, StatusError> {
        serde_json::from_str(text).map_err(|error| StatusError::Format(error.to_string()))
    }
}

fn this_format<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    match u64::deserialize(from)? {
        FORMAT => Ok(FORMAT),
        other => Err(serde::de::Error::custom(format_args!(
            "it has format {other}, and this version reads hairspring_executive {FORMAT}"
        ))),
    }
}

/// Times as numbers of nanoseconds, absolute ones on `CLOCK_MONOTONIC`; a stack as its size and what was used of it.
mod count {
    use serde::Serializer;

    use super::{Deserialize, Deserializer, Instant, Nanos, Serialize, StackUse};

    pub(super) trait Counted: Copy {
        type Count: Serialize + for<'de> Deserialize<'de>;
        fn count(self) -> Self::Count;
        fn of(count: Self::Count) -> Self;
    }

    impl Counted for Nanos {
        type Count = i64;
        fn count(self) -> i64 {
            Self::count(self)
        }
        fn of(count: i64) -> Self {
            Self::new(count)
        }
    }

    impl Counted for Instant {
        type Count = i64;
        fn count(self) -> i64 {
            self.as_monotonic().count()
        }
        fn of(count: i64) -> Self {
            Self::from_monotonic(Nanos::new(count))
        }
    }

    impl Counted for StackUse {
        type Count = [usize; 2];
        fn count(self) -> [usize; 2] {
            [self.bytes, self.used_bytes]
        }
        fn of([bytes, used_bytes]: [usize; 2]) -> Self {
            Self { bytes, used_bytes }
        }
    }

    impl<T: Counted> Counted for Option<T> {
        type Count = Option<T::Count>;
        fn count(self) -> Self::Count {
            self.map(T::count)
        }
        fn of(count: Self::Count) -> Self {
            count.map(T::of)
        }
    }

    pub(super) fn serialize<T: Counted, S: Serializer>(time: &T, to: S) -> Result<S::Ok, S::Error> {
        time.count().serialize(to)
    }

    pub(super) fn deserialize<'de, T: Counted, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        T::Count::deserialize(from).map(T::of)
    }
}

impl TaskStatus {
    fn of(sample: &TaskSample, whole: &Sample) -> Self {
        let view = &sample.view;
        let state = match view.state {
            _ if view.killed => "killed",
            _ if view.suspended => "suspended",
            TaskState::Idle | TaskState::Deleted => "idle",
            TaskState::Ready => "ready",
            TaskState::Waiting => "waiting",
            TaskState::Dead => "dead",
        };
        let starved = sample.starved_since.map_or(0, |since| whole.at.as_nanos().saturating_sub(since.as_nanos()));
        Self {
            id: sample.task.number(),
            name: sample.name.clone(),
            state: state.to_owned(),
            waits_for: waits_for(view.waiting),
            priority: view.base.number(),
            effective: view.effective.number(),
            starts: view.starts,
            messages: sample.messages as u64,
            wait_ends: sample.wait_ends.map(instant_of),
            cpu: sample.cpu,
            switches: sample.switches,
            starved: Nanos::new(i64::try_from(starved).unwrap_or(i64::MAX)),
            stack: sample.stack,
            thread: sample.thread,
        }
    }
}

fn waits_for(waiting: Waiting) -> String {
    match waiting {
        Waiting::Nothing => String::new(),
        Waiting::Wake => "a wake".to_owned(),
        Waiting::Delay => "time".to_owned(),
        Waiting::Signals(_) => "signals".to_owned(),
        Waiting::Mail(_) => "mail".to_owned(),
        Waiting::Acknowledgement(_) => "an acknowledgement".to_owned(),
        Waiting::Semaphore(slot) => format!("semaphore {slot}"),
        Waiting::Resource(slot) => format!("resource {slot}"),
        Waiting::Events(slot, ..) => format!("events {slot}"),
        Waiting::Exchange(slot) => format!("exchange {slot}"),
        Waiting::Block(slot, _) => format!("heap {slot}"),
        Waiting::End(slot) => format!("the end of task {slot}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> ExecStatus {
        let task = TaskStatus {
            id: 65_537,
            name: "samp\"ler".to_owned(),
            state: "waiting".to_owned(),
            waits_for: "semaphore 3".to_owned(),
            priority: 10,
            effective: 5,
            starts: 2,
            messages: 7,
            wait_ends: Some(Instant::from_monotonic(Nanos::new(123))),
            cpu: Nanos::from_millis(30),
            switches: Some(9),
            starved: Nanos::ZERO,
            stack: Some(StackUse { bytes: 65_536, used_bytes: 4_096 }),
            thread: None,
        };
        let other =
            TaskStatus { wait_ends: None, switches: None, stack: None, thread: Some(42), id: 0, ..task.clone() };
        ExecStatus {
            format: FORMAT,
            name: "stand".to_owned(),
            pid: 17,
            backend: "fiber".to_owned(),
            at: Instant::from_monotonic(Nanos::from_secs(9)),
            running: true,
            idle: Some(IdleSamples { idle: 3, taken: 4 }),
            tasks: vec![task, other],
        }
    }

    #[test]
    fn a_status_comes_back_from_its_text() {
        for idle in [status().idle, None] {
            let status = ExecStatus { idle, ..status() };
            assert_eq!(ExecStatus::from_json(&status.to_json()).expect("it is ours"), status);
        }
    }

    #[test]
    fn a_text_that_lacks_something_is_refused_by_its_name() {
        let fields =
            ["hairspring_executive", "pid", "backend", "at_ns", "running", "tasks", "starts", "cpu_ns", "wait_ends_ns"];
        for field in fields {
            let broken = status().to_json().replace(&format!("\"{field}\":"), "\"x\":");
            let error = ExecStatus::from_json(&broken).expect_err("it lacks a field").to_string();
            assert!(error.contains(field), "{field}: {error}");
        }
        // Back-ends without such samples have none; a text without the field is no surprise either.
        let without = status().to_json().replace("\"idle\":{", "\"x\":{");
        assert_eq!(ExecStatus::from_json(&without).expect("the samples may be missing").idle, None);
    }

    #[test]
    fn another_format_is_refused_by_its_number_whatever_it_holds() {
        for newer in
            [status().to_json().replace("executive\":1", "executive\":2"), "{\"hairspring_executive\":2}".to_owned()]
        {
            let error = ExecStatus::from_json(&newer).expect_err("it is newer").to_string();
            assert!(error.contains("format 2"), "{error}");
        }
    }

    #[test]
    fn a_text_that_is_cut_is_refused() {
        let whole = status().to_json();
        for cut in 0..whole.len() {
            assert!(ExecStatus::from_json(&whole[..cut]).is_err(), "{cut} bytes of it");
        }
    }
}
