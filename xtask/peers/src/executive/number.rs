//! Common parts of ports by table: [`Number`], a place in a table, and [`Never`], the interrupts that they do not have.

use hairspring_suite::executive::port::{InterruptCalls, InterruptTrigger, Port};

/// The number of a task, mailbox or semaphore.
#[derive(Clone, Copy)]
pub(crate) struct Number(pub(super) usize);

/// There are no interrupts.
#[derive(Clone)]
pub(crate) enum Never {}

impl InterruptTrigger for Never {
    fn fire(&self) {
        match *self {}
    }
}

impl<P: Port> InterruptCalls<P> for Never {
    fn wake(&self, _task: P::Task) {
        match *self {}
    }

    fn give(&self, _semaphore: P::Semaphore) {
        match *self {}
    }
}
