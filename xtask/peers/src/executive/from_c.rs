//! The same calls from C and from Rust, in turns: the cost of C's checks of handles and of its way through the shared
//! library.
//!
//! From Rust they stand in a task's body; from C a task of `callers/services.c` makes them in the installed library.
//! Each pair carries its proof: no call failed, the message came, the more urgent task had run.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use hairspring_exec::{
    Backend, Bits, Create, ExecConfig, Executive, Limit, Policy, ResourceProtocol, RunLimit, Services, StopReason,
    TaskCtx, ThreadProfile, Urgency,
};
use hairspring_machine::{Host, Machine};
use hairspring_sheet::Unit;
use hairspring_suite::executive::Bench;
use hairspring_suite::interleaving::interleave;
use hairspring_time::Nanos;

use super::Spread;
use super::direct::priority;
use super::meter::{CHUNK, Count, HIGH, LOW, Meter};
use super::rounds::REPEATS;
use crate::callers::compiled;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/callers/services.c");
/// Bytes of a message, as in C.
type Message = [u64; 4];
/// The names of the pairs in the program's output, and here.
const PAIRS: [(&str, &str); 9] = [
    ("semaphore", "semaphore, signal + wait"),
    ("events", "events, signal + wait"),
    ("exchange", "exchange, post + fetch"),
    ("queue", "queue, send + receive"),
    ("mutex", "mutex, lock + unlock"),
    ("pool", "pool, take + give back"),
    ("timer", "timer, start + stop"),
    ("wake", "wake + wait, two switches"),
    ("send", "mailbox, send → run → end, two switches"),
];
/// The back-ends in the program's words.
pub(crate) const BACK_ENDS: [&str; 2] = ["fibers", "threads"];
/// Part of a slice for one pair: a run of all must not be throttled as a real-time thread.
const SLICE_PART: i64 = 4;

/// Nanoseconds of each pair.
type Taken = [f64; PAIRS.len()];

/// From Rust and from C, on each back-end; or why there is no result.
pub(crate) struct Figures([[Result<Vec<Taken>, String>; 2]; BACK_ENDS.len()]);

pub(crate) fn take(bench: &Bench, folder: &Path) -> Figures {
    let program = compiled(folder, &[SOURCE], "peers-services");
    let mut figures = Figures(std::array::from_fn(|_| [Ok(Vec::new()), Ok(Vec::new())]));
    let span = Nanos::new(bench.slice.count() / SLICE_PART);
    let complete = interleave(REPEATS, BACK_ENDS.len() * 2, |turn| {
        let (back_end, from_c) = (turn.candidate / 2, turn.candidate % 2 == 1);
        let taken = &mut figures.0[back_end][usize::from(from_c)];
        let outcome = match &program {
            Ok(program) if from_c => theirs(program, BACK_ENDS[back_end], bench, span),
            Err(why) if from_c => Err(format!("{why}. Install the library: cargo xtask install")),
            _ => ours(back_end, bench, span),
        };
        match (outcome, &mut *taken) {
            (Ok(round), Ok(rounds)) => rounds.push(round),
            (Err(why), Ok(_)) => *taken = Err(why),
            (_, Err(_)) => {}
        }
        bench.rest();
        ControlFlow::<()>::Continue(())
    });
    debug_assert!(complete.is_continue());
    figures
}

impl Figures {
    fn spread(&self, back_end: usize, from_c: bool, pair: usize) -> Option<Spread> {
        let rounds = self.0[back_end][usize::from(from_c)].as_ref().ok()?;
        Spread::of(rounds.iter().map(|round| round[pair]).collect())
    }

    fn ratio(&self, back_end: usize, pair: usize) -> Option<f64> {
        Some(self.spread(back_end, true, pair)?.median / self.spread(back_end, false, pair)?.median)
    }

    /// The pairs on this back-end, with the ratio of C to Rust.
    pub(crate) fn ratios(&self, back_end: usize) -> impl Iterator<Item = (&'static str, Option<f64>)> {
        PAIRS.iter().enumerate().map(move |(pair, (_, name))| (*name, self.ratio(back_end, pair)))
    }

    pub(crate) fn print(&self) {
        println!("### The same calls from C: min / median / max of {REPEATS}\n");
        println!(
            "Of a pair of calls, with messages of 32 bytes; from C through the installed shared library, which checks each handle. The ratio is that of \
             the medians.\n"
        );
        println!("| calls | fibers, Rust | fibers, C | ratio | thread_up, Rust | thread_up, C | ratio |");
        println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
        for (pair, (_, name)) in PAIRS.iter().enumerate() {
            let cells = (0..BACK_ENDS.len()).flat_map(|back_end| {
                let time = |from_c| self.spread(back_end, from_c, pair).map(|spread| spread.cell(Unit::Ns));
                [time(false), time(true), self.ratio(back_end, pair).map(|ratio| format!("{ratio:.2}"))]
            });
            let cells = cells.map(|cell| cell.unwrap_or_else(|| "no result".to_owned()));
            println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
        println!();
        for why in self.0.iter().flatten().filter_map(|taken| taken.as_ref().err()) {
            println!("* no result: failed to {why}");
        }
        println!();
    }
}

/// One round from C.
fn theirs(program: &Command, back_end: &str, bench: &Bench, span: Nanos) -> Result<Taken, String> {
    let mut command = Command::new(program.get_program());
    command.args([back_end, &bench.place.cpu.0.to_string(), &span.count().to_string()]);
    let output = command.output().map_err(|error| format!("run the program in C: {error}"))?;
    if !output.status.success() {
        return Err(format!("run the program in C: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    read(&String::from_utf8_lossy(&output.stdout))
}

/// Reads the program's lines: a pair, its nanoseconds.
fn read(said: &str) -> Result<Taken, String> {
    let mut taken = [f64::NAN; PAIRS.len()];
    for (slot, (key, _)) in taken.iter_mut().zip(PAIRS) {
        let value = said.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok());
        *slot = value.ok_or_else(|| format!("read the program in C: no line of {key} in\n{said}"))?;
    }
    Ok(taken)
}

/// One round from Rust.
fn ours(back_end: usize, bench: &Bench, span: Nanos) -> Result<Taken, String> {
    let cpu = Some(bench.place.cpu);
    let backend = match BACK_ENDS[back_end] {
        "fibers" => Backend::Fiber { cpu, policy: Policy::Fifo(60) },
        _ => Backend::Thread(ThreadProfile::Up { cpu }),
    };
    let tray = Arc::new(Mutex::new(Err("the run came to no end".to_owned())));
    let config = ExecConfig { message_bytes: size_of::<Message>(), ..ExecConfig::default() };
    let mut executive = Executive::new(backend, &config).map_err(|error| error.to_string())?;
    prepare(&executive, span, Arc::clone(&tray)).map_err(|error| error.to_string())?;
    let finish = executive.run(RunLimit::For(Nanos::from_secs(20)));
    if finish.stopped != StopReason::Asked || !finish.refused.is_empty() {
        return Err(format!("run from Rust: it ended as {:?}, refused {:?}", finish.stopped, finish.refused));
    }
    tray.lock().map_err(|error| error.to_string())?.clone()
}

/// Makes the objects and the tasks.
fn prepare(
    executive: &Executive,
    span: Nanos,
    tray: Arc<Mutex<Result<Taken, String>>>,
) -> Result<(), Box<dyn std::error::Error>> {
    let semaphore = executive.semaphore(0, 1)?;
    let events = executive.events(0)?;
    let exchange = executive.exchange::<Message>([8, 0, 0, 0])?;
    let queue = executive.message_queue::<Message>(8)?;
    let mutex = executive.mutex(ResourceProtocol::Inherit, ())?;
    let pool = executive.pool(vec![[0_u8; 32]; 8])?;
    let timer = executive.timer("timer", |_, _| {})?;
    let far = Host.monotonic() + Nanos::from_secs(3_600);
    let (woken, received) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let (own, mark) = (Arc::clone(&woken), Arc::clone(&received));
    let high = executive.task("A", priority(HIGH), move |ctx| {
        let mut number = 0;
        while ctx.wait(Limit::Forever).is_ok() {
            number += 1;
            own.set(number);
        }
    })?;
    let body = move |_: &TaskCtx<'_>, _, message: Message| mark.set(message[0]);
    let receiver = executive.mail_task("receiver", priority(HIGH), [8, 0, 0, 0], body)?;
    let low = executive.task("B", priority(LOW), move |ctx| {
        let (mut sent, mut number) = ([0_u64; 4], 0);
        let taken = [
            timed(span, || {
                ctx.signal_semaphore(semaphore).is_ok() && ctx.wait_semaphore(semaphore, Limit::Forever).is_ok()
            }),
            timed(span, || {
                ctx.signal_events(events, 1).is_ok()
                    && ctx.wait_events(events, Bits::Any(1), true, Limit::Forever).is_ok()
            }),
            timed(span, || {
                sent[0] += 1;
                ctx.post(exchange, Urgency::ALL[0], sent).is_ok() && ctx.fetch(exchange, Limit::Forever) == Ok(sent)
            }),
            timed(span, || {
                sent[0] += 1;
                queue.send(ctx, sent, Limit::Forever).is_ok() && queue.receive(ctx, Limit::Forever) == Ok(sent)
            }),
            timed(span, || mutex.lock(ctx, Limit::Forever).map(drop).is_ok()),
            timed(span, || ctx.buffer(&pool).map(drop).is_ok()),
            timed(span, || ctx.start_timer(timer, far).is_ok() && ctx.stop_timer(timer) == Ok(true)),
            timed(span, || {
                number += 1;
                ctx.wake(high).is_ok() && woken.now() == number
            }),
            timed(span, || {
                sent[0] += 1;
                ctx.send(receiver, Urgency::ALL[0], sent).is_ok() && received.now() == sent[0]
            }),
        ];
        let mut all = [0.0; PAIRS.len()];
        let mut outcome = Ok(());
        for ((slot, one), (key, _)) in all.iter_mut().zip(taken).zip(PAIRS) {
            match one {
                Some(ns) => *slot = ns,
                None => outcome = Err(format!("make the calls of {key} from Rust: one has no proof")),
            }
        }
        if let Ok(mut tray) = tray.lock() {
            *tray = outcome.map(|()| all);
        }
        ctx.stop();
    })?;
    executive.trigger(high)?;
    executive.trigger(low)?;
    Ok(())
}

/// The time of one pair in nanoseconds, after a shorter batch that warms up; nothing if one has no proof.
#[inline(always)]
fn timed(span: Nanos, mut pair: impl FnMut() -> bool) -> Option<f64> {
    let mut last = None;
    for span in [Nanos::new(span.count() / 8), span] {
        let mut meter = Meter::start(span);
        while meter.goes_on() {
            for _ in 0..CHUNK {
                meter.round(pair());
            }
        }
        let round = meter.finish();
        last = (round.unproven == 0).then_some(round.wall_ns);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_program_become_times_and_ratios() {
        let lines: String = PAIRS.iter().map(|(key, _)| format!("{key} 30.0\n")).collect();
        let taken = read(&lines).unwrap();
        assert!(read("semaphore 30.0\n").is_err_and(|why| why.contains("no line of events")));
        let figures =
            Figures([[Ok(vec![[20.0; PAIRS.len()]]), Ok(vec![taken])], [Ok(Vec::new()), Err("x".to_owned())]]);
        assert!(figures.ratios(0).all(|(_, ratio)| ratio == Some(1.5)));
        assert!(figures.ratios(1).all(|(_, ratio)| ratio.is_none()));
    }
}
