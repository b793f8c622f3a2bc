//! Ids: of sheets, of machines, of conditions.

use hairspring_sheet::{Conditions, Sheet, SheetFact};
use sha2::{Digest, Sha256};

/// The digits of an id; a chance collision of 128 bits is out of question.
const DIGITS: usize = 32;
/// The digits of the id of a machine or of conditions, of which an archive has few.
const DIGITS_FEW: usize = 16;

/// The facts that identify a machine: its name, board, processor and memory; nothing that an upgrade of its system
/// changes.
const MACHINE: [&str; 6] = ["host.name", "host.product", "cpu.model", "cpu.identity", "cpu.possible", "cpu.memory"];
/// The groups of facts that must be equal for two sheets to be taken under the same conditions.
const GROUPS: [&str; 3] = ["cpu.", "kernel.", "limits."];
/// The same for single facts.
const SINGLE: [&str; 2] = ["host.firmware", "host.os"];
/// Facts of these groups that change from moment to moment.
const MOVING: [&str; 3] = ["cpu.frequency", "cpu.numa", "kernel.steal"];

/// The id of a sheet: the hash of its JSON without the space between tokens, so that indentation does not make another
/// sheet of it.
pub fn sheet_id(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let mut kept = Vec::with_capacity(json.len());
    for byte in json.bytes() {
        if in_string || !byte.is_ascii_whitespace() {
            kept.push(byte);
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ => {}
        }
    }
    hash(&kept, DIGITS)
}

/// The id of the machine that a sheet was taken on: `m`, so that no reader takes it for a number, and the hash of its
/// stable facts.
pub fn machine_id(conditions: &Conditions) -> String {
    let known = MACHINE.map(|id| format!("{id}={}\n", conditions.value(id).unwrap_or("unknown")));
    format!("m{}", hash(known.concat().as_bytes(), DIGITS_FEW))
}

/// A fact that belongs to the conditions: id, label and value.
pub(crate) type Condition = (String, String, String);

/// Conditions that must be equal for two sheets to be comparable over time: the facts, the build and the effort; and
/// their hash.
pub(crate) fn conditions_of(sheet: &Sheet) -> (String, Vec<Condition>) {
    let belongs = |fact: &&SheetFact| {
        let id = fact.id.as_str();
        let group = GROUPS.iter().any(|group| id.starts_with(group)) && !MACHINE.contains(&id);
        (group || SINGLE.contains(&id)) && !MOVING.contains(&id)
    };
    let facts = sheet.conditions.facts.iter().filter(belongs);
    let facts = facts.map(|fact| {
        let value = sheet.conditions.value(&fact.id).unwrap_or("unknown").to_owned();
        (fact.id.clone(), fact.label.clone(), value)
    });
    let own = [
        ("hairspring".to_owned(), "Build of hairspring".to_owned(), build_of(sheet)),
        ("taken.effort".to_owned(), "Effort".to_owned(), sheet.taken.effort.clone()),
    ];
    let all: Vec<Condition> = own.into_iter().chain(facts).collect();
    let text: String = all.iter().map(|(id, _, value)| format!("{id}={value}\n")).collect();
    (hash(text.as_bytes(), DIGITS_FEW), all)
}

/// The build that took a sheet, in one line.
pub(crate) fn build_of(sheet: &Sheet) -> String {
    let build = &sheet.hairspring;
    format!("{} {} {} {}", build.version, build.commit.as_deref().unwrap_or("-"), build.compiler, build.flags)
}

fn hash(bytes: &[u8], digits: usize) -> String {
    let mut text: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    text.truncate(digits);
    text
}
