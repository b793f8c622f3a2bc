//! The sweep over notify sizes: how fast a ring hands data from one thread to another, on pages of each kind.
//!
//! Path of the data: the producer copies a source block of one notify size into the ring (the standard library's copy)
//! and publishes it, which wakes the consumer; the consumer, a thread on another CPU, sleeps on the notifier, takes one
//! notify size at a time and gives it back at once, without looking at it. The time ends when the last byte was given
//! back. So the cost of the ring is everything but the copy; beside it stands the rate as a share of the same copies
//! into the same memory with no ring, no notifier and no other thread. If a sleeping CPU is slow to wake, as a virtual
//! one is, most of the cost is the waking; so it is also measured with a consumer that polls where that pays
//! ([`Consumer::wait`]).

use std::ops::ControlFlow;
use std::sync::{Arc, Barrier};

use hairspring_machine::{Cpu, CpuSet, Machine, Nanos};
use hairspring_ring::{Bytes, Consumer, Memory, OnOverrun, Pages, Producer, WaitCounts, ring};
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_time::{Host, Timebase};

use super::arena::{self, PAGES};
use super::fits::{self, FitRows};
use super::hockney::Block;
use super::memory::{most_possible, rate};
use super::operation::Operation;
use super::{label, repeats, set_aside};
use crate::probe::{Class, Context, Probes, Reading, Row, Setting, Slot, TableSlot};

/// Notify sizes with their segments.
const NOTIFIES: [(&str, Bytes); 6] = [
    ("4kib", Bytes::kib(4)),
    ("16kib", Bytes::kib(16)),
    ("64kib", Bytes::kib(64)),
    ("256kib", Bytes::kib(256)),
    ("1mib", Bytes::mib(1)),
    ("4mib", Bytes::mib(4)),
];
/// The ring's size: four of the largest notify size.
const RING: Bytes = Bytes::mib(16);
/// The largest notify size.
const SOURCE: Bytes = Bytes::mib(4);
/// The least number of blocks that one sample hands over.
const BLOCKS_LEAST: u64 = 4;
/// Blocks by which the time of a hand-over is found.
const TRIED: u64 = 64;
/// The share of the chapter's time; one half is the copies that the ring is compared with.
const SHARE: f64 = 0.2;
/// The longest sleep of a thread before it looks at the ring again.
const LOOK: Nanos = Nanos::from_millis(100);

/// The rows of pages of one kind.
#[derive(Clone, Copy)]
struct Sweep {
    pages: Pages,
    notifies: [Rows; NOTIFIES.len()],
    fit: FitRows,
}

/// The rows of one notify size on pages of one kind.
#[derive(Clone, Copy)]
struct Rows {
    rate: Slot,
    of_copy: Slot,
    adaptive_of_copy: Slot,
    /// Over small pages; those have none.
    advantage: Option<Slot>,
}

impl Rows {
    fn all(self) -> impl Iterator<Item = Slot> {
        [self.rate, self.of_copy, self.adaptive_of_copy].into_iter().chain(self.advantage)
    }
}

impl Sweep {
    fn all(&self) -> impl Iterator<Item = Slot> {
        self.notifies.into_iter().flat_map(Rows::all).chain(self.fit.all())
    }
}

/// The one probe: all notify sizes and pages in turns.
pub(super) fn add<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) {
    let limits = "at least 5 repeats in turns of all notify sizes and pages, in an order of each turn's own; each hands over at \
                  least 4 blocks; 60 MiB of memory";
    let titles = [
        "Ring, one thread to another",
        "Ring, share of the plain copy",
        "Ring, share of the plain copy with adaptive polling",
        "Ring, advantage of continuous over user buffers",
    ];
    let tables = titles.map(|title| probes.table("transfer.ring", title, limits));
    let lines = fits::table(probes, "transfer.ring", "Ring, lines through the notify sizes");
    let sweeps = PAGES.map(|pages| sweep(probes, tables, lines, pages));
    let slots: Vec<Slot> = sweeps.iter().flat_map(Sweep::all).collect();
    probes.on_two_cpus(|probes| {
        probes.several_on_host(Setting::Class(Class::Other), slots, move |context, timebase| {
            measure(context, timebase, &sweeps);
        });
    });
}

fn sweep<M: Machine + Clone + Sync + 'static>(
    probes: &mut Probes<M>,
    [rates, of_copies, adaptive, advantages]: [TableSlot; 4],
    lines: TableSlot,
    pages: Pages,
) -> Sweep {
    let notifies = NOTIFIES.map(|(segment, notify)| {
        let mut row = |table, quantity: &str, unit, method, measures: &str| {
            let measures = format!("{measures}; notify size {notify}, a ring of {RING} on {pages}");
            let suffix = format!("{segment}.{}.{quantity}", pages.name());
            probes.row(table, Row::new(suffix, label(notify, pages), unit, method, measures))
        };
        Rows {
            rate: row(
                rates,
                "rate",
                Unit::BytesPerS,
                Method::Rate,
                "bytes that a producer copies into the ring and a consumer on another CPU takes and gives back, without looking \
                 at them, until the last is given back",
            ),
            of_copy: row(
                of_copies,
                "of_copy",
                Unit::Ratio,
                Method::Derived,
                "rate of the ring over that of the same copies into the same memory by one thread with no ring; one ratio for \
                 each repeat",
            ),
            adaptive_of_copy: row(
                adaptive,
                "adaptive_of_copy",
                Unit::Ratio,
                Method::Derived,
                "the same with a consumer that polls for up to 50 µs before it sleeps, where that found a block lately",
            ),
            advantage: (pages != Pages::Small).then(|| {
                row(
                    advantages,
                    "advantage",
                    Unit::Ratio,
                    Method::Derived,
                    "how much higher the rate is than on small pages; one ratio for each repeat",
                )
            }),
        }
    });
    let fit = fits::rows(probes, lines, pages.name(), &pages.to_string());
    Sweep { pages, notifies, fit }
}

/// Bytes that a ring and its source need at once.
pub(super) fn most() -> Bytes {
    Bytes(RING.0 + SOURCE.0)
}

/// The ring's memory on pages of one kind, and the source block of the copies.
struct Buffers {
    sweep: Sweep,
    ring: Arc<Memory>,
    source: Memory,
}

/// One notify size on pages of one kind, with its repeats.
struct Cell {
    notify: usize,
    buffers: usize,
    /// Blocks that a repeat copies and hands to a consumer that may poll; and to one that sleeps, which takes longer
    /// for each.
    blocks: u64,
    asleep: u64,
    rates: Vec<f64>,
    of_copy: Vec<f64>,
    adaptive_of_copy: Vec<f64>,
    /// Outcomes of the waits of the consumers that may poll.
    waits: WaitCounts,
}

/// Wait of a consumer for more data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// On the notifier.
    Asleep,
    /// By [`Consumer::wait`].
    Adaptively,
}

fn measure<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    timebase: &Timebase<Host>,
    sweeps: &[Sweep; PAGES.len()],
) {
    let other = context.other;
    let consumer_cpu = other.unwrap_or(context.cpu);
    let mut buffers = Vec::new();
    for sweep in sweeps {
        context.say(&format!("memory for the ring, {}", sweep.pages));
        match Buffers::new(*sweep, set_aside(context)) {
            Ok(made) => buffers.push(made),
            Err(absent) => context.absent_all(sweep.all(), &absent),
        }
    }
    let mut cells: Vec<Cell> = (0..buffers.len())
        .flat_map(|buffers| (0..NOTIFIES.len()).map(move |notify| (notify, buffers)))
        .map(|(notify, buffers)| Cell {
            notify,
            buffers,
            blocks: 0,
            asleep: 0,
            rates: Vec::new(),
            of_copy: Vec::new(),
            adaptive_of_copy: Vec::new(),
            waits: WaitCounts::default(),
        })
        .collect();
    let rounds = repeats::rounds(context);
    let span = context.share(SHARE / (3 * cells.len().max(1) * rounds) as f64);
    let complete = repeats::in_turns(context, "ring by notify size and pages", rounds, cells.len(), |context, turn| {
        let cell = &mut cells[turn.candidate];
        let place = (consumer_cpu, other.is_some());
        match buffers[cell.buffers].repeat(timebase, place, span, turn.round, cell) {
            Ok(()) => ControlFlow::Continue(()),
            Err(absent) => {
                context.absent_all(sweeps.iter().flat_map(Sweep::all), &absent);
                ControlFlow::Break(())
            }
        }
    });
    if !complete {
        return;
    }
    enter(context, &buffers, &cells);
    context.remark(polled(&buffers, &cells));
    context.remark(match other {
        Some(other) => {
            format!("Ring: {RING}; the producer runs on CPU {}, the consumer on CPU {}.", context.cpu.0, other.0)
        }
        None => format!("Ring: {RING}; producer and consumer share CPU {}, for only one may be used.", context.cpu.0),
    });
}

/// The cells in which adaptive polling paid.
fn polled(buffers: &[Buffers], cells: &[Cell]) -> String {
    let of = |cell: &Cell| {
        let WaitCounts { polled, polled_in_vain, slept } = cell.waits;
        let share = 100.0 * polled as f64 / (polled + polled_in_vain + slept).max(1) as f64;
        format!("{share:.0} % at {}", NOTIFIES[cell.notify].1)
    };
    let on_small = cells.iter().filter(|cell| buffers[cell.buffers].sweep.pages == Pages::Small);
    let shares: Vec<String> = on_small.map(of).collect();
    format!("Adaptive polling ended this share of the consumer's waits, on small pages: {}.", shares.join(", "))
}

impl Buffers {
    fn new(sweep: Sweep, set_aside: u64) -> Result<Self, Absent> {
        let pages = sweep.pages;
        let ring = arena::on_pages(Memory::mirrored, RING, pages, set_aside)?;
        let mut source = arena::on_pages(Memory::plain, SOURCE, pages, set_aside)?;
        arena::bytes(&mut source).fill(1);
        Ok(Self { sweep, ring: Arc::new(ring), source })
    }

    /// One repeat of a cell: the plain copy, the ring, and the ring with adaptive polling, in another order each round.
    fn repeat(
        &mut self,
        timebase: &Timebase<Host>,
        (consumer_cpu, is_its_own): (Cpu, bool),
        span: Nanos,
        round: usize,
        cell: &mut Cell,
    ) -> Result<(), Absent> {
        let length = usize::try_from(NOTIFIES[cell.notify].1.0).unwrap_or(usize::MAX);
        let source = &arena::bytes(&mut self.source)[..length];
        if cell.blocks == 0 {
            cell.blocks =
                repeats::tuned(timebase, span, |blocks| copy(&mut self.ring, source, blocks)).max(BLOCKS_LEAST);
            // The waking weighs most where blocks are small; then a few show it.
            let tried = cell.blocks.min(TRIED);
            let (took, _) = hand_over(timebase, &self.ring, source, tried, consumer_cpu, Waits::Asleep)?;
            let fit = (tried * span.count().unsigned_abs()).checked_div(took.count().unsigned_abs());
            cell.asleep = fit.unwrap_or(cell.blocks).clamp(BLOCKS_LEAST, cell.blocks);
        }
        // If both ends share a CPU, polling finds nothing.
        let may_poll = if is_its_own { cell.blocks } else { cell.asleep };
        let [mut copied, mut handed, mut polled] = [None; 3];
        for turn in 0..3 {
            match (turn + round) % 3 {
                0 => copied = Some(repeats::timed(timebase, || copy(&mut self.ring, source, cell.blocks))),
                1 => {
                    handed = Some(hand_over(timebase, &self.ring, source, cell.asleep, consumer_cpu, Waits::Asleep)?.0);
                }
                _ => {
                    let (took, waits) =
                        hand_over(timebase, &self.ring, source, may_poll, consumer_cpu, Waits::Adaptively)?;
                    cell.waits = cell.waits + waits;
                    polled = Some(took);
                }
            }
        }
        let of = |blocks: u64, took: Option<Nanos>| took.map(|took| rate(Bytes(length as u64 * blocks), took));
        let [copied, handed, polled] = [of(cell.blocks, copied), of(cell.asleep, handed), of(may_poll, polled)];
        cell.rates.extend(handed);
        cell.of_copy.extend(handed.zip(copied).map(|(handed, copied)| handed / copied));
        cell.adaptive_of_copy.extend(polled.zip(copied).map(|(polled, copied)| polled / copied));
        Ok(())
    }
}

/// The copies that a producer makes, without anything else: block behind block, over and over the same memory.
fn copy(memory: &mut Arc<Memory>, source: &[u8], blocks: u64) {
    // The ends of the ring are dropped, so this is the only reference.
    let Some(memory) = Arc::get_mut(memory) else { return };
    let ring = arena::bytes(memory);
    let places = ring.len() / source.len();
    for block in 0..blocks {
        let place = (block % places as u64) as usize * source.len();
        Operation::Copy.run(source, &mut ring[place..place + source.len()]);
    }
}

/// Hands blocks over; returns the time until the last was given back, and the outcomes of the consumer's waits.
fn hand_over(
    timebase: &Timebase<Host>,
    memory: &Arc<Memory>,
    source: &[u8],
    blocks: u64,
    consumer_cpu: Cpu,
    waits: Waits,
) -> Result<(Nanos, WaitCounts), Absent> {
    let notify = Bytes(source.len() as u64);
    let ends = ring(Arc::clone(memory), notify, OnOverrun::Block);
    let (mut producer, mut consumer) = ends.map_err(|error| Absent::final_(format!("no ring: {error}")))?;
    let ready = Barrier::new(2);
    let took = std::thread::scope(|scope| {
        let consume = || {
            let placed = Host.set_affinity(&CpuSet(vec![consumer_cpu]));
            ready.wait();
            take_all(&mut consumer, notify.0, notify.0 * blocks, waits);
            placed
        };
        let thread = std::thread::Builder::new().name("ring consumer".to_owned()).spawn_scoped(scope, consume);
        let thread = thread.map_err(|error| Absent::final_(format!("failed to start a thread: {error}")))?;
        ready.wait();
        let took = repeats::timed(timebase, || put_all(&mut producer, source, blocks));
        match thread.join() {
            Ok(Ok(())) => Ok(took),
            Ok(Err(refused)) => Err(Absent::new(
                format!("the system refused to {}: {}", refused.attempted, refused.said),
                refused.remedy,
            )),
            Err(_) => Err(Absent::final_("the consumer's thread failed, which is a defect of hairspring")),
        }
    })?;
    Ok((took, consumer.waits()))
}

/// Copies the source into the ring, block by block, and waits until all was given back.
fn put_all(producer: &mut Producer, source: &[u8], blocks: u64) {
    let capacity = producer.fill().capacity.0;
    for _ in 0..blocks {
        wait_for_room(producer, source.len() as u64);
        if let Some(target) = producer.reserve(source.len()) {
            Operation::Copy.run(source, target);
        }
        producer.commit(source.len());
    }
    wait_for_room(producer, capacity);
}

fn wait_for_room(producer: &mut Producer, bytes: u64) {
    while producer.room() < bytes {
        producer.notifier().wait(None, LOOK);
        producer.notifier().clear();
    }
}

/// Takes one notify size after the other and gives it back, until `total` bytes were given back.
fn take_all(consumer: &mut Consumer, notify: u64, total: u64, waits: Waits) {
    loop {
        while consumer.available() >= notify {
            consumer.take(notify);
            consumer.release(consumer.next());
        }
        if consumer.next() >= total {
            return;
        }
        match waits {
            Waits::Adaptively => consumer.wait(notify, LOOK),
            Waits::Asleep => {
                consumer.notifier().wait(None, LOOK);
                consumer.notifier().clear();
            }
        }
    }
}

fn enter<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, buffers: &[Buffers], cells: &[Cell]) {
    let most = most_possible(Operation::Copy);
    let pages = |cell: &Cell| buffers[cell.buffers].sweep.pages;
    let small = |notify: usize| cells.iter().find(|cell| cell.notify == notify && pages(cell) == Pages::Small);
    for cell in cells {
        let rows = buffers[cell.buffers].sweep.notifies[cell.notify];
        if let Some(rate) = cell.rates.iter().find(|rate| **rate > most) {
            let reason =
                format!("{:.0} GB/s came out, more than any core can move: the measurement is at fault", rate / 1e9);
            context.absent_all(rows.all(), &Absent::final_(reason));
            continue;
        }
        context.put(rows.rate, Reading::samples(cell.rates.clone()));
        context.put(rows.of_copy, Reading::samples(cell.of_copy.clone()));
        context.put(rows.adaptive_of_copy, Reading::samples(cell.adaptive_of_copy.clone()));
        let Some(advantage) = rows.advantage else { continue };
        match small(cell.notify) {
            Some(small) => {
                let pairs = cell.rates.iter().zip(&small.rates);
                context.put(advantage, Reading::samples(pairs.map(|(own, small)| own / small - 1.0).collect()));
            }
            None => {
                let remedy = "echo madvise > /sys/kernel/mm/transparent_hugepage/shmem_enabled";
                let absent = Absent::new("there is no rate on small pages to compare with", remedy);
                context.absent(advantage, absent);
            }
        }
    }
    let mut lines = Vec::new();
    for (index, of) in buffers.iter().enumerate() {
        let block = |cell: &Cell| {
            let bytes = NOTIFIES[cell.notify].1.0 as f64;
            Block { bytes, times_ns: cell.rates.iter().map(|rate| bytes * 1e9 / rate).collect() }
        };
        let blocks: Vec<Block> = cells.iter().filter(|cell| cell.buffers == index).map(block).collect();
        lines.extend(fits::enter(context, of.sweep.fit, &of.sweep.pages.to_string(), &blocks));
    }
    fits::plot(context, "transfer.ring", "Ring by notify size", "notify size", lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_handed_over_and_given_back_and_the_last_ones_are_intact() {
        let mut memory = Arc::new(Memory::mirrored(Bytes::kib(64), Bytes::kib(64), Pages::Small).expect("64 KiB"));
        let cpu = Host.affinity().0[0];
        let timebase = Timebase::calibrate(Host).expect("a time base");
        let source: Vec<u8> = (0..4096).map(|i| (i % 251) as u8).collect();
        for waits in [Waits::Asleep, Waits::Adaptively] {
            arena::bytes(Arc::get_mut(&mut memory).expect("both ends are gone")).fill(0);
            let (took, counts) = hand_over(&timebase, &memory, &source, 1000, cpu, waits).expect("handed over");
            assert!(took > Nanos::ZERO);
            // Both ends share a CPU: the ring fills up, and there is a wait for each ringful.
            assert_eq!(counts != WaitCounts::default(), waits == Waits::Adaptively);
            let memory = Arc::get_mut(&mut memory).expect("both ends are gone");
            assert!(arena::bytes(memory).chunks(4096).all(|block| block == source), "{waits:?}");
        }
    }

    #[test]
    fn the_plain_copy_fills_the_same_memory() {
        let mut memory = Arc::new(Memory::mirrored(Bytes::kib(64), Bytes::kib(64), Pages::Small).expect("64 KiB"));
        copy(&mut memory, &[7; 4096], 16);
        assert!(arena::bytes(Arc::get_mut(&mut memory).expect("one owner")).iter().all(|byte| *byte == 7));
    }
}
