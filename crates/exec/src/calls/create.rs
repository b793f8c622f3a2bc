//! [`Create`]: making objects.

use std::marker::PhantomData;

use hairspring_exec_core::{
    Call, EventsId, ExchangeId, PoolId, Priority, ResourceId, ResourceProtocol, SemaphoreId, TaskId, TimerId,
};

use super::body::{self, Body, Mailed, Triggered};
use super::options::TaskOptions;
use super::procedures::{Expiry, TimerCtx};
use super::services::{CallSite, Caller};
use super::task::TaskCtx;
use crate::back_end::BackEnd;
use crate::engine::Engine;
use crate::errors::{CreateError, accept, refusal};
use crate::fiber::SwitchBack;
use crate::message::GRAIN;
use crate::objects::{
    Broadcast, BytePipe, CircularList, Condition, DayExpiry, DayTimer, Exchange, Heap, HeapMemory, HeapOrder, Join,
    Mailbox, MessageQueue, Mutex, Pool, Selector,
};

/// Making objects: for the program before a run, and for tasks during one. Allocates; not real-time safe.
pub trait Create: CallSite {
    /// Makes a task that is started by triggers. One run of the body is one start.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn task(
        &self,
        name: &str,
        priority: Priority,
        body: impl FnMut(&TaskCtx<'_>) + Send + 'static,
    ) -> Result<TaskId, CreateError> {
        self.task_with(name, priority, TaskOptions::default(), body)
    }

    /// The same, with options such as the size of its stack.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn task_with(
        &self,
        name: &str,
        priority: Priority,
        options: TaskOptions,
        body: impl FnMut(&TaskCtx<'_>) + Send + 'static,
    ) -> Result<TaskId, CreateError> {
        create_task(self.caller(), name, priority, [0; 4], options, Triggered(body))
    }

    /// Makes a task that is started by messages of type `M`, with mailboxes of these capacities by urgency (0: none).
    /// One run of the body is one message, unless it receives more itself from the mailbox it is given.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn mail_task<M: Copy + Send + 'static>(
        &self,
        name: &str,
        priority: Priority,
        capacities: [u16; 4],
        body: impl FnMut(&TaskCtx<'_>, Mailbox<M>, M) + Send + 'static,
    ) -> Result<Mailbox<M>, CreateError> {
        self.mail_task_with(name, priority, capacities, TaskOptions::default(), body)
    }

    /// The same, with options such as the size of its stack.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn mail_task_with<M: Copy + Send + 'static>(
        &self,
        name: &str,
        priority: Priority,
        capacities: [u16; 4],
        options: TaskOptions,
        body: impl FnMut(&TaskCtx<'_>, Mailbox<M>, M) + Send + 'static,
    ) -> Result<Mailbox<M>, CreateError> {
        let caller = self.caller();
        fits::<M>(caller.back_end)?;
        let home = caller.back_end.home();
        let mailed = Mailed { home, body, message: PhantomData };
        create_task(caller, name, priority, capacities, options, mailed).map(|task| Mailbox::new(task, home))
    }

    /// Makes a counting semaphore.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn semaphore(&self, count: u32, limit: u32) -> Result<SemaphoreId, CreateError> {
        let Caller { back_end, by } = self.caller();
        accept(back_end.cold().call(by, Call::CreateSemaphore { count, limit })).map(SemaphoreId::from_number)
    }

    /// Makes a resource with a protocol against priority inversion.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn resource(&self, protocol: ResourceProtocol) -> Result<ResourceId, CreateError> {
        let Caller { back_end, by } = self.caller();
        accept(back_end.cold().call(by, Call::CreateResource { protocol })).map(ResourceId::from_number)
    }

    /// Makes an event group with these bits set.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn events(&self, bits: u32) -> Result<EventsId, CreateError> {
        let Caller { back_end, by } = self.caller();
        accept(back_end.cold().call(by, Call::CreateEvents { bits })).map(EventsId::from_number)
    }

    /// Makes a message exchange for messages of type `M`.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn exchange<M: Copy + Send + 'static>(&self, capacities: [u16; 4]) -> Result<Exchange<M>, CreateError> {
        let Caller { back_end, by } = self.caller();
        fits::<M>(back_end)?;
        let number = accept(back_end.cold().call(by, Call::CreateExchange { capacities }))?;
        Ok(Exchange::new(ExchangeId::from_number(number), back_end.home()))
    }

    /// Makes a pool of buffers with these contents; at most 65,535.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn pool<T: Send + 'static>(&self, contents: Vec<T>) -> Result<Pool<T>, CreateError> {
        let Caller { back_end, by } = self.caller();
        let Ok(buffers) = u16::try_from(contents.len()) else { return Err(CreateError::TooMany) };
        let number = accept(back_end.cold().call(by, Call::CreatePool { buffers }))?;
        Ok(Pool::new(PoolId::from_number(number), back_end.home(), contents.into_iter()))
    }

    /// Makes a heap in this memory, with at most `blocks` blocks in use (at most [`MOST_BLOCKS`](crate::MOST_BLOCKS)).
    /// Its records take 2 bytes for each unit of the memory and 48 for each block.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn heap(&self, memory: HeapMemory, blocks: usize, order: HeapOrder) -> Result<Heap, CreateError> {
        Heap::new(self, memory, blocks, order)
    }

    /// Makes a circular list with this many slots.
    fn circular_list<T: Copy + Send + 'static>(&self, slots: usize) -> CircularList<T> {
        CircularList::new(self, slots)
    }

    /// Makes a task that runs once, starts it, and returns the right to its result.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn spawn<R: Send + 'static>(
        &self,
        name: &str,
        priority: Priority,
        body: impl FnOnce(&TaskCtx<'_>) -> R + Send + 'static,
    ) -> Result<Join<R>, CreateError> {
        Join::new(self, name, priority, body)
    }

    /// Makes a mutex with these data and a protocol against priority inversion.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn mutex<T: Send + 'static>(&self, protocol: ResourceProtocol, data: T) -> Result<Mutex<T>, CreateError> {
        Mutex::new(self, protocol, data)
    }

    /// Makes a condition for tasks that wait for the data of a mutex to change.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn condition(&self) -> Result<Condition, CreateError> {
        Condition::new(self)
    }

    /// Makes a queue of this many messages of any type, which are moved.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn message_queue<T: Send + 'static>(&self, capacity: usize) -> Result<MessageQueue<T>, CreateError> {
        MessageQueue::new(self, capacity)
    }

    /// Makes a stream of bytes with a buffer of this size.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn byte_pipe(&self, capacity: usize) -> Result<BytePipe, CreateError> {
        BytePipe::new(self, capacity)
    }

    /// Makes a broadcast that keeps this many values, at least one, for slow subscribers. With one it is the latest
    /// value of something.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn broadcast<T: Copy + Send + 'static>(&self, capacity: usize) -> Result<Broadcast<T>, CreateError> {
        Broadcast::new(self, capacity)
    }

    /// Makes a selector, with which one task waits for several objects.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn selector(&self) -> Result<Selector, CreateError> {
        Selector::new(self)
    }

    /// Makes a timer, stopped. Its procedure runs in the kernel task, above all tasks, and gets the number of missed
    /// periods.
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn timer(
        &self,
        name: &str,
        mut procedure: impl FnMut(&TimerCtx<'_>, Expiry) + Send + 'static,
    ) -> Result<TimerId, CreateError> {
        let Caller { back_end, by } = self.caller();
        let made = match back_end {
            BackEnd::Fiber(fibers, _) => fibers.make_timer(
                by,
                name,
                Box::new(move |fibers, timer, expiry| {
                    procedure(&TimerCtx::new(BackEnd::Fiber(fibers, SwitchBack::NONE), timer), expiry.into());
                }),
            ),
            BackEnd::Other(engine) => engine.create_timer(
                by,
                name,
                Box::new(move |engine, timer, expiry| {
                    procedure(&TimerCtx::new(BackEnd::Other(engine), timer), expiry.into());
                }),
            ),
        };
        made.map_err(refusal)
    }

    /// Makes a timer that goes off at times of day, stopped. Its procedure is one of a [`timer`](Self::timer).
    ///
    /// # Errors
    /// [`CreateError`] names the reasons, each with what to do.
    fn day_timer(
        &self,
        name: &str,
        procedure: impl FnMut(&TimerCtx<'_>, DayExpiry) + Send + 'static,
    ) -> Result<DayTimer, CreateError> {
        DayTimer::new(self, name, procedure)
    }
}

impl Create for TaskCtx<'_> {}

/// Makes a task whose procedure is compiled for the back-end at hand.
fn create_task(
    Caller { back_end, by }: Caller<'_>,
    name: &str,
    priority: Priority,
    mailboxes: [u16; 4],
    mut options: TaskOptions,
    mut procedure: impl Body + Send + 'static,
) -> Result<TaskId, CreateError> {
    let calm = options.threshold;
    let made = match back_end {
        BackEnd::Fiber(fibers, _) => {
            let life = Box::new(move |fibers: &_, me| body::live_on_fiber(&mut procedure, calm, fibers, me));
            fibers.make_task(by, name, priority, mailboxes, options.take_stack(), life)
        }
        BackEnd::Other(engine) => {
            let run = Box::new(move |engine: &dyn Engine, me| {
                body::live_once(&mut procedure, calm, &TaskCtx::new(BackEnd::Other(engine), me))
            });
            engine.create_task(by, name, priority, mailboxes, options.take_stack(), run)
        }
    };
    made.map_err(refusal)
}

fn fits<M>(back_end: BackEnd<'_>) -> Result<(), CreateError> {
    const { assert!(align_of::<M>() <= GRAIN, "messages are aligned to at most 16 bytes") };
    if back_end.cold().fits(size_of::<M>(), align_of::<M>()) { Ok(()) } else { Err(CreateError::MessageTooBig) }
}
