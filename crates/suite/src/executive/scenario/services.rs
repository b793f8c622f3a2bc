//! The services that only this project's executive has, each as the time of one use without competition.
//!
//! Most rows measure a task alone: the cost of the service itself, without the switch that *wait/wake* measures. A row
//! whose service has to switch states so.

use std::hint::black_box;
use std::time::Duration;

use hairspring_exec::{Create, HeapMemory, HeapOrder, Limit, Priority, ResourceProtocol, Services, TaskCtx};
use hairspring_machine::Nanos;
use hairspring_sheet::Absent;

use super::thread_metric::{QUICK, operations};
use super::waitwake::{HIGH, LOW};
use super::{Component, How};
use crate::executive::bench::{Bench, Found, Rig, Sampled, proof_comes, sampling};
use crate::executive::port::ours::{BackendKind, Ours};
use crate::executive::port::{Ability, Port};
use crate::probe::spin;

/// Bytes that go through the pipe at a time.
const PIPED_BYTES: usize = 16;
/// Bytes of a block of the heap.
const BLOCK_BYTES: usize = 100;
/// Uses between two stamps of a service that makes and deletes a task.
const SPAWNED: u64 = 16;

/// The services: description of one use, and the run.
pub(crate) fn services<K: BackendKind>() -> [Component; 12] {
    let service = |segment, label, measures, run| Component { segment, label, measures, how: How::Loop, place: 0, run };
    [
        service(
            "mutex",
            "mutex",
            "a task locks a free mutex with inheritance, changes its data, and unlocks it",
            |bench| found(mutex::<K>(bench)),
        ),
        service(
            "condition",
            "condition, two switches",
            "a task notifies a condition for which a more urgent one waits, until that one waits for it again",
            |bench| match Ours::<K>::unable(Ability::PreemptsCaller) {
                Some(absent) => Err(absent),
                None => found(condition::<K>(bench)),
            },
        ),
        service(
            "selector",
            "select over two",
            "a task sends a message to a queue, selects over a pipe and this queue, and takes the message",
            |bench| found(selector::<K>(bench)),
        ),
        service("byte_pipe", "byte pipe", "a task writes 16 bytes into a pipe and reads them", |bench| {
            found(byte_pipe::<K>(bench))
        }),
        service(
            "heap",
            "heap",
            "a task gets a block of 100 bytes of a heap in which others lie apart, and frees it",
            |bench| found(heap::<K>(bench)),
        ),
        service(
            "circular_list",
            "circular list",
            "a task adds a value at the bottom of a list of four, and removes the one at the top",
            |bench| found(circular_list::<K>(bench)),
        ),
        service("broadcast", "broadcast", "a task sends a value to one subscriber, and hears it", |bench| {
            found(broadcast::<K>(bench))
        }),
        service(
            "latest_value",
            "latest value",
            "a task sends a value to a broadcast without subscribers, and reads the latest",
            |bench| found(latest_value::<K>(bench)),
        ),
        service(
            "ticker",
            "ticker",
            "a task asks a ticker for a tick that has come already: the call without the wait",
            |bench| found(ticker::<K>(bench)),
        ),
        service(
            "queue_deletion",
            "make and delete a queue",
            "a task makes a queue for one message, and deletes it",
            |bench| found(queue_deletion::<K>(bench)),
        ),
        service("day_timer", "day timer", "a task starts a timer on the time of day, and stops it", |bench| {
            found(day_timer::<K>(bench))
        }),
        service(
            "join",
            "spawn and join",
            "a task makes a more urgent one, which ends with a result, takes the result, and deletes it",
            |bench| found(join::<K>(bench)),
        ),
    ]
}

/// A task's context, by which it ends the run. The calls of the port have the same names on each back-end.
struct Ends<'k>(&'k TaskCtx<'k>);

impl Ends<'_> {
    async fn stop(&self) {
        self.0.stop();
    }
}

fn found(run: Result<Sampled, Absent>) -> Found {
    run.map(|taken| taken.series(0))
}

/// A task alone: uses a service `$times` times between stamps. Each use returns whether it did its work.
macro_rules! alone {
    ($rig:ident, $uses:expr, ($ctx:ident, $number:ident) => $service:expr) => {{
        let (clock, slice, tray) = $rig.measuring();
        let uses: u64 = $uses;
        let task = $rig.port.spawn("A", LOW, async move |calls| {
            let $ctx = calls.context();
            let ends = Ends($ctx);
            sampling!(ends, (clock, slice, tray), samples: 1 => {
                let mut done = 0;
                let before = clock.stamp();
                for $number in 0..uses {
                    done += u64::from($service);
                }
                spin(0, uses);
                samples.push_mean(done == uses, uses, [clock.ns_since(before)]);
            });
        })?;
        $rig.run(task)
    }};
}

fn not_made(error: impl std::fmt::Display) -> Absent {
    Absent::final_(format!("failed to make an object: {error}"))
}

fn mutex<K: BackendKind>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<Ours<K>>::new(bench)?;
    let counter = rig.port.executive().mutex(ResourceProtocol::Inherit, 0_u64).map_err(not_made)?;
    let mut before = 0;
    alone!(rig, QUICK, (ctx, _number) => counter.lock(ctx, Limit::Forever).is_ok_and(|mut count| {
        *count += 1;
        before += 1;
        *count == before
    }))
}

fn condition<K: BackendKind>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<Ours<K>>::new(bench)?;
    let condition = rig.port.executive().condition().map_err(not_made)?;
    let ((board, _), waited) = (rig.share(), condition.clone());
    let high = rig.port.spawn("H", HIGH, async move |calls| {
        let (ctx, mut proof) = (calls.context(), 0);
        let Ok(mut seen) = waited.changes(ctx) else { return };
        while waited.wait_for_change(ctx, seen, Limit::Forever).is_ok() {
            seen += 1;
            proof += 1;
            board.prove(proof);
        }
    })?;
    rig.port.start(high)?;
    let ((board, _), (clock, slice, tray)) = (rig.share(), rig.measuring());
    let uses = operations::<Ours<K>>();
    let low = rig.port.spawn("L", LOW, async move |calls| {
        let (ctx, mut proof) = (calls.context(), 0);
        let ends = Ends(ctx);
        sampling!(ends, (clock, slice, tray), samples: 1 => {
            let mut unproven = 0;
            let before = clock.stamp();
            for _ in 0..uses {
                proof += 1;
                unproven += u64::from(condition.notify_all(ctx).is_err() || board.proof() != proof);
            }
            spin(0, uses);
            samples.push_mean(unproven == 0, uses, [clock.ns_since(before)]);
            if !proof_comes::<Ours<K>>(calls, &board, proof, &clock).await {
                break;
            }
        });
    })?;
    rig.run(low)
}

fn selector<K: BackendKind>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<Ours<K>>::new(bench)?;
    let executive = rig.port.executive();
    let mut selector = executive.selector().map_err(not_made)?;
    let pipe = executive.byte_pipe(PIPED_BYTES).map_err(not_made)?;
    let queue = executive.message_queue::<u64>(1).map_err(not_made)?;
    alone!(rig, QUICK, (ctx, number) => {
        queue.try_send(ctx, number).is_ok()
            && selector.wait(ctx, &[&pipe, &queue], Limit::Forever) == Ok(1)
            && queue.try_receive(ctx) == Ok(number)
    })
}

fn byte_pipe<K: BackendKind>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<Ours<K>>::new(bench)?;
    let pipe = rig.port.executive().byte_pipe(4 * PIPED_BYTES).map_err(not_made)?;
    alone!(rig, QUICK, (ctx, number) => {
        let (written, mut read) = ([number as u8; PIPED_BYTES], [0; PIPED_BYTES]);
        pipe.write(ctx, &written, Limit::NoWait) == Ok(PIPED_BYTES)
            && pipe.read(ctx, black_box(&mut read), Limit::NoWait) == Ok(PIPED_BYTES)
            && read == written
    })
}

fn heap<K: BackendKind>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<Ours<K>>::new(bench)?;
    let executive = rig.port.executive();
    let heap = executive.heap(HeapMemory::allocate(64 * 1024), 256, HeapOrder::Priority).map_err(not_made)?;
    // Blocks of many sizes, of which every second stays in use.
    let blocks: Result<Vec<_>, _> = (0..128).map(|number| heap.try_get(executive, 16 + 7 * number)).collect();
    for (number, block) in blocks.map_err(not_made)?.into_iter().enumerate() {
        if number % 2 == 0 {
            block.into_parcel();
        }
    }
    alone!(rig, QUICK, (ctx, number) => heap.get(ctx, BLOCK_BYTES, Limit::Forever).is_ok_and(|mut block| {
        block[0] = number as u8;
        black_box(&mut block);
        block.len() >= BLOCK_BYTES
    }))
}

fn circular_list<K: BackendKind>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<Ours<K>>::new(bench)?;
    let list = rig.port.executive().circular_list::<u64>(4);
    alone!(rig, QUICK, (ctx, number) => {
        list.add_bottom(ctx, number) == Ok(true) && list.remove_top(ctx) == Ok(Some(number))
    })
}

fn broadcast<K: BackendKind>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<Ours<K>>::new(bench)?;
    let broadcast = rig.port.executive().broadcast::<u64>(4).map_err(not_made)?;
    let mut heard = broadcast.subscribe(rig.port.executive()).map_err(not_made)?;
    alone!(rig, QUICK, (ctx, number) => {
        broadcast.send(ctx, number).is_ok()
            && heard.next(ctx, Limit::NoWait).is_ok_and(|heard| heard.value == number && heard.missed == 0)
    })
}

fn latest_value<K: BackendKind>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<Ours<K>>::new(bench)?;
    let latest = rig.port.executive().broadcast::<u64>(1).map_err(not_made)?;
    alone!(rig, QUICK, (ctx, number) => latest.send(ctx, number).is_ok() && latest.latest(ctx) == Some(number))
}

fn ticker<K: BackendKind>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<Ours<K>>::new(bench)?;
    let mut ticker = None;
    let mut before = 0;
    alone!(rig, QUICK, (ctx, _number) => {
        // Ticks of a nanosecond have always come.
        let ticker = ticker.get_or_insert_with(|| ctx.ticker(Nanos::new(1)));
        ticker.as_mut().is_ok_and(|ticker| ticker.next(ctx).is_ok_and(|tick| {
            let later = tick.number > before;
            before = tick.number;
            later
        }))
    })
}

fn queue_deletion<K: BackendKind>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<Ours<K>>::new(bench)?;
    alone!(rig, SPAWNED, (ctx, _number) => ctx.message_queue::<u64>(1).is_ok_and(|queue| queue.delete(ctx).is_ok()))
}

fn day_timer<K: BackendKind>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<Ours<K>>::new(bench)?;
    let executive = rig.port.executive();
    let tomorrow = executive.time_of_day() + Duration::from_secs(24 * 3600);
    let timer = executive.day_timer("T", |_, _| {}).map_err(not_made)?;
    alone!(rig, QUICK, (ctx, _number) => timer.start(ctx, tomorrow).is_ok() && timer.stop(ctx) == Ok(true))
}

fn join<K: BackendKind>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<Ours<K>>::new(bench)?;
    alone!(rig, SPAWNED, (ctx, number) => {
        let made = ctx.spawn("J", Priority::HIGHEST, move |_| number);
        made.is_ok_and(|mut join| join.wait(ctx, Limit::Forever) == Ok(number))
    })
}
