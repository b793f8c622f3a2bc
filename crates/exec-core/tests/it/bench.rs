//! A core on the bench: makes calls, checks the invariants after each, and fails at the line of a call with another
//! outcome.

use std::ops::{Deref, DerefMut};

use hairspring_exec_core::{
    By, Call, CallStatus, Core, Ending, EventsId, ExchangeId, HeapId, Moment, PoolId, Priority, ResourceId,
    ResourceProtocol, SemaphoreId, TaskId, TimerId, Until, Urgency,
};

/// Number of envelopes on a bench.
pub(crate) const ENVELOPES: u16 = 4;
/// Mailboxes of every urgency, with room for two each.
pub(crate) const ROOMY: [u16; 4] = [2; 4];

pub(crate) struct Bench {
    pub(crate) core: Core,
}

impl Deref for Bench {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for Bench {
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

pub(crate) fn priority(number: u8) -> Priority {
    Priority::new(number).expect("a priority from 0 to 63")
}

pub(crate) fn urgency(number: u8) -> Urgency {
    Urgency::new(number).expect("an urgency from 0 to 3")
}

pub(crate) fn at(nanos_ns: u64) -> Until {
    Until::At(Moment::from_nanos(nanos_ns))
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { core: Core::new(ENVELOPES, ()) }
    }

    /// Makes a call that must have this outcome, and returns its value.
    #[track_caller]
    pub(crate) fn call(&mut self, by: By, call: Call, status: CallStatus) -> u32 {
        let reply = self.core.apply(by, call);
        assert_eq!(reply.status, status, "{by:?} asked {call:?}");
        if let Err(broken) = self.core.check() {
            panic!("after {by:?} asked {call:?}: {}", broken.0);
        }
        reply.value
    }

    /// A call from outside.
    #[track_caller]
    pub(crate) fn outside(&mut self, call: Call, status: CallStatus) -> u32 {
        self.call(By::Outside, call, status)
    }

    /// A call by a task.
    #[track_caller]
    pub(crate) fn task(&mut self, task: TaskId, call: Call, status: CallStatus) -> u32 {
        self.call(By::Task(task), call, status)
    }

    /// A task that is idle, with room for mail.
    #[track_caller]
    pub(crate) fn idle(&mut self, number: u8) -> TaskId {
        let call = Call::CreateTask { priority: priority(number), mailboxes: ROOMY };
        TaskId::from_number(self.outside(call, CallStatus::Ok))
    }

    /// A task that was triggered.
    #[track_caller]
    pub(crate) fn started(&mut self, number: u8) -> TaskId {
        let task = self.idle(number);
        self.outside(Call::Trigger { task }, CallStatus::Ok);
        task
    }

    #[track_caller]
    pub(crate) fn semaphore_of(&mut self, count: u32, limit: u32) -> SemaphoreId {
        SemaphoreId::from_number(self.outside(Call::CreateSemaphore { count, limit }, CallStatus::Ok))
    }

    #[track_caller]
    pub(crate) fn resource_of(&mut self, protocol: ResourceProtocol) -> ResourceId {
        ResourceId::from_number(self.outside(Call::CreateResource { protocol }, CallStatus::Ok))
    }

    #[track_caller]
    pub(crate) fn events_of(&mut self, bits: u32) -> EventsId {
        EventsId::from_number(self.outside(Call::CreateEvents { bits }, CallStatus::Ok))
    }

    #[track_caller]
    pub(crate) fn exchange_of(&mut self, capacities: [u16; 4]) -> ExchangeId {
        ExchangeId::from_number(self.outside(Call::CreateExchange { capacities }, CallStatus::Ok))
    }

    #[track_caller]
    pub(crate) fn pool_of(&mut self, buffers: u16) -> PoolId {
        PoolId::from_number(self.outside(Call::CreatePool { buffers }, CallStatus::Ok))
    }

    #[track_caller]
    pub(crate) fn heap_of(&mut self, units: u32, blocks: u16) -> HeapId {
        HeapId::from_number(self.outside(Call::CreateHeap { units, blocks }, CallStatus::Ok))
    }

    #[track_caller]
    pub(crate) fn timer(&mut self) -> TimerId {
        TimerId::from_number(self.outside(Call::CreateTimer, CallStatus::Ok))
    }

    /// Advances the time to this moment; returns the number of due timers.
    #[track_caller]
    pub(crate) fn tick(&mut self, now_ns: u64) -> u32 {
        self.call(By::Kernel, Call::Tick { now: Moment::from_nanos(now_ns) }, CallStatus::Ok)
    }

    /// A task waits for a wake.
    #[track_caller]
    pub(crate) fn waits(&mut self, task: TaskId) {
        self.task(task, Call::Wait { until: Until::Forever }, CallStatus::Blocked);
    }

    #[track_caller]
    pub(crate) fn ends(&mut self, task: TaskId) {
        self.task(task, Call::End { how: Ending::Returned }, CallStatus::Ok);
    }

    #[track_caller]
    pub(crate) fn reserves(&mut self, task: TaskId, resource: ResourceId, status: CallStatus) {
        self.task(task, Call::Reserve { resource, until: Until::Forever, at: None }, status);
    }

    #[track_caller]
    pub(crate) fn releases(&mut self, task: TaskId, resource: ResourceId) {
        self.task(task, Call::Release { resource }, CallStatus::Ok);
    }

    /// Asserts that this task, or none, is the one to run.
    #[track_caller]
    pub(crate) fn runs(&self, task: impl Into<Option<TaskId>>) {
        assert_eq!(self.core.first(), task.into(), "the task that is to run");
    }

    /// Asserts the outcome of the call in which a task had waited.
    #[track_caller]
    pub(crate) fn came_out(&self, task: TaskId, status: CallStatus, value: u32) {
        let outcome = self.core.outcome(task);
        assert_eq!((outcome.status, outcome.value), (status, value), "what {task:?} waited in");
    }

    /// Asserts the priority that a task runs at.
    #[track_caller]
    pub(crate) fn runs_at(&self, task: TaskId, number: u8) {
        assert_eq!(self.core.look(task).map(|look| look.effective), Some(priority(number)), "priority of {task:?}");
    }
}
