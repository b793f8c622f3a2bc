//! The envelopes of an executive, and the mailboxes that queue them by urgency.

use alloc::vec::Vec;

use crate::call::CallStatus;
use crate::id::Urgency;
use crate::state::link::NIL;
use crate::state::task::Ticket;

/// The value of a start or message without an envelope.
pub const NO_ENVELOPE: u32 = NIL as u32;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub(crate) next: u16,
    pub(crate) ticket: Ticket,
}

#[derive(Clone, Debug)]
pub(crate) struct Mail {
    pub(crate) envelopes: Vec<Envelope>,
    pub(crate) free: u16,
    pub(crate) free_count: usize,
    /// Number of the last message whose sender waits.
    last_ticket: u32,
}

impl Mail {
    pub(crate) fn new(envelopes: u16) -> Self {
        let count = envelopes.min(NIL - 1);
        let link = |index: u16| if index + 1 < count { index + 1 } else { NIL };
        let envelopes: Vec<_> = (0..count).map(|i| Envelope { next: link(i), ticket: Ticket::NONE }).collect();
        let free = if count > 0 { 0 } else { NIL };
        Self { free_count: envelopes.len(), envelopes, free, last_ticket: 0 }
    }

    #[inline(always)]
    pub(crate) fn draw(&mut self, ticket: Ticket) -> Option<u16> {
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
    pub(crate) fn give_back(&mut self, index: u16) -> Ticket {
        let envelope = &mut self.envelopes[usize::from(index)];
        envelope.next = self.free;
        self.free = index;
        self.free_count += 1;
        envelope.ticket
    }

    pub(crate) fn next_ticket(&mut self) -> u32 {
        // 0 means that no sender waits.
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
    pub(crate) fn room(&self, urgency: Urgency) -> Result<(), CallStatus> {
        let letters = &self.letters[usize::from(urgency.number())];
        if letters.capacity == 0 {
            Err(CallStatus::NoMailbox)
        } else if letters.count == letters.capacity {
            Err(CallStatus::MailboxFull)
        } else {
            Ok(())
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, mail: &mut Mail, urgency: Urgency, envelope: u16) {
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
    pub(crate) fn pop(&mut self, mail: &Mail, urgency: Option<Urgency>) -> Option<u16> {
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

    pub(crate) fn list(&self, mail: &Mail, urgency: Urgency) -> Vec<u32> {
        let real = |envelope: u16| (envelope != NIL).then_some(envelope);
        let next = |&envelope: &u16| real(mail.envelopes[usize::from(envelope)].next);
        let head = real(self.letters[usize::from(urgency.number())].head);
        core::iter::successors(head, next).map(u32::from).take(mail.envelopes.len()).collect()
    }
}
