//! [`Variable`]: each value that a published station has for control systems, with its name, unit and limits. The EPICS
//! bridge and the screen are made from this one table.

use hairspring_machine::Nanos;
use hairspring_station::publish::Phase;
use hairspring_station::{LatencyAlarm, Property, Station};
use serde_json::{Value, json};

/// Role of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Part of the state.
    State,
    /// A set-point.
    Set,
    /// A set-point as it is in force.
    Read,
}

/// Kind of a variable's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Phase,
    Text,
    Counter,
    Latency,
    Rate,
    Histogram,
    Table,
    /// Off or on.
    Switch,
    Number,
}

/// A value for control systems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    /// Its name without the prefix.
    pub(super) suffix: String,
    /// The unit that it belongs to, by its place and by its name.
    pub(super) unit: Option<(usize, String)>,
    /// The key in the state, or the name of the property.
    pub(super) key: &'static str,
    pub(super) kind: Kind,
    pub(super) role: Role,
    /// Unit of measure; empty for numbers.
    pub(super) measure: &'static str,
    pub(super) description: &'static str,
    pub(super) limits: Option<(i64, i64)>,
    /// From which values on it is an alarm.
    pub(super) alarm: Option<LatencyAlarm>,
}

type Row = (&'static str, &'static str, Kind, &'static str, &'static str);

const OF_STATION: [Row; 6] = [
    ("State", "phase", Kind::Phase, "", "Where the station stands"),
    ("Heartbeat", "number", Kind::Counter, "", "States published since the start"),
    ("Version", "version", Kind::Text, "", "Version of hairspring"),
    ("Message", "message", Kind::Text, "", "What an operator should know"),
    ("ClockErr", "clock_within_ns", Kind::Number, "ns", "How far the stamps may be wrong"),
    ("Units", "units", Kind::Table, "", "All units"),
];
const OF_UNIT: [Row; 12] = [
    ("Events", "events", Kind::Counter, "", "Events since the start"),
    ("Missed", "missed", Kind::Counter, "", "Events without an action"),
    ("Late", "late", Kind::Counter, "", "Actions that began late"),
    ("Overrun", "overrun", Kind::Counter, "", "Events during the action before"),
    ("Skipped", "skipped", Kind::Counter, "", "Events while the unit was disabled"),
    ("NoStamps", "unrecorded", Kind::Counter, "", "Actions without a latency"),
    ("Rate", "events", Kind::Rate, "Hz", "Events per second"),
    ("LatMed", "median_ns", Kind::Latency, "ns", "Event to I/O, median"),
    ("LatP99", "p99_ns", Kind::Latency, "ns", "Event to I/O, 99 %"),
    ("LatMax", "max_ns", Kind::Latency, "ns", "Event to I/O, longest"),
    ("LatHist", "histogram", Kind::Histogram, "", "Event to I/O: counts by ns"),
    ("LastCycle", "cycle", Kind::Number, "", "Cycle of the latest event"),
];
const OF_PROPERTIES: [Row; 2] = [
    ("Waiting", "waiting", Kind::Number, "", "Values that wait for their events"),
    ("Expired", "expired", Kind::Counter, "", "Values whose cycle passed"),
];

/// A name of a unit in the letters that names of variables have.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

/// All variables of a station.
///
/// # Errors
/// Two units have names that differ only in letters that variables cannot have.
pub(super) fn variables(station: &Station) -> Result<Vec<Variable>, String> {
    let mut all: Vec<Variable> = OF_STATION.into_iter().map(|row| state(row, None)).collect();
    let mut names = Vec::new();
    for (index, unit) in station.units.iter().enumerate() {
        let name = plain(&unit.name);
        if names.contains(&name) {
            return Err(format!("the units {name} and {} would have the same variables: rename one", unit.name));
        }
        let at = Some((index, unit.name.as_str()));
        all.extend(OF_UNIT.into_iter().map(|row| {
            let is_latency = row.2 == Kind::Latency;
            Variable { alarm: unit.alarm.filter(|_| is_latency), ..state(row, at) }
        }));
        for limits in &unit.settable {
            let (stem, description) = match limits.property {
                Property::Enable => ("Enable", "Whether the unit acts"),
                Property::LateAfter => ("LateAfter", "Later actions count as late"),
                Property::Width => ("Width", "Width of the pulse"),
                Property::Value => ("Value", "Value of the lines"),
            };
            for (end, role) in [("SP", Role::Set), ("RB", Role::Read)] {
                all.push(Variable {
                    suffix: format!("{name}:{stem}-{end}"),
                    unit: Some((index, unit.name.clone())),
                    key: limits.property.name(),
                    kind: if limits.property == Property::Enable { Kind::Switch } else { Kind::Number },
                    role,
                    measure: limits.property.unit(),
                    description,
                    limits: Some((limits.least, limits.most)),
                    alarm: None,
                });
            }
        }
        if !unit.settable.is_empty() {
            all.extend(OF_PROPERTIES.into_iter().map(|row| state(row, at)));
        }
        names.push(name);
    }
    Ok(all)
}

fn state((field, key, kind, measure, description): Row, unit: Option<(usize, &str)>) -> Variable {
    let suffix = unit.map_or_else(|| field.to_owned(), |(_, name)| format!("{}:{field}", plain(name)));
    let unit = unit.map(|(index, name)| (index, name.to_owned()));
    Variable { suffix, unit, key, kind, role: Role::State, measure, description, limits: None, alarm: None }
}

/// Prefix of the names: as in the station's file, or the name that the station is published under.
pub(super) fn prefix(station: &Station, name: &str) -> String {
    station.publish.prefix.clone().unwrap_or_else(|| format!("{}:", plain(name)))
}

/// Contents of the file that bridges read beside the page.
pub(super) fn description(station: &Station, name: &str, variables: &[Variable]) -> String {
    let variables: Vec<Value> = variables.iter().map(variable_json).collect();
    let prefix = prefix(station, name);
    format!(
        "{:#}\n",
        json!({ "schema": "hairspring.published/1", "name": name, "prefix": prefix, "variables": variables })
    )
}

fn variable_json(variable: &Variable) -> Value {
    let kind = match variable.kind {
        Kind::Phase => "phase",
        Kind::Text => "text",
        Kind::Counter => "counter",
        Kind::Latency => "latency",
        Kind::Rate => "rate",
        Kind::Histogram => "histogram",
        Kind::Table => "table",
        Kind::Switch => "switch",
        Kind::Number => "number",
    };
    let role = match variable.role {
        Role::State => "state",
        Role::Set => "set",
        Role::Read => "read",
    };
    let choices = match variable.kind {
        Kind::Phase => Some(Phase::ALL.map(Phase::name).to_vec()),
        Kind::Switch => Some(vec!["Off", "On"]),
        _ => None,
    };
    json!({
        "suffix": variable.suffix,
        "index": variable.unit.as_ref().map(|(index, _)| index),
        "unit_name": variable.unit.as_ref().map(|(_, name)| name),
        "key": variable.key,
        "kind": kind,
        "role": role,
        "unit": variable.measure,
        "description": variable.description,
        "least": variable.limits.map(|(least, _)| least),
        "most": variable.limits.map(|(_, most)| most),
        "choices": choices,
        "alarm": variable.alarm.map(|alarm| json!({
            "minor": alarm.minor.map(Nanos::count),
            "major": alarm.major.map(Nanos::count),
            "hysteresis": alarm.hysteresis.count(),
        })),
    })
}
