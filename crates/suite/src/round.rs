//! One round of a sheet: every row that was asked for, measured once, for a share of the sheet's time.
//!
//! A round is the unit of repetition: the conditions that vary between two runs of a program (pages, layout, placement,
//! the machine's mood) vary between rounds and hardly inside one. So a sheet has several, each in a process of its own
//! ([`process`]), and [`merge`](crate::merge) makes its figures from their findings.
//!
//! [`RoundRequest`] and [`RoundPart`] travel as JSON between the program that makes the sheet and the one that
//! measures. The two may be different builds, so both carry the [`PROTOCOL`].

pub(crate) mod process;

use hairspring_machine::{Cpu, Machine, Nanos};
use hairspring_sheet::{Absent, Incident, Note, Series};
use hairspring_time::Timebase;
use serde::{Deserialize, Serialize};

use crate::host::system::{Means, SentDisks};
use crate::interleaving::Random;
use crate::probe::{CROWDED, Context, Effort, Found, Rows, SheetProgress, StampCosts, company};
use crate::request::{SheetError, SheetRequest, choose_cpu, selected};

/// Version of the messages between the two programs.
pub(crate) const PROTOCOL: u32 = 1;

/// Chapters, rows and settings of one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoundRequest {
    /// The ids of the rows.
    pub(crate) rows: Vec<String>,
    /// The effort of the whole sheet.
    pub(crate) effort: Effort,
    /// Index of the round, from 0.
    pub(crate) round: u32,
    /// Number of rounds of the sheet.
    pub(crate) rounds: u32,
    /// The CPU to measure on; by default the last one that the process may use.
    pub(crate) cpu: Option<u32>,
    /// The priority for measurements under `SCHED_FIFO`, 1–99.
    pub(crate) priority: u8,
    /// Decides the order of the chapters.
    pub(crate) seed: u64,
    /// Folders and limits for measuring disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) disks: Option<SentDisks>,
    /// Anchors of the sheet's own time base, so that no round has to calibrate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) anchors: Option<String>,
    /// Whether to leave out names that identify the machine and its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) redact: bool,
    /// Time of the company loop on a core without a neighbour, as far as the sheet knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) alone_ns: Option<f64>,
    /// For tests of comparisons: nanoseconds by which each event of these rows is lengthened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) spin: Vec<(String, f64)>,
}

impl RoundRequest {
    /// The request for one round of a sheet.
    pub(crate) fn of(request: &SheetRequest, round: u32) -> Self {
        Self {
            rows: request.rows.clone(),
            effort: request.effort,
            round,
            rounds: request.rounds,
            cpu: request.cpu.map(|cpu| cpu.0),
            priority: request.priority,
            seed: request.seed.wrapping_add(u64::from(round)),
            disks: request.disks.as_ref().map(SentDisks::of),
            anchors: None,
            redact: request.redact,
            alone_ns: None,
            spin: Vec::new(),
        }
    }
}

/// Findings of one round for the rows of one chapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoundPart {
    /// The id of the chapter.
    pub(crate) chapter: String,
    pub(crate) round: u32,
    /// The process that measured; equal numbers, one process. Given by the program that makes the sheet.
    #[serde(default)]
    pub(crate) process: u32,
    /// When the chapter began, on `CLOCK_MONOTONIC`.
    pub(crate) began_ns: i64,
    /// Whether the user interrupted it: then rows may be missing.
    pub(crate) interrupted: bool,
    pub(crate) rows: Vec<(String, Found)>,
    pub(crate) series: Vec<Series>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) incidents: Vec<Incident>,
    pub(crate) notes: Vec<Note>,
    /// Notes that a reader needs before any figure.
    pub(crate) head: Vec<Note>,
}

/// The measuring machine and program of a round, beside the request.
pub(crate) struct Measuring<'m, M: Machine> {
    pub(crate) timebase: Timebase<M>,
    /// Program to run as a process of the matrix and as the caller from Rust.
    pub(crate) program: Option<&'m std::path::Path>,
    pub(crate) interrupted: &'m std::sync::atomic::AtomicBool,
}

/// Takes a round, chapter by chapter in an order of its own, and hands on the findings of each chapter. Returns the
/// refined time base.
///
/// # Errors
/// A request for rows or a CPU that do not exist; nothing was measured then.
pub(crate) fn take_round<M: Machine + Clone + Sync + 'static>(
    machine: &M,
    request: &RoundRequest,
    measuring: Measuring<'_, M>,
    progress: &mut dyn FnMut(SheetProgress<'_>),
    mut part: impl FnMut(RoundPart),
) -> Result<Timebase<M>, SheetError> {
    let cpu = choose_cpu(machine, request.cpu.map(Cpu), request.priority)?;
    let selected = selected(&request.rows)?;
    // A single round runs in reading order.
    let order = match request.rounds {
        1 => (0..selected.len()).collect(),
        _ => Random::seeded(request.seed).order(selected.len()),
    };
    let mut context = Context {
        machine: machine.clone(),
        stamps: StampCosts::measure(&measuring.timebase),
        timebase: measuring.timebase,
        effort: request.effort,
        round: request.round,
        rounds: request.rounds,
        cpu,
        other: machine.affinity().0.into_iter().find(|other| *other != cpu),
        priority: request.priority,
        interrupted: measuring.interrupted,
        progress,
        means: Means::of(request.disks.clone()),
        program: measuring.program.map(std::path::Path::to_owned),
        rows: Rows::default(),
        series: Vec::new(),
        incidents: Vec::new(),
        notes: Vec::new(),
        head: Vec::new(),
        redact: request.redact,
        spin: request.spin.iter().cloned().collect(),
        done: Nanos::ZERO,
        total: Nanos::ZERO,
        began: machine.monotonic(),
    };
    let each = context.share(1.0);
    context.total = each * i64::try_from(selected.len()).unwrap_or(i64::MAX);
    let needs_core: Vec<bool> = selected.iter().map(|(probes, _)| probes.needs_core).collect();
    let mut selected: Vec<_> = selected.into_iter().map(Some).collect();
    let mut left = order;
    while !left.is_empty() {
        let crowded = request.alone_ns.zip(context.host_timebase());
        let crowded = crowded.map(|(alone_ns, timebase)| company(&timebase, cpu) > alone_ns * CROWDED);
        let index = left.remove(next(&left, &needs_core, crowded));
        let Some((probes, declared)) = selected.get_mut(index).and_then(Option::take) else { continue };
        context.refine();
        context.open(probes.rows(), &request.rows);
        probes.run(&mut context);
        if left.is_empty() {
            context.refine();
        }
        context.done += each;
        let defect = || Found::Absent(Absent::final_("the probe gave no figure, which is a defect of hairspring"));
        let interrupted = context.stopped();
        let found = context.close().filter_map(|(id, found)| match found {
            Some(found) => Some((id, found)),
            None => (!interrupted).then(|| (id, defect())),
        });
        part(RoundPart {
            chapter: declared.id.to_owned(),
            round: request.round,
            process: 0,
            began_ns: context.began.as_monotonic().count(),
            interrupted,
            rows: found.collect(),
            series: std::mem::take(&mut context.series),
            incidents: std::mem::take(&mut context.incidents),
            notes: std::mem::take(&mut context.notes),
            head: std::mem::take(&mut context.head),
        });
    }
    Ok(context.timebase)
}

/// Index of the next chapter: the first one left if it is unknown whether a neighbour uses the core. Otherwise the
/// first that needs the core while it is free, or that does not while it is shared.
fn next(left: &[usize], needs_core: &[bool], crowded: Option<bool>) -> usize {
    let suits = |chapter: &usize| crowded.is_some_and(|crowded| needs_core[*chapter] != crowded);
    left.iter().position(suits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chapters_that_need_the_core_wait_for_it_and_none_is_left_out() {
        let needs_core = [true, false, true, false];
        assert_eq!(next(&[2, 1, 0, 3], &needs_core, None), 0);
        assert_eq!(next(&[2, 1, 0, 3], &needs_core, Some(false)), 0);
        assert_eq!(next(&[2, 1, 0, 3], &needs_core, Some(true)), 1);
        assert_eq!(next(&[1, 3, 0], &needs_core, Some(false)), 2);
        assert_eq!(next(&[2, 0], &needs_core, Some(true)), 0);
    }
}
