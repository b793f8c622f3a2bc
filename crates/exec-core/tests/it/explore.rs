//! Small systems in all their states: a breadth-first search over everything that the running task and the world around
//! it can do, with the invariants of [`invariants`] asserted in every state and over every step.
//!
//! Two states are equal if they look equal from outside: the states of the tasks, the order of the wait lists, the
//! contents of the mailboxes, and the time left until each deadline. Numbers of envelopes and tickets and the absolute
//! time do not count. An ordinary run stops each system at a number of states; `HAIRSPRING_PROOF` multiplies this
//! number. A system that comes to an end before that has been explored completely.

mod invariants;

use std::collections::{HashMap, VecDeque};

use hairspring_exec_core::{
    By, Call, Core, Ending, Moment, Priority, ResourceId, ResourceProtocol, SemaphoreId, TaskId, TaskState, Until,
    Urgency, Waiting,
};

use crate::bench::{priority, urgency};

/// A small system, and what can happen in it.
struct System {
    name: &'static str,
    /// The tasks, by their own priorities.
    priorities: &'static [u8],
    protocols: Vec<ResourceProtocol>,
    semaphore: bool,
    /// Task 0 has a mailbox, and there are two envelopes.
    mailbox: bool,
    /// Waits and wakes.
    wakes: bool,
    /// Waits that end by time, and ticks.
    times: bool,
    kills: bool,
    suspends: bool,
    set_priorities: bool,
    /// Thresholds and ends of slices.
    thresholds: bool,
    /// The least number of states that must be found.
    least: usize,
}

impl System {
    fn new(name: &'static str, priorities: &'static [u8], least: usize) -> Self {
        let (protocols, semaphore, mailbox, wakes, times) = (Vec::new(), false, false, false, false);
        let (kills, suspends, set_priorities, thresholds) = (false, false, false, false);
        Self {
            name,
            priorities,
            protocols,
            semaphore,
            mailbox,
            wakes,
            times,
            kills,
            suspends,
            set_priorities,
            thresholds,
            least,
        }
    }
}

#[derive(Clone)]
struct World {
    core: Core,
    now_ns: u64,
    tasks: Vec<TaskId>,
    /// The tasks whose wait can end by time, in the order in which these waits began.
    timed: Vec<usize>,
}

const SEMAPHORE: u16 = 0;

impl World {
    fn new(system: &System) -> Self {
        let mut core = Core::new(if system.mailbox { 2 } else { 0 }, ());
        let mut tasks = Vec::new();
        for (index, &number) in system.priorities.iter().enumerate() {
            let mailboxes = if system.mailbox && index == 0 { [1, 2, 0, 0] } else { [0; 4] };
            let call = Call::CreateTask { priority: priority(number), mailboxes };
            tasks.push(TaskId::from_number(core.apply(By::Outside, call).value));
        }
        for &protocol in &system.protocols {
            core.apply(By::Outside, Call::CreateResource { protocol });
        }
        if system.semaphore {
            core.apply(By::Outside, Call::CreateSemaphore { count: 0, limit: 1 });
        }
        Self { core, now_ns: 0, tasks, timed: Vec::new() }
    }

    /// All that can happen next.
    fn moves(&self, system: &System) -> Vec<(By, Call)> {
        let mut moves = Vec::new();
        let mut add = |by, call| moves.push((by, call));
        let untils: &[Until] = if system.times {
            &[
                Until::Forever,
                Until::At(Moment::from_nanos(self.now_ns + 1)),
                Until::At(Moment::from_nanos(self.now_ns + 2)),
            ]
        } else {
            &[Until::Forever]
        };
        if let Some(me) = self.core.first() {
            let by = By::Task(me);
            add(by, Call::End { how: Ending::Returned });
            for (index, _) in system.protocols.iter().enumerate() {
                let resource = ResourceId::from_number(index as u32);
                let (owner, depth) = self.core.resource(resource).unwrap_or_default();
                if owner == Some(me) {
                    add(by, Call::Release { resource });
                }
                if owner != Some(me) || depth < 2 {
                    untils.iter().take(2).for_each(|&until| add(by, Call::Reserve { resource, until, at: None }));
                }
            }
            if system.semaphore {
                let (semaphore, at) = (SemaphoreId::from_number(0), Some(priority(me.index() as u8 % 2)));
                untils.iter().for_each(|&until| add(by, Call::WaitSemaphore { semaphore, until, at }));
            }
            if system.wakes {
                untils.iter().for_each(|&until| add(by, Call::Wait { until }));
                add(by, Call::Yield);
            }
            if system.thresholds {
                [priority(1), Priority::LOWEST]
                    .into_iter()
                    .for_each(|priority| add(by, Call::SetThreshold { priority }));
            }
            if system.mailbox {
                add(by, Call::Take);
                add(by, Call::Acknowledge { value: 7 });
                for until in untils.iter().copied().take(2) {
                    for letter in [urgency(0), urgency(1)] {
                        add(by, Call::SendWait { task: self.tasks[0], urgency: letter, until });
                    }
                    [None, Some(urgency(1))].into_iter().for_each(|urgency| add(by, Call::Receive { urgency, until }));
                }
            }
        }
        for &task in &self.tasks {
            let Some(look) = self.core.look(task) else { continue };
            if look.starts == 0 {
                add(By::Outside, Call::Trigger { task });
            }
            if system.wakes {
                add(By::Interrupt(0), Call::Wake { task });
            }
            if system.kills {
                add(By::Outside, Call::Kill { task });
            }
            if system.suspends {
                add(By::Outside, if look.suspended { Call::Resume { task } } else { Call::Suspend { task } });
            }
            if system.set_priorities {
                [1, 3].into_iter().for_each(|to| add(By::Outside, Call::SetPriority { task, priority: priority(to) }));
            }
        }
        if system.semaphore {
            add(By::Interrupt(0), Call::SignalSemaphore { semaphore: SemaphoreId::from_number(0) });
        }
        if system.mailbox {
            [0, 1].into_iter().for_each(|number| {
                add(By::Interrupt(0), Call::Send { task: self.tasks[0], urgency: urgency(number) });
            });
        }
        if system.thresholds {
            add(By::Kernel, Call::EndSlice);
        }
        if system.times {
            add(By::Kernel, Call::Tick { now: Moment::from_nanos(self.now_ns + 1) });
        }
        moves
    }

    /// Makes a move.
    fn act(&mut self, by: By, call: Call) -> hairspring_exec_core::Reply {
        if let Call::Tick { now } = call {
            self.now_ns = now.as_nanos();
        }
        let reply = self.core.apply(by, call);
        let timed = |core: &Core, task: TaskId| core.wait_deadline(task).is_some();
        self.timed.retain(|&index| timed(&self.core, self.tasks[index]));
        for (index, &task) in self.tasks.iter().enumerate() {
            if timed(&self.core, task) && !self.timed.contains(&index) {
                self.timed.push(index);
            }
        }
        reply
    }

    /// The state as it looks from outside.
    fn summary(&self, system: &System) -> Vec<u8> {
        let mut seen = Vec::with_capacity(64);
        let one = |task: Option<TaskId>| task.map_or(u8::MAX, |task| task.index() as u8);
        for &task in &self.tasks {
            let Some(look) = self.core.look(task) else { continue };
            // Between two runs a wake that is left of the last is invisible.
            let latch = look.latch && matches!(look.state, TaskState::Ready | TaskState::Waiting);
            let flags = [look.suspended, look.killed, latch, look.starts > 0];
            seen.push(flags.into_iter().fold(look.state as u8, |bits, flag| bits << 1 | u8::from(flag)));
            seen.extend([look.base.number() << 4 | look.effective.number(), kind(look.waiting)]);
            if system.thresholds {
                seen.push(look.threshold.number());
            }
            let deadline = self.core.wait_deadline(task);
            seen.push(deadline.map_or(0, |deadline| (deadline.as_nanos() - self.now_ns) as u8));
            if !system.protocols.is_empty() {
                seen.extend(self.core.owned_by(task).iter().map(|resource| resource.index() as u8));
                seen.push(u8::MAX);
            }
            if system.mailbox {
                let hand = self.core.in_hand(task);
                seen.extend([u8::from(hand.is_some()), one(hand.and_then(|hand| self.core.sender_of(hand)))]);
                seen.push(one(self.core.owed_by(task)));
                for urgency in Urgency::ALL.into_iter().take(2) {
                    let letters = self.core.letters(task, urgency);
                    seen.extend(letters.iter().map(|&envelope| one(self.core.sender_of(envelope))));
                    seen.push(u8::MAX - 1);
                }
            }
        }
        let mut line = |tasks: Vec<TaskId>| {
            seen.extend(tasks.iter().map(|task| task.index() as u8));
            seen.push(u8::MAX);
        };
        line(self.core.ready_tasks());
        line(self.timed.iter().map(|&index| self.tasks[index]).collect());
        for slot in 0..system.protocols.len() as u16 {
            line(self.core.line(Waiting::Resource(slot)));
        }
        if system.semaphore {
            line(self.core.line(Waiting::Semaphore(SEMAPHORE)));
            let (count, _) = self.core.semaphore(SemaphoreId::from_number(0)).unwrap_or_default();
            seen.push(count as u8);
        }
        for slot in 0..system.protocols.len() as u32 {
            let (_, depth) = self.core.resource(ResourceId::from_number(slot)).unwrap_or_default();
            seen.push(depth as u8);
        }
        seen
    }
}

fn kind(waiting: Waiting) -> u8 {
    match waiting {
        Waiting::Nothing => 0,
        Waiting::Wake => 1,
        Waiting::Delay => 2,
        Waiting::Signals(_) => 3,
        Waiting::Mail(urgency) => 8 + urgency,
        Waiting::Acknowledgement(_) => 4,
        Waiting::Semaphore(slot) => 16 + slot as u8,
        Waiting::Resource(slot) => 32 + slot as u8,
        Waiting::Events(..) => 5,
        Waiting::Exchange(_) => 6,
        Waiting::Block(..) => 7,
        Waiting::End(slot) => 48 + slot as u8,
    }
}

/// Result of the exploration of a system.
struct Explored {
    states: usize,
    steps: usize,
    complete: bool,
}

fn explore(system: &System, most_states: usize) -> Explored {
    let world = World::new(system);
    let mut numbers = HashMap::from([(world.summary(system), 0_usize)]);
    // How each state was first reached: from which state, by which move.
    let mut history = vec![(0, None)];
    let mut open = VecDeque::from([(0, world)]);
    let mut steps = 0;
    while let Some((number, world)) = open.pop_front() {
        for (by, call) in world.moves(system) {
            let mut next = world.clone();
            let reply = next.act(by, call);
            steps += 1;
            if let Err(broken) = invariants::check(system, &world, by, call, reply, &next) {
                panic!(
                    "{}: {broken}\nafter {by:?} asked {call:?}; before that:\n{}",
                    system.name,
                    story(&history, number)
                );
            }
            let fresh = numbers.len();
            let summary = next.summary(system);
            if fresh < most_states && !numbers.contains_key(&summary) {
                numbers.insert(summary, fresh);
                history.push((number, Some((by, call))));
                open.push_back((fresh, next));
            }
        }
    }
    Explored { states: numbers.len(), steps, complete: numbers.len() < most_states }
}

/// The calls that led to a state, the first first.
fn story(history: &[(usize, Option<(By, Call)>)], number: usize) -> String {
    match history[number] {
        (before, Some((by, call))) => format!("{}  {by:?}: {call:?}\n", story(history, before)),
        (_, None) => String::new(),
    }
}

/// Explores a system and asserts that it was not empty.
#[track_caller]
#[expect(clippy::print_stdout, reason = "captured by the harness unless one asks how far the search went")]
fn check(system: &System) {
    let most_states = 50_000 * crate::proof_factor() as usize;
    let explored = explore(system, most_states);
    let Explored { states, steps, complete } = explored;
    println!("{}: {states} states, {steps} steps, {}", system.name, if complete { "complete" } else { "cut off" });
    assert!(states >= system.least, "{}: only {states} states", system.name);
}

#[test]
fn resources_keep_every_invariant_in_every_state_under_each_pair_of_protocols() {
    let ceiling = ResourceProtocol::Ceiling(priority(1));
    for (name, first, second, least) in [
        ("none and none", ResourceProtocol::None, ResourceProtocol::None, 22_000),
        ("none and inherit", ResourceProtocol::None, ResourceProtocol::Inherit, 22_000),
        ("inherit and inherit", ResourceProtocol::Inherit, ResourceProtocol::Inherit, 23_000),
        ("inherit and ceiling", ResourceProtocol::Inherit, ceiling, 21_000),
        ("ceiling and ceiling", ceiling, ceiling, 3_700),
        ("none and ceiling", ResourceProtocol::None, ceiling, 20_000),
    ] {
        let protocols = vec![first, second];
        check(&System { protocols, times: true, kills: true, ..System::new(name, &[3, 2, 1], least) });
    }
}

#[test]
fn inheritance_keeps_every_invariant_with_four_tasks_suspensions_and_changes_of_priority() {
    let protocols = vec![ResourceProtocol::Inherit, ResourceProtocol::Inherit];
    let system = System::new("four tasks, two inherited resources", &[4, 3, 2, 1], 50_000);
    check(&System { protocols: protocols.clone(), suspends: true, set_priorities: true, ..system });
    let system = System::new("two equals and one above, priorities set", &[2, 2, 1], 50_000);
    check(&System { protocols, kills: true, suspends: true, set_priorities: true, ..system });
}

#[test]
fn wakes_keep_every_invariant_in_every_state() {
    let system = System::new("wait and wake", &[2, 2, 1], 23_000);
    check(&System { wakes: true, times: true, kills: true, suspends: true, ..system });
}

#[test]
fn thresholds_and_slices_keep_every_invariant_in_every_state() {
    let system = System::new("thresholds and slices", &[2, 2, 1], 10_000);
    check(&System { wakes: true, thresholds: true, kills: true, suspends: true, ..system });
    let protocols = vec![ResourceProtocol::Inherit];
    let system = System::new("thresholds, slices and a resource", &[3, 3, 2], 10_000);
    check(&System { protocols, thresholds: true, times: true, kills: true, ..system });
}

#[test]
fn semaphores_keep_every_invariant_in_every_state() {
    let system = System::new("four tasks and a semaphore", &[3, 2, 2, 1], 47_000);
    check(&System { semaphore: true, times: true, kills: true, ..system });
    let system = System::new("semaphore, wakes and suspensions", &[2, 1, 1], 50_000);
    check(&System { semaphore: true, wakes: true, times: true, suspends: true, ..system });
}

#[test]
fn mail_keeps_every_invariant_in_every_state() {
    let system = System::new("a mailbox and two envelopes", &[2, 3, 1], 50_000);
    check(&System { mailbox: true, times: true, kills: true, suspends: true, ..system });
    let system = System::new("a mailbox and a resource", &[2, 3, 1], 50_000);
    check(&System { mailbox: true, protocols: vec![ResourceProtocol::Inherit], times: true, kills: true, ..system });
}

#[test]
fn everything_at_once_keeps_every_invariant_as_far_as_it_is_explored() {
    let ceiling = ResourceProtocol::Ceiling(priority(1));
    let system = System::new("four tasks and everything", &[4, 3, 2, 1], 50_000);
    check(&System {
        protocols: vec![ResourceProtocol::Inherit, ceiling],
        semaphore: true,
        mailbox: true,
        wakes: true,
        times: true,
        kills: true,
        suspends: true,
        ..system
    });
}

/// Whether a task may run, as far as can be seen.
fn runnable(world: &World, task: TaskId) -> bool {
    world.core.look(task).is_some_and(|look| look.state == TaskState::Ready && !look.suspended)
}
