//! An incident for the sheet: the occupants of the CPU during a gap or a late wake-up, and a little before and after.

use hairspring_culprit::{Blame, CpuHistory, Culprit, CulpritKind, Occupant, Wanted};
use hairspring_machine::{Cpu, Instant, Nanos};
use hairspring_sheet::{INCIDENT_THREAD, Incident, IncidentKind, IncidentSpan};

use crate::time_of_day;

/// Span shown before and after: a quarter of the length, within these limits.
const BESIDE_LEAST: Nanos = Nanos::from_micros(3);
const BESIDE_MOST: Nanos = Nanos::from_millis(2);
/// As many spans as are kept of one incident; more cannot be distinguished in a drawing.
const SPANS_MOST: usize = 100;

/// The incident behind a blame; `told` gives a culprit's text.
pub(super) fn incident(blame: &Blame, history: &CpuHistory, cpu: Cpu, told: impl Fn(&Culprit) -> String) -> Incident {
    let lost = &blame.lost;
    let beside = Nanos::new(blame.time().count() / 4).clamp(BESIDE_LEAST, BESIDE_MOST);
    let span = |from: Instant, to: Instant, who: String, kind: &str, concluded: bool| IncidentSpan {
        from_ns: (from - lost.from).count(),
        to_ns: (to - lost.from).count(),
        who,
        kind: kind.to_owned(),
        concluded,
    };
    let around = |from, to| {
        let occupants = history.occupants(from, to).into_iter();
        occupants.filter_map(|(from, to, occupant)| {
            let (who, kind) = match occupant {
                Occupant::Task(task) | Occupant::Worker(task, _) if task.pid == lost.thread => {
                    ("the thread itself".to_owned(), INCIDENT_THREAD)
                }
                Occupant::Task(task) if task.is_idle() => ("nobody: the CPU was idle".to_owned(), "idle"),
                occupant => {
                    let culprit = culprit(occupant)?;
                    (told(&culprit), culprit.kind().name())
                }
            };
            Some(span(from, to, who, kind, false))
        })
    };
    let inside = blame.parts.iter().map(|part| {
        let kind = part.culprit.kind();
        let concluded = matches!(kind, CulpritKind::Hypervisor | CulpritKind::Firmware);
        span(part.from, part.to, told(&part.culprit), kind.name(), concluded)
    });
    let mut spans: Vec<IncidentSpan> = around(lost.from - beside, lost.from).chain(inside).collect();
    spans.extend(around(lost.to, lost.to + beside));
    let left_out = spans.len().saturating_sub(SPANS_MOST);
    if left_out > 0 {
        let mut lengths: Vec<i64> = spans.iter().map(|span| span.to_ns - span.from_ns).collect();
        lengths.sort_unstable();
        let mut to_leave = left_out;
        let longest_left = lengths[left_out - 1];
        spans.retain(|span| {
            let leave = to_leave > 0 && span.to_ns - span.from_ns <= longest_left;
            to_leave -= usize::from(leave);
            !leave
        });
    }
    Incident {
        kind: if lost.wanted == Wanted::Run { IncidentKind::Gap } else { IncidentKind::Wakeup },
        began: time_of_day(lost.from),
        cpu: cpu.0,
        length_ns: blame.time().count(),
        spans,
        left_out: u32::try_from(left_out).unwrap_or(u32::MAX),
    }
}

/// The occupant as a culprit; `None` if unknown.
fn culprit(occupant: Occupant) -> Option<Culprit> {
    Some(match occupant {
        Occupant::Unknown(_) => return None,
        Occupant::Task(task) if task.is_worker() => Culprit::Worker(task, None),
        Occupant::Task(task) => Culprit::Task(task),
        Occupant::Worker(task, function) => Culprit::Worker(task, function),
        Occupant::Context(context) => Culprit::Context(context),
        Occupant::Nmi => Culprit::Nmi,
    })
}
