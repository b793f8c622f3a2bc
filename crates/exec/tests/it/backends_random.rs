//! Random programs of tasks: a trace of each replays without a mismatch, a simulation is the same each time, and a
//! program without time gives one log on every back-end.

use hairspring_exec::{
    Bits, Create, ExecConfig, Finish, HeapMemory, HeapOrder, HeapParcel, Limit, ResourceProtocol, Services, TaskCtx,
};
use proptest::prelude::*;

use crate::backends::{Bench, LIMIT, Log, all, alone, micros, nth, priority, sim, summary, urgency};

/// One step of a task.
#[derive(Clone, Copy, Debug)]
enum Step {
    Trigger(u32),
    Wake(u32),
    Wait,
    Signal(u32, u32),
    WaitSignals(u32),
    Yield,
    SetPriority(u32, u8),
    Suspend(u32),
    Resume(u32),
    Kill(u32),
    Give,
    Take,
    Reserve(usize),
    Release(usize),
    SetBits(u32),
    WaitBits(u32),
    Send(u32),
    SendWait(u32),
    Post(u32),
    Fetch,
    /// Breaks off another's wait.
    Cancel(u32),
    WaitForEnd(u32),
    /// Into a queue of one message, and out of it.
    Put(u32),
    Pick,
    /// Gets a block with this number of bytes.
    GetBlock(usize),
    /// Frees the block that was got first.
    FreeBlock,
    /// Adds to the value in a mutex.
    Count,
    /// Lets time pass, in microseconds.
    Work(i64),
    Delay(i64),
}

const TASKS: u32 = 5;
/// The mail task, made last.
const MAIL: u32 = TASKS;

fn step(timed: bool) -> impl Strategy<Value = Step> {
    use Step::{
        Cancel, Count, Delay, Fetch, FreeBlock, GetBlock, Give, Kill, Pick, Post, Put, Release, Reserve, Resume, Send,
        SendWait, SetBits, SetPriority, Signal, Suspend, Take, Trigger, Wait, WaitBits, WaitForEnd, WaitSignals, Wake,
        Work, Yield,
    };
    let task = || 0..=MAIL;
    let plain = prop_oneof![
        4 => (0..TASKS).prop_map(Trigger),
        4 => task().prop_map(Wake),
        2 => Just(Wait),
        2 => (task(), 1..8_u32).prop_map(|(task, bits)| Signal(task, bits)),
        1 => (1..8_u32).prop_map(WaitSignals),
        2 => Just(Yield),
        2 => (task(), 10..14_u8).prop_map(|(task, number)| SetPriority(task, number)),
        1 => task().prop_map(Suspend),
        3 => task().prop_map(Resume),
        1 => task().prop_map(Kill),
        3 => Just(Give),
        2 => Just(Take),
        3 => (0..3_usize).prop_map(Reserve),
        2 => (0..3_usize).prop_map(Release),
        2 => (1..8_u32).prop_map(SetBits),
        1 => (1..8_u32).prop_map(WaitBits),
        2 => (0..4_u32).prop_map(Send),
        1 => (0..4_u32).prop_map(SendWait),
        2 => (0..4_u32).prop_map(Post),
        1 => Just(Fetch),
        2 => task().prop_map(Cancel),
        1 => task().prop_map(WaitForEnd),
        2 => (0..4_u32).prop_map(Put),
        2 => Just(Pick),
        3 => (0..100_usize).prop_map(GetBlock),
        2 => Just(FreeBlock),
        1 => Just(Count),
    ];
    let time = prop_oneof![(1..300_i64).prop_map(Work), (0..300_i64).prop_map(Delay)];
    if timed { prop_oneof![8 => plain, 3 => time].boxed() } else { plain.boxed() }
}

type Program = Vec<Vec<Step>>;

fn program(timed: bool) -> impl Strategy<Value = Program> {
    proptest::collection::vec(proptest::collection::vec(step(timed), 0..12), TASKS as usize)
}

/// Runs a program: the log, and how it ended.
fn run(bench: &mut Bench, program: &Program, timed: bool) -> Finish {
    let executive = &bench.executive;
    let units = executive.semaphore(1, 3).expect("few objects");
    let protocols = [ResourceProtocol::None, ResourceProtocol::Inherit, ResourceProtocol::Ceiling(priority(10))];
    let resources = protocols.map(|protocol| executive.resource(protocol).expect("few objects"));
    let group = executive.events(0).expect("few objects");
    let exchange = executive.exchange::<u32>([2, 2, 2, 2]).expect("few objects");
    let queue = executive.message_queue::<Box<u32>>(1).expect("few objects");
    let counter = executive.mutex(ResourceProtocol::Inherit, 0).expect("few objects");
    let order = if program[0].len().is_multiple_of(2) { HeapOrder::Priority } else { HeapOrder::Arrival };
    let heap = executive.heap(HeapMemory::allocate(160), 3, order).expect("few objects");
    let blocks = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    // Made as the last task, so that the numbers of the others are their indices; its handle is known only then.
    let mail = std::sync::Arc::new(std::sync::OnceLock::<hairspring_exec::Mailbox<u32>>::new());
    // With time every wait has an end, so that programs get somewhere.
    let limit = if timed { Limit::For(micros(500)) } else { Limit::Forever };
    for (index, steps) in program.iter().enumerate() {
        let (steps, mail) = (steps.clone(), std::sync::Arc::clone(&mail));
        let shared = (queue.clone(), counter.clone(), heap.clone(), std::sync::Arc::clone(&blocks));
        let mut left = 3;
        bench.task("task", 10 + (index % 4) as u8, move |ctx, log| {
            // A bounded number of runs, because tasks trigger each other in circles.
            if left == 0 {
                return;
            }
            left -= 1;
            for &step in &steps {
                let Some(&mail) = mail.get() else { return };
                let done = perform(ctx, step, limit, (units, resources, group, exchange, mail), &shared);
                note(log, ctx, step, &done);
            }
            log.note(format!("{:?}ends", ctx.id()));
        });
    }
    let receiver = bench.mail_task::<u32>("mail", 12, [2, 2, 2, 2], |ctx, log, _, message| {
        log.note(format!("{:?}got{message}", ctx.id()));
    });
    assert_eq!(receiver.id(), nth(MAIL));
    mail.set(receiver).expect("set once");
    for index in (0..TASKS).rev() {
        bench.executive.trigger(nth(index)).expect("it is idle");
    }
    bench.executive.run(LIMIT)
}

fn note(log: &Log, ctx: &TaskCtx<'_>, step: Step, done: &str) {
    log.note(format!("{:?}{step:?}{done}", ctx.id()).replace(' ', ""));
}

type Objects = (
    hairspring_exec::SemaphoreId,
    [hairspring_exec::ResourceId; 3],
    hairspring_exec::EventsId,
    hairspring_exec::Exchange<u32>,
    hairspring_exec::Mailbox<u32>,
);

/// The blocks are those in use, as parcels.
type Shared = (
    hairspring_exec::MessageQueue<Box<u32>>,
    hairspring_exec::Mutex<u32>,
    hairspring_exec::Heap,
    std::sync::Arc<std::sync::Mutex<Vec<HeapParcel>>>,
);

fn perform(
    ctx: &TaskCtx<'_>,
    step: Step,
    limit: Limit,
    objects: Objects,
    (queue, counter, heap, blocks): &Shared,
) -> String {
    let (units, resources, group, exchange, mail) = objects;
    match step {
        Step::Trigger(task) => format!("{:?}", ctx.trigger(nth(task))),
        Step::Wake(task) => format!("{:?}", ctx.wake(nth(task))),
        Step::Wait => format!("{:?}", ctx.wait(limit)),
        Step::Signal(task, bits) => format!("{:?}", ctx.signal(nth(task), bits)),
        Step::WaitSignals(bits) => format!("{:?}", ctx.wait_signals(Bits::Any(bits), limit)),
        Step::Yield => format!("{:?}", ctx.yield_now()),
        Step::SetPriority(task, number) => format!("{:?}", ctx.set_priority(nth(task), priority(number))),
        Step::Suspend(task) => format!("{:?}", ctx.suspend(nth(task))),
        Step::Resume(task) => format!("{:?}", ctx.resume(nth(task))),
        Step::Kill(task) => format!("{:?}", ctx.kill(nth(task))),
        Step::Give => format!("{:?}", ctx.signal_semaphore(units)),
        Step::Take => format!("{:?}", ctx.wait_semaphore(units, limit)),
        Step::Reserve(at) => format!("{:?}", ctx.reserve_unguarded(resources[at], limit)),
        Step::Release(at) => format!("{:?}", ctx.release(resources[at])),
        Step::SetBits(bits) => format!("{:?}", ctx.signal_events(group, bits)),
        Step::WaitBits(bits) => format!("{:?}", ctx.wait_events(group, Bits::All(bits), true, limit)),
        Step::Send(number) => format!("{:?}", ctx.send(mail, urgency(number as u8), number)),
        Step::SendWait(number) => format!("{:?}", ctx.send_wait(mail, urgency(number as u8), number, limit)),
        Step::Post(number) => format!("{:?}", ctx.post(exchange, urgency(number as u8), number)),
        Step::Fetch => format!("{:?}", ctx.fetch(exchange, limit)),
        Step::Cancel(task) => format!("{:?}", ctx.cancel_wait(nth(task))),
        Step::WaitForEnd(task) => format!("{:?}", ctx.wait_for_end(nth(task), limit)),
        Step::Put(number) => format!("{:?}", queue.send(ctx, Box::new(number), limit)),
        Step::Pick => format!("{:?}", queue.receive(ctx, limit)),
        Step::GetBlock(bytes) => {
            let got = heap.get(ctx, bytes, limit).map(hairspring_exec::HeapBlock::into_parcel);
            got.map_or_else(
                |error| format!("{error:?}"),
                |parcel| {
                    blocks.lock().expect("nobody panics").push(parcel);
                    format!("{parcel:?}")
                },
            )
        }
        Step::FreeBlock => {
            let mut blocks = blocks.lock().expect("nobody panics");
            let parcel = (!blocks.is_empty()).then(|| blocks.remove(0));
            drop(blocks);
            format!("{:?}", parcel.map(|parcel| heap.open(ctx, parcel).map(drop)))
        }
        Step::Count => {
            let locked = counter.lock(ctx, limit).map(|mut count| {
                *count += 1;
                *count
            });
            format!("{locked:?}")
        }
        Step::Work(span_us) => format!("{:?}", ctx.work(micros(span_us))),
        Step::Delay(span_us) => format!("{:?}", ctx.delay(micros(span_us))),
    }
}

fn config() -> ExecConfig {
    ExecConfig { trace: Some(20_000), envelopes: 6, ..ExecConfig::default() }
}

/// Runs a program and replays its trace.
fn run_and_replay(bench: &mut Bench, program: &Program, timed: bool) -> String {
    let finish = run(bench, program, timed);
    let trace = bench.executive.trace().expect("it was asked for");
    assert_eq!(trace.lost, 0);
    if let Err(mismatch) = trace.replay() {
        panic!("{mismatch}");
    }
    format!("{} = {}", bench.log.text(), summary(&finish))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_program_without_time_gives_one_log_on_every_back_end_and_its_traces_replay(program in program(false)) {
        let expected = run_and_replay(&mut Bench::new(sim(), &config()), &program, false);
        let fiber = run_and_replay(&mut Bench::new(hairspring_exec::Backend::fiber(), &config()), &program, false);
        prop_assert_eq!(&fiber, &expected, "on fiber");
        // Without a trace, calls take the fast path.
        let mut unrecorded = Bench::new(hairspring_exec::Backend::fiber(), &ExecConfig { trace: None, ..config() });
        let finish = run(&mut unrecorded, &program, false);
        let fiber = format!("{} = {}", unrecorded.log.text(), summary(&finish));
        prop_assert_eq!(&fiber, &expected, "on fiber without a trace");
    }

    #[test]
    fn a_simulation_is_the_same_each_time_and_its_trace_replays(program in program(true)) {
        let once = run_and_replay(&mut Bench::new(sim(), &config()), &program, true);
        let again = run_and_replay(&mut Bench::new(sim(), &config()), &program, true);
        prop_assert_eq!(once, again);
    }

    #[test]
    fn the_trace_of_a_fiber_run_with_time_replays(program in program(true)) {
        run_and_replay(&mut Bench::new(hairspring_exec::Backend::fiber(), &config()), &program, true);
    }
}

proptest! {
    // Threads are made and ended for each case.
    #![proptest_config(ProptestConfig { cases: 25, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_program_of_one_start_for_each_task_gives_the_same_log_on_threads(mut program in program(false)) {
        // A thread whose priority falls, by its wish, by another's or because it ends as an owner, and one that ends
        // with another start to come, can stand before its equals where the core has it behind them. Hence none of
        // these.
        let behaves = |step: &Step| {
            !matches!(
                step,
                Step::Reserve(_) | Step::Count | Step::SetPriority(..) | Step::Trigger(_) | Step::Send(_) | Step::SendWait(_)
            )
        };
        program.iter_mut().for_each(|steps| steps.retain(behaves));
        let _alone = alone();
        let expected = run_and_replay(&mut Bench::new(sim(), &config()), &program, false);
        for backend in all().into_iter().filter(|backend| backend.name().starts_with("thread")) {
            let threads = run_and_replay(&mut Bench::new(backend, &config()), &program, false);
            prop_assert_eq!(&threads, &expected, "on threads");
        }
    }
}
