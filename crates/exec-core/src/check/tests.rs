//! Each invariant fails when its state is broken. All tests of the core rest on this: an invariant that holds in any
//! state would find nothing.

use super::*;
use crate::call::{Bits, By, Call, CallStatus, ResourceProtocol, Until};
use crate::id::{EventsId, ExchangeId, HeapId, Moment, Priority, ResourceId, SemaphoreId, TaskId, TimerId, Urgency};
use crate::state::arena::Arena;

/// A core with a task that runs, one that is idle, and objects for their calls.
struct Bench {
    core: Core,
    runs: TaskId,
    idle: TaskId,
    semaphore: SemaphoreId,
    resource: ResourceId,
    events: EventsId,
    exchange: ExchangeId,
}

fn priority(number: u8) -> Priority {
    Priority::new(number).expect("a priority from 0 to 63")
}

impl Bench {
    fn new() -> Self {
        let mut core = Core::new(4, ());
        let mut make = |call| core.apply(By::Outside, call).value;
        let tasks = [20, 30].map(|number| make(Call::CreateTask { priority: priority(number), mailboxes: [2; 4] }));
        let [runs, idle] = tasks.map(TaskId::from_number);
        let bench = Self {
            runs,
            idle,
            semaphore: SemaphoreId::from_number(make(Call::CreateSemaphore { count: 0, limit: 5 })),
            resource: ResourceId::from_number(make(Call::CreateResource { protocol: ResourceProtocol::None })),
            events: EventsId::from_number(make(Call::CreateEvents { bits: 0 })),
            exchange: ExchangeId::from_number(make(Call::CreateExchange { capacities: [2; 4] })),
            core,
        };
        bench.and(By::Outside, Call::Trigger { task: runs }, CallStatus::Ok)
    }

    fn and(mut self, by: By, call: Call, status: CallStatus) -> Self {
        assert_eq!(self.core.apply(by, call).status, status, "{call:?}");
        self
    }

    /// Lets the running task make a call that blocks it.
    fn blocked(self, call: Call) -> Self {
        let by = By::Task(self.runs);
        self.and(by, call, CallStatus::Blocked)
    }

    fn waits_for_the_semaphore(self) -> Self {
        let call = Call::WaitSemaphore { semaphore: self.semaphore, until: Until::Forever, at: None };
        self.blocked(call)
    }

    /// Two tasks wait for the semaphore, the first at priority 20.
    fn two_wait_for_the_semaphore(self) -> Self {
        let second = self.idle;
        let call = Call::WaitSemaphore { semaphore: self.semaphore, until: Until::Forever, at: Some(priority(20)) };
        let bench = self.blocked(call).and(By::Outside, Call::Trigger { task: second }, CallStatus::Ok);
        bench.and(By::Task(second), call, CallStatus::Blocked)
    }

    /// The idle task has the resource, and the one that ran waits for it.
    fn waits_for_the_resource(self) -> Self {
        let owner = self.idle;
        let call = Call::Reserve { resource: self.resource, until: Until::Forever, at: None };
        let bench = self.and(By::Outside, Call::Trigger { task: owner }, CallStatus::Ok);
        bench.and(By::Task(owner), call, CallStatus::Ok).blocked(call)
    }
}

/// Passes the check before `break_it`, and fails it with the text `expected` afterwards.
#[track_caller]
fn check(mut bench: Bench, break_it: impl FnOnce(&mut Core), expected: &str) {
    assert_eq!(bench.core.check(), Ok(()));
    break_it(&mut bench.core);
    let broken = bench.core.check().expect_err(expected);
    assert!(broken.0.contains(expected), "{} is not about {expected}", broken.0);
}

#[test]
fn units_or_a_free_resource_beside_waiters_are_noticed() {
    let bench = Bench::new().waits_for_the_semaphore();
    check(bench, |core| core.objects.semaphores.at_mut(0).count = 1, "has units and waiters");
    let bench = Bench::new().waits_for_the_resource();
    check(bench, |core| core.objects.resources.at_mut(0).owner = NIL, "is free and has waiters");
}

#[test]
fn a_task_in_a_list_where_it_does_not_belong_is_noticed() {
    const WRONG: &str = "where it does not belong";
    check(Bench::new(), |core| core.tasks[0].state = TaskState::Idle, WRONG);
    check(Bench::new(), |core| core.tasks[0].effective = Priority::LOWEST, WRONG);
    let bench = Bench::new().waits_for_the_semaphore();
    check(bench, |core| core.tasks[0].waiting = Waiting::Semaphore(1), WRONG);
    let bench = Bench::new().waits_for_the_resource();
    check(bench, |core| core.tasks[0].waiting = Waiting::Resource(1), WRONG);
    let bench = Bench::new();
    let call =
        Call::WaitEvents { events: bench.events, bits: Bits::Any(1), take: false, until: Until::Forever, at: None };
    check(bench.blocked(call), |core| core.tasks[0].waiting = Waiting::Events(1, Bits::Any(1), false), WRONG);
    let bench = Bench::new();
    let call = Call::Fetch { exchange: bench.exchange, until: Until::Forever, at: None };
    check(bench.blocked(call), |core| core.tasks[0].waiting = Waiting::Exchange(1), WRONG);
}

#[test]
fn a_task_in_two_lists_in_none_or_behind_a_less_urgent_one_is_noticed() {
    let twice = |core: &mut Core| core.objects.semaphores.at_mut(0).waiters.push_back(&mut core.tasks, 0, priority(20));
    check(Bench::new(), twice, "is in two lists");
    let dropped = |core: &mut Core| core.ready.remove(&mut core.tasks, 0);
    check(Bench::new(), dropped, "is in 0 lists, not 1");
    let bench = Bench::new().two_wait_for_the_semaphore();
    check(bench, |core| core.tasks[0].link.at = Priority::LOWEST, "behind a less urgent one");
}

#[test]
fn a_wait_for_nothing_and_a_wait_without_waiting_are_noticed() {
    check(Bench::new(), |core| core.tasks[1].state = TaskState::Waiting, "is Waiting and waits for Nothing");
    check(Bench::new(), |core| core.tasks[1].waiting = Waiting::Wake, "is Idle and waits for Wake");
    let bench = Bench::new().blocked(Call::Wait { until: Until::Forever });
    check(bench, |core| core.tasks[0].marks.latch = true, "waits for a wake that it has");
    let bench = Bench::new().blocked(Call::WaitSignals { bits: Bits::All(3), until: Until::Forever });
    check(bench, |core| core.tasks[0].signals = 7, "waits for signals that it has");
}

#[test]
fn a_priority_that_is_not_the_formulas_a_false_deadline_and_a_kill_without_a_run_are_noticed() {
    check(Bench::new(), |core| core.tasks[1].effective = priority(5), "not by the formula");
    check(Bench::new(), |core| core.tasks[1].marks.set_timed(true), "disagree about its deadline");
    check(Bench::new(), |core| core.tasks[1].marks.killed = true, "was killed and is Idle");
}

#[test]
fn a_message_in_the_hand_of_a_task_that_cannot_have_one_is_noticed() {
    check(Bench::new(), |core| core.tasks[1].handed = 0, "has a message in its hand while it is Idle");
    let bench = Bench::new().blocked(Call::Receive { urgency: None, until: Until::Forever });
    check(bench, |core| core.tasks[0].handed = 0, "has a message in its hand while it is Waiting");
    // One that waits for something else may hold it, but then the envelope is in no other place.
    let bench = Bench::new().blocked(Call::Wait { until: Until::Forever });
    check(bench, |core| core.tasks[0].handed = 0, "envelope 0 is in 2 places");
}

#[test]
fn envelopes_and_letters_that_are_miscounted_are_noticed() {
    check(Bench::new(), |core| core.mail.free_count -= 1, "envelope 3 is in 0 places");
    check(Bench::new(), |core| core.mail.free_count += 1, "the free envelopes are miscounted");
    check(Bench::new(), |core| core.mailboxes[0].letters[0].count = 1, "a mailbox counts 1 letters and holds []");
    let urgency = Urgency::new(0).expect("the most urgent");
    let bench = Bench::new();
    let (task, exchange) = (bench.runs, bench.exchange);
    let bench = bench.and(By::Outside, Call::Send { task, urgency }, CallStatus::Ok);
    check(bench, |core| core.mailboxes[0].letters[0].capacity = 0, "a mailbox counts 1 letters");
    let bench = Bench::new().and(By::Outside, Call::Post { exchange, urgency }, CallStatus::Ok);
    check(bench, |core| core.objects.exchanges.at_mut(0).boxes.letters[0].count = 0, "a mailbox counts 0 letters");
}

#[test]
fn timers_that_are_due_without_a_turn_or_run_although_they_are_deleted_are_noticed() {
    let started = |at_ns: u64| {
        let mut bench = Bench::new();
        let timer = TimerId::from_number(bench.core.apply(By::Outside, Call::CreateTimer).value);
        let start = Call::StartTimer { timer, at: Moment::from_nanos(at_ns), period_ns: 0 };
        bench.and(By::Outside, start, CallStatus::Ok)
    };
    check(started(100), |core| core.timers.slots[0].due = true, "stands 0 times before the kernel task");
    check(started(100), |core| core.timers.slots[0].alive = false, "timer 0 was deleted and still runs");
    let due = started(100).and(By::Outside, Call::Tick { now: Moment::from_nanos(200) }, CallStatus::Ok);
    check(due, |core| core.timers.slots[0].alive = false, "timer 0 was deleted and still runs");
    let due = started(100).and(By::Outside, Call::Tick { now: Moment::from_nanos(200) }, CallStatus::Ok);
    check(due, |core| core.timers.slots[0].due = false, "stands 1 times before the kernel task");
}

#[test]
fn a_block_for_the_first_in_line_and_grants_that_no_task_has_are_noticed() {
    let waits = || {
        let mut bench = Bench::new();
        let heap = HeapId::from_number(bench.core.apply(By::Outside, Call::CreateHeap { units: 2, blocks: 2 }).value);
        let wait = Call::WaitBlock { heap, units: 2, until: Until::Forever, at: None };
        (bench.and(By::Outside, Call::GetBlock { heap, units: 2 }, CallStatus::Ok).blocked(wait), heap)
    };
    let emptied = |core: &mut Core| core.objects.heaps.at_mut(0).arena = Arena::new(2, 2);
    check(waits().0, emptied, "has a block for the task that waits first");
    let granted = || {
        let (bench, heap) = waits();
        bench.and(By::Outside, Call::FreeBlock { heap, first: 0 }, CallStatus::Ok)
    };
    check(granted(), |core| core.tasks[0].granted_by = NIL, "has granted other blocks");
    check(granted(), |core| core.tasks[0].granted = 1, "has granted other blocks");
}
