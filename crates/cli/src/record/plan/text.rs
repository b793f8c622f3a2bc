//! A plan as text: the verdict first, then the reasons, then the tables.

use hairspring_plan::{Capacity, Fits, Load, Plan, PlanReason, Written, exact, rounded};

use hairspring_advice::job::AnswerKind;

use super::Shown;
use crate::table::{Side, item, table, wrapped};

/// Least width at which the table of segments has descriptions.
const WIDE: usize = 110;

/// Most idle segments to name.
const IDLE_MOST: usize = 16;

pub(crate) fn text(shown: &Shown, width: usize) -> String {
    let (plan, written) = (&shown.plan, shown.request.written);
    let mut text = verdict("Verdict", plan, &[], width);
    if let Some((change, _, changed)) = &shown.what_if {
        text.push('\n');
        text.push_str(&verdict(&format!("What if: {change}"), changed, &plan.reasons, width));
        text.push('\n');
        text.push_str(&beside(plan, changed, written, width));
    }
    text.push_str(&format!("\nStreams ({written})\n"));
    text.push_str(&streams(shown, width));
    text.push_str("\nVolume\n");
    text.push_str(&volumes(plan, written, width));
    if !shown.request.targets.is_empty() {
        text.push_str("\nDisks\n");
        text.push_str(&disks(shown, width));
    }
    text.push_str("\nMemory\n");
    text.push_str(&memory(shown, width));
    text.push_str(&segments(
        &format!("Segments of {}", shown.topology.name),
        &shown.topology.note,
        plan,
        written,
        width,
    ));
    if let Some((change, topology, changed)) = &shown.what_if {
        text.push_str(&segments(&format!("Segments of {}, {change}", topology.name), "", changed, written, width));
    }
    for (device, sentence) in &plan.links {
        text.push_str(&item("·", &format!("{device}: {sentence}"), width));
    }
    text
}

/// The verdict and its reasons, without those that the other plan has already given.
fn verdict(heading: &str, plan: &Plan, said: &[PlanReason], width: usize) -> String {
    let words = match plan.verdict {
        Fits::WithMargin => "fits, with a margin",
        Fits::Tight => "tight: fits, but without the usual margin",
        Fits::Unknown => "unknown: a figure that the verdict needs is missing",
        Fits::No => "exceeds: this set-up cannot carry it",
    };
    let answer = AnswerKind::of_plan(plan.verdict).name().to_uppercase();
    let mut text = format!("{heading}\n  {answer}: {words}\n");
    for reason in plan.reasons.iter().filter(|reason| !said.contains(reason)) {
        let mark = match reason.fits {
            Some(Fits::WithMargin) => "+",
            Some(Fits::Tight) => "~",
            Some(Fits::Unknown) => "?",
            Some(Fits::No) => "−",
            None => "·",
        };
        text.push_str(&item(mark, &reason.text, width));
    }
    if plan.reasons.iter().any(|reason| said.contains(reason)) {
        text.push_str("  · other reasons as above\n");
    }
    text
}

/// Before and after a change.
fn beside(before: &Plan, after: &Plan, written: Written, width: usize) -> String {
    let row = |name: &str, plan: &Plan| {
        let limiting = plan.loads.limiting();
        vec![
            name.to_owned(),
            plan.verdict.name().to_owned(),
            limiting.map_or("not known".to_owned(), |load| load.name.clone()),
            limiting.and_then(Load::share).map_or("–".to_owned(), percent),
            plan.most.map_or("–".to_owned(), |most| written.rate(most)),
        ]
    };
    let headings = [
        ("", Side::Left),
        ("verdict", Side::Left),
        ("limiting", Side::Left),
        ("used", Side::Right),
        ("full with streams of", Side::Right),
    ];
    table(&headings, &[row("before", before), row("after", after)], width)
}

fn streams(shown: &Shown, width: usize) -> String {
    let written = shown.request.written;
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (sizes, card) in shown.plan.sizes.iter().zip(&shown.cards) {
        rows.push(vec![
            sizes.card.clone(),
            written.rate(sizes.rate),
            written.size(sizes.notify),
            written.size(sizes.buffer),
            sizes.lasts.map_or("forever".to_owned(), rounded),
            card.layout().to_string(),
        ]);
    }
    if rows.len() > 1 {
        let plan = &shown.plan;
        let lasts = plan.buffer_lasts().map_or("forever".to_owned(), rounded);
        let all = ["all".to_owned(), written.rate(plan.rate), String::new(), written.size(plan.buffer()), lasts];
        rows.push(all.into_iter().chain([String::new()]).collect());
    }
    let headings = [
        ("card", Side::Left),
        ("rate", Side::Right),
        ("notify", Side::Right),
        ("buffer", Side::Right),
        ("lasts", Side::Right),
        ("samples", Side::Left),
    ];
    table(&headings, &rows, width)
}

fn volumes(plan: &Plan, written: Written, width: usize) -> String {
    let rows: Vec<Vec<String>> =
        plan.volumes.iter().map(|(span, bytes)| vec![exact(*span), written.amount(*bytes)]).collect();
    table(&[("in", Side::Right), ("amount of data", Side::Right)], &rows, width)
}

fn disks(shown: &Shown, width: usize) -> String {
    let written = shown.request.written;
    let rows: Vec<Vec<String>> = shown
        .request
        .targets
        .iter()
        .map(|target| {
            let disks = match target.disks.is_empty() {
                true => format!("not known: {}", target.unknown),
                false => target.disks.join(", "),
            };
            let free = target.free.map_or("not known".to_owned(), |free| written.amount(free));
            vec![target.name.clone(), free, disks]
        })
        .collect();
    let mut text = table(&[("target", Side::Left), ("free space", Side::Right), ("on", Side::Left)], &rows, width);
    if let Some(lasts) = shown.plan.room_lasts {
        text.push_str(&format!("  the free space lasts for {}\n", rounded(lasts)));
    }
    if let Some(fit) = shown.request.fit {
        let fitted = format!(
            "fitted to the rates by block size: {} at most, {} for each block, half of the rate at {}",
            written.rate(fit.full),
            fit.each,
            written.amount(fit.half)
        );
        text.push_str(&item("·", &fitted, width));
    }
    text
}

fn memory(shown: &Shown, width: usize) -> String {
    let (plan, written) = (&shown.plan, shown.request.written);
    let Some((memory, room)) = shown.request.memory.zip(plan.memory_for_buffers) else {
        return "  not known: the topology describes another computer\n".to_owned();
    };
    let mut rows = vec![
        vec!["installed".to_owned(), written.amount(memory.total), String::new()],
        vec!["available".to_owned(), written.amount(memory.available), String::new()],
    ];
    let lasts = |bytes| plan.rate.time_for(bytes).map_or("forever".to_owned(), rounded);
    rows[1][2] = lasts(memory.available);
    rows.push(vec!["for buffers, at most".to_owned(), written.amount(room), lasts(room)]);
    rows.push(vec!["buffers".to_owned(), written.size(plan.buffer()), lasts(plan.buffer())]);
    let headings = [("memory", Side::Left), ("amount", Side::Right), ("lasts without the disks", Side::Right)];
    table(&headings, &rows, width)
}

fn segments(heading: &str, note: &str, plan: &Plan, written: Written, width: usize) -> String {
    let mut text = String::from("\n");
    for line in wrapped(heading, width) {
        text.push_str(&format!("{line}\n"));
    }
    for line in wrapped(note, width.saturating_sub(2)) {
        text.push_str(&format!("  {line}\n"));
    }
    let loads = &plan.loads.loads;
    let used: Vec<&Load> = loads.iter().filter(|load| load.is_used()).collect();
    let rows: Vec<Vec<String>> = used.iter().map(|load| segment(load, written, width)).collect();
    let mut headings = vec![
        ("segment", Side::Left),
        ("to memory", Side::Right),
        ("from memory", Side::Right),
        ("carries", Side::Right),
        ("used", Side::Right),
    ];
    if width >= WIDE {
        headings.push(("what it is", Side::Left));
    }
    match rows.is_empty() {
        true => text.push_str("  no segment on the path is known\n"),
        false => text.push_str(&table(&headings, &rows, width)),
    }
    let idle: Vec<&str> = loads.iter().filter(|load| !load.is_used()).map(|load| load.name.as_str()).collect();
    if !idle.is_empty() {
        let more = match idle.len().saturating_sub(IDLE_MOST) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let names = idle.iter().take(IDLE_MOST).copied().collect::<Vec<_>>().join(", ");
        text.push_str(&item("·", &format!("idle: {names}{more}"), width));
    }
    text
}

fn segment(load: &Load, written: Written, width: usize) -> Vec<String> {
    let name = match &load.below {
        Some(_) => load.name.clone(),
        None => format!("{} itself", load.name),
    };
    let (carries, what) = match &load.capacity {
        Capacity::Known { sure, shared, how, .. } => {
            let both = if *shared { "" } else { " each way" };
            (written.rate_short(*sure) + both, how.as_str())
        }
        Capacity::Ample => ("enough".to_owned(), "inside a chip"),
        Capacity::Unknown(why) => ("not known".to_owned(), why.as_str()),
    };
    let rate = |rate: hairspring_ring::ByteRate| match rate.bytes_per_s() > 0.0 {
        true => written.rate_short(rate),
        false => "–".to_owned(),
    };
    let used = load.share().map_or("–".to_owned(), percent);
    let mut row = vec![name, rate(load.up), rate(load.down), carries, used];
    if width >= WIDE {
        row.push(what.to_owned());
    }
    row
}

fn percent(share: f64) -> String {
    if share < 100.0 { format!("{:.0} %", share * 100.0) } else { "> 9999 %".to_owned() }
}
