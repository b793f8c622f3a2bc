//! Texts of an incident that every form shows: its length and place, its story in words, and its lanes.

use super::clean::clean;
use super::quantity;
use super::quantity::Quantity;
use crate::{Chapter, INCIDENT_THREAD, Incident, IncidentKind, IncidentSpan, Unit};

/// The incidents of a chapter under their headings, the longest first.
pub(crate) fn groups(chapter: &Chapter) -> Vec<(&'static str, Vec<&Incident>)> {
    let of = |kind| {
        let mut incidents: Vec<&Incident> = chapter.incidents.iter().filter(|one| one.kind == kind).collect();
        incidents.sort_by_key(|one| std::cmp::Reverse(one.length_ns));
        incidents
    };
    let headings = [
        (IncidentKind::Gap, "The longest gaps of the polling loop, and who had the CPU"),
        (IncidentKind::Wakeup, "The wake-ups with the greatest delay, and who had the CPU"),
    ];
    let groups = headings.map(|(kind, heading)| (heading, of(kind)));
    groups.into_iter().filter(|(_, incidents)| !incidents.is_empty()).collect()
}

/// Its length: `2.31 ms`, `2.31 ms late`.
pub(crate) fn length(incident: &Incident) -> String {
    let length = time(incident.length_ns as f64);
    match incident.kind {
        IncidentKind::Gap => length.to_string(),
        IncidentKind::Wakeup => format!("{length} late"),
    }
}

/// CPU and time: `CPU 1, 2026-11-23 17:05:12.345 UTC`.
pub(crate) fn place(incident: &Incident) -> String {
    let utc = incident.began.strip_suffix('Z').and_then(|began| began.split_once('T'));
    let when = utc.map_or(incident.began.clone(), |(date, time)| format!("{date} {time} UTC"));
    format!("CPU {}, {}", incident.cpu, clean(&when))
}

/// As many are named in a sentence.
const NAMED: usize = 4;

/// The culprits of the lost time, the greatest part first: `2.29 ms hypervisor; 11.0 µs timer interrupt`.
pub(crate) fn story(incident: &Incident) -> String {
    let mut parts: Vec<(f64, String)> =
        lanes(incident).into_iter().filter(|lane| lane.taken > 0.0).map(|lane| (lane.taken, lane.who)).collect();
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let rest = parts.split_off(parts.len().min(NAMED));
    let mut story: Vec<String> = parts.iter().map(|(taken, who)| format!("{} {who}", time(*taken))).collect();
    if !rest.is_empty() {
        story.push(format!("{} others", time(rest.iter().map(|(taken, _)| taken).sum())));
    }
    story.join("; ")
}

/// All spans of one name.
#[derive(Debug, PartialEq)]
pub(crate) struct Lane<'i> {
    pub(crate) who: String,
    pub(crate) spans: Vec<&'i IncidentSpan>,
    /// Lost time that they took, in nanoseconds.
    pub(crate) taken: f64,
}

/// The most lanes of a drawing; the last one of more has the rest.
pub(crate) const LANES_MOST: usize = 9;

/// The thread first, then the others by their part of the lost time.
pub(crate) fn lanes(incident: &Incident) -> Vec<Lane<'_>> {
    let mut lanes: Vec<Lane<'_>> = Vec::new();
    for span in incident.spans.iter().filter(|span| span.from_ns < span.to_ns) {
        let (who, taken) = (clean(&span.who), inside(span, incident).unwrap_or(0.0));
        match lanes.iter_mut().find(|lane| lane.who == who) {
            Some(lane) => {
                lane.spans.push(span);
                lane.taken += taken;
            }
            None => lanes.push(Lane { who, spans: vec![span], taken }),
        }
    }
    let is_thread = |lane: &Lane<'_>| lane.spans.iter().all(|span| span.kind == INCIDENT_THREAD);
    lanes.sort_by(|a, b| {
        (is_thread(b), b.taken).partial_cmp(&(is_thread(a), a.taken)).unwrap_or(std::cmp::Ordering::Equal)
    });
    if lanes.len() > LANES_MOST {
        let rest = lanes.split_off(LANES_MOST - 1);
        lanes.push(Lane {
            who: format!("{} others", rest.len()),
            taken: rest.iter().map(|lane| lane.taken).sum(),
            spans: rest.into_iter().flat_map(|lane| lane.spans).collect(),
        });
    }
    lanes
}

/// From where to where the drawing goes, in nanoseconds; none if there is nothing to draw.
pub(crate) fn window(incident: &Incident) -> Option<(f64, f64)> {
    let drawn = || incident.spans.iter().filter(|span| span.from_ns < span.to_ns);
    let from = drawn().map(|span| span.from_ns).min()?.min(0) as f64;
    let to = drawn().map(|span| span.to_ns).max()?.max(incident.length_ns) as f64;
    (incident.length_ns > 0).then_some((from, to))
}

/// Part of the lost time that a span took, in nanoseconds; `None` if it lies outside.
fn inside(span: &IncidentSpan, incident: &Incident) -> Option<f64> {
    let taken = span.to_ns.min(incident.length_ns) as f64 - span.from_ns.max(0) as f64;
    (taken > 0.0).then_some(taken)
}

/// A time in nanoseconds as people write it.
pub(crate) fn time(ns: f64) -> Quantity {
    quantity(ns, Unit::Ns)
}
