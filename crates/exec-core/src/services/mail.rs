//! Messages: mailboxes of tasks, message exchanges, and the envelopes both draw from.
//!
//! A message under way lies in an envelope, one of a fixed number for the whole executive. The core moves envelopes by
//! number; the bytes in them are the back-end's: it copies the message in before the receiver can run, and out before
//! it gives the envelope back by [`Call::Take`](crate::Call::Take).
//!
//! ```text
//!            send              hand over              take
//!   free ───────────► queued ───────────► handed ───────────► free
//!     ▲                  │                   │
//!     └──────────────────┴───────────────────┘ the receiver is killed or panics
//! ```
//! Messages of urgency 0 go before those of 3; within one urgency the order is that of sending. A message to an idle
//! task starts it. Taking a message out makes its sender, if it waits, wait for the acknowledgement of this one; the
//! next message taken, or the end of the run, acknowledges it if the receiver did not. A task has one envelope in its
//! hand at most: if it asks for the next before it took the message out of this one, this one goes back unread, and its
//! sender gets `NotAcknowledged`.

use alloc::vec::Vec;

use crate::call::{CallStatus, Ending, Reply, Until};
use crate::id::{ExchangeId, Priority, TaskId, Urgency};
use crate::observer::Observer;
use crate::state::core::Core;
use crate::state::link::NIL;
use crate::state::mail::Mailboxes;
use crate::state::objects::Exchange;
use crate::state::queue::Queue;
use crate::state::task::{TaskState, Ticket, Waiting};

/// "Any urgency" in [`Waiting::Mail`].
const ANY: u8 = Urgency::COUNT as u8;

impl<O: Observer> Core<O> {
    #[inline(always)]
    pub(crate) fn send(&mut self, task: TaskId, urgency: Urgency) -> Reply {
        self.send_with(task, urgency, Ticket::NONE)
    }

    pub(crate) fn send_wait(&mut self, me: u16, task: TaskId, urgency: Urgency, until: Until) -> Reply {
        if let Some(reply) = self.unable_to_wait(me, until) {
            return reply;
        }
        match self.proven(task) {
            Ok(index) if index == me => return CallStatus::Deadlock.into(),
            Ok(_) => {}
            Err(refusal) => return refusal,
        }
        let number = self.mail.next_ticket();
        let reply = self.send_with(task, urgency, Ticket::new(me, number));
        if reply.status != CallStatus::Ok {
            return reply;
        }
        self.block(me, Waiting::Acknowledgement(number), until);
        Reply { status: CallStatus::Blocked, value: reply.value }
    }

    /// [`Call::Send`](crate::Call::Send) to an idle task, which the message starts: the envelope. None: the task is not
    /// idle, or there is no room, and nothing was done.
    #[inline(always)]
    pub fn send_simply(&mut self, task: TaskId, urgency: Urgency) -> Option<u16> {
        let (target, boxes) = (self.tasks.get(task.index())?, self.mailboxes.get(task.index())?);
        if target.generation != task.generation || target.state != TaskState::Idle || boxes.room(urgency).is_err() {
            return None;
        }
        let envelope = self.mail.draw(Ticket::NONE)?;
        self.start(task.index, envelope);
        Some(envelope)
    }

    /// [`Call::Send`](crate::Call::Send) to a task that is ready: the envelope, which lies in the mailbox then. None:
    /// the task is idle or waits, there is no room, or a task is killed, and nothing was done.
    #[inline(always)]
    pub fn leave_simply(&mut self, task: TaskId, urgency: Urgency) -> Option<u16> {
        let (target, boxes) = (self.tasks.get(task.index())?, self.mailboxes.get_mut(task.index())?);
        if target.generation != task.generation
            || target.state != TaskState::Ready
            || self.killed != 0
            || boxes.room(urgency).is_err()
        {
            return None;
        }
        let envelope = self.mail.draw(Ticket::NONE)?;
        boxes.push(&mut self.mail, urgency, envelope);
        Some(envelope)
    }

    /// [`Call::Send`](crate::Call::Send) to a task that waits for such a message: the envelope, which is in the task's
    /// hand then. None: it does not wait for it, there is no room, and nothing was done.
    #[inline(always)]
    pub fn hand_simply(&mut self, task: TaskId, urgency: Urgency) -> Option<u16> {
        let (target, boxes) = (self.tasks.get_mut(task.index())?, self.mailboxes.get(task.index())?);
        let waits = matches!(target.waiting, Waiting::Mail(wanted) if wanted == ANY || wanted == urgency.number());
        if target.generation != task.generation || !waits || boxes.room(urgency).is_err() {
            return None;
        }
        let envelope = self.mail.draw(Ticket::NONE)?;
        target.handed = envelope;
        self.ready_at_once(task.index, CallStatus::Ok, u32::from(envelope));
        Some(envelope)
    }

    /// [`Call::Receive`](crate::Call::Receive) of a letter that is there already, and
    /// [`Call::Take`](crate::Call::Take), in one: the envelope, which is free then. The message stays in it until the
    /// next one is sent. None: there is no letter, one is in the hand already, a sender waits for the message before,
    /// or a task is killed, and nothing was done.
    #[inline(always)]
    pub fn collect_simply(&mut self, me: TaskId, urgency: Option<Urgency>) -> Option<u16> {
        let (task, boxes) = (self.tasks.get_mut(me.index())?, self.mailboxes.get_mut(me.index())?);
        if !task.runs_as(me) || task.handed != NIL || task.ticket != Ticket::NONE || self.killed != 0 {
            return None;
        }
        let envelope = boxes.pop(&self.mail, urgency)?;
        task.ticket = self.mail.give_back(envelope);
        Some(envelope)
    }

    /// [`Call::Take`](crate::Call::Take) where no sender waits for the message before. False: one does, or there is
    /// nothing to take, and nothing was done.
    #[inline(always)]
    pub fn take_simply(&mut self, me: TaskId) -> bool {
        let Some(task) = self.tasks.get_mut(me.index()) else { return false };
        let envelope = task.handed;
        let simple = task.runs_as(me) && envelope != NIL && task.ticket == Ticket::NONE;
        if simple {
            task.handed = NIL;
            task.ticket = self.mail.give_back(envelope);
        }
        simple
    }

    #[inline(always)]
    fn send_with(&mut self, task: TaskId, urgency: Urgency, ticket: Ticket) -> Reply {
        let index = task.index;
        // Checked in every build, because the type of a message depends on the id.
        let (Some(target), Some(boxes)) = (self.tasks.get(task.index()), self.mailboxes.get_mut(task.index())) else {
            return CallStatus::NoSuchObject.into();
        };
        if target.generation != task.generation || target.state == TaskState::Deleted {
            return CallStatus::NoSuchObject.into();
        }
        if let Err(status) = boxes.room(urgency) {
            return status.into();
        }
        match target.state {
            TaskState::Idle => {
                let Some(envelope) = self.mail.draw(ticket) else { return CallStatus::NoEnvelope.into() };
                self.start(index, envelope);
                Reply::ok(u32::from(envelope))
            }
            TaskState::Dead | TaskState::Deleted => CallStatus::Dead.into(),
            _ => {
                let waits =
                    matches!(target.waiting, Waiting::Mail(wanted) if wanted == ANY || wanted == urgency.number());
                let Some(envelope) = self.mail.draw(ticket) else { return CallStatus::NoEnvelope.into() };
                if waits {
                    self.tasks[usize::from(index)].handed = envelope;
                    self.ready(index, CallStatus::Ok, u32::from(envelope));
                } else {
                    boxes.push(&mut self.mail, urgency, envelope);
                }
                Reply::ok(u32::from(envelope))
            }
        }
    }

    pub(crate) fn receive(&mut self, me: u16, urgency: Option<Urgency>, until: Until) -> Reply {
        self.put_down(me);
        if !self.tasks[usize::from(me)].marks.killed
            && let Some(envelope) = self.next_mail(me, urgency)
        {
            self.tasks[usize::from(me)].handed = envelope;
            return Reply::ok(u32::from(envelope));
        }
        if let Some(reply) = self.unable_to_wait(me, until) {
            return reply;
        }
        self.block(me, Waiting::Mail(urgency.map_or(ANY, Urgency::number)), until)
    }

    /// The envelope that a task would be handed next.
    #[inline]
    pub(crate) fn next_mail(&mut self, me: u16, urgency: Option<Urgency>) -> Option<u16> {
        self.mailboxes[usize::from(me)].pop(&self.mail, urgency)
    }

    #[inline(always)]
    pub(crate) fn take(&mut self, me: u16) -> Reply {
        let task = &mut self.tasks[usize::from(me)];
        let envelope = core::mem::replace(&mut task.handed, NIL);
        if envelope == NIL {
            return CallStatus::Empty.into();
        }
        let ticket = self.mail.give_back(envelope);
        let before = core::mem::replace(&mut task.ticket, ticket);
        Reply::ok(u32::from(before != Ticket::NONE && self.answer(before, CallStatus::Ok, 0)))
    }

    pub(crate) fn acknowledge(&mut self, me: u16, value: u32) -> Reply {
        let ticket = core::mem::replace(&mut self.tasks[usize::from(me)].ticket, Ticket::NONE);
        if self.answer(ticket, CallStatus::Ok, value) { Reply::OK } else { CallStatus::Empty.into() }
    }

    /// Lets the sender go on that waits for this message, if it still does.
    fn answer(&mut self, ticket: Ticket, status: CallStatus, value: u32) -> bool {
        if ticket == Ticket::NONE {
            return false;
        }
        let waits = self.tasks[usize::from(ticket.sender())].waiting == Waiting::Acknowledgement(ticket.number());
        if waits {
            self.ready(ticket.sender(), status, value);
        }
        waits
    }

    /// At the end of a run: acknowledges what was taken, gives back what was not.
    pub(crate) fn settle_mail(&mut self, me: u16, how: Ending) {
        let status = if how == Ending::Returned { CallStatus::Ok } else { CallStatus::NotAcknowledged };
        let ticket = core::mem::replace(&mut self.tasks[usize::from(me)].ticket, Ticket::NONE);
        self.answer(ticket, status, 0);
        self.put_down(me);
    }

    /// Gives back the envelope that a task was handed and has not opened, if there is one, and ends its sender's wait.
    #[inline]
    fn put_down(&mut self, me: u16) {
        let handed = core::mem::replace(&mut self.tasks[usize::from(me)].handed, NIL);
        if handed != NIL {
            let ticket = self.mail.give_back(handed);
            self.answer(ticket, CallStatus::NotAcknowledged, 0);
        }
    }

    /// Throws away a task's mail and ends its senders' waits.
    pub(crate) fn discard_mail(&mut self, me: u16) {
        while let Some(envelope) = self.next_mail(me, None) {
            let ticket = self.mail.give_back(envelope);
            self.answer(ticket, CallStatus::NotAcknowledged, 0);
        }
    }

    pub(crate) fn create_exchange(&mut self, capacities: [u16; Urgency::COUNT]) -> Reply {
        match self.objects.exchanges.add(Exchange { boxes: Mailboxes::new(capacities), waiters: Queue::new() }) {
            Some((index, generation)) => Reply::ok(ExchangeId { index, generation }.number()),
            None => CallStatus::TooMany.into(),
        }
    }

    pub(crate) fn delete_exchange(&mut self, exchange: ExchangeId) -> Reply {
        let Some(found) = self.objects.exchanges.get_mut(exchange.index, exchange.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        // No task waits for the acknowledgement of posted messages.
        while let Some(envelope) = found.boxes.pop(&self.mail, None) {
            self.mail.give_back(envelope);
        }
        self.turn_away(Waiting::Exchange(exchange.index));
        self.objects.exchanges.remove(exchange.index);
        Reply::OK
    }

    pub(crate) fn post(&mut self, exchange: ExchangeId, urgency: Urgency) -> Reply {
        let Some(found) = self.objects.exchanges.get_mut(exchange.index, exchange.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        if let Err(status) = found.boxes.room(urgency) {
            return status.into();
        }
        let Some(envelope) = self.mail.draw(Ticket::NONE) else { return CallStatus::NoEnvelope.into() };
        let waiter = found.waiters.first();
        if waiter == NIL {
            found.boxes.push(&mut self.mail, urgency, envelope);
        } else {
            found.waiters.remove(&mut self.tasks, waiter);
            self.tasks[usize::from(waiter)].handed = envelope;
            self.ready(waiter, CallStatus::Ok, u32::from(envelope));
        }
        Reply::ok(u32::from(envelope))
    }

    pub(crate) fn fetch(&mut self, me: u16, exchange: ExchangeId, until: Until, at: Option<Priority>) -> Reply {
        if self.objects.exchanges.get(exchange.index, exchange.generation).is_none() {
            return CallStatus::NoSuchObject.into();
        }
        self.put_down(me);
        let found = self.objects.exchanges.at_mut(exchange.index);
        if !self.tasks[usize::from(me)].marks.killed
            && let Some(envelope) = found.boxes.pop(&self.mail, None)
        {
            self.tasks[usize::from(me)].handed = envelope;
            return Reply::ok(u32::from(envelope));
        }
        if let Some(reply) = self.unable_to_wait(me, until) {
            return reply;
        }
        let waiting = Waiting::Exchange(exchange.index);
        let reply = self.block(me, waiting, until);
        self.line_up(me, waiting, at);
        reply
    }

    /// How many envelopes are free.
    pub fn free_envelopes(&self) -> usize {
        self.mail.free_count
    }

    /// How many messages wait in a task's mailboxes.
    pub fn mail_waiting(&self, task: TaskId) -> usize {
        self.mailboxes.get(task.index()).map_or(0, |boxes| boxes.letters.iter().map(|l| usize::from(l.count)).sum())
    }
    /// The envelopes that wait in a mailbox, first to last.
    pub fn letters(&self, task: TaskId, urgency: Urgency) -> Vec<u32> {
        self.mailboxes.get(task.index()).map_or_else(Vec::new, |boxes| boxes.list(&self.mail, urgency))
    }

    /// The envelopes that wait in a queue of an exchange, first to last.
    pub fn posted(&self, exchange: ExchangeId, urgency: Urgency) -> Vec<u32> {
        let found = self.objects.exchanges.get(exchange.index, exchange.generation);
        found.map_or_else(Vec::new, |found| found.boxes.list(&self.mail, urgency))
    }

    /// The sender that waits until the message in this envelope is acknowledged.
    pub fn sender_of(&self, envelope: u32) -> Option<TaskId> {
        self.who_waits(self.mail.envelopes.get(envelope as usize)?.ticket)
    }

    /// The sender that waits until a task acknowledges the message it took last.
    pub fn owed_by(&self, task: TaskId) -> Option<TaskId> {
        self.who_waits(self.tasks.get(task.index())?.ticket)
    }

    fn who_waits(&self, ticket: Ticket) -> Option<TaskId> {
        if ticket == Ticket::NONE {
            return None;
        }
        let sender = self.tasks.get(usize::from(ticket.sender()))?;
        (sender.waiting == Waiting::Acknowledgement(ticket.number())).then(|| sender.id(ticket.sender()))
    }
}
