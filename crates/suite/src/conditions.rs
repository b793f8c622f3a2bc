//! The conditions of a sheet: the machine's own facts, turned into the document's.

use hairspring_machine::Machine;
use hairspring_machine::facts::Unread;
use hairspring_sheet::{Absent, Conditions, FactValue, SheetFact, ThreadRow};

/// Reads the machine's facts. With `redact`, facts that identify the machine are left out and marked absent.
pub fn read_conditions<M: Machine>(machine: &M, redact: bool) -> Conditions {
    let facts = machine.facts();
    let value = |value: Result<String, Unread>| match value {
        Ok(text) => FactValue::Value(text),
        Err(unread) => FactValue::Absent(Absent { reason: unread.reason, remedy: unread.remedy }),
    };
    let left_out = || Absent::new("left out on request (--redact)", "take the sheet without --redact");
    Conditions {
        facts: facts
            .facts
            .into_iter()
            .map(|fact| SheetFact {
                id: fact.id.to_owned(),
                label: fact.label.to_owned(),
                value: if redact && fact.private { FactValue::Absent(left_out()) } else { value(fact.value) },
            })
            .collect(),
        threads: facts
            .threads
            .into_iter()
            .map(|thread| ThreadRow {
                pid: thread.pid,
                tid: thread.tid,
                name: (!redact).then_some(thread.name),
                policy: thread.policy,
                rt_priority: thread.rt_priority,
                cpu_ms: thread.cpu_ms,
            })
            .collect(),
        threads_absent: match facts.threads_unread {
            Some(unread) => Some(Absent { reason: unread.reason, remedy: unread.remedy }),
            None if redact => {
                Some(Absent::new("names left out on request (--redact)", "take the sheet without --redact"))
            }
            None => None,
        },
    }
}
