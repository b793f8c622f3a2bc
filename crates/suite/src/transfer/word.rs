//! What one access to a mapped 32-bit word costs, by the way the call is made and by whether it is checked.
//!
//! The device is a page of memory that is mapped and accessed as a device's registers are: each access is volatile, one word,
//! in the order of the program. So the figures are what the software costs on top of the bus, which is not in them.
//!
//! A checked access is what a careful driver makes of it: it refuses words beyond the window, and after the access it reads the
//! device's status and returns an error if a bit is set there; the caller looks at each result.

mod device;

use std::hint::black_box;

use hairspring_machine::Machine;
use hairspring_sheet::{Absent, Figure, Method, Unit};
use hairspring_stream::{Bytes, Memory, Pages};
use hairspring_time::{Host, Timebase};

use super::repeats::{Random, timed};
use crate::context::{Context, Effort};
use crate::registry::{RowDeclaration, TableDeclaration};
use device::{Bus, Fault, Window};

/// Accesses of one batch; their words differ.
const BATCH: usize = 2_000;
/// Accesses in one turn of the loop, written out one after the other: so the processor cannot hide them all beside the loop's
/// own counting.
const TOGETHER: usize = 8;
/// Batches of each way.
const ROUNDS: usize = 400;
/// What is written.
const VALUE: u32 = 0x5a5a_5a5a;
/// Words that a batch goes around in. The status word is none of them.
const WORDS: usize = 512;

/// What an access does, in the order of the table.
const ACCESSES: [&str; 2] = ["read", "write"];
/// How the call is made: segment, and for people.
const PATHS: [(&str, &str); 3] = [
    ("direct", "compiled into the caller"),
    ("pointer", "through a function pointer"),
    ("dyn", "through a trait object"),
];
const CHECKS: [(&str, &str); 2] = [("unchecked", "no check"), ("checked", "each access checked")];

pub(super) fn declare() -> TableDeclaration {
    let mut rows = Vec::new();
    for access in ACCESSES {
        for (path, made) in PATHS {
            for (check, checked) in CHECKS {
                rows.push(RowDeclaration::new(
                    format!("transfer.word.{access}.{path}.{check}"),
                    format!("{access}, {made}, {checked}"),
                    Unit::Ns,
                    Method::Diff,
                    format!(
                        "one volatile {access} of a 32-bit word in a mapped page, {made}, {checked}{}",
                        if check == "checked" {
                            ": bounds before, the status word after, and the result by the caller"
                        } else {
                            ""
                        }
                    ),
                ));
            }
        }
    }
    TableDeclaration {
        diagram: None,
        id: "transfer.word".to_owned(),
        title: "One word of a mapped window".to_owned(),
        limits: "at most 400 batches of 2,000 accesses, in turns of all ways; what is not more than nothing is absent",
        rows,
    }
}

/// One way to access a word: its id, and a batch of such accesses that gives the number of those that failed.
type Way<'w> = (String, Box<dyn Fn() -> usize + 'w>);

pub(super) fn measure<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, timebase: &Timebase<Host>) {
    context.say("single words of a mapped window");
    let page = Bytes::kib(4);
    let mut memory = match Memory::plain(page, page, Pages::Small) {
        Ok(memory) => memory,
        Err(error) => {
            context.absent_under("transfer.word", &Absent::new(error.to_string(), "free memory"));
            return;
        }
    };
    let window = Window::new(&mut memory);
    let ways: Vec<Way<'_>> = ways(&window).into_iter().filter(|(id, _)| context.wants(id)).collect();
    let rounds = if context.effort == Effort::Quick { ROUNDS / 4 } else { ROUNDS };
    let mut samples = vec![Vec::with_capacity(rounds); ways.len()];
    let mut failed = 0;
    let mut random = Random::new();
    for _ in 0..rounds {
        for index in random.order(ways.len()) {
            // The loop alone is measured beside each batch, so that both have the same clock frequency.
            let empty = timed(timebase, || failed += black_box(batch(|_| ()))).count();
            let filled = timed(timebase, || failed += (ways[index].1)()).count();
            samples[index].push((filled - empty) as f64 / BATCH as f64);
        }
        if context.stopped() {
            return;
        }
    }
    for ((id, _), samples) in ways.iter().zip(&mut samples) {
        let figure = Figure::from_samples(Unit::Ns, Method::Diff, samples);
        if failed > 0 {
            context.absent(id, Absent::final_(format!("{failed} accesses failed, which is a defect of hairspring")));
        } else if figure.median.is_none_or(|median| median <= 0.0) {
            let reason = "it costs no more than the loop around it: the processor does it beside the loop's own work";
            context.absent(id, Absent::final_(reason));
        } else {
            context.put(id, figure);
        }
    }
    context.remark(
        "Words: the window is memory, so a real device adds the time of its bus to each access. In a loop the processor overlaps \
         accesses; a figure is what each adds.",
    );
}

/// What an access tells about itself.
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

/// Makes the accesses of a batch; how many failed. Each way is compiled into a loop of its own.
#[inline(never)]
fn batch<R: Outcome>(access: impl Fn(usize) -> R) -> usize {
    let mut failed = 0;
    for first in (0..BATCH).step_by(TOGETHER) {
        for word in 0..TOGETHER {
            failed += usize::from(access(first % WORDS + word).failed());
        }
        // Keeps the loop one, without an instruction of its own.
        black_box(());
    }
    failed
}

fn way<'w, R: Outcome>(id: &str, access: impl Fn(usize) -> R + Copy + 'w) -> Way<'w> {
    (format!("transfer.word.{id}"), Box::new(move || batch(access)))
}

/// Every way. A value that was read needs no use: a volatile read is made all the same.
fn ways<'w>(window: &'w Window<'w>) -> Vec<Way<'w>> {
    // What these point to is hidden from the compiler.
    let read: fn(&Window<'w>, usize) -> u32 = black_box(Window::read);
    let write: fn(&Window<'w>, usize, u32) = black_box(Window::write);
    let try_read: fn(&Window<'w>, usize) -> Result<u32, Fault> = black_box(Window::try_read);
    let try_write: fn(&Window<'w>, usize, u32) -> Result<(), Fault> = black_box(Window::try_write);
    let bus: &'w dyn Bus = black_box(window);
    vec![
        way("read.direct.unchecked", move |word| window.read(word)),
        way("read.direct.checked", move |word| window.try_read(word)),
        way("read.pointer.unchecked", move |word| read(window, word)),
        way("read.pointer.checked", move |word| try_read(window, word)),
        way("read.dyn.unchecked", move |word| bus.read(word)),
        way("read.dyn.checked", move |word| bus.try_read(word)),
        way("write.direct.unchecked", move |word| window.write(word, VALUE)),
        way("write.direct.checked", move |word| window.try_write(word, VALUE)),
        way("write.pointer.unchecked", move |word| write(window, word, VALUE)),
        way("write.pointer.checked", move |word| try_write(window, word, VALUE)),
        way("write.dyn.unchecked", move |word| bus.write(word, VALUE)),
        way("write.dyn.checked", move |word| bus.try_write(word, VALUE)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_that_is_declared_reaches_the_words_and_fails_where_the_device_does() {
        let mut memory = Memory::plain(Bytes::kib(4), Bytes::kib(4), Pages::Small).expect("a page");
        let window = Window::new(&mut memory);
        let ways = ways(&window);
        let declared: Vec<String> = declare().rows.into_iter().map(|row| row.id).collect();
        assert_eq!(ways.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), declared);
        for (id, batch) in &ways {
            (0..WORDS).for_each(|word| window.write(word, 0));
            assert_eq!(batch(), 0, "{id}");
            let written = (0..WORDS).filter(|word| window.read(*word) == VALUE).count();
            assert_eq!(written, if id.contains(".write.") { WORDS } else { 0 }, "{id}");
        }
        window.fail(3);
        for (id, batch) in &ways {
            assert_eq!(batch(), if id.ends_with(".checked") { BATCH } else { 0 }, "{id}");
        }
    }
}
