//! [`ExecStatus`]: the content of the file, as JSON.

use std::fmt;

use hairspring_exec_core::{TaskState, Waiting};
use serde_json::{Map, Value, json};

use super::sample::{Sample, TaskSample};
use hairspring_machine::{Instant, Nanos};

use crate::system::clock::instant_of;

/// The number of the format; a reader of another number refuses.
const FORMAT: u64 = 1;

/// A published executive, at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExecStatus {
    /// The name that it is published under.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Its back-end, as [`Backend::name`](crate::Backend::name) says.
    pub backend: String,
    /// When it answered last, on `CLOCK_MONOTONIC`. An executive between two runs and a carrier that computes do not answer; a carrier that
    /// sleeps answers five times a second.
    pub at: Instant,
    /// Whether a run was under way.
    pub running: bool,
    /// On fibers, the share of samples that found no task with the CPU, and the number of samples.
    pub idle: Option<(u64, u64)>,
    /// Its tasks.
    pub tasks: Vec<TaskStatus>,
}

/// A task of a published executive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskStatus {
    /// Its id as one number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What it does: `idle`, `ready`, `waiting`, `suspended`, `killed` or `dead`.
    pub state: String,
    /// What it waits for, in words; empty if it does not wait.
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
    pub wait_ends: Option<Instant>,
    /// The CPU time that it has used. On fibers from samples since the executive is published, unless it measures usage.
    pub cpu: Nanos,
    /// How often it was given the CPU since it was made; none on fibers that do not measure it.
    pub switches: Option<u64>,
    /// For how long it has been ready at each sample without running at any.
    pub starved: Nanos,
    /// Its stack in bytes, and the most that it used of it so far, to the page.
    pub stack: Option<(u64, u64)>,
    /// The kernel's number of its thread.
    pub thread: Option<i32>,
}

/// Why a status could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum StatusError {
    /// No executive is published under this name or process number.
    NotPublished(String),
    /// Several executives are: their names and processes. Ask for one of the processes, or by the path of the file.
    Several(String),
    /// The file could not be read.
    System(std::io::Error),
    /// The file is no status of this format.
    Format(&'static str),
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPublished(which) => write!(
                f,
                "find a published executive {which}: the program must run as this user and call Executive::publish"
            ),
            Self::Several(which) => write!(f, "choose an executive: there are {which}; name a process"),
            Self::System(error) => write!(f, "read the status of an executive: {error}"),
            Self::Format(what) => write!(f, "read the status of an executive: it has no {what} of this version"),
        }
    }
}

impl std::error::Error for StatusError {}

impl ExecStatus {
    pub(super) fn of(name: &str, backend: &str, sample: &Sample) -> Self {
        let alive = sample.tasks.iter().filter(|task| task.view.state != TaskState::Deleted);
        Self {
            name: name.to_owned(),
            pid: std::process::id(),
            backend: backend.to_owned(),
            at: instant_of(sample.at),
            running: sample.running,
            idle: (sample.taken > 0).then_some((sample.idle, sample.taken)),
            tasks: alive.map(|task| TaskStatus::of(task, sample)).collect(),
        }
    }

    pub(super) fn to_json(&self) -> String {
        let tasks: Vec<Value> = self.tasks.iter().map(TaskStatus::to_json).collect();
        json!({
            "hairspring_executive": FORMAT,
            "name": self.name,
            "pid": self.pid,
            "backend": self.backend,
            "at_ns": self.at.as_monotonic().count(),
            "running": self.running,
            "idle_samples": self.idle.map(|idle| idle.0),
            "samples": self.idle.map(|idle| idle.1),
            "tasks": tasks,
        })
        .to_string()
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// [`StatusError::Format`] names the field that is missing or has another type.
    pub fn from_json(text: &str) -> Result<Self, StatusError> {
        let value: Value = serde_json::from_str(text).map_err(|_| StatusError::Format("JSON"))?;
        let fields = value.as_object().ok_or(StatusError::Format("object"))?;
        if unsigned(fields, "hairspring_executive")? != FORMAT {
            return Err(StatusError::Format("format"));
        }
        let tasks = fields.get("tasks").and_then(Value::as_array).ok_or(StatusError::Format("tasks"))?;
        Ok(Self {
            name: text_of(fields, "name")?,
            pid: unsigned(fields, "pid")?.try_into().map_err(|_| StatusError::Format("pid"))?,
            backend: text_of(fields, "backend")?,
            at: instant(fields, "at_ns")?.ok_or(StatusError::Format("at_ns"))?,
            running: fields.get("running").and_then(Value::as_bool).ok_or(StatusError::Format("running"))?,
            idle: unsigned(fields, "idle_samples").ok().zip(unsigned(fields, "samples").ok()),
            tasks: tasks.iter().map(TaskStatus::from_json).collect::<Result<_, _>>()?,
        })
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
            stack: sample.stack.map(|stack| (stack.bytes as u64, stack.used_bytes as u64)),
            thread: sample.thread,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "state": self.state,
            "waits_for": self.waits_for,
            "priority": self.priority,
            "effective": self.effective,
            "starts": self.starts,
            "messages": self.messages,
            "wait_ends_ns": self.wait_ends.map(|ends| ends.as_monotonic().count()),
            "cpu_ns": self.cpu.count(),
            "switches": self.switches,
            "starved_ns": self.starved.count(),
            "stack_bytes": self.stack.map(|stack| stack.0),
            "stack_used_bytes": self.stack.map(|stack| stack.1),
            "thread": self.thread,
        })
    }

    fn from_json(value: &Value) -> Result<Self, StatusError> {
        let fields = value.as_object().ok_or(StatusError::Format("task"))?;
        let small = |name| u8::try_from(unsigned(fields, name)?).map_err(|_| StatusError::Format(name));
        let nanos = |name| fields.get(name).and_then(Value::as_i64).map(Nanos::new).ok_or(StatusError::Format(name));
        Ok(Self {
            id: unsigned(fields, "id")?.try_into().map_err(|_| StatusError::Format("id"))?,
            name: text_of(fields, "name")?,
            state: text_of(fields, "state")?,
            waits_for: text_of(fields, "waits_for")?,
            priority: small("priority")?,
            effective: small("effective")?,
            starts: unsigned(fields, "starts")?.try_into().map_err(|_| StatusError::Format("starts"))?,
            messages: unsigned(fields, "messages")?,
            wait_ends: instant(fields, "wait_ends_ns")?,
            cpu: nanos("cpu_ns")?,
            switches: unsigned(fields, "switches").ok(),
            starved: nanos("starved_ns")?,
            stack: unsigned(fields, "stack_bytes").ok().zip(unsigned(fields, "stack_used_bytes").ok()),
            thread: fields.get("thread").and_then(Value::as_i64).and_then(|thread| i32::try_from(thread).ok()),
        })
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
        Waiting::End(slot) => format!("the end of task {slot}"),
    }
}

fn unsigned(fields: &Map<String, Value>, name: &'static str) -> Result<u64, StatusError> {
    fields.get(name).and_then(Value::as_u64).ok_or(StatusError::Format(name))
}

fn text_of(fields: &Map<String, Value>, name: &'static str) -> Result<String, StatusError> {
    fields.get(name).and_then(Value::as_str).map(str::to_owned).ok_or(StatusError::Format(name))
}

fn instant(fields: &Map<String, Value>, name: &'static str) -> Result<Option<Instant>, StatusError> {
    match fields.get(name) {
        None => Err(StatusError::Format(name)),
        Some(Value::Null) => Ok(None),
        Some(value) => match value.as_i64() {
            Some(at_ns) => Ok(Some(Instant::from_monotonic(Nanos::new(at_ns)))),
            None => Err(StatusError::Format(name)),
        },
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
            stack: Some((65_536, 4_096)),
            thread: None,
        };
        let other =
            TaskStatus { wait_ends: None, switches: None, stack: None, thread: Some(42), id: 0, ..task.clone() };
        ExecStatus {
            name: "stand".to_owned(),
            pid: 17,
            backend: "fiber".to_owned(),
            at: Instant::from_monotonic(Nanos::from_secs(9)),
            running: true,
            idle: Some((3, 4)),
            tasks: vec![task, other],
        }
    }

    #[test]
    fn a_status_comes_back_from_its_text() {
        for idle in [Some((3, 4)), None] {
            let status = ExecStatus { idle, ..status() };
            assert_eq!(ExecStatus::from_json(&status.to_json()).expect("it is ours"), status);
        }
    }

    #[test]
    fn a_text_that_lacks_something_is_refused_by_its_name() {
        let whole = status().to_json();
        for field in ["hairspring_executive", "pid", "backend", "at_ns", "running", "tasks", "starts", "cpu_ns"] {
            let broken = whole.replace(&format!("\"{field}\":"), "\"x\":");
            let error = ExecStatus::from_json(&broken).expect_err("it lacks a field").to_string();
            assert!(error.contains(field), "{field}: {error}");
        }
        // Back-ends without such samples have none; a text without the fields must not be a surprise either.
        let without = whole.replace("\"samples\":", "\"x\":");
        assert_eq!(ExecStatus::from_json(&without).expect("the samples may be missing").idle, None);
        let newer = whole.replace("\"hairspring_executive\":1", "\"hairspring_executive\":2");
        assert!(ExecStatus::from_json(&newer).is_err());
        for cut in 0..whole.len() {
            assert!(ExecStatus::from_json(&whole[..cut]).is_err(), "{cut} bytes of it");
        }
    }
}
