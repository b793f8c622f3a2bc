//! The conditions that the answers of a soak hold for: a named set of facts, and a mark that changes with any of them.

use hairspring_sheet::{Conditions, SheetFact};

/// The id of the fact that holds the mark.
pub const SOAK_CONDITIONS: &str = "soak.conditions";

/// The groups of facts that belong to the set: the processor, the kernel with its command line, and the permissions of
/// this process.
const GROUPS: [&str; 3] = ["cpu.", "kernel.", "limits."];
/// Facts that change from moment to moment; the set leaves them out.
const MOVING: [&str; 2] = ["cpu.frequency", "kernel.steal"];

fn of(conditions: &Conditions) -> impl Iterator<Item = &SheetFact> {
    let belongs = |id: &str| GROUPS.iter().any(|group| id.starts_with(group)) && !MOVING.contains(&id);
    conditions.facts.iter().filter(move |fact| belongs(&fact.id))
}

/// The mark of the set: the CRC-32C of its ids and values, in hexadecimal. Equal marks, equal conditions.
pub fn conditions_mark(conditions: &Conditions) -> String {
    let mark = of(conditions).fold(0, |mark, fact| {
        let value = conditions.value(&fact.id).unwrap_or("absent");
        crc32c::crc32c_append(mark, format!("{}={value}\n", fact.id).as_bytes())
    });
    format!("{mark:08x}")
}

/// The facts of the set that differ: label, value before, value after.
pub fn changed_conditions(before: &Conditions, after: &Conditions) -> Vec<(String, String, String)> {
    let known = |conditions: &Conditions, id: &str| conditions.value(id).unwrap_or("unknown").to_owned();
    let new = of(after).filter(|fact| before.facts.iter().all(|other| other.id != fact.id));
    let pairs = of(before).chain(new).map(|fact| (fact.label.clone(), known(before, &fact.id), known(after, &fact.id)));
    pairs.filter(|(_, before, after)| before != after).collect()
}

#[cfg(test)]
mod tests {
    use hairspring_sheet::FactValue;

    use super::*;

    fn conditions(facts: &[(&str, &str)]) -> Conditions {
        let fact = |(id, value): &(&str, &str)| SheetFact {
            id: (*id).to_owned(),
            label: id.to_uppercase(),
            value: FactValue::Value((*value).to_owned()),
        };
        Conditions { facts: facts.iter().map(fact).collect(), ..Conditions::default() }
    }

    #[test]
    fn the_mark_changes_with_the_kernel_and_not_with_the_load() {
        let before = conditions(&[("kernel.release", "6.18"), ("cpu.frequency", "1 GHz"), ("load.average", "1")]);
        let warmer = conditions(&[("kernel.release", "6.18"), ("cpu.frequency", "2 GHz"), ("load.average", "9")]);
        let other = conditions(&[("kernel.release", "6.19"), ("cpu.frequency", "1 GHz"), ("load.average", "1")]);
        assert_eq!(conditions_mark(&before), conditions_mark(&warmer));
        assert_ne!(conditions_mark(&before), conditions_mark(&other));
        assert_eq!(changed_conditions(&before, &warmer), []);
        let changed = [("KERNEL.RELEASE".to_owned(), "6.18".to_owned(), "6.19".to_owned())];
        assert_eq!(changed_conditions(&before, &other), changed);
        let fewer = conditions(&[]);
        assert_eq!(changed_conditions(&fewer, &before)[0].1, "unknown");
    }
}
