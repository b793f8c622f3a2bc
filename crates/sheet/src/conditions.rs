//! The conditions of a sheet: the machine, its settings, and the other running threads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Absent;

/// All known facts of the machine when the sheet was taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conditions {
    /// Facts in the order in which they are printed; ids are `group.name`, unique.
    pub facts: Vec<SheetFact>,
    /// The threads of the machine when the measurement began.
    pub threads: Vec<ThreadRow>,
    /// Why the thread table is missing or incomplete; null if it is complete.
    pub threads_absent: Option<Absent>,
}

/// One fact about the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Fact")]
pub struct SheetFact {
    /// Stable id, `group.name`, for instance `cpu.model`.
    pub id: String,
    /// Its label, for people.
    pub label: String,
    /// The value, or why it could not be read.
    #[serde(flatten)]
    pub value: FactValue,
}

/// A fact's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactValue {
    /// The value, formatted for people, with its unit.
    Value(String),
    /// It could not be read, or was left out on request.
    Absent(Absent),
}

/// One thread of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadRow {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// The thread's name as the kernel keeps it (at most 15 bytes); null when left out by `--redact`.
    pub name: Option<String>,
    /// Scheduling policy: `other`, `fifo`, `rr`, `batch`, `idle`, `deadline`.
    pub policy: String,
    /// Real-time priority 1–99; 0 for the policies that have none.
    pub rt_priority: u32,
    /// CPU time used so far, in milliseconds.
    pub cpu_ms: u64,
}

impl Conditions {
    /// The value of the fact with this id, if it could be read.
    pub fn value(&self, id: &str) -> Option<&str> {
        match &self.facts.iter().find(|f| f.id == id)?.value {
            FactValue::Value(value) => Some(value),
            FactValue::Absent(_) => None,
        }
    }

    /// The kernel's clock source, if it could be read.
    pub(crate) fn clock_source(&self) -> Option<&str> {
        self.value("kernel.clocksource")
    }
}
