//! Status of the thread back-end for the [publisher](crate::status): a copy under the lock.

use hairspring_exec_core::TaskState;

use super::state::Phase;
use super::threads::Shared;
use crate::status::{MOST_COPIES, SAMPLE_PERIOD, Sample, Sampled};
use crate::system::clock::monotonic;
use crate::system::scheduling::{cpu_time_of, switches_of};
use crate::system::stack::StackExtent;

impl Sampled for Shared {
    fn sample(&self, into: &mut Sample) -> bool {
        let mut copied = [(0, None); MOST_COPIES];
        let mut count = 0;
        // The lock inherits priority: a task that waits for it lends the publisher its own.
        let state = self.lock.hold();
        let at = monotonic();
        into.at = at;
        into.running = state.phase != Phase::Closed;
        let seats = &state.core.observer.seats;
        for index in into.turn(seats.len()) {
            let seat = &seats[index];
            let Some(view) = state.core.look(seat.task) else {
                into.forget(index);
                continue;
            };
            let record = into.record(seat.task, &seat.name, view);
            record.messages = state.core.mail_waiting(seat.task);
            record.wait_ends = state.core.wait_deadline(seat.task);
            record.thread = Some(self.places.at(seat.place).thread()).filter(|&thread| thread != 0);
            copied[count] = (index, seat.stack);
            count += 1;
        }
        // Not `release`: see there.
        drop(state);
        // The rest asks the kernel about threads, one by one, without the lock.
        let turn = (at.as_nanos() / SAMPLE_PERIOD.count().unsigned_abs()) as usize % count.max(1);
        for (place, &(index, stack)) in copied[..count].iter().enumerate() {
            let Some(record) = &mut into.tasks[index] else { continue };
            let used = record.thread.and_then(cpu_time_of).unwrap_or(record.cpu);
            let runs = used > record.cpu || record.view.state != TaskState::Ready;
            record.cpu = used.max(record.cpu);
            record.note(runs, at);
            if place == turn {
                record.stack = stack.and_then(StackExtent::touched);
                record.switches = record.thread.and_then(switches_of);
            }
        }
        true
    }
}
