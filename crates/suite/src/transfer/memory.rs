//! The sweep through memory: copied, read, written and copied around the caches, by block size and page type.
//!
//! A block is moved again and again, so what fits into a cache is found there: the sweep shows the caches one after the
//! other. The last line, *beyond the caches*, goes through at least four times the last-level cache before it touches a
//! byte again, and is the memory's own rate.

use std::ops::ControlFlow;

use hairspring_machine::{Machine, Nanos};
use hairspring_ring::{Bytes, Pages};
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_time::{Host, Timebase};

use super::arena::{Arena, PAGES};
use super::fits::{self, FitRows};
use super::hockney::Block;
use super::operation::Operation;
use super::{label, repeats, set_aside};
use crate::caches;
use crate::host;
use crate::interleaving::interleave;
use crate::probe::{Class, Context, Effort, Probes, Reading, Row, Setting, Slot, TableSlot, Taken, spin};

/// Block sizes with their segments.
const BLOCKS: [(&str, Bytes); 8] = [
    ("4kib", Bytes::kib(4)),
    ("16kib", Bytes::kib(16)),
    ("64kib", Bytes::kib(64)),
    ("256kib", Bytes::kib(256)),
    ("1mib", Bytes::mib(1)),
    ("4mib", Bytes::mib(4)),
    ("16mib", Bytes::mib(16)),
    ("64mib", Bytes::mib(64)),
];
/// Two of the largest blocks.
const BLOCKS_ARENA: Bytes = Bytes::mib(128);

/// Size of the memory beyond the caches, as a multiple of the last-level cache.
const CACHES: u64 = 4;
/// Size used if no cache is known.
const BEYOND_UNKNOWN: Bytes = Bytes::mib(512);
/// The most memory that is taken, and the largest share of the free memory (one third).
const BEYOND_MOST: Bytes = Bytes::gib(2);
const BEYOND_MOST_OF_FREE: u64 = 3;
/// A quick sheet has no time to make more than this present.
const BEYOND_QUICK: Bytes = Bytes::mib(256);
/// Bytes moved by one step of a walk.
const WINDOW: Bytes = Bytes::mib(4);

/// Shares of the chapter's time that are spent on samples; the time to make memory present comes on top.
const SHARE: f64 = 0.22;
const BEYOND_SHARE: f64 = 0.05;
/// Repeats of a cell in a round, in turns with the others: their median suppresses a disturbance, which
/// would decide a single one.
const REPEATS: usize = 5;
/// Rounds of a quick sheet that sweep by block size; else all do.
const BLOCK_ROUNDS_QUICK: usize = 3;
/// Rounds of the sheet that go beyond the caches.
const BEYOND_ROUNDS: usize = 5;
/// Once this share of the chapter's time has passed, no more memory is made present.
const TIME_MOST: f64 = 1.0;

/// No core moves more bytes in a cycle, and no core has a faster clock. A higher rate means that the compiler removed
/// the work.
const READ_BYTES_PER_CYCLE: f64 = 192.0;
const WRITE_BYTES_PER_CYCLE: f64 = 64.0;
const CLOCK_HZ_MOST: f64 = 7e9;

/// One operation on pages of one kind: the rows of its blocks, of what lies beyond the caches, and of the line through
/// the blocks.
#[derive(Clone, Copy)]
struct Sweep {
    operation: Operation,
    pages: Pages,
    blocks: [Slot; BLOCKS.len()],
    beyond: Slot,
    fit: FitRows,
}

/// The probes of the sweep: all blocks in turns, then beyond the caches with one kind of pages after the other.
pub(super) fn add<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) {
    let mut rows = Vec::new();
    for operation in Operation::ALL {
        let table = probes.table(
            format!("transfer.memory.{}", operation.segment()),
            format!("Memory, {}", operation.name()),
            "at least 5 repeats in turns of all operations, blocks and pages, in an order of each turn's own; 384 MiB of \
             memory; beyond the caches 4 times the last-level cache, at most 2 GiB and a third of the free memory, one \
             kind of pages after the other",
        );
        rows.extend(PAGES.map(|pages| rates(probes, table, operation, pages)));
    }
    let table = fits::table(probes, "transfer.memory", "Memory, lines through the block sizes");
    let mut sweeps = Vec::new();
    for pages in PAGES {
        for (operation, _, blocks, beyond) in rows.iter().copied().filter(|row| row.1 == pages) {
            let name = format!("{} on {pages}", operation.name());
            let fit = fits::rows(probes, table, &format!("{}.{}", operation.segment(), pages.name()), &name);
            sweeps.push(Sweep { operation, pages, blocks, beyond, fit });
        }
    }
    let setting = Setting::Class(Class::Other);
    let slots: Vec<Slot> = sweeps.iter().flat_map(|sweep| sweep.blocks.into_iter().chain(sweep.fit.all())).collect();
    let own = sweeps.clone();
    probes.several_on_host(setting, slots, move |context, timebase| {
        measure_blocks(context, timebase, &own);
        remark(context);
    });
    for pages in PAGES {
        let own: Vec<Sweep> = sweeps.iter().copied().filter(|sweep| sweep.pages == pages).collect();
        let slots: Vec<Slot> = own.iter().map(|sweep| sweep.beyond).collect();
        probes.several_on_host(setting, slots, move |context, timebase| {
            measure_beyond(context, timebase, pages, &own);
            remark(context);
        });
    }
}

/// The rows of one operation on pages of one kind: each block, and beyond the caches.
fn rates<M: Machine + Clone + Sync + 'static>(
    probes: &mut Probes<M>,
    table: TableSlot,
    operation: Operation,
    pages: Pages,
) -> (Operation, Pages, [Slot; BLOCKS.len()], Slot) {
    let mut row = |block: &str, label: String, how: String| {
        let measures = format!("{}; {how}, on {pages}", operation.counts());
        let suffix = format!("{block}.{}.rate", pages.name());
        probes.row(table, Row::new(suffix, label, Unit::BytesPerS, Method::Rate, measures))
    };
    let blocks =
        BLOCKS.map(|(segment, bytes)| row(segment, label(bytes, pages), format!("the same {bytes} again and again")));
    let beyond = row(
        "beyond_caches",
        format!("beyond the caches on {pages}"),
        format!("memory gone through in windows of {WINDOW}, no byte again before four times the last-level cache"),
    );
    (operation, pages, blocks, beyond)
}

fn remark<M: Machine + Clone + Sync>(context: &mut Context<'_, M>) {
    context.remark_once(format!(
        "Memory: rates count each byte once, also where it is read and written. Reading uses {}; non-temporal stores are {}; copy \
         and write are the C library's.",
        host::loads(),
        host::stores()
    ));
}

/// Operation and block of one cell, and the rates of its repeats in bytes per second.
struct Cell {
    sweep: Sweep,
    /// Index of the block, and of the arena.
    block: usize,
    arena: usize,
    times: u64,
    rates: Vec<f64>,
    /// Time used by its repeats.
    spent: Nanos,
}

/// Memory that the walk beyond the caches takes.
pub(super) fn beyond<M: Machine + Clone + Sync>(context: &Context<'_, M>) -> (Bytes, Option<Bytes>) {
    let cache = caches::last_level(&context.machine.facts()).map(Bytes);
    let wanted = cache.map_or(BEYOND_UNKNOWN, |cache| Bytes((cache.0 * CACHES).max(BLOCKS_ARENA.0)));
    let free = hairspring_ring::memory::free_memory().map_or(BEYOND_MOST, |free| Bytes(free.0 / BEYOND_MOST_OF_FREE));
    // Two halves of whole windows on whole huge pages.
    (wanted.min(BEYOND_MOST).min(free).round_down(Bytes(WINDOW.0 * 2)), cache)
}

/// Bytes that the arenas of this sweep need at once.
pub(super) fn most<M: Machine + Clone + Sync>(context: &Context<'_, M>) -> Bytes {
    beyond(context).0.max(BLOCKS_ARENA)
}

fn measure_blocks<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    timebase: &Timebase<Host>,
    sweeps: &[Sweep],
) {
    // Making the memory present takes longer than a quick sweep, so not every round does it.
    let rounds = context.rounds as usize;
    let in_these = if context.effort == Effort::Quick { BLOCK_ROUNDS_QUICK.min(rounds) } else { rounds };
    if context.turns(in_these) == 0 {
        return context.elsewhere(sweeps.iter().flat_map(|sweep| sweep.blocks.into_iter().chain(sweep.fit.all())));
    }
    let mut cells = Vec::new();
    let mut arenas = Vec::new();
    for pages in PAGES {
        let of_pages = sweeps.iter().filter(|sweep| sweep.pages == pages);
        let wanted: Vec<(Sweep, usize)> = of_pages
            .flat_map(|sweep| (0..BLOCKS.len()).map(move |block| (*sweep, block)))
            .filter(|(sweep, block)| context.wants(sweep.blocks[*block]) || context.wants_any(sweep.fit.all()))
            .collect();
        if wanted.is_empty() {
            continue;
        }
        context.say(&format!("memory for the transfers, {pages}"));
        match Arena::with_remedy(BLOCKS_ARENA, pages, set_aside(context)) {
            Ok(made) => {
                let arena = arenas.len();
                arenas.push((pages, made));
                let cell =
                    |(sweep, block)| Cell { sweep, block, arena, times: 0, rates: Vec::new(), spent: Nanos::ZERO };
                cells.extend(wanted.into_iter().map(cell));
            }
            Err(absent) => {
                for (sweep, block) in wanted {
                    context.absent(sweep.blocks[block], absent.clone());
                    context.absent_all(sweep.fit.all(), &absent);
                }
            }
        }
    }
    let least = repeats::all(context.effort).div_ceil(in_these);
    let rounds = least.max(REPEATS);
    // The share of all rounds, in those that sweep.
    let share = SHARE * f64::from(context.rounds) / in_these as f64;
    let span = context.share(share / (cells.len().max(1) * rounds) as f64);
    let complete =
        repeats::in_turns(context, "memory by block size and pages", rounds, cells.len(), |context, turn| {
            let cell = &mut cells[turn.candidate];
            let (operation, bytes, arena) = (cell.sweep.operation, BLOCKS[cell.block].1, &mut arenas[cell.arena].1);
            // One repeat of the largest blocks takes longer than its share.
            if cell.rates.len() >= least && cell.spent >= span * rounds as i64 {
                return ControlFlow::Continue(());
            }
            if cell.times == 0 {
                cell.times = repeats::tuned(timebase, span, |times| arena.repeat(operation, bytes, times));
            }
            context.lengthen(&[cell.sweep.blocks[cell.block]]);
            let took = repeats::timed(timebase, || {
                arena.repeat(operation, bytes, cell.times);
                spin(0, bytes.0 * cell.times);
            });
            cell.spent += took;
            cell.rates.push(rate(Bytes(bytes.0 * cell.times), took));
            ControlFlow::Continue(())
        });
    if !complete {
        return;
    }
    for cell in &cells {
        context.enter(cell.sweep.blocks[cell.block], possible(cell.sweep.operation, &cell.rates));
    }
    for (arena, (pages, _)) in arenas.iter().enumerate() {
        let mut lines = Vec::new();
        for sweep in sweeps.iter().filter(|sweep| sweep.pages == *pages) {
            let own = |cell: &&Cell| (cell.arena, cell.sweep.operation) == (arena, sweep.operation);
            let blocks: Vec<Block> = cells.iter().filter(own).filter_map(block).collect();
            if !blocks.is_empty() {
                lines.extend(fits::enter(context, sweep.fit, sweep.operation.name(), &blocks));
            }
        }
        fits::plot(
            context,
            &format!("transfer.memory.{}", pages.name()),
            &format!("Memory by block size, {pages}"),
            "block size",
            lines,
        );
    }
}

/// The times of a cell, for the line through its sweep.
fn block(cell: &Cell) -> Option<Block> {
    let bytes = BLOCKS[cell.block].1.0 as f64;
    let possible = cell.rates.iter().all(|rate| *rate <= most_possible(cell.sweep.operation));
    possible.then(|| Block { bytes, times_ns: cell.rates.iter().map(|rate| bytes * 1e9 / rate).collect() })
}

fn measure_beyond<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    timebase: &Timebase<Host>,
    pages: Pages,
    sweeps: &[Sweep],
) {
    let wanted: Vec<Sweep> = sweeps.iter().copied().filter(|sweep| context.wants(sweep.beyond)).collect();
    // Making this memory present takes most of the time, so not every round does it.
    if context.turns(BEYOND_ROUNDS) == 0 {
        return context.elsewhere(wanted.iter().map(|sweep| sweep.beyond));
    }
    let (size, cache) = beyond(context);
    let elapsed = context.machine.monotonic() - context.began;
    let mut arena = if context.effort != Effort::Thorough && elapsed > context.share(TIME_MOST) {
        let reason = format!("{elapsed} had passed already, and making {size} present takes long on this machine");
        Err(Absent::new(reason, "take the sheet with --thorough, or on a machine that is less busy"))
    } else if context.effort == Effort::Quick && size > BEYOND_QUICK {
        Err(Absent::new(format!("a quick sheet has no time to go through {size}"), "take the sheet without --quick"))
    } else if cache.is_some_and(|cache| size.0 < cache.0 * 2) {
        Err(Absent::new(
            format!(
                "only {size} may be taken, and the caches hold {}: it would be their rate",
                cache.unwrap_or_default()
            ),
            "free memory, or take the sheet on a machine that has more",
        ))
    } else {
        context.say(&format!("memory beyond the caches, {pages}"));
        Arena::with_remedy(size, pages, set_aside(context))
    };
    let arena = match &mut arena {
        Ok(arena) => arena,
        Err(absent) => {
            context.absent_all(wanted.iter().map(|sweep| sweep.beyond), absent);
            return;
        }
    };
    let rounds = repeats::rounds(context);
    let span = context.share(BEYOND_SHARE / (Operation::ALL.len() * PAGES.len() * rounds) as f64);
    let mut rates = vec![Vec::new(); wanted.len()];
    // At least eight windows, so that no sample is of a few pages only; an even number, for both halves.
    let mut windows: Vec<u64> = Vec::new();
    for sweep in &wanted {
        let times = repeats::tuned(timebase, span, |times| arena.walk(sweep.operation, WINDOW, times));
        windows.push(times.max(8).next_multiple_of(2));
    }
    let complete = interleave(rounds, wanted.len(), |turn| {
        if context.stopped() {
            return ControlFlow::Break(());
        }
        let (operation, windows) = (wanted[turn.candidate].operation, windows[turn.candidate]);
        context.lengthen(&[wanted[turn.candidate].beyond]);
        let took = repeats::timed(timebase, || {
            arena.walk(operation, WINDOW, windows);
            spin(0, WINDOW.0 * windows);
        });
        rates[turn.candidate].push(rate(Bytes(WINDOW.0 * windows), took));
        ControlFlow::Continue(())
    });
    if complete.is_break() {
        return;
    }
    let caveat = match cache {
        None => Some(format!("no cache sizes are known here: gone through {size}")),
        Some(cache) if size.0 < cache.0 * CACHES => {
            Some(format!("gone through {size} only: the last-level cache of {cache} may have helped"))
        }
        Some(_) => None,
    };
    for (sweep, rates) in wanted.into_iter().zip(&rates) {
        let taken = possible(sweep.operation, rates);
        context.enter(sweep.beyond, taken.map(|taken| caveat.iter().fold(taken, Reading::with_caveat)));
    }
}

/// The rates of a cell, if a core can move that fast.
fn possible(operation: Operation, rates: &[f64]) -> Taken {
    let most = most_possible(operation);
    match rates.iter().find(|rate| **rate > most) {
        Some(rate) => Err(Absent::final_(format!(
            "{:.0} GB/s came out, more than any core can move: the measurement is at fault",
            rate / 1e9
        ))),
        None => Ok(Reading::samples(rates.to_vec())),
    }
}

/// The most that a core can move in this way.
pub(super) fn most_possible(operation: Operation) -> f64 {
    let per_cycle = if operation == Operation::Read { READ_BYTES_PER_CYCLE } else { WRITE_BYTES_PER_CYCLE };
    per_cycle * CLOCK_HZ_MOST
}

pub(super) fn rate(bytes: Bytes, took: Nanos) -> f64 {
    bytes.0 as f64 * 1e9 / took.count().max(1) as f64
}
