//! The port for executives of futures, shared by tokio and Embassy, which add only how to spawn and to run.
//!
//! All are cooperative: a task that wakes another continues, and the other runs at its next await. Tasks wait for a
//! count with a waker or a queue with a waker, in one thread without locks. These are the cheapest possible waits, so
//! the figures show the executive's own wake and poll. Primitives from a library cost more.

use hairspring_machine::Instant;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::rc::Rc;
use std::task::{Poll, Waker};

use hairspring_sheet::Absent;
use hairspring_suite::executive::port::{
    Ability, Calls, Message, Placement, Port, RunOutcome, TaskUrgency, not_compared,
};
use hairspring_time::{Host, Nanos, Policy, RealTime};

use super::number::{Never, Number};

/// Most tasks and most semaphores of a cell.
const SEATS: usize = 64;
/// Room of a mailbox.
const MAIL_ROOM: usize = 8;
/// The same CPU as that of our fibers' carrier thread.
const PRIORITY: u8 = 60;

/// Spawning and running of one executive.
pub(crate) trait Driver: 'static {
    fn make() -> Result<Self, Absent>
    where
        Self: Sized;

    fn spawn(&mut self, future: impl Future<Output = ()> + 'static);

    /// Runs until the future is ready, which waits for the signal that a task raises at the end.
    fn run(&mut self, stopped: impl Future<Output = ()> + 'static);
}

/// A count that one task waits for.
#[derive(Default)]
struct Signal {
    count: Cell<u32>,
    waiter: Cell<Option<Waker>>,
}

impl Signal {
    #[inline]
    fn post(&self) {
        self.count.set(self.count.get() + 1);
        if let Some(waker) = self.waiter.take() {
            waker.wake();
        }
    }

    #[inline]
    fn wait(&self) -> impl Future<Output = ()> {
        poll_fn(|context| {
            let count = self.count.get();
            if count > 0 {
                self.count.set(count - 1);
                return Poll::Ready(());
            }
            self.waiter.set(Some(context.waker().clone()));
            Poll::Pending
        })
    }
}

/// Messages that one task waits for.
#[derive(Default)]
struct Mailbox {
    messages: RefCell<VecDeque<Message>>,
    waiter: Cell<Option<Waker>>,
}

impl Mailbox {
    #[inline]
    fn send(&self, message: Message) {
        let mut messages = self.messages.borrow_mut();
        if messages.len() < MAIL_ROOM {
            messages.push_back(message);
        }
        if let Some(waker) = self.waiter.take() {
            waker.wake();
        }
    }

    #[inline]
    fn receive(&self) -> impl Future<Output = Message> {
        poll_fn(|context| {
            if let Some(message) = self.messages.borrow_mut().pop_front() {
                return Poll::Ready(message);
            }
            self.waiter.set(Some(context.waker().clone()));
            Poll::Pending
        })
    }
}

/// One task's.
#[derive(Default)]
struct Seat {
    starts: Signal,
    wakes: Signal,
    mail: Mailbox,
}

struct Seats {
    seats: [Seat; SEATS],
    semaphores: [Signal; SEATS],
    stopped: Signal,
}

/// An executive of futures.
pub(crate) struct Asynchronous<D: Driver> {
    driver: D,
    place: Placement,
    seats: Rc<Seats>,
    tasks: usize,
    semaphores: usize,
}

/// A task's calls.
pub(crate) struct AsyncCalls<D> {
    seats: Rc<Seats>,
    me: usize,
    driver: PhantomData<D>,
}

impl<D: Driver> Asynchronous<D> {
    fn seat(&mut self) -> Result<(usize, AsyncCalls<D>), Absent> {
        let me = self.tasks;
        if me == SEATS {
            return Err(Absent::final_("more tasks than this adapter has seats"));
        }
        self.tasks += 1;
        Ok((me, AsyncCalls { seats: Rc::clone(&self.seats), me, driver: PhantomData }))
    }
}

impl<D: Driver> Port for Asynchronous<D> {
    type Task = Number;
    type Mail = Number;
    type Semaphore = Number;
    type Lock = Number;
    type Timer = Number;
    type Blocks = ();
    type Interrupt = Never;
    type Calls<'k> = AsyncCalls<D>;
    type InterruptCalls<'k> = Never;

    fn make(place: Placement) -> Result<Self, Absent> {
        let seats = Seats {
            seats: std::array::from_fn(|_| Seat::default()),
            semaphores: std::array::from_fn(|_| Signal::default()),
            stopped: Signal::default(),
        };
        Ok(Self { driver: D::make()?, place, seats: Rc::new(seats), tasks: 0, semaphores: 0 })
    }

    fn unable(ability: Ability) -> Option<Absent> {
        match ability {
            Ability::Trigger | Ability::Wake | Ability::Yield | Ability::Mail | Ability::Semaphore => None,
            Ability::PreemptsCaller => Some(Absent::final_("n/a: cooperative, the caller goes on")),
            _ => Some(not_compared()),
        }
    }

    fn spawn<B>(&mut self, _name: &str, _urgency: TaskUrgency, mut body: B) -> Result<Number, Absent>
    where
        B: for<'c, 'k> AsyncFnMut(&'c AsyncCalls<D>) + Send + 'static,
    {
        let (me, calls) = self.seat()?;
        self.driver.spawn(async move {
            loop {
                calls.seats.seats[me].starts.wait().await;
                body(&calls).await;
            }
        });
        Ok(Number(me))
    }

    fn spawn_mail<B>(&mut self, _name: &str, _urgency: TaskUrgency, mut body: B) -> Result<Number, Absent>
    where
        B: for<'c, 'k> AsyncFnMut(&'c AsyncCalls<D>, Number, Message) + Send + 'static,
    {
        let (me, calls) = self.seat()?;
        self.driver.spawn(async move {
            loop {
                let message = calls.seats.seats[me].mail.receive().await;
                body(&calls, Number(me), message).await;
            }
        });
        Ok(Number(me))
    }

    fn start(&mut self, task: Number) -> Result<(), Absent> {
        self.seats.seats[task.0].starts.post();
        Ok(())
    }

    fn semaphore(&mut self, count: u32) -> Result<Number, Absent> {
        let number = self.semaphores;
        let Some(semaphore) = self.seats.semaphores.get(number) else {
            return Err(Absent::final_("more semaphores than this adapter has"));
        };
        semaphore.count.set(count);
        self.semaphores += 1;
        Ok(Number(number))
    }

    /// Does not enforce `_most`: the measuring task of a scenario never waits for long.
    fn run(&mut self, _most: Nanos) -> RunOutcome {
        let settings =
            RealTime { policy: Some(Policy::Fifo(PRIORITY)), cpu: Some(self.place.cpu), ..RealTime::default() };
        let guard = settings.apply(&Host);
        let caveat = guard.refused().map(|refused| format!("failed to {refused}"));
        let seats = Rc::clone(&self.seats);
        self.driver.run(async move { seats.stopped.wait().await });
        RunOutcome { caveat, ..RunOutcome::default() }
    }
}

impl<D: Driver> Calls<Asynchronous<D>> for AsyncCalls<D> {
    #[inline]
    async fn trigger(&self, task: Number) {
        self.seats.seats[task.0].starts.post();
    }

    #[inline]
    async fn wait(&self) {
        self.seats.seats[self.me].wakes.wait().await;
    }

    #[inline]
    async fn wake(&self, task: Number) {
        self.seats.seats[task.0].wakes.post();
    }

    /// Yields once through the executive's queue.
    #[inline]
    async fn yield_now(&self) {
        let mut waited = false;
        poll_fn(|context| {
            if waited {
                return Poll::Ready(());
            }
            waited = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    #[inline]
    async fn preempt_point(&self) {
        Calls::<Asynchronous<D>>::yield_now(self).await;
    }

    #[inline]
    async fn send(&self, mail: Number, message: Message) {
        self.seats.seats[mail.0].mail.send(message);
    }

    #[inline]
    async fn receive(&self, own: Number) -> Message {
        self.seats.seats[own.0].mail.receive().await
    }

    #[inline]
    async fn give(&self, semaphore: Number) {
        self.seats.semaphores[semaphore.0].post();
    }

    #[inline]
    async fn take(&self, semaphore: Number) {
        self.seats.semaphores[semaphore.0].wait().await;
    }

    async fn lock(&self, _lock: Number) {}

    async fn unlock(&self, _lock: Number) {}

    async fn delay_until(&self, _at: Instant) {}

    async fn stop(&self) {
        self.seats.stopped.post();
    }
}
