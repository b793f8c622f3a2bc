//! Messages: mailboxes of tasks, message exchanges, and the envelopes both draw from.
//!
//! A message under way lies in an envelope, one of a fixed number for the whole executive. The core moves envelopes by
//! number; the bytes in them are the back-end's: it copies the message in before the receiver can run, and out before it
//! gives the envelope back by [`Call::Take`](crate::Call::Take).
//!
//! ```text
//!            send              hand over              take
//!   free ───────────► queued ───────────► handed ───────────► free
//!     ▲                  │                   │
//!     └──────────────────┴───────────────────┘ the receiver is killed or panics
//! ```
//! Messages of urgency 0 go before those of 3; within one urgency the order is that of sending. A message to an idle task
//! starts it. Taking a message out makes its sender, if it waits, wait for the acknowledgement of this one; the next
//! message taken, or the end of the run, acknowledges it if the receiver did not. A task has one envelope in its hand at
//! most: if it asks for the next before it took the message out of this one, this one goes back unread, and its sender is
//! told that it is not acknowledged.

use alloc::format;
use alloc::vec::Vec;

use crate::call::{Ending, Reply, Status, Until};
use crate::check::Broken;
use crate::core::{Core, MOST_OBJECTS};
use crate::id::{ExchangeId, Priority, TaskId, Urgency};
use crate::observer::Observer;
use crate::queue::{NIL, Queue};
use crate::task::{State, Ticket, Waiting};

/// The value of a start or message without an envelope.
pub const NO_ENVELOPE: u32 = NIL as u32;
/// "Any urgency" in [`Waiting::Mail`].
const ANY: u8 = Urgency::COUNT as u8;

#[derive(Clone, Copy, Debug)]
struct Envelope {
    next: u16,
    ticket: Ticket,
}

#[derive(Clone, Debug)]
pub(crate) struct Mail {
    envelopes: Vec<Envelope>,
    free: u16,
    pub(crate) free_count: usize,
    /// Number of the last message that somebody waits for.
    last_ticket: u32,
}

impl Mail {
    pub(crate) fn new(envelopes: u16) -> Self {
        let count = envelopes.min(NIL - 1);
        let link = |index: u16| if index + 1 < count { index + 1 } else { NIL };
        let envelopes: Vec<_> = (0..count).map(|i| Envelope { next: link(i), ticket: Ticket::default() }).collect();
        let free = if count > 0 { 0 } else { NIL };
        Self { free_count: envelopes.len(), envelopes, free, last_ticket: 0 }
    }

    #[inline(always)]
    fn draw(&mut self, ticket: Ticket) -> Option<u16> {
        let index = self.free;
        if index == NIL {
            return None;
        }
        let envelope = &mut self.envelopes[usize::from(index)];
        self.free = envelope.next;
        envelope.ticket = ticket;
        self.free_count -= 1;
        Some(index)
    }

    #[inline(always)]
    fn give_back(&mut self, index: u16) -> Ticket {
        let envelope = &mut self.envelopes[usize::from(index)];
        envelope.next = self.free;
        self.free = index;
        self.free_count += 1;
        envelope.ticket
    }

    fn next_ticket(&mut self) -> u32 {
        // 0 means that nobody waits.
        self.last_ticket = self.last_ticket.checked_add(1).unwrap_or(1);
        self.last_ticket
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Letters {
    head: u16,
    tail: u16,
    pub(crate) count: u16,
    pub(crate) capacity: u16,
}

/// Four queues of envelopes, by urgency.
#[derive(Clone, Debug)]
pub(crate) struct Mailboxes {
    pub(crate) letters: [Letters; Urgency::COUNT],
    /// Letters in all four.
    waiting: u32,
}

impl Mailboxes {
    pub(crate) fn new(capacities: [u16; Urgency::COUNT]) -> Self {
        Self { letters: capacities.map(|capacity| Letters { head: NIL, tail: NIL, count: 0, capacity }), waiting: 0 }
    }

    /// Whether no letter lies in any of the four.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    #[inline(always)]
    fn room(&self, urgency: Urgency) -> Result<(), Status> {
        let letters = &self.letters[usize::from(urgency.number())];
        if letters.capacity == 0 {
            Err(Status::NoMailbox)
        } else if letters.count == letters.capacity {
            Err(Status::MailboxFull)
        } else {
            Ok(())
        }
    }

    fn push(&mut self, mail: &mut Mail, urgency: Urgency, envelope: u16) {
        let letters = &mut self.letters[usize::from(urgency.number())];
        mail.envelopes[usize::from(envelope)].next = NIL;
        if letters.tail == NIL {
            letters.head = envelope;
        } else {
            mail.envelopes[usize::from(letters.tail)].next = envelope;
        }
        letters.tail = envelope;
        letters.count += 1;
        self.waiting += 1;
    }

    #[inline]
    fn pop(&mut self, mail: &Mail, urgency: Option<Urgency>) -> Option<u16> {
        let wanted = |at: usize| urgency.is_none_or(|u| usize::from(u.number()) == at);
        let letters = self.letters.iter_mut().enumerate().find(|(at, l)| l.head != NIL && wanted(*at))?.1;
        let envelope = letters.head;
        letters.head = mail.envelopes[usize::from(envelope)].next;
        if letters.head == NIL {
            letters.tail = NIL;
        }
        letters.count -= 1;
        self.waiting -= 1;
        Some(envelope)
    }

    fn list(&self, mail: &Mail, urgency: Urgency) -> Vec<u32> {
        let real = |envelope: u16| (envelope != NIL).then_some(envelope);
        let next = |&envelope: &u16| real(mail.envelopes[usize::from(envelope)].next);
        let head = real(self.letters[usize::from(urgency.number())].head);
        core::iter::successors(head, next).map(u32::from).take(mail.envelopes.len()).collect()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) boxes: Mailboxes,
    pub(crate) waiters: Queue,
}

impl<O: Observer> Core<O> {
    #[inline(always)]
    pub(crate) fn send(&mut self, task: TaskId, urgency: Urgency) -> Reply {
        self.send_with(task, urgency, Ticket::default())
    }

    pub(crate) fn send_wait(&mut self, me: u16, task: TaskId, urgency: Urgency, until: Until) -> Reply {
        if let Some(reply) = self.unable_to_wait(me, until) {
            return reply;
        }
        match self.proven(task) {
            Ok(index) if index == me => return Status::Deadlock.into(),
            Ok(_) => {}
            Err(refusal) => return refusal,
        }
        let number = self.mail.next_ticket();
        let reply = self.send_with(task, urgency, Ticket { sender: me, number });
        if reply.status != Status::Ok {
            return reply;
        }
        self.block(me, Waiting::Acknowledgement(number), until);
        Reply { status: Status::Blocked, value: reply.value }
    }

    #[inline(always)]
    fn send_with(&mut self, task: TaskId, urgency: Urgency, ticket: Ticket) -> Reply {
        let index = match self.proven(task) {
            Ok(index) => index,
            Err(refusal) => return refusal,
        };
        if let Err(status) = self.mailboxes[usize::from(index)].room(urgency) {
            return status.into();
        }
        let target = &mut self.tasks[usize::from(index)];
        let hand_over = match target.state {
            State::Dead | State::Deleted => return Status::Dead.into(),
            State::Idle => true,
            _ => matches!(target.waiting, Waiting::Mail(wanted) if wanted == ANY || wanted == urgency.number()),
        };
        let Some(envelope) = self.mail.draw(ticket) else { return Status::NoEnvelope.into() };
        if !hand_over {
            self.mailboxes[usize::from(index)].push(&mut self.mail, urgency, envelope);
        } else if target.state == State::Idle {
            self.start(index, envelope);
        } else {
            target.handed = envelope;
            self.ready(index, Status::Ok, u32::from(envelope));
        }
        Reply::ok(u32::from(envelope))
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
            return Status::Empty.into();
        }
        let ticket = self.mail.give_back(envelope);
        let before = core::mem::replace(&mut task.ticket, ticket);
        Reply::ok(u32::from(before.number != 0 && self.answer(before, Status::Ok, 0)))
    }

    pub(crate) fn acknowledge(&mut self, me: u16, value: u32) -> Reply {
        let ticket = core::mem::take(&mut self.tasks[usize::from(me)].ticket);
        if self.answer(ticket, Status::Ok, value) { Reply::OK } else { Status::Empty.into() }
    }

    /// Lets the sender go on that waits for this message, if it still does.
    fn answer(&mut self, ticket: Ticket, status: Status, value: u32) -> bool {
        if ticket.number == 0 {
            return false;
        }
        let waits = self.tasks[usize::from(ticket.sender)].waiting == Waiting::Acknowledgement(ticket.number);
        if waits {
            self.ready(ticket.sender, status, value);
        }
        waits
    }

    /// At the end of a run: acknowledges what was taken, gives back what was not.
    pub(crate) fn settle_mail(&mut self, me: u16, how: Ending) {
        let status = if how == Ending::Returned { Status::Ok } else { Status::NotAcknowledged };
        let ticket = core::mem::take(&mut self.tasks[usize::from(me)].ticket);
        self.answer(ticket, status, 0);
        self.put_down(me);
    }

    /// Gives back the envelope that a task was handed and has not opened, if there is one; its sender is told.
    #[inline]
    fn put_down(&mut self, me: u16) {
        let handed = core::mem::replace(&mut self.tasks[usize::from(me)].handed, NIL);
        if handed != NIL {
            let ticket = self.mail.give_back(handed);
            self.answer(ticket, Status::NotAcknowledged, 0);
        }
    }

    /// Throws away a task's mail; its senders are told.
    pub(crate) fn discard_mail(&mut self, me: u16) {
        while let Some(envelope) = self.next_mail(me, None) {
            let ticket = self.mail.give_back(envelope);
            self.answer(ticket, Status::NotAcknowledged, 0);
        }
    }

    pub(crate) fn create_exchange(&mut self, capacities: [u16; Urgency::COUNT]) -> Reply {
        if self.objects.exchanges.len() >= MOST_OBJECTS {
            return Status::TooMany.into();
        }
        self.objects.exchanges.push(Exchange { boxes: Mailboxes::new(capacities), waiters: Queue::new() });
        Reply::ok((self.objects.exchanges.len() - 1) as u32)
    }

    pub(crate) fn post(&mut self, exchange: ExchangeId, urgency: Urgency) -> Reply {
        let Some(found) = self.objects.exchanges.get_mut(exchange.index()) else { return Status::NoSuchObject.into() };
        if let Err(status) = found.boxes.room(urgency) {
            return status.into();
        }
        let Some(envelope) = self.mail.draw(Ticket::default()) else { return Status::NoEnvelope.into() };
        let waiter = found.waiters.first();
        if waiter == NIL {
            found.boxes.push(&mut self.mail, urgency, envelope);
        } else {
            found.waiters.remove(&mut self.tasks, waiter);
            self.tasks[usize::from(waiter)].handed = envelope;
            self.ready(waiter, Status::Ok, u32::from(envelope));
        }
        Reply::ok(u32::from(envelope))
    }

    pub(crate) fn fetch(&mut self, me: u16, exchange: ExchangeId, until: Until, at: Option<Priority>) -> Reply {
        if exchange.index() >= self.objects.exchanges.len() {
            return Status::NoSuchObject.into();
        }
        self.put_down(me);
        let found = &mut self.objects.exchanges[exchange.index()];
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
        let found = self.objects.exchanges.get(exchange.index());
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
        if ticket.number == 0 {
            return None;
        }
        let sender = self.tasks.get(usize::from(ticket.sender))?;
        (sender.waiting == Waiting::Acknowledgement(ticket.number)).then(|| sender.id(ticket.sender))
    }

    /// Every envelope is in exactly one place: free, in a queue, or in a hand.
    pub(crate) fn check_mail(&self) -> Result<(), Broken> {
        let mut places = alloc::vec![0_u8; self.mail.envelopes.len()];
        let mut free = self.mail.free;
        for _ in 0..self.mail.free_count {
            *places.get_mut(usize::from(free)).ok_or_else(|| Broken("the free envelopes are miscounted".into()))? += 1;
            free = self.mail.envelopes[usize::from(free)].next;
        }
        let exchanges = self.objects.exchanges.iter().map(|exchange| &exchange.boxes);
        for boxes in self.mailboxes.iter().chain(exchanges) {
            for urgency in Urgency::ALL {
                let letters = boxes.letters[usize::from(urgency.number())];
                let listed = boxes.list(&self.mail, urgency);
                if listed.len() != usize::from(letters.count) || letters.count > letters.capacity {
                    return Err(Broken(format!("a mailbox counts {} letters and holds {listed:?}", letters.count)));
                }
                listed.iter().for_each(|&envelope| places[envelope as usize] += 1);
            }
        }
        for handed in self.tasks.iter().map(|task| task.handed).filter(|&handed| handed != NIL) {
            places[usize::from(handed)] += 1;
        }
        match places.iter().position(|&places| places != 1) {
            Some(envelope) => Err(Broken(format!("envelope {envelope} is in {} places", places[envelope]))),
            None => Ok(()),
        }
    }
}
