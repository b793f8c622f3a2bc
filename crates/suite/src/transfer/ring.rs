//! The sweep over notify sizes: how fast a ring hands data from one thread to another, on pages of each kind.
//!
//! What is done with the data: the producer copies a source block of one notify size into the ring (the standard library's
//! copy) and publishes it, which rings the consumer's bell; the consumer, a thread on another CPU, sleeps on the bell, takes
//! one notify size at a time and gives it back at once, without looking at it. The time ends when the last byte was given
//! back. So what the ring costs is everything but the copy; how much that is stands beside it as a share of the same copies into
//! the same memory with no ring, no bell and no other thread. Where a CPU that sleeps is slow to wake, as a virtual one is, most
//! of it is the waking; so it is also measured with a consumer that never sleeps.

use std::sync::{Arc, Barrier};

use hairspring_machine::{Cpu, CpuSet, Machine, Nanos};
use hairspring_sheet::{Absent, Figure, Method, Unit};
use hairspring_stream::source::OnOverrun;
use hairspring_stream::{Bytes, Consumer, Memory, Pages, Producer, ring};
use hairspring_time::{Host, Timebase};

use super::arena::{self, PAGES};
use super::hockney::Block;
use super::memory::{most_possible, rate};
use super::operation::Operation;
use super::repeats::{self, Random};
use super::{fits, label};
use crate::context::Context;
use crate::registry::{RowDeclaration, TableDeclaration};

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
/// The share of the chapter's time; one half is the copies that the ring is compared with.
const SHARE: f64 = 0.2;
/// How long a thread sleeps at most before it looks by itself.
const LOOK: Nanos = Nanos::from_millis(100);

fn id(notify: &str, pages: Pages, quantity: &str) -> String {
    format!("transfer.ring.{notify}.{}.{quantity}", pages.name())
}

fn sweep(pages: Pages) -> String {
    format!("transfer.ring.{}", pages.name())
}

pub(super) fn declare() -> Vec<TableDeclaration> {
    let table = |title: &str, limits, rows| TableDeclaration {
        diagram: None,
        id: "transfer.ring".to_owned(),
        title: title.to_owned(),
        limits,
        rows,
    };
    let rows = |pages: &[Pages], quantity: &str, unit, method, measures: &str| -> Vec<RowDeclaration> {
        let of = |pages: Pages| {
            NOTIFIES.map(|(segment, notify)| {
                let measures = format!("{measures}; notify size {notify}, a ring of {RING} on {pages}");
                RowDeclaration::new(id(segment, pages, quantity), label(notify, pages), unit, method, measures)
            })
        };
        pages.iter().copied().flat_map(of).collect()
    };
    let limits = "at least 5 repeats in turns of all notify sizes and pages, in an order of each turn's own; each hands over at \
                  least 4 blocks; 60 MiB of memory";
    vec![
        table(
            "Ring, one thread to another",
            limits,
            rows(
                &PAGES,
                "rate",
                Unit::BytesPerS,
                Method::Rate,
                "bytes that a producer copies into the ring and a consumer on another CPU takes and gives back, without looking \
                 at them, until the last is given back",
            ),
        ),
        table(
            "Ring, share of the plain copy",
            limits,
            rows(
                &PAGES,
                "of_copy",
                Unit::Ratio,
                Method::Derived,
                "rate of the ring over that of the same copies into the same memory by one thread with no ring; one ratio for \
                 each repeat",
            ),
        ),
        table(
            "Ring, share of the plain copy with a consumer that polls",
            limits,
            rows(
                &PAGES,
                "polled_of_copy",
                Unit::Ratio,
                Method::Derived,
                "the same with a consumer that never sleeps, but looks again and again whether there is more",
            ),
        ),
        table(
            "Ring, advantage of continuous over user buffers",
            limits,
            rows(
                &PAGES[1..],
                "advantage",
                Unit::Ratio,
                Method::Derived,
                "how much higher the rate is than on small pages; one ratio for each repeat",
            ),
        ),
        fits::declare(
            "transfer.ring",
            "Ring, lines through the notify sizes",
            PAGES.into_iter().map(|pages| (sweep(pages), pages.to_string())),
        ),
    ]
}

/// What a ring and its source need at once.
pub(super) fn most() -> Bytes {
    Bytes(RING.0 + SOURCE.0)
}

/// The ring's memory on pages of one kind, and what is copied into it.
struct Buffers {
    pages: Pages,
    ring: Arc<Memory>,
    source: Memory,
}

/// One notify size on pages of one kind, with its repeats.
struct Cell {
    notify: usize,
    buffers: usize,
    blocks: u64,
    rates: Vec<f64>,
    of_copy: Vec<f64>,
    polled_of_copy: Vec<f64>,
}

/// How a consumer waits for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// On the bell.
    Asleep,
    /// By looking; it takes a CPU of its own.
    Polling,
}

pub(super) fn measure<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    timebase: &Timebase<Host>,
    other: Option<Cpu>,
    set_aside: u64,
) {
    let consumer_cpu = other.unwrap_or(context.cpu);
    let mut buffers = Vec::new();
    for pages in PAGES {
        context.say(&format!("memory for the ring, {pages}"));
        match Buffers::new(pages, set_aside) {
            Ok(made) => buffers.push(made),
            Err(absent) => {
                for (notify, _) in NOTIFIES {
                    context.absent_under(&format!("transfer.ring.{notify}.{}", pages.name()), &absent);
                }
                context.absent_under(&format!("{}.fit", sweep(pages)), &absent);
            }
        }
    }
    let mut cells: Vec<Cell> = (0..buffers.len())
        .flat_map(|buffers| (0..NOTIFIES.len()).map(move |notify| (notify, buffers)))
        .map(|(notify, buffers)| Cell {
            notify,
            buffers,
            blocks: 0,
            rates: Vec::new(),
            of_copy: Vec::new(),
            polled_of_copy: Vec::new(),
        })
        .collect();
    let rounds = repeats::rounds(context.effort);
    let span = context.share(SHARE / (3 * cells.len().max(1) * rounds) as f64);
    let mut random = Random::new();
    for round in 0..rounds {
        context.say(&format!("ring by notify size and pages, round {} of {rounds}", round + 1));
        for index in random.order(cells.len()) {
            if context.stopped() {
                return;
            }
            let cell = &mut cells[index];
            if let Err(absent) =
                buffers[cell.buffers].repeat(timebase, (consumer_cpu, other.is_some()), span, round, cell)
            {
                context.absent_under("transfer.ring", &absent);
                return;
            }
        }
    }
    enter(context, &buffers, &cells);
    context.remark(match other {
        Some(other) => {
            format!("Ring: {RING}; the producer runs on CPU {}, the consumer on CPU {}.", context.cpu.0, other.0)
        }
        None => format!("Ring: {RING}; producer and consumer share CPU {}, for only one may be used.", context.cpu.0),
    });
}

impl Buffers {
    fn new(pages: Pages, set_aside: u64) -> Result<Self, Absent> {
        let ring = arena::on_pages(Memory::mirrored, RING, pages, set_aside)?;
        let mut source = arena::on_pages(Memory::plain, SOURCE, pages, set_aside)?;
        arena::bytes(&mut source).fill(1);
        Ok(Self { pages, ring: Arc::new(ring), source })
    }

    /// One repeat of a cell: the ring, the plain copy and, if the consumer has a CPU of its own, the ring with polling, in
    /// another order each round.
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
        }
        let bytes = Bytes(length as u64 * cell.blocks);
        let [mut copied, mut handed, mut polled] = [None; 3];
        for turn in 0..3 {
            match (turn + round) % 3 {
                0 => copied = Some(repeats::timed(timebase, || copy(&mut self.ring, source, cell.blocks))),
                1 => handed = Some(hand_over(timebase, &self.ring, source, cell.blocks, consumer_cpu, Waits::Asleep)?),
                _ if !is_its_own => {}
                _ => polled = Some(hand_over(timebase, &self.ring, source, cell.blocks, consumer_cpu, Waits::Polling)?),
            }
        }
        let [copied, handed, polled] = [copied, handed, polled].map(|took| took.map(|took| rate(bytes, took)));
        cell.rates.extend(handed);
        cell.of_copy.extend(handed.zip(copied).map(|(handed, copied)| handed / copied));
        cell.polled_of_copy.extend(polled.zip(copied).map(|(polled, copied)| polled / copied));
        Ok(())
    }
}

/// The copies that a producer makes, without anything else: block behind block, over and over the same memory.
fn copy(memory: &mut Arc<Memory>, source: &[u8], blocks: u64) {
    // There are no ends of a ring now, so it is nobody else's.
    let Some(memory) = Arc::get_mut(memory) else { return };
    let ring = arena::bytes(memory);
    let places = ring.len() / source.len();
    for block in 0..blocks {
        let place = (block % places as u64) as usize * source.len();
        Operation::Copy.run(source, &mut ring[place..place + source.len()]);
    }
}

/// Hands blocks over; how long it took until the last was given back.
fn hand_over(
    timebase: &Timebase<Host>,
    memory: &Arc<Memory>,
    source: &[u8],
    blocks: u64,
    consumer_cpu: Cpu,
    waits: Waits,
) -> Result<Nanos, Absent> {
    let notify = Bytes(source.len() as u64);
    let ends = ring(Arc::clone(memory), notify, OnOverrun::Block);
    let (mut producer, mut consumer) = ends.map_err(|error| Absent::final_(format!("no ring: {error}")))?;
    let ready = Barrier::new(2);
    std::thread::scope(|scope| {
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
    })
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
        producer.bell().wait(None, LOOK);
        producer.bell().quiet();
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
            Waits::Polling => std::hint::spin_loop(),
            Waits::Asleep => {
                consumer.bell().wait(None, LOOK);
                consumer.bell().quiet();
            }
        }
    }
}

fn enter<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, buffers: &[Buffers], cells: &[Cell]) {
    let most = most_possible(Operation::Copy);
    let small =
        |notify: usize| cells.iter().find(|cell| cell.notify == notify && buffers[cell.buffers].pages == Pages::Small);
    for cell in cells {
        let (notify, pages) = (NOTIFIES[cell.notify].0, buffers[cell.buffers].pages);
        if let Some(rate) = cell.rates.iter().find(|rate| **rate > most) {
            let reason =
                format!("{:.0} GB/s came out, more than any core can move: the measurement is at fault", rate / 1e9);
            context.absent_under(&format!("transfer.ring.{notify}.{}", pages.name()), &Absent::final_(reason));
            continue;
        }
        let rates = Figure::from_samples(Unit::BytesPerS, Method::Rate, &mut cell.rates.clone());
        context.put(&id(notify, pages, "rate"), rates);
        let of_copy = Figure::from_samples(Unit::Ratio, Method::Derived, &mut cell.of_copy.clone());
        context.put(&id(notify, pages, "of_copy"), of_copy);
        let polled = id(notify, pages, "polled_of_copy");
        if cell.polled_of_copy.is_empty() {
            let remedy = "allow a second CPU, with `taskset` or in the control group";
            context.absent(&polled, Absent::new("a consumer that polls takes a CPU of its own", remedy));
        } else {
            let figure = Figure::from_samples(Unit::Ratio, Method::Derived, &mut cell.polled_of_copy.clone());
            context.put(&polled, figure);
        }
        match small(cell.notify).filter(|_| pages != Pages::Small) {
            Some(small) => {
                let pairs = cell.rates.iter().zip(&small.rates);
                let mut advantages: Vec<f64> = pairs.map(|(own, small)| own / small - 1.0).collect();
                let figure = Figure::from_samples(Unit::Ratio, Method::Derived, &mut advantages);
                context.put(&id(notify, pages, "advantage"), figure);
            }
            None => {
                let absent = Absent::new(
                    "there is no rate on small pages to compare with",
                    "echo madvise > /sys/kernel/mm/transparent_hugepage/shmem_enabled",
                );
                context.absent(&id(notify, pages, "advantage"), absent);
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
        lines.extend(fits::enter(context, &sweep(of.pages), &of.pages.to_string(), &blocks));
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
        let took = hand_over(&timebase, &memory, &source, 1000, cpu, Waits::Asleep).expect("handed over");
        assert!(took > Nanos::ZERO);
        let memory = Arc::get_mut(&mut memory).expect("both ends are gone");
        assert!(arena::bytes(memory).chunks(4096).all(|block| block == source));
    }

    #[test]
    fn the_plain_copy_fills_the_same_memory() {
        let mut memory = Arc::new(Memory::mirrored(Bytes::kib(64), Bytes::kib(64), Pages::Small).expect("64 KiB"));
        copy(&mut memory, &[7; 4096], 16);
        assert!(arena::bytes(Arc::get_mut(&mut memory).expect("one owner")).iter().all(|byte| *byte == 7));
    }
}
