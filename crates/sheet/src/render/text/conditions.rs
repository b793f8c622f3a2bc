//! The head of the page and the most important conditions for timing.

use unicode_width::UnicodeWidthStr;

use super::page::{Ink, Page, padded};
use crate::render::clean::clean;
use crate::render::quantity;
use crate::{Conditions, FactValue, Sheet, SheetFact, Unit};

/// Facts that the head already shows.
const IN_HEAD: &[&str] = &["cpu.model", "kernel.release", "kernel.clocksource"];
/// The most important facts for timing; shown without `verbose`.
const MATTERS: &[&str] = &[
    "cpu.online",
    "cpu.governor",
    "cpu.frequency",
    "cpu.idle_states",
    "cpu.isolated",
    "cpu.tsc_flags",
    "kernel.hypervisor",
    "kernel.timer_resolution",
    "kernel.steal",
    "kernel.preemption",
    "limits.rtprio",
    "limits.cap_sys_nice",
    "limits.rt_throttling",
    "limits.timer_slack",
    "load.average",
];
/// The least number of facts; if fewer are named above, the first others of the sheet are added.
const FACTS_LEAST: usize = 6;
/// A label wider than this gets its value on the next line.
const LABEL_WIDTH_MAX: usize = 28;

/// The title, the machine, when and how the sheet was taken.
pub(super) fn head(page: &mut Page, sheet: &Sheet) {
    page.line(&[(Ink::Heading, &sheet.title())]);
    let conditions = &sheet.conditions;
    if let Some(model) = conditions.value("cpu.model") {
        page.wrapped(Ink::Heading, 0, 2, model);
    }
    let kernel = conditions.value("kernel.release").map(|k| format!("kernel {k}"));
    let clock = conditions.clock_source().map(|c| format!("clock source {c}"));
    let machine: Vec<String> = [kernel, clock].into_iter().flatten().collect();
    if !machine.is_empty() {
        page.wrapped(Ink::Plain, 0, 2, &machine.join(" · "));
    }
    let taken = &sheet.taken;
    let duration = quantity(taken.duration_s * 1e9, Unit::Ns);
    page.wrapped(Ink::Plain, 0, 2, &format!("taken {} in {duration} · effort {}", taken.when(), taken.how()));
    let commit = sheet.hairspring.commit.as_deref().map_or(String::new(), |c| format!(" ({c})"));
    let build = &sheet.hairspring;
    page.wrapped(
        Ink::Dim,
        0,
        2,
        &format!("hairspring {}{commit} · {} · {}", build.version, build.compiler, build.flags),
    );
    if taken.interrupted {
        page.wrapped(Ink::Missing, 0, 2, "! interrupted before its end: the figures that are missing say so");
    }
}

/// All facts, or the most important ones.
pub(super) fn block(page: &mut Page, conditions: &Conditions, all: bool) {
    let shown: Vec<&SheetFact> = if all { conditions.facts.iter().collect() } else { chosen(conditions) };
    page.blank();
    page.beside(Ink::Heading, "Conditions", "");
    let label_width = shown.iter().map(|f| f.label.width()).filter(|w| *w <= LABEL_WIDTH_MAX).max().unwrap_or(0);
    for fact in &shown {
        let (ink, text) = match &fact.value {
            FactValue::Value(value) => (Ink::Plain, value.clone()),
            FactValue::Absent(absent) => {
                let remedy = absent.remedy.as_ref().map_or(String::new(), |r| format!(" → {r}"));
                (Ink::Missing, format!("absent: {}{remedy}", absent.reason))
            }
        };
        let indent = 2 + label_width + 2;
        let label = clean(&fact.label);
        if label.width() > label_width {
            page.line(&[(Ink::Dim, &format!("  {label}"))]);
            page.wrapped(ink, indent, indent, &text);
            continue;
        }
        let lines = super::page::wrap(&text, page.width - indent, page.width - indent);
        for (i, line) in lines.iter().enumerate() {
            let label = padded(if i == 0 { &label } else { "" }, label_width + 2);
            page.line(&[(Ink::Plain, "  "), (Ink::Dim, &label), (ink, line)]);
        }
    }
    let hidden = conditions.facts.len() - shown.len();
    let threads = conditions.threads.len();
    let more = match (hidden, threads) {
        (0, 0) => return,
        (0, t) => format!("{t} threads"),
        (f, 0) => format!("{f} more facts"),
        (f, t) => format!("{f} more facts and {t} threads"),
    };
    page.wrapped(Ink::Dim, 2, 2, &format!("{more}: --format md, html or json"));
}

/// The most important facts, in the order of the sheet.
fn chosen(conditions: &Conditions) -> Vec<&SheetFact> {
    let rank = |fact: &SheetFact| MATTERS.iter().position(|m| *m == fact.id);
    let mut ranked: Vec<(usize, usize, &SheetFact)> = conditions
        .facts
        .iter()
        .enumerate()
        .map(|(i, fact)| (rank(fact).unwrap_or(MATTERS.len()), i, fact))
        .filter(|(_, _, fact)| !IN_HEAD.contains(&fact.id.as_str()))
        .collect();
    ranked.sort_by_key(|(rank, i, _)| (*rank, *i));
    let matter = ranked.iter().filter(|(rank, _, _)| *rank < MATTERS.len()).count();
    ranked.truncate(matter.max(FACTS_LEAST));
    ranked.sort_by_key(|(_, i, _)| *i);
    ranked.into_iter().map(|(_, _, fact)| fact).collect()
}
