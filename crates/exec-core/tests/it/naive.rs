//! A naive second implementation of the executive: vectors, sorting and linear search, written from the manual.
//!
//! Where the core is free to choose a name (ids, envelopes, buffers) the model takes the core's choice and asserts that
//! it was free. It works out everything else.

mod heaps;
mod objects;
mod rules;
mod shelf;

use self::heaps::Heap;
use self::shelf::Shelf;
use hairspring_exec_core::{
    Bits, By, CHECKS, Call, CallStatus, Moment, Priority, Reply, ResourceProtocol, TaskId, TaskState, TimerId, Urgency,
    Waiting,
};
use std::collections::BTreeMap;

/// A message under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Letter {
    pub(crate) envelope: u32,
    /// The number for which its sender waits; 0: no sender waits.
    ticket: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Boxes {
    capacities: [u16; 4],
    pub(crate) letters: [Vec<Letter>; 4],
}

#[derive(Clone, Debug)]
pub(crate) struct Man {
    pub(crate) id: TaskId,
    pub(crate) state: TaskState,
    pub(crate) base: Priority,
    pub(crate) effective: Priority,
    pub(crate) threshold: Priority,
    pub(crate) suspended: bool,
    pub(crate) killed: bool,
    pub(crate) latch: bool,
    pub(crate) starts: u16,
    pub(crate) signals: u32,
    pub(crate) waiting: Waiting,
    pub(crate) outcome: Reply,
    pub(crate) mail: Boxes,
    pub(crate) hand: Option<Letter>,
    owes: u32,
    /// Its place among its equals: in the ready list, or in a wait list.
    place: i64,
    /// The priority of its place in the wait list, if it gave one.
    given: Option<Priority>,
    pub(crate) deadline: Option<Deadline>,
    /// The heap that granted it a block which it has not taken, and where the block begins.
    pub(crate) granted: Option<(usize, u32)>,
    /// The resources that it owns, oldest first.
    pub(crate) owned: Vec<usize>,
}

/// Overdue deadlines first, then by moment, then in the order in which they were set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deadline {
    later: bool,
    order: Moment,
    set: i64,
    pub(crate) moment: Moment,
}

#[derive(Clone, Debug)]
pub(crate) struct Clock {
    pub(crate) id: TimerId,
    pub(crate) alive: bool,
    pub(crate) deadline: Option<Deadline>,
    period_ns: u64,
    due: bool,
    pub(crate) told: (Moment, u64, u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Thing {
    protocol: ResourceProtocol,
    pub(crate) owner: Option<usize>,
    pub(crate) depth: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Naive {
    pub(crate) men: Vec<Man>,
    pub(crate) semaphores: Shelf<(u32, u32)>,
    pub(crate) things: Shelf<Thing>,
    pub(crate) events: Shelf<u32>,
    pub(crate) exchanges: Shelf<Boxes>,
    pub(crate) pools: Shelf<Vec<bool>>,
    pub(crate) heaps: Shelf<Heap>,
    /// The places at which the core put the blocks that it granted.
    pub(crate) grants: BTreeMap<TaskId, u32>,
    pub(crate) clocks: Vec<Clock>,
    /// Timers whose procedure is due, first to last.
    pub(crate) due: Vec<usize>,
    pub(crate) free_envelopes: u16,
    pub(crate) now: Moment,
    count: i64,
    tickets: u32,
}

type Come<T> = Result<T, CallStatus>;

fn ok(value: u32) -> Come<Reply> {
    Ok(Reply { status: CallStatus::Ok, value })
}

const DONE: Come<Reply> = Ok(Reply { status: CallStatus::Ok, value: 0 });

impl Boxes {
    fn new(capacities: [u16; 4]) -> Self {
        Self { capacities, letters: [const { Vec::new() }; 4] }
    }

    fn room(&self, urgency: Urgency) -> Come<usize> {
        let at = usize::from(urgency.number());
        match self.capacities[at] {
            0 => Err(CallStatus::NoMailbox),
            capacity if self.letters[at].len() == usize::from(capacity) => Err(CallStatus::MailboxFull),
            _ => Ok(at),
        }
    }

    fn next(&mut self, urgency: Option<Urgency>) -> Option<Letter> {
        let wanted = |at: usize| urgency.is_none_or(|urgency| usize::from(urgency.number()) == at);
        let letters = self.letters.iter_mut().enumerate().find(|(at, letters)| wanted(*at) && !letters.is_empty())?.1;
        Some(letters.remove(0))
    }
}

impl Naive {
    pub(crate) fn new(envelopes: u16) -> Self {
        Self { free_envelopes: envelopes, ..Self::default() }
    }

    /// Makes a call. `chosen` is the value the core answered, for names that it may choose.
    pub(crate) fn apply(&mut self, by: By, call: Call, chosen: u32) -> Reply {
        let reply = match self.act(by, call, chosen) {
            Ok(reply) => reply,
            Err(status) => Reply { status, value: 0 },
        };
        self.settle();
        reply
    }

    fn act(&mut self, by: By, call: Call, chosen: u32) -> Come<Reply> {
        match call {
            Call::CreateTask { priority, mailboxes } => {
                let id = TaskId::from_number(chosen);
                assert!(!self.men.iter().any(|man| man.id == id), "{id:?} was used before");
                self.men.push(Man::new(id, priority, mailboxes));
                return ok(chosen);
            }
            Call::CreateSemaphore { .. }
            | Call::CreateResource { .. }
            | Call::CreateEvents { .. }
            | Call::CreateExchange { .. }
            | Call::CreatePool { .. }
            | Call::CreateHeap { .. } => {
                self.create(call, chosen);
                return ok(chosen);
            }
            Call::DeleteSemaphore { .. }
            | Call::DeleteResource { .. }
            | Call::DeleteEvents { .. }
            | Call::DeleteExchange { .. }
            | Call::DeletePool { .. }
            | Call::DeleteHeap { .. } => return self.delete(call),
            Call::CreateTimer => {
                let id = TimerId::from_number(chosen);
                assert!(!self.clocks.iter().any(|clock| clock.id == id), "{id:?} was used before");
                let told = (Moment::START, 0, 0);
                self.clocks.push(Clock { id, alive: true, deadline: None, period_ns: 0, due: false, told });
                return ok(chosen);
            }
            Call::Trigger { task } => return self.trigger(task),
            Call::Suspend { task } => return self.suspend(by, task),
            Call::Resume { task } => return self.resume(task),
            Call::SetPriority { task, priority } => return self.set_priority(task, priority),
            Call::Kill { task } => return self.kill(by, task),
            Call::DeleteTask { task } => {
                let man = self.known(task)?;
                if matches!(self.men[man].state, TaskState::Ready | TaskState::Waiting) {
                    return Err(CallStatus::Running);
                }
                self.men[man].state = TaskState::Deleted;
                return DONE;
            }
            Call::Cancel { task } => {
                let man = self.started(task)?;
                if self.men[man].state != TaskState::Waiting {
                    return DONE;
                }
                self.men[man].waiting = Waiting::Nothing;
                self.settle();
                self.ready(man, CallStatus::Cancelled, 0);
                return ok(1);
            }
            Call::Wake { task } => {
                let man = self.started(task)?;
                if self.men[man].waiting == Waiting::Wake {
                    self.ready(man, CallStatus::Ok, 0);
                    return DONE;
                }
                let kept = std::mem::replace(&mut self.men[man].latch, true);
                return Err(if kept { CallStatus::WakeAlreadyPending } else { CallStatus::WakePending });
            }
            Call::Signal { task, bits } => {
                let man = self.started(task)?;
                self.men[man].signals |= bits;
                if let Waiting::Signals(wish) = self.men[man].waiting
                    && let Some(bits) = wish.satisfied_by(self.men[man].signals)
                {
                    self.men[man].signals &= !bits;
                    self.ready(man, CallStatus::Ok, bits);
                }
            }
            Call::Send { task, urgency } => return self.send(task, urgency, 0, chosen),
            Call::Post { exchange, urgency } => {
                return self.post(self.exchanges.find(exchange.number())?, urgency, chosen);
            }
            Call::SignalSemaphore { semaphore } => {
                let at = self.semaphores.find(semaphore.number())?;
                let (count, limit) = self.semaphores[at];
                match self.line(|waiting| waiting == Waiting::Semaphore(at as u16)).first() {
                    Some(&man) => self.ready(man, CallStatus::Ok, 0),
                    None if count == limit => return Err(CallStatus::Overflow),
                    None => self.semaphores[at].0 += 1,
                }
            }
            Call::SignalEvents { events, bits } => {
                let at = self.events.find(events.number())?;
                self.events[at] |= bits;
                for man in self.line(|waiting| matches!(waiting, Waiting::Events(slot, ..) if slot as usize == at)) {
                    let Waiting::Events(_, wish, take) = self.men[man].waiting else { continue };
                    if let Some(bits) = self.look_for(at, wish, take) {
                        self.ready(man, CallStatus::Ok, bits);
                    }
                }
            }
            Call::ClearEvents { events, bits } => {
                let at = self.events.find(events.number())?;
                self.events[at] &= !bits;
            }
            Call::GetBuffer { pool } => {
                let at = self.pools.find(pool.number())?;
                let pool = &mut self.pools[at];
                if pool.iter().all(|&in_use| in_use) {
                    return Err(CallStatus::Empty);
                }
                assert!(!std::mem::replace(&mut pool[chosen as usize], true), "buffer {chosen} was in use");
                return ok(chosen);
            }
            Call::FreeBuffer { pool, buffer } => {
                let at = self.pools.find(pool.number())?;
                let pool = &mut self.pools[at];
                match pool.get_mut(usize::from(buffer)) {
                    Some(in_use) if *in_use => *in_use = false,
                    _ => return Err(CallStatus::NotInUse),
                }
            }
            Call::GetBlock { heap, units } => return self.get_block(heap, units, chosen),
            Call::FreeBlock { heap, first } => return self.free_block(heap, first),
            Call::StartTimer { timer, at, period_ns } => {
                let clock = self.clock(timer)?;
                self.due.retain(|&due| due != clock);
                let deadline = self.deadline(at);
                let clock = &mut self.clocks[clock];
                (clock.period_ns, clock.due, clock.deadline) = (period_ns, false, Some(deadline));
                clock.told = (Moment::START, 0, 0);
            }
            Call::StopTimer { timer } => return ok(self.stop(timer)?),
            Call::DeleteTimer { timer } => {
                self.stop(timer)?;
                let clock = self.clock(timer)?;
                self.clocks[clock].alive = false;
            }
            Call::Tick { now } => return self.tick(now),
            Call::EndSlice => {
                let ready = self.ready_men();
                let [first, next, ..] = ready[..] else { return Err(CallStatus::Empty) };
                let (running, equal) = (&self.men[first], self.men[next].effective);
                if running.effective != running.base || running.effective != equal {
                    return Err(CallStatus::Empty);
                }
                let id = running.id;
                self.men[first].place = self.back();
                return ok(id.number());
            }
            Call::NextTimer => {
                if self.due.is_empty() {
                    return Err(CallStatus::Empty);
                }
                let clock = self.due.remove(0);
                self.clocks[clock].due = false;
                return ok(self.clocks[clock].id.number());
            }
            _ => {
                let By::Task(me) = by else { return Err(CallStatus::NotATask) };
                let me = self.known(me)?;
                assert!(CHECKS || self.men[me].state == TaskState::Ready, "a call by one who cannot");
                if self.men[me].state != TaskState::Ready {
                    return Err(CallStatus::NotStarted);
                }
                return self.act_as_task(me, call, chosen);
            }
        }
        DONE
    }

    fn act_as_task(&mut self, me: usize, call: Call, chosen: u32) -> Come<Reply> {
        let killed = self.men[me].killed;
        match call {
            Call::End { how } => self.end(me, how),
            Call::Yield => {
                self.men[me].place = self.back();
                DONE
            }
            Call::SetThreshold { priority } => {
                let before = std::mem::replace(&mut self.men[me].threshold, priority);
                ok(u32::from(before.number()))
            }
            Call::WakeReset => ok(u32::from(std::mem::take(&mut self.men[me].latch))),
            Call::Wait { until } => {
                if self.men[me].latch && !killed {
                    self.men[me].latch = false;
                    return DONE;
                }
                self.wait(me, Waiting::Wake, until, None)
            }
            Call::Delay { until } => match self.wait(me, Waiting::Delay, until, None) {
                Err(CallStatus::TimedOut) => DONE,
                other => other,
            },
            Call::WaitSignals { bits, until } => {
                if matches!(bits, Bits::Any(0) | Bits::All(0)) {
                    return Err(CallStatus::NoBits);
                }
                if let Some(bits) = bits.satisfied_by(self.men[me].signals).filter(|_| !killed) {
                    self.men[me].signals &= !bits;
                    return ok(bits);
                }
                self.wait(me, Waiting::Signals(bits), until, None)
            }
            Call::SendWait { task, urgency, until } => {
                self.able(me, until)?;
                if self.known(task)? == me {
                    return Err(CallStatus::Deadlock);
                }
                self.tickets += 1;
                let ticket = self.tickets;
                let reply = self.send(task, urgency, ticket, chosen)?;
                assert_eq!(self.wait(me, Waiting::Acknowledgement(ticket), until, None), Err(CallStatus::Blocked));
                Ok(Reply { status: CallStatus::Blocked, ..reply })
            }
            Call::Receive { urgency, until } => {
                self.put_down(me);
                if !killed && let Some(letter) = self.men[me].mail.next(urgency) {
                    self.men[me].hand = Some(letter);
                    return ok(letter.envelope);
                }
                self.wait(me, Waiting::Mail(urgency.map_or(4, Urgency::number)), until, None)
            }
            Call::Take => {
                let letter = self.men[me].hand.take().ok_or(CallStatus::Empty)?;
                self.free_envelopes += 1;
                let before = std::mem::replace(&mut self.men[me].owes, letter.ticket);
                let answered = self.answer(before, CallStatus::Ok, 0);
                Ok(Reply { status: CallStatus::Ok, value: u32::from(answered) })
            }
            Call::Acknowledge { value } => {
                let ticket = std::mem::take(&mut self.men[me].owes);
                if self.answer(ticket, CallStatus::Ok, value) { DONE } else { Err(CallStatus::Empty) }
            }
            Call::Fetch { exchange, until, at } => {
                let slot = self.exchanges.find(exchange.number())?;
                self.put_down(me);
                if !killed && let Some(letter) = self.exchanges[slot].next(None) {
                    self.men[me].hand = Some(letter);
                    return ok(letter.envelope);
                }
                self.wait(me, Waiting::Exchange(slot as u16), until, at)
            }
            Call::WaitSemaphore { semaphore, until, at } => {
                let slot = self.semaphores.find(semaphore.number())?;
                let count = &mut self.semaphores[slot].0;
                if *count > 0 && !killed {
                    *count -= 1;
                    return DONE;
                }
                self.wait(me, Waiting::Semaphore(slot as u16), until, at)
            }
            Call::Reserve { resource, until, at } => self.reserve(me, self.things.find(resource.number())?, until, at),
            Call::Release { resource } => {
                let slot = self.things.find(resource.number())?;
                let thing = &mut self.things[slot];
                if thing.owner != Some(me) {
                    return Err(CallStatus::NotOwner);
                }
                thing.depth -= 1;
                if thing.depth == 0 {
                    self.hand_on(me, slot);
                }
                DONE
            }
            Call::WaitEvents { events, bits, take, until, at } => {
                let slot = self.events.find(events.number())?;
                if matches!(bits, Bits::Any(0) | Bits::All(0)) {
                    return Err(CallStatus::NoBits);
                }
                if !killed && let Some(bits) = self.look_for(slot, bits, take) {
                    return ok(bits);
                }
                self.wait(me, Waiting::Events(slot as u16, bits, take), until, at)
            }
            Call::WaitBlock { heap, units, until, at } => self.wait_block(me, heap, units, until, at),
            Call::TakeBlock => self.take_block(me),
            Call::Join { task, until } => {
                let man = self.known(task)?;
                match self.men[man].state {
                    _ if man == me => Err(CallStatus::Deadlock),
                    TaskState::Dead => ok(2),
                    TaskState::Idle | TaskState::Deleted => DONE,
                    _ => self.wait(me, Waiting::End(task.index() as u16), until, None),
                }
            }
            other => unreachable!("{other:?} is no call of a task on itself"),
        }
    }
}

impl Man {
    fn new(id: TaskId, base: Priority, capacities: [u16; 4]) -> Self {
        let outcome = Reply { status: CallStatus::Ok, value: 0 };
        Self {
            id,
            state: TaskState::Idle,
            base,
            effective: base,
            threshold: Priority::LOWEST,
            suspended: false,
            killed: false,
            latch: false,
            starts: 0,
            signals: 0,
            waiting: Waiting::Nothing,
            outcome,
            mail: Boxes::new(capacities),
            hand: None,
            owes: 0,
            place: 0,
            given: None,
            deadline: None,
            granted: None,
            owned: Vec::new(),
        }
    }

    pub(crate) fn may_run(&self) -> bool {
        self.state == TaskState::Ready && !self.suspended
    }
}
