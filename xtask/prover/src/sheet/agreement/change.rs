//! A change of known size: the other build spins for a known part of the median inside the measured section.

use std::collections::BTreeMap;

use hairspring_sheet::{InterleavedRow, Unit};
use serde_json::json;

use super::{Findings, Kept, QUIET, Terms, ab, copy, middle, told, varies};

/// Where there is a change, at most this share of the declared rows may be unchanged: the promise of a comparison
/// (Benjamini–Hochberg).
const FALSE_MOST: f64 = 0.05;
/// Number of repeats of a comparison that was void for too many disturbances.
const AGAIN_MOST: u32 = 2;
/// A row is called quiet only if this part of its rounds is counted: few rounds are alike by chance.
const COUNTED_LEAST: f64 = 0.8;
/// The changes, and which share of the quiet rows must be found.
pub(super) const CHANGES: [(f64, f64); 5] = [(0.02, 0.0), (0.05, 0.0), (0.1, 0.65), (0.2, 0.8), (0.5, 0.8)];
/// The share of intervals that hold the true change.
const COVERED_LEAST: f64 = 0.9;
/// Rows in whose measured section the other build can spin: beginnings of their ids, and what may not be in them. Left
/// out are rows after a sweep of the caches, where the spinning itself would be cold; first calls, which other
/// processes make; and reports and counts, which are not time of the caller. So is a fiber's look at its interrupts:
/// while it waits for the other CPU's line, the processor runs ahead into the spinning.
const SPINNING: [&str; 7] =
    ["sleeps.", "clocks.read.", "delays.", "executive.", "transfer.memory.", "transfer.word.", "reaction."];
const NOT_SPINNING: [&str; 17] = [
    ".dirty.",
    ".flushed",
    ".first",
    ".reported",
    ".early",
    ".cpu_share",
    ".interrupt_latency.",
    ".fiber.isp.",
    ".fiber.interrupt",
    ".wake",
    ".start",
    ".lock",
    ".io",
    ".matrix.",
    ".chain.",
    ".inversion.",
    ".fit.",
];
/// Rows that come from changed ones, and so change with them.
const DERIVED: [&str; 2] = [".fit.", ".cpu_share"];

/// Whether the other build can spin inside the section that this row measures.
fn spins(row: &InterleavedRow) -> bool {
    SPINNING.iter().any(|beginning| row.id.starts_with(beginning))
        && !NOT_SPINNING.iter().any(|part| row.id.contains(part))
        && (row.unit == Unit::Ns || is_rate(row))
}

/// Whether it counts per second, so that a longer time gives a lower value.
fn is_rate(row: &InterleavedRow) -> bool {
    matches!(row.unit, Unit::PerSecond | Unit::BytesPerS)
}

/// Compares the build with its copy that spins, for each size of change.
pub(super) fn change(terms: &Terms, kept: &Kept, findings: &mut Findings) -> Result<(), String> {
    let (plain, _) = copy(terms, kept, 0)?;
    let lengthened = |row: &&InterleavedRow| spins(row) && row.pairs.iter().any(|pair| pair.baseline.is_some());
    let without_steps = plain.rows.iter().filter(lengthened).map(|row| (row.id.clone(), 0.0)).collect();
    let (before, _) = ab(terms, kept, "change-none", 1000, &without_steps)?;
    let medians: BTreeMap<String, f64> = before
        .rows
        .iter()
        .filter(|row| without_steps.contains_key(&row.id))
        .filter_map(|row| {
            let values: Vec<f64> = row.pairs.iter().filter_map(|pair| pair.baseline).collect();
            let median = (values.len() >= 2).then(|| middle(values)).filter(|median| *median > 0.0)?;
            // The time of one event, or of one of the counted units.
            Some((row.id.clone(), if is_rate(row) { 1e9 / median } else { median }))
        })
        .collect();
    findings.say("change: rows that are changed", json!(format!("{} of {}", medians.len(), before.rows.len())));
    for (change, least) in CHANGES {
        let spin: BTreeMap<String, f64> = medians.iter().map(|(id, median)| (id.clone(), median * change)).collect();
        let percent = format!("change of {:2.0} %", change * 100.0);
        let name = format!("change-{:.0}", change * 100.0);
        let (mut measured, mut comparison) = ab(terms, kept, &name, 2000, &spin)?;
        let mut again = 0;
        while again < AGAIN_MOST && told(&comparison).judged == 0 {
            again += 1;
            (measured, comparison) = ab(terms, kept, &format!("{name}-again-{again}"), 2000 + again, &spin)?;
        }
        if again > 0 {
            findings.say(format!("{percent}: runs without a result before"), json!(again));
        }
        let mut of = Changed::default();
        for (row, compared) in measured.rows.iter().zip(&comparison.rows) {
            let Some(against) = compared.others.first().filter(|against| against.difference.is_some()) else {
                continue;
            };
            let differs = against.verdict.differs();
            of.declared += usize::from(differs);
            if DERIVED.iter().any(|part| row.id.contains(part)) {
                continue;
            }
            if !medians.contains_key(&row.id) {
                of.others += 1;
                if differs {
                    of.others_declared.push(row.id.clone());
                }
                continue;
            }
            let counted: Vec<f64> = row.pairs.iter().filter(|p| !p.void).filter_map(|pair| pair.baseline).collect();
            // The spinning is set in nanoseconds; the part of an event that this makes depends on the machine's speed
            // in this run.
            let event = if is_rate(row) { 1e9 / middle(counted.clone()) } else { middle(counted.clone()) };
            let longer = 1.0 + spin[&row.id] / event;
            let truth = if is_rate(row) { 1.0 / longer } else { longer };
            let is_quiet = counted.len() as f64 >= f64::from(terms.rounds) * COUNTED_LEAST && varies(counted) <= QUIET;
            of.judged += 1;
            of.quiet += usize::from(is_quiet);
            of.found += usize::from(is_quiet && differs);
            of.wrong += usize::from(differs && against.ratio.is_some_and(|ratio| (ratio > 1.0) != (truth > 1.0)));
            let holds = against.interval.is_some_and(|[low, high]| low <= truth && truth <= high);
            of.held += usize::from(holds);
            if !holds {
                of.missed.push(format!("{} {:.3} for {truth:.3}", row.id, against.ratio.unwrap_or(0.0)));
            }
        }
        let Changed { declared, judged, quiet, found, wrong, held, others, others_declared, missed } = of;
        findings.say(
            percent.clone(),
            json!(format!(
                "{found} of {quiet} quiet rows found, {wrong} of {judged} with the wrong sign, {held} of {judged} intervals hold it, \
                 {} of {others} unchanged rows among the {declared} declared",
                others_declared.len()
            )),
        );
        findings.say(format!("{percent}: unchanged rows declared"), json!(others_declared));
        findings.say(format!("{percent}: intervals without it"), json!(missed.join(", ")));
        findings.require(judged > 0, format!("{percent}: no row has a result"));
        findings
            .require(found as f64 >= least * quiet as f64, format!("{percent}: {found} of {quiet} quiet rows found"));
        findings.require(wrong == 0, format!("{percent}: {wrong} rows have the wrong sign"));
        let covered = held as f64 >= COVERED_LEAST * judged as f64;
        findings.require(covered, format!("{percent}: {held} of {judged} intervals hold it"));
        let others_declared = others_declared.len();
        let few = others_declared as f64 <= (FALSE_MOST * declared as f64).max(1.0);
        findings.require(few, format!("{percent}: {others_declared} of {declared} declared rows are unchanged"));
    }
    Ok(())
}

/// Effect of a change of one size.
#[derive(Default)]
struct Changed {
    declared: usize,
    judged: usize,
    quiet: usize,
    found: usize,
    wrong: usize,
    held: usize,
    others: usize,
    others_declared: Vec<String>,
    missed: Vec<String>,
}
