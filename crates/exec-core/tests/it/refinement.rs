//! Random sequences of calls, the core against the naive model: every status and value, who is to run, what every task
//! is doing, and what every object holds, after every call.

use std::collections::BTreeMap;
use std::fmt::Debug;

use hairspring_exec_core::{
    Bits, By, CHECKS, Call, CallStatus, Core, Ending, EventsId, ExchangeId, HeapId, Moment, PoolId, Priority, Reply,
    ResourceId, ResourceProtocol, SemaphoreId, TaskId, TaskState, TaskView, TimerId, Until, Urgency, Waiting,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::bench::{priority, urgency};
use crate::naive::{Man, Naive};

const ENVELOPES: u16 = 4;
/// Most tasks alive at a time.
const TASKS: usize = 5;

/// Random numbers from which a call is made when its turn comes, so that it can name objects that exist then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed {
    pub(crate) kind: u8,
    pub(crate) who: u8,
    pub(crate) a: u8,
    pub(crate) b: u8,
    pub(crate) c: u8,
}

pub(crate) fn seed() -> impl Strategy<Value = Seed> {
    any::<[u8; 5]>().prop_map(|[kind, who, a, b, c]| Seed { kind, who, a, b, c })
}

pub(crate) struct Pair {
    pub(crate) core: Core,
    pub(crate) naive: Naive,
    /// Every id there ever was.
    tasks: Vec<TaskId>,
    timers: Vec<TimerId>,
    /// Every number of a semaphore, resource, event group, exchange, pool and heap that there ever was.
    objects: [Vec<u32>; 6],
    replies: Vec<Reply>,
    /// One in this many calls that a fast path could make takes the fast path.
    one_in: usize,
    /// Calls that a fast path made.
    pub(crate) simple: u64,
}

/// Makes a call by its fast path, if it has one and the call is simple enough.
fn simply(core: &mut Core, by: By, call: Call) -> Option<Reply> {
    let By::Task(me) = by else { return None };
    let done = |done: bool| done.then_some(Reply { status: CallStatus::Ok, value: 0 });
    match call {
        Call::Wake { task } => done(core.wake_simply(task)),
        Call::Trigger { task } => done(core.trigger_simply(task)),
        Call::End { how: Ending::Returned } => done(core.end_simply(me)),
        Call::Wait { until: Until::Forever } => {
            core.wait_simply(me).then_some(Reply { status: CallStatus::Blocked, value: 0 })
        }
        Call::Send { task, urgency } => {
            let envelope = core.send_simply(task, urgency).or_else(|| core.leave_simply(task, urgency));
            let envelope = envelope.or_else(|| core.hand_simply(task, urgency))?;
            Some(Reply { status: CallStatus::Ok, value: u32::from(envelope) })
        }
        Call::Receive { urgency, .. } => {
            let envelope = core.collect_simply(me, urgency)?;
            Some(Reply { status: CallStatus::Ok, value: u32::from(envelope) })
        }
        Call::Take => done(core.take_simply(me)),
        Call::WaitSemaphore { semaphore, .. } => done(core.take_unit_simply(me, semaphore)),
        Call::SignalSemaphore { semaphore } => done(core.give_unit_simply(semaphore)),
        Call::SignalEvents { events, bits } => done(core.set_bits_simply(events, bits)),
        Call::WaitEvents { events, bits, take, .. } => {
            let value = core.take_bits_simply(me, events, bits, take)?;
            Some(Reply { status: CallStatus::Ok, value })
        }
        _ => None,
    }
}

pub(crate) fn pick<T: Copy>(from: &[T], seed: u8) -> T {
    from[usize::from(seed) % from.len()]
}

impl Pair {
    /// Few tasks and objects of every kind, and all tasks started. One call in `one_in` takes the fast path if it can.
    pub(crate) fn new(one_in: usize) -> Result<Self, TestCaseError> {
        let (core, naive) = (Core::new(ENVELOPES, ()), Naive::new(ENVELOPES));
        let (tasks, timers, replies) = (Vec::new(), Vec::new(), Vec::new());
        let objects = [const { Vec::new() }; 6];
        let mut pair = Self { core, naive, tasks, timers, objects, replies, one_in, simple: 0 };
        pair.set_up()?;
        Ok(pair)
    }

    pub(crate) fn apply(&mut self, by: By, call: Call) -> Result<(), TestCaseError> {
        let simply = self.replies.len().is_multiple_of(self.one_in).then(|| simply(&mut self.core, by, call)).flatten();
        self.simple += u64::from(simply.is_some());
        let core = simply.unwrap_or_else(|| self.core.apply(by, call));
        let granted = |&task: &TaskId| Some((task, self.core.granted_block(task)?.1));
        self.naive.grants = self.core.tasks().iter().filter_map(granted).collect();
        let naive = self.naive.apply(by, call, core.value);
        prop_assert_eq!(core, naive, "{:?} asked {:?}", by, call);
        if simply.is_some() && matches!(call, Call::Receive { .. }) {
            // The fast path takes the message out of the envelope, too.
            let taken = self.naive.apply(by, Call::Take, 0);
            prop_assert_eq!((taken.status, taken.value), (CallStatus::Ok, 0));
        }
        self.replies.push(core);
        match call {
            Call::CreateTask { .. } => self.tasks.push(TaskId::from_number(core.value)),
            Call::CreateSemaphore { .. } => self.objects[0].push(core.value),
            Call::CreateResource { .. } => self.objects[1].push(core.value),
            Call::CreateEvents { .. } => self.objects[2].push(core.value),
            Call::CreateExchange { .. } => self.objects[3].push(core.value),
            Call::CreatePool { .. } => self.objects[4].push(core.value),
            Call::CreateHeap { .. } => self.objects[5].push(core.value),
            Call::CreateTimer => self.timers.push(TimerId::from_number(core.value)),
            Call::NextTimer if naive.status == CallStatus::Ok => {
                let timer = TimerId::from_number(core.value);
                let told = self.core.take_expiry(timer);
                let clock =
                    self.naive.clocks.iter_mut().find(|clock| clock.id == timer).expect("a timer that was made");
                prop_assert_eq!((told.deadline, told.missed, told.overruns), clock.told);
                clock.told.1 = 0;
            }
            _ => {}
        }
        self.compare().map_err(|why| TestCaseError::fail(format!("after {by:?} asked {call:?}: {why}")))
    }

    fn compare(&mut self) -> Result<(), String> {
        self.core.check().map_err(|broken| broken.0)?;
        let naive = &self.naive;
        let ids = |men: Vec<usize>| men.into_iter().map(|man| naive.men[man].id).collect::<Vec<_>>();
        same("ready", &self.core.ready_tasks(), &ids(naive.ready_men()))?;
        same("first", &self.core.first(), &ids(naive.ready_men()).first().copied())?;
        same("free envelopes", &self.core.free_envelopes(), &usize::from(naive.free_envelopes))?;
        let alive = naive.men.iter().filter(|man| man.state != TaskState::Deleted);
        let mut alive: Vec<_> = alive.collect();
        alive.sort_by_key(|man| man.id.index());
        same("tasks", &self.core.tasks(), &alive.iter().map(|man| man.id).collect())?;
        for man in alive {
            self.compare_man(man)?;
        }
        for (_, number, &(count, _)) in naive.semaphores.iter() {
            let core = self.core.semaphore(SemaphoreId::from_number(number));
            same("semaphore", &core.map(|core| core.0), &Some(count))?;
        }
        for (_, number, thing) in naive.things.iter() {
            let core = self.core.resource(ResourceId::from_number(number));
            same("resource", &core, &Some((thing.owner.map(|man| naive.men[man].id), thing.depth)))?;
        }
        for (_, number, &bits) in naive.events.iter() {
            same("events", &self.core.event_bits(EventsId::from_number(number)), &Some(bits))?;
        }
        for (_, number, pool) in naive.pools.iter() {
            let free = pool.iter().filter(|&&in_use| !in_use).count();
            same("pool", &self.core.free_buffers(PoolId::from_number(number)), &Some(free))?;
        }
        for (_, number, heap) in naive.heaps.iter() {
            let core = self.core.heap_usage(HeapId::from_number(number));
            let core = core.map(|core| (core.free, core.largest, core.least_free, usize::from(core.blocks)));
            same("heap", &core, &Some((heap.free(), heap.largest(), heap.least_free, heap.blocks.len())))?;
        }
        for (_, number, exchange) in naive.exchanges.iter() {
            for (urgency, letters) in Urgency::ALL.into_iter().zip(&exchange.letters) {
                let core = self.core.posted(ExchangeId::from_number(number), urgency);
                same("exchange", &core, &letters.iter().map(|letter| letter.envelope).collect())?;
            }
        }
        for clock in naive.clocks.iter().filter(|clock| clock.alive) {
            same("timer", &self.core.timer_deadline(clock.id), &clock.deadline.map(|deadline| deadline.moment))?;
        }
        let men = naive.men.iter().filter_map(|man| man.deadline);
        let next = men.chain(naive.clocks.iter().filter_map(|clock| clock.deadline)).map(|at| at.moment).min();
        same("next deadline", &self.core.next_deadline(), &next)
    }

    fn compare_man(&self, man: &Man) -> Result<(), String> {
        let anybody =
            |waiting| if let Waiting::Acknowledgement(_) = waiting { Waiting::Acknowledgement(0) } else { waiting };
        // Between two runs a wake or signals left of the last are invisible: the next begins without them.
        let in_a_run = matches!(man.state, TaskState::Ready | TaskState::Waiting);
        let seen = |look: TaskView| TaskView {
            waiting: anybody(look.waiting),
            latch: look.latch && in_a_run,
            signals: if in_a_run { look.signals } else { 0 },
            ..look
        };
        let core = self.core.look(man.id).map(seen);
        let naive = seen(TaskView {
            state: man.state,
            waiting: man.waiting,
            base: man.base,
            effective: man.effective,
            threshold: man.threshold,
            suspended: man.suspended,
            killed: man.killed,
            latch: man.latch,
            starts: man.starts,
            signals: man.signals,
        });
        same(&format!("{:?}", man.id), &core, &Some(naive))?;
        same("outcome", &self.core.outcome(man.id), &man.outcome)?;
        same("hand", &self.core.in_hand(man.id), &man.hand.map(|letter| letter.envelope))?;
        same("wait deadline", &self.core.wait_deadline(man.id), &man.deadline.map(|deadline| deadline.moment))?;
        let granted = man.granted.map(|(slot, first)| (HeapId::from_number(self.naive.heaps.number(slot)), first));
        same("granted", &self.core.granted_block(man.id), &granted)?;
        let owned = man.owned.iter().rev();
        let owned = owned.map(|&slot| ResourceId::from_number(self.naive.things.number(slot))).collect();
        same("owned", &self.core.owned_by(man.id), &owned)?;
        for (urgency, letters) in Urgency::ALL.into_iter().zip(&man.mail.letters) {
            let naive = letters.iter().map(|letter| letter.envelope).collect();
            same("mail", &self.core.letters(man.id, urgency), &naive)?;
        }
        Ok(())
    }

    /// The caller: mostly the task that runs.
    pub(crate) fn caller(&self, seed: u8) -> By {
        let ready: Vec<_> =
            self.naive.men.iter().filter(|man| man.state == TaskState::Ready).map(|man| man.id).collect();
        match (seed, self.core.first()) {
            (0..=7, _) => By::Outside,
            (8..=15, _) => By::Interrupt(1),
            (16..=23, _) if CHECKS => By::Task(pick(&self.tasks, seed)),
            (24..=63, _) if !ready.is_empty() => By::Task(pick(&ready, seed)),
            (_, Some(first)) => By::Task(first),
            _ => By::Outside,
        }
    }

    /// A task to act on: those that live, or with checks any there ever was.
    fn task(&self, seed: u8) -> TaskId {
        if CHECKS && seed > 250 {
            return pick(&self.tasks, seed);
        }
        pick(&self.core.tasks(), seed)
    }

    /// The numbers of the objects of a kind that there are.
    fn alive(&self, kind: usize) -> Vec<u32> {
        let naive = &self.naive;
        match kind {
            0 => naive.semaphores.iter().map(|(_, number, _)| number).collect(),
            1 => naive.things.iter().map(|(_, number, _)| number).collect(),
            2 => naive.events.iter().map(|(_, number, _)| number).collect(),
            3 => naive.exchanges.iter().map(|(_, number, _)| number).collect(),
            4 => naive.pools.iter().map(|(_, number, _)| number).collect(),
            _ => naive.heaps.iter().map(|(_, number, _)| number).collect(),
        }
    }

    /// An object of a kind to act on: mostly one that there is, else any that there ever was.
    fn object(&self, kind: usize, seed: u8) -> u32 {
        let alive = self.alive(kind);
        if seed > 240 || alive.is_empty() { pick(&self.objects[kind], seed) } else { pick(&alive, seed) }
    }

    /// The unit at which a block in use begins, or any.
    fn block(&self, heap: HeapId, seed: u8) -> u32 {
        let blocks = self.naive.heaps.iter().find(|(_, number, _)| *number == heap.number()).map(|(.., heap)| heap);
        match blocks.filter(|heap| seed < 230 && !heap.blocks.is_empty()) {
            Some(heap) => pick(&heap.blocks, seed).first,
            None => u32::from(seed % 16),
        }
    }

    fn until(&self, seed: u8) -> Until {
        match seed % 8 {
            0 => Until::NoWait,
            1..=3 => Until::Forever,
            back @ 4 => Until::At(Moment::from_nanos(self.naive.now.as_nanos().saturating_sub(u64::from(back)))),
            ahead => Until::At(self.naive.now.after_nanos(u64::from(ahead) * 7 - 30)),
        }
    }

    pub(crate) fn call(&self, seed: Seed) -> Call {
        let Seed { kind, a, b, c, .. } = seed;
        let (task, until) = (self.task(a), self.until(b));
        let at: Option<Priority> = (c % 3 == 0).then(|| priority(c / 3 % 8));
        let object = |kind: usize| self.object(kind, a);
        let (semaphore, resource) = (SemaphoreId::from_number(object(0)), ResourceId::from_number(object(1)));
        let (events, exchange) = (EventsId::from_number(object(2)), ExchangeId::from_number(object(3)));
        let (pool, timer) = (PoolId::from_number(object(4)), pick(&self.timers, a));
        let heap = HeapId::from_number(object(5));
        let bits = u32::from(c % 8);
        let wish = if c & 8 == 0 { Bits::Any(bits) } else { Bits::All(bits) };
        let letter = urgency(c % 4);
        match kind % 86 {
            0..=4 => Call::Trigger { task },
            5..=8 => Call::End { how: Ending::Returned },
            9 => Call::End { how: if b % 4 == 0 { Ending::Panicked } else { Ending::Killed } },
            10 | 11 => Call::Suspend { task },
            12..=14 => Call::Resume { task },
            15 | 16 => Call::SetPriority { task, priority: priority(b % 8) },
            17 => Call::Kill { task },
            18 if CHECKS && self.core.tasks().len() > 1 => Call::DeleteTask { task },
            19 | 20 if self.core.tasks().len() < TASKS => {
                Call::CreateTask { priority: priority(b % 8), mailboxes: [2, 1, u16::from(c % 2), 3] }
            }
            21 => Call::Yield,
            22..=24 => Call::Wait { until },
            25..=27 => Call::Wake { task },
            28 => Call::WakeReset,
            29 => Call::Delay { until },
            30 | 31 => Call::Signal { task, bits },
            32 | 33 => Call::WaitSignals { bits: wish, until },
            34..=36 => Call::Send { task, urgency: letter },
            37..=39 => Call::SendWait { task, urgency: letter, until },
            40..=42 => Call::Receive { urgency: (a % 2 == 0).then_some(letter), until },
            43..=45 => Call::Take,
            46 | 47 => Call::Acknowledge { value: u32::from(b) },
            48 | 49 => Call::Post { exchange, urgency: letter },
            50 | 51 => Call::Fetch { exchange, until, at },
            52 | 53 => Call::WaitSemaphore { semaphore, until, at },
            54 | 55 => Call::SignalSemaphore { semaphore },
            18..=20 | 56..=60 => Call::Reserve { resource, until, at },
            61..=63 => Call::Release { resource },
            64 => Call::SignalEvents { events, bits },
            65 if a % 2 == 0 => Call::ClearEvents { events, bits },
            65 | 66 => Call::WaitEvents { events, bits: wish, take: b & 8 == 0, until, at },
            67 if a % 2 == 0 => Call::GetBuffer { pool },
            67 => Call::FreeBuffer { pool, buffer: u16::from(b % 3) },
            68 => {
                let at = Moment::from_nanos((self.naive.now.as_nanos() + u64::from(b % 40)).saturating_sub(8));
                Call::StartTimer { timer, at, period_ns: u64::from(c % 3 * 5) }
            }
            69 if b % 8 == 0 => Call::CreateTimer,
            69 if b % 8 == 1 => Call::DeleteTimer { timer },
            69 => Call::StopTimer { timer },
            70 => Call::NextTimer,
            72 => Call::Cancel { task },
            73..=75 => Call::Join { task, until },
            76 => Call::SetThreshold { priority: if b % 2 == 0 { Priority::LOWEST } else { priority(b / 2 % 8) } },
            77 | 78 => Call::EndSlice,
            80 if c % 2 == 0 => match b % 6 {
                0 => Call::DeleteSemaphore { semaphore },
                1 => Call::DeleteResource { resource },
                2 => Call::DeleteEvents { events },
                3 => Call::DeleteExchange { exchange },
                4 => Call::DeletePool { pool },
                _ => Call::DeleteHeap { heap },
            },
            // Most objects of a kind are as many as there were at the beginning.
            81 if self.alive(0).len() < 2 => Call::CreateSemaphore { count: u32::from(b % 2), limit: 2 },
            81 if self.alive(1).len() < 4 => Call::CreateResource {
                protocol: [ResourceProtocol::None, ResourceProtocol::Inherit, ResourceProtocol::Ceiling(priority(1))]
                    [usize::from(b % 3)],
            },
            81 if self.alive(2).is_empty() => Call::CreateEvents { bits: u32::from(b % 4) },
            81 if self.alive(3).is_empty() => Call::CreateExchange { capacities: [1, 0, 2, 1] },
            81 if self.alive(5).is_empty() => Call::CreateHeap { units: 12, blocks: 4 },
            82 | 83 => Call::WaitBlock { heap, units: u32::from(c / 3 % 14), until, at },
            84 if a % 2 == 0 => Call::GetBlock { heap, units: u32::from(c % 14) },
            84 => Call::TakeBlock,
            85 => Call::FreeBlock { heap, first: self.block(heap, c) },
            81 if self.alive(4).is_empty() => Call::CreatePool { buffers: 2 },
            _ => Call::Tick {
                now: Moment::from_nanos((self.naive.now.as_nanos() + u64::from(b % 32)).saturating_sub(2)),
            },
        }
    }

    fn set_up(&mut self) -> Result<(), TestCaseError> {
        for number in [4, 4, 2] {
            self.apply(By::Outside, Call::CreateTask { priority: priority(number), mailboxes: [1, 2, 0, 2] })?;
        }
        for (count, limit) in [(0, 2), (1, 1)] {
            self.apply(By::Outside, Call::CreateSemaphore { count, limit })?;
        }
        for protocol in [
            ResourceProtocol::None,
            ResourceProtocol::Inherit,
            ResourceProtocol::Inherit,
            ResourceProtocol::Ceiling(priority(1)),
        ] {
            self.apply(By::Outside, Call::CreateResource { protocol })?;
        }
        self.apply(By::Outside, Call::CreateEvents { bits: 1 })?;
        self.apply(By::Outside, Call::CreateExchange { capacities: [1, 0, 2, 1] })?;
        self.apply(By::Outside, Call::CreatePool { buffers: 2 })?;
        self.apply(By::Outside, Call::CreateHeap { units: 12, blocks: 4 })?;
        for _ in 0..3 {
            self.apply(By::Outside, Call::CreateTimer)?;
        }
        for task in self.tasks.clone() {
            self.apply(By::Outside, Call::Trigger { task })?;
        }
        Ok(())
    }
}

fn same<T: PartialEq + Debug>(what: &str, core: &T, naive: &T) -> Result<(), String> {
    if core == naive { Ok(()) } else { Err(format!("{what}: the core has {core:?}, the model {naive:?}")) }
}

/// Kinds of calls that any caller may make, most of which end a wait or begin a run.
const MOVES_ON: [u8; 18] = [85, 85, 0, 0, 12, 17, 19, 25, 27, 30, 34, 48, 54, 64, 68, 72, 71, 71];

fn play(seeds: &[Seed]) -> Result<Pair, TestCaseError> {
    let mut pair = Pair::new(2)?;
    for &seed in seeds {
        let by = pair.caller(seed.who);
        // A caller that is no task seldom makes a call that only a task may make; mostly it makes one of `MOVES_ON`.
        let moves_on = !matches!(by, By::Task(_)) && seed.kind % 8 > 0;
        let kind = if moves_on { pick(&MOVES_ON, seed.kind) } else { seed.kind };
        let call = pair.call(Seed { kind, ..seed });
        pair.apply(by, call)?;
    }
    Ok(pair)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn the_core_does_what_the_naive_model_does(seeds in proptest::collection::vec(seed(), 1..220)) {
        play(&seeds)?;
    }
}

/// Number of sequences, multiplied by `HAIRSPRING_PROOF`.
fn cases() -> u32 {
    6_000 * crate::proof_factor()
}

/// Else the comparison above could compare nothing but refusals.
#[test]
fn random_calls_come_out_in_every_way_and_wait_for_everything() {
    let mut runner = TestRunner::deterministic();
    let strategy = proptest::collection::vec(seed(), 200);
    let (mut statuses, mut waits) = (BTreeMap::new(), BTreeMap::new());
    let mut simple = 0;
    for _ in 0..300 {
        let seeds = strategy.new_tree(&mut runner).expect("a sequence").current();
        let pair = play(&seeds).expect("as the model");
        simple += pair.simple;
        pair.replies.iter().for_each(|reply| *statuses.entry(format!("{:?}", reply.status)).or_insert(0) += 1);
        for man in &pair.naive.men {
            *statuses.entry(format!("{:?}", man.outcome.status)).or_insert(0) += 1;
            let waiting = format!("{:?}", man.waiting);
            *waits.entry(waiting.split('(').next().unwrap_or_default().to_owned()).or_insert(0) += 1;
        }
    }
    let rare = ["TriggerOverflow", "TooMany", "BadInterval", "MessageTooBig"];
    for status in crate::statuses::ALL.map(|status| format!("{status:?}")) {
        let at_random = !rare.contains(&status.as_str()) && (CHECKS || status != "Running");
        assert!(!at_random || statuses.contains_key(&status), "{status} never came about: {statuses:?}");
    }
    assert_eq!(waits.len(), 12, "{waits:?}");
    assert!(simple > 500, "only {simple} of 60,000 calls took a fast path");
}
