//! embassy-executor: its raw executor, polled in a loop.
//!
//! The executor of its `platform-std` sleeps on a condition variable whenever nothing is ready, and signals that
//! variable at each wake of an empty queue: half a microsecond of locks around a few nanoseconds of executor. The raw
//! executor in a loop is the executor itself, as its `platform-spin` runs it.
#![expect(unsafe_code, reason = "the raw executor asks that it be polled by one at a time")]

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

use embassy_executor::raw::{Executor, TaskStorage};
use hairspring_sheet::Absent;

use super::asynchronous::{Asynchronous, Driver};

/// Embassy behind the port.
pub(crate) type Embassy = Asynchronous<Polled>;

/// A leaked executor, because its tasks must be `'static`; some hundred bytes for each cell.
pub(crate) struct Polled {
    executor: &'static Executor,
    refused: bool,
}

impl Driver for Polled {
    fn make() -> Result<Self, Absent> {
        Ok(Self { executor: Box::leak(Box::new(Executor::new(std::ptr::null_mut()))), refused: false })
    }

    fn spawn(&mut self, future: impl Future<Output = ()> + 'static) {
        match storage(&future).spawn(move || future) {
            Ok(token) => self.executor.spawner().spawn(token),
            Err(_) => self.refused = true,
        }
    }

    fn run(&mut self, stopped: impl Future<Output = ()> + 'static) {
        if self.refused {
            return;
        }
        let done = Rc::new(Cell::new(false));
        let flag = Rc::clone(&done);
        self.spawn(async move {
            stopped.await;
            flag.set(true);
        });
        while !done.get() {
            // SAFETY: the executor is this port's alone, a port is not Send, and no task can reach it: one poll at a
            // time.
            unsafe { self.executor.poll() };
        }
    }
}

/// Memory for a task of the type of that future.
fn storage<F: Future + 'static>(_future: &F) -> &'static TaskStorage<F> {
    Box::leak(Box::new(TaskStorage::new()))
}
