//! The services: what each call does to the state.

mod events;
mod heap;
mod life;
mod mail;
mod pool;
mod resource;
mod schedule;
mod semaphore;
mod timer;
mod wake;

use crate::call::{By, Call, CallStatus, Reply};
use crate::id::TaskId;
use crate::observer::Observer;
use crate::state::core::Core;

impl<O: Observer> Core<O> {
    /// Makes one call.
    ///
    /// Inlined where it is called, so that a call known there costs only its own service.
    #[inline(always)]
    pub fn apply(&mut self, by: By, call: Call) -> Reply {
        match call {
            Call::CreateTask { priority, mailboxes } => self.create_task(priority, mailboxes),
            Call::CreateSemaphore { count, limit } => self.create_semaphore(count, limit),
            Call::CreateResource { protocol } => self.create_resource(protocol),
            Call::CreateEvents { bits } => self.create_events(bits),
            Call::CreateExchange { capacities } => self.create_exchange(capacities),
            Call::CreatePool { buffers } => self.create_pool(buffers),
            Call::CreateHeap { units, blocks } => self.create_heap(units, blocks),
            Call::CreateTimer => self.create_timer(),
            Call::Trigger { task } => self.trigger(task),
            Call::Suspend { task } => self.suspend(by, task),
            Call::Resume { task } => self.resume(task),
            Call::SetPriority { task, priority } => self.set_priority(task, priority),
            Call::Kill { task } => self.kill(by, task),
            Call::DeleteTask { task } => self.delete_task(task),
            Call::Cancel { task } => self.cancel(task),
            Call::Wake { task } => self.wake(task),
            Call::Signal { task, bits } => self.signal(task, bits),
            Call::Send { task, urgency } => self.send(task, urgency),
            Call::Post { exchange, urgency } => self.post(exchange, urgency),
            Call::SignalSemaphore { semaphore } => self.signal_semaphore(semaphore),
            Call::SignalEvents { events, bits } => self.signal_events(events, bits),
            Call::ClearEvents { events, bits } => self.clear_events(events, bits),
            Call::GetBuffer { pool } => self.get_buffer(pool),
            Call::FreeBuffer { pool, buffer } => self.free_buffer(pool, buffer),
            Call::GetBlock { heap, units } => self.get_block(heap, units),
            Call::FreeBlock { heap, first } => self.free_block(heap, first),
            Call::StartTimer { timer, at, period_ns } => self.start_timer(timer, at, period_ns),
            Call::StopTimer { timer } => self.stop_timer(timer),
            Call::DeleteTimer { timer } => self.delete_timer(timer),
            Call::DeleteSemaphore { semaphore } => self.delete_semaphore(semaphore),
            Call::DeleteResource { resource } => self.delete_resource(resource),
            Call::DeleteEvents { events } => self.delete_events(events),
            Call::DeleteExchange { exchange } => self.delete_exchange(exchange),
            Call::DeletePool { pool } => self.delete_pool(pool),
            Call::DeleteHeap { heap } => self.delete_heap(heap),
            Call::Tick { now } => self.tick(now),
            Call::NextTimer => self.next_timer(),
            Call::EndSlice => self.end_slice(),
            _ => {
                let By::Task(me) = by else { return CallStatus::NotATask.into() };
                self.apply_as_task(me, call)
            }
        }
    }

    /// The calls that act on the calling task itself.
    #[inline(always)]
    fn apply_as_task(&mut self, me: TaskId, call: Call) -> Reply {
        let me = match self.in_a_run(me) {
            Ok(me) => me,
            Err(refusal) => return refusal,
        };
        match call {
            Call::End { how } => self.end(me, how),
            Call::Yield => self.give_way(me),
            Call::SetThreshold { priority } => self.set_threshold(me, priority),
            Call::Wait { until } => self.wait(me, until),
            Call::WakeReset => self.wake_reset(me),
            Call::Delay { until } => self.delay(me, until),
            Call::WaitSignals { bits, until } => self.wait_signals(me, bits, until),
            Call::SendWait { task, urgency, until } => self.send_wait(me, task, urgency, until),
            Call::Receive { urgency, until } => self.receive(me, urgency, until),
            Call::Take => self.take(me),
            Call::Acknowledge { value } => self.acknowledge(me, value),
            Call::Fetch { exchange, until, at } => self.fetch(me, exchange, until, at),
            Call::WaitSemaphore { semaphore, until, at } => self.wait_semaphore(me, semaphore, until, at),
            Call::Reserve { resource, until, at } => self.reserve(me, resource, until, at),
            Call::Release { resource } => self.release(me, resource),
            Call::WaitEvents { events, bits, take, until, at } => self.wait_events(me, events, bits, take, until, at),
            Call::WaitBlock { heap, units, until, at } => self.wait_block(me, heap, units, until, at),
            Call::TakeBlock => self.take_block(me),
            Call::Join { task, until } => self.join(me, task, until),
            _ => CallStatus::NoSuchObject.into(),
        }
    }

    /// A task that can make a call: one in the middle of a run, not waiting.
    #[inline]
    fn in_a_run(&self, task: TaskId) -> Result<u16, Reply> {
        if cfg!(feature = "checks") {
            match self.tasks.get(task.index()) {
                Some(found) if found.runs_as(task) => {}
                _ => return Err(self.known(task).err().unwrap_or(CallStatus::NotStarted.into())),
            }
        }
        Ok(task.index)
    }
}
