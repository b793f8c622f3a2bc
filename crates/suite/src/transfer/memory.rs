//! The sweep through memory: copied, read, written and copied around the caches, by block size and page type.
//!
//! A block is moved again and again, so what fits into a cache is found there: the sweep shows the caches one after the
//! other. The last line, *beyond the caches*, goes through at least four times the last-level cache before it touches a
//! byte again, and is the memory's own rate.

use hairspring_machine::{Clock, Machine, Nanos};
use hairspring_sheet::{Absent, Figure, Method, Unit};
use hairspring_stream::{Bytes, Pages};
use hairspring_time::{Host, Timebase};

use super::arena::{Arena, PAGES};
use super::hockney::Block;
use super::operation::Operation;
use super::repeats::{self, Random};
use super::{fits, label};
use crate::caches;
use crate::context::{Context, Effort};
use crate::host;
use crate::registry::{RowDeclaration, TableDeclaration};

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
/// The segment of what lies in no cache.
const BEYOND: &str = "beyond_caches";
/// Two of the largest blocks.
const BLOCKS_ARENA: Bytes = Bytes::mib(128);

/// How many times the last-level cache is gone through.
const CACHES: u64 = 4;
/// Where no cache is known, this much is.
const BEYOND_UNKNOWN: Bytes = Bytes::mib(512);
/// More memory than this is not taken, nor more than this share of what is free.
const BEYOND_MOST: Bytes = Bytes::gib(2);
const BEYOND_MOST_OF_FREE: u64 = 3;
/// A quick sheet has no time to make more than this present.
const BEYOND_QUICK: Bytes = Bytes::mib(256);
/// What one step of a walk moves.
const WINDOW: Bytes = Bytes::mib(4);

/// Shares of the chapter's time that are spent on samples; what memory takes to become present comes on top.
const SHARE: f64 = 0.22;
const BEYOND_SHARE: f64 = 0.05;
/// Once this share of the chapter's time has passed, no more memory is made present.
const TIME_MOST: f64 = 1.0;

/// No core moves more in a cycle of its clock, and none has a faster clock: what is above was not measured but optimised away.
const READ_BYTES_PER_CYCLE: f64 = 192.0;
const WRITE_BYTES_PER_CYCLE: f64 = 64.0;
const CLOCK_HZ_MOST: f64 = 7e9;

pub(super) fn declare() -> Vec<TableDeclaration> {
    let mut tables: Vec<TableDeclaration> = Operation::ALL
        .into_iter()
        .map(|operation| TableDeclaration {
            diagram: None,
            id: format!("transfer.memory.{}", operation.segment()),
            title: format!("Memory, {}", operation.name()),
            limits: "at least 5 repeats in turns of all operations, blocks and pages, in an order of each turn's own; 384 MiB of \
                     memory; beyond the caches 4 times the last-level cache, at most 2 GiB and a third of the free memory, one \
                     kind of pages after the other",
            rows: PAGES.into_iter().flat_map(|pages| rows(operation, pages)).collect(),
        })
        .collect();
    let sweeps = PAGES.into_iter().flat_map(|pages| Operation::ALL.map(|operation| (operation, pages)));
    tables.push(fits::declare(
        "transfer.memory",
        "Memory, lines through the block sizes",
        sweeps.map(|(operation, pages)| (sweep(operation, pages), format!("{} on {pages}", operation.name()))),
    ));
    tables
}

/// The prefix of a sweep's fit.
fn sweep(operation: Operation, pages: Pages) -> String {
    format!("transfer.memory.{}.{}", operation.segment(), pages.name())
}

fn id(operation: Operation, block: &str, pages: Pages) -> String {
    format!("transfer.memory.{}.{block}.{}.rate", operation.segment(), pages.name())
}

fn rows(operation: Operation, pages: Pages) -> Vec<RowDeclaration> {
    let row = |segment: &str, label: String, how: String| {
        let measures = format!("{}; {how}, on {pages}", operation.counts());
        RowDeclaration::new(id(operation, segment, pages), label, Unit::BytesPerS, Method::Rate, measures)
    };
    let block = |(segment, bytes): (&str, Bytes)| {
        row(segment, label(bytes, pages), format!("the same {bytes} again and again"))
    };
    let beyond = row(
        BEYOND,
        format!("beyond the caches on {pages}"),
        format!("memory gone through in windows of {WINDOW}, no byte again before four times the last-level cache"),
    );
    BLOCKS.into_iter().map(block).chain([beyond]).collect()
}

/// What is moved in one cell, and the rates of its repeats in bytes per second.
struct Cell {
    operation: Operation,
    /// Which block, and which arena.
    block: usize,
    arena: usize,
    times: u64,
    rates: Vec<f64>,
}

/// Memory that the walk beyond the caches takes.
pub(super) fn beyond<M: Machine + Clone + Sync>(context: &Context<'_, M>) -> (Bytes, Option<Bytes>) {
    let cache = caches::last_level(&context.machine.facts()).map(Bytes);
    let wanted = cache.map_or(BEYOND_UNKNOWN, |cache| Bytes((cache.0 * CACHES).max(BLOCKS_ARENA.0)));
    let free = hairspring_stream::memory::free_memory().map_or(BEYOND_MOST, |free| Bytes(free.0 / BEYOND_MOST_OF_FREE));
    // Two halves of whole windows on whole huge pages.
    (wanted.min(BEYOND_MOST).min(free).round_down(Bytes(WINDOW.0 * 2)), cache)
}

/// What the arenas of this sweep need at once.
pub(super) fn most<M: Machine + Clone + Sync>(context: &Context<'_, M>) -> Bytes {
    beyond(context).0.max(BLOCKS_ARENA)
}

pub(super) fn measure<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    timebase: &Timebase<Host>,
    set_aside: u64,
) {
    measure_blocks(context, timebase, set_aside);
    for pages in PAGES {
        measure_beyond(context, timebase, pages, set_aside);
    }
    context.remark(format!(
        "Memory: rates count each byte once, also where it is read and written. Reading uses {}; non-temporal stores are {}; copy \
         and write are the C library's.",
        host::loads(),
        host::stores()
    ));
}

fn measure_blocks<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, timebase: &Timebase<Host>, set_aside: u64) {
    let wanted_fit =
        |context: &Context<'_, M>, operation, pages| context.wants(&format!("{}.fit", sweep(operation, pages)));
    let mut cells = Vec::new();
    let mut arenas = Vec::new();
    for pages in PAGES {
        let wanted: Vec<(Operation, usize)> = Operation::ALL
            .into_iter()
            .flat_map(|operation| (0..BLOCKS.len()).map(move |block| (operation, block)))
            .filter(|(operation, block)| {
                context.wants(&id(*operation, BLOCKS[*block].0, pages)) || wanted_fit(context, *operation, pages)
            })
            .collect();
        if wanted.is_empty() {
            continue;
        }
        context.say(&format!("memory for the transfers, {pages}"));
        match Arena::with_remedy(BLOCKS_ARENA, pages, set_aside) {
            Ok(arena) => {
                let arena_index = arenas.len();
                arenas.push((pages, arena));
                cells.extend(wanted.into_iter().map(|(operation, block)| Cell {
                    operation,
                    block,
                    arena: arena_index,
                    times: 0,
                    rates: Vec::new(),
                }));
            }
            Err(absent) => {
                for (operation, block) in wanted {
                    context.absent(&id(operation, BLOCKS[block].0, pages), absent.clone());
                    context.absent_under(&format!("{}.fit", sweep(operation, pages)), &absent);
                }
            }
        }
    }
    let rounds = repeats::rounds(context.effort);
    let span = context.share(SHARE / (cells.len().max(1) * rounds) as f64);
    let mut random = Random::new();
    for round in 0..rounds {
        context.say(&format!("memory by block size and pages, round {} of {rounds}", round + 1));
        for index in random.order(cells.len()) {
            if context.stopped() {
                return;
            }
            let cell = &mut cells[index];
            let (bytes, arena) = (BLOCKS[cell.block].1, &mut arenas[cell.arena].1);
            if cell.times == 0 {
                cell.times = repeats::tuned(timebase, span, |times| arena.repeat(cell.operation, bytes, times));
            }
            let took = repeats::timed(timebase, || arena.repeat(cell.operation, bytes, cell.times));
            cell.rates.push(rate(Bytes(bytes.0 * cell.times), took));
        }
    }
    for cell in &cells {
        enter(
            context,
            cell.operation,
            &id(cell.operation, BLOCKS[cell.block].0, arenas[cell.arena].0),
            &cell.rates,
            None,
        );
    }
    for (arena, (pages, _)) in arenas.iter().enumerate() {
        let mut lines = Vec::new();
        for operation in Operation::ALL {
            let cells = cells.iter().filter(|cell| (cell.arena, cell.operation) == (arena, operation));
            let blocks: Vec<Block> = cells.filter_map(|cell| block(operation, cell)).collect();
            if !blocks.is_empty() {
                lines.extend(fits::enter(context, &sweep(operation, *pages), operation.name(), &blocks));
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
fn block(operation: Operation, cell: &Cell) -> Option<Block> {
    let bytes = BLOCKS[cell.block].1.0 as f64;
    let possible = cell.rates.iter().all(|rate| *rate <= most_possible(operation));
    possible.then(|| Block { bytes, times_ns: cell.rates.iter().map(|rate| bytes * 1e9 / rate).collect() })
}

fn measure_beyond<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    timebase: &Timebase<Host>,
    pages: Pages,
    set_aside: u64,
) {
    let wanted: Vec<Operation> =
        Operation::ALL.into_iter().filter(|operation| context.wants(&id(*operation, BEYOND, pages))).collect();
    if wanted.is_empty() {
        return;
    }
    let (size, cache) = beyond(context);
    let elapsed = context.machine.read(Clock::Monotonic) - context.began;
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
        Arena::with_remedy(size, pages, set_aside)
    };
    let arena = match &mut arena {
        Ok(arena) => arena,
        Err(absent) => {
            wanted.iter().for_each(|operation| context.absent(&id(*operation, BEYOND, pages), absent.clone()));
            return;
        }
    };
    let rounds = repeats::rounds(context.effort);
    let span = context.share(BEYOND_SHARE / (Operation::ALL.len() * PAGES.len() * rounds) as f64);
    let mut random = Random::new();
    let mut rates = vec![Vec::new(); wanted.len()];
    // At least eight windows, so that no sample is of a few pages only; an even number, for both halves.
    let mut windows: Vec<u64> = Vec::new();
    for operation in &wanted {
        let times = repeats::tuned(timebase, span, |times| arena.walk(*operation, WINDOW, times));
        windows.push(times.max(8).next_multiple_of(2));
    }
    for _ in 0..rounds {
        for index in random.order(wanted.len()) {
            if context.stopped() {
                return;
            }
            let took = repeats::timed(timebase, || arena.walk(wanted[index], WINDOW, windows[index]));
            rates[index].push(rate(Bytes(WINDOW.0 * windows[index]), took));
        }
    }
    let caveat = match cache {
        None => Some(format!("no cache sizes are known here: gone through {size}")),
        Some(cache) if size.0 < cache.0 * CACHES => {
            Some(format!("gone through {size} only: the last-level cache of {cache} may have helped"))
        }
        Some(_) => None,
    };
    for (operation, rates) in wanted.into_iter().zip(&rates) {
        enter(context, operation, &id(operation, BEYOND, pages), rates, caveat.as_deref());
    }
}

/// Enters the rates of a cell, if they are possible.
fn enter<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    operation: Operation,
    id: &str,
    rates: &[f64],
    caveat: Option<&str>,
) {
    let most = most_possible(operation);
    if let Some(rate) = rates.iter().find(|rate| **rate > most) {
        let reason =
            format!("{:.0} GB/s came out, more than any core can move: the measurement is at fault", rate / 1e9);
        context.absent(id, Absent::final_(reason));
        return;
    }
    let figure = Figure::from_samples(Unit::BytesPerS, Method::Rate, &mut rates.to_vec());
    context.put(id, caveat.into_iter().fold(figure, Figure::with_caveat));
}

/// The most that a core can move in this way.
pub(super) fn most_possible(operation: Operation) -> f64 {
    let per_cycle = if operation == Operation::Read { READ_BYTES_PER_CYCLE } else { WRITE_BYTES_PER_CYCLE };
    per_cycle * CLOCK_HZ_MOST
}

pub(super) fn rate(bytes: Bytes, took: Nanos) -> f64 {
    bytes.0 as f64 * 1e9 / took.count().max(1) as f64
}
