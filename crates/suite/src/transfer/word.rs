//! Cost of one access to a mapped 32-bit word, by the way the call is made and by whether it is checked.
//!
//! The device is a page of memory that is mapped and accessed as a device's registers are: each access is volatile, one
//! word, in the order of the program. So the figures are the cost of the software on top of the bus, which is not in
//! them.
//!
//! A checked access does what a careful driver does. It refuses words beyond the window. After the access it reads the
//! device's status, and returns an error if a bit is set there. The caller looks at each result.

mod device;

use std::hint::black_box;
use std::ops::ControlFlow;

use hairspring_machine::Machine;
use hairspring_ring::{Bytes, Memory, Pages};
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_time::{Host, Timebase};

use super::repeats::timed;
use crate::interleaving::interleave;
use crate::probe::{Class, Context, Probes, Reading, Row, Setting, Slopes, Slot, spin};
use device::{Bus, Fault, Window};

/// Accesses by which two batches differ, and those of the shorter one; their words differ.
const BATCH: usize = 1_000;
/// Accesses in one turn of the loop, written out one after the other: so the processor cannot hide them all beside the
/// loop's own counting.
const TOGETHER: usize = 8;
/// Pairs of batches of each way.
const ROUNDS: usize = 200;
/// Value written.
const VALUE: u32 = 0x5a5a_5a5a;
/// Words that a batch visits in turn; the status word is not among them.
const WORDS: usize = 512;

/// One way to access a word: the operation, the kind of call, whether each access is checked; and a batch of such
/// accesses, which returns the number of those that failed.
type Way = (&'static str, (&'static str, &'static str), bool, Batch);
type Batch = for<'w> fn(&'w Window<'w>, usize) -> usize;

const DIRECT: (&str, &str) = ("direct", "compiled into the caller");
const POINTER: (&str, &str) = ("pointer", "through a function pointer");
const DYN: (&str, &str) = ("dyn", "through a trait object");

/// Every way. The result of a read needs no use: a volatile read is made all the same. `black_box` hides the target of
/// a pointer from the compiler.
const WAYS: [Way; 12] = [
    ("read", DIRECT, false, |window, accesses| batch(accesses, |word| window.read(word))),
    ("read", DIRECT, true, |window, accesses| batch(accesses, |word| window.try_read(word))),
    ("read", POINTER, false, |window, accesses| {
        let read = black_box(Window::read as fn(&_, _) -> _);
        batch(accesses, |word| read(window, word))
    }),
    ("read", POINTER, true, |window, accesses| {
        let read = black_box(Window::try_read as fn(&_, _) -> _);
        batch(accesses, |word| read(window, word))
    }),
    ("read", DYN, false, |window, accesses| {
        let bus: &dyn Bus = black_box(window);
        batch(accesses, |word| bus.read(word))
    }),
    ("read", DYN, true, |window, accesses| {
        let bus: &dyn Bus = black_box(window);
        batch(accesses, |word| bus.try_read(word))
    }),
    ("write", DIRECT, false, |window, accesses| batch(accesses, |word| window.write(word, VALUE))),
    ("write", DIRECT, true, |window, accesses| batch(accesses, |word| window.try_write(word, VALUE))),
    ("write", POINTER, false, |window, accesses| {
        let write = black_box(Window::write as fn(&_, _, _));
        batch(accesses, |word| write(window, word, VALUE))
    }),
    ("write", POINTER, true, |window, accesses| {
        let write = black_box(Window::try_write as fn(&_, _, _) -> _);
        batch(accesses, |word| write(window, word, VALUE))
    }),
    ("write", DYN, false, |window, accesses| {
        let bus: &dyn Bus = black_box(window);
        batch(accesses, |word| bus.write(word, VALUE))
    }),
    ("write", DYN, true, |window, accesses| {
        let bus: &dyn Bus = black_box(window);
        batch(accesses, |word| bus.try_write(word, VALUE))
    }),
];

/// The one probe: all ways in turns.
pub(super) fn add<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) {
    let table = probes.table(
        "transfer.word",
        "One word of a mapped window: the software's share, not a device's",
        "at most 200 times two batches of 1,000 and two of 2,000 accesses, in turns of all ways",
    );
    let ways = WAYS.map(|(access, (path, made), checked, batch)| {
        let (check, people, how) = if checked {
            ("checked", "each access checked", ": bounds before, the status word after, and the result by the caller")
        } else {
            ("unchecked", "no check", "")
        };
        let measures = format!(
            "what one volatile {access} of a 32-bit word adds to a loop of them, {made}, {people}{how}: the software's share, for the page \
             is cached memory and a device adds the time of its bus"
        );
        let (suffix, label) = (format!("{access}.{path}.{check}"), format!("{access}, {made}, {people}"));
        (probes.row(table, Row::new(suffix, label, Unit::Ns, Method::Diff, measures)), batch)
    });
    let slots = ways.map(|(slot, _)| slot);
    probes.several_on_host(Setting::Class(Class::Other), slots, move |context, timebase| {
        measure(context, timebase, &ways);
    });
}

fn measure<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, timebase: &Timebase<Host>, ways: &[(Slot, Batch)]) {
    context.say("single words of a mapped window");
    let page = Bytes::kib(4);
    let mut memory = match Memory::plain(page, page, Pages::Small) {
        Ok(memory) => memory,
        Err(error) => {
            let absent = Absent::new(error.to_string(), "free memory");
            return context.absent_all(ways.iter().map(|(slot, _)| *slot), &absent);
        }
    };
    let window = Window::new(&mut memory);
    let ways: Vec<(Slot, Batch)> = ways.iter().copied().filter(|(slot, _)| context.wants(*slot)).collect();
    let rounds = context.repeats(ROUNDS);
    let mut samples = vec![Slopes::new(BATCH as f64, rounds); ways.len()];
    let mut failed = 0;
    let complete = interleave(rounds, ways.len(), |turn| {
        let (slot, batch) = ways[turn.candidate];
        context.lengthen(&[slot]);
        samples[turn.candidate].take(|more| {
            let accesses = if more { 2 * BATCH } else { BATCH };
            let took = timed(timebase, || {
                failed += batch(&window, black_box(accesses));
                spin(0, accesses as u64);
            });
            took.count() as f64
        });
        if context.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if complete.is_break() {
        return;
    }
    for ((slot, _), samples) in ways.into_iter().zip(samples) {
        let defect = || Absent::final_(format!("{failed} accesses failed, which is a defect of hairspring"));
        let taken = if failed > 0 { Err(defect()) } else { Ok(Reading::difference(samples)) };
        context.enter(slot, taken);
    }
    context.remark(
        "Words: the window is memory, so a real device adds the time of its bus to each access. In a loop the processor overlaps \
         accesses; a figure is what each adds.",
    );
}

/// Check of the result of an access.
trait Outcome {
    fn failed(&self) -> bool;
}

impl Outcome for () {
    fn failed(&self) -> bool {
        false
    }
}

impl Outcome for u32 {
    fn failed(&self) -> bool {
        false
    }
}

impl<T> Outcome for Result<T, Fault> {
    fn failed(&self) -> bool {
        self.is_err()
    }
}

/// Makes the accesses of a batch and returns how many failed. Each way is compiled into a loop of its own.
#[inline(never)]
fn batch<R: Outcome>(accesses: usize, access: impl Fn(usize) -> R) -> usize {
    let mut failed = 0;
    for first in (0..accesses).step_by(TOGETHER) {
        for word in 0..TOGETHER {
            failed += usize::from(access(first % WORDS + word).failed());
        }
        // Keeps the loop one, without an instruction of its own.
        black_box(());
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_reaches_the_words_and_fails_where_the_device_does() {
        let mut memory = Memory::plain(Bytes::kib(4), Bytes::kib(4), Pages::Small).expect("a page");
        let window = Window::new(&mut memory);
        for (access, (path, _), checked, batch) in WAYS {
            let way = format!("{access}, {path}, checked: {checked}");
            (0..WORDS).for_each(|word| window.write(word, 0));
            assert_eq!(batch(&window, BATCH), 0, "{way}");
            let written = (0..WORDS).filter(|word| window.read(*word) == VALUE).count();
            assert_eq!(written, if access == "write" { WORDS } else { 0 }, "{way}");
        }
        window.fail(3);
        for (access, (path, _), checked, batch) in WAYS {
            assert_eq!(batch(&window, BATCH), if checked { BATCH } else { 0 }, "{access}, {path}, checked: {checked}");
        }
    }
}
