//! Deadlines in constant time: a hierarchical timing wheel with a resolution of 1 ns.
//!
//! A moment is read as eleven digits to the base 64. A deadline is filed under the highest digit in which it differs
//! from the moment up to which the wheel has been turned: level = place of that digit, slot = its value. So everything
//! on a lower level is due before everything on a higher one, and within a level the slots are in order. When the wheel
//! turns into a slot of a higher level, what is filed there is filed again, lower down: at most ten times in its life,
//! whatever the number of others. (Varghese and Lauck, "Hashed and hierarchical timing wheels", 1987, scheme 6.)
//!
//! Deadlines come out in order, equal ones in the order in which they were set; none comes out before its moment. One
//! that is not after the moment up to which the wheel has been turned is overdue: the overdue come out first, at the
//! next turn, in the order in which they were set.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::id::Moment;

/// No node.
const NIL: u32 = u32::MAX;
const DIGIT_BITS: u32 = 6;
const SLOTS: usize = 64;
/// 64 bits make ten digits of 6 bits and one of 4.
const LEVELS: usize = 11;
/// The list of what was already due when it was set.
const OVERDUE: usize = LEVELS * SLOTS;
/// The mark of a node that is not filed.
const IDLE: u16 = u16::MAX;

/// The owner of the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Task(u16),
    Timer(u16),
}

#[derive(Clone, Copy, Debug)]
struct Node {
    deadline: u64,
    next: u32,
    previous: u32,
    slot: u16,
    owner: Owner,
}

#[derive(Clone, Debug)]
pub(crate) struct Wheel {
    nodes: Vec<Node>,
    heads: Box<[u32]>,
    tails: Box<[u32]>,
    occupied: [u64; LEVELS],
    /// The moment up to which it has been turned.
    turned: u64,
    armed: usize,
    /// The earliest deadline and its node, if they are known: a search is saved until they change.
    earliest: Option<(u64, u32)>,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            heads: alloc::vec![NIL; OVERDUE + 1].into_boxed_slice(),
            tails: alloc::vec![NIL; OVERDUE + 1].into_boxed_slice(),
            occupied: [0; LEVELS],
            turned: 0,
            armed: 0,
            earliest: None,
        }
    }

    /// A place for one deadline of this owner; it stays for good.
    pub(crate) fn add(&mut self, owner: Owner) -> u32 {
        self.nodes.push(Node { deadline: 0, next: NIL, previous: NIL, slot: IDLE, owner });
        (self.nodes.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.armed == 0
    }

    #[inline]
    pub(crate) fn is_armed(&self, node: u32) -> bool {
        self.nodes[node as usize].slot != IDLE
    }

    pub(crate) fn deadline(&self, node: u32) -> Option<Moment> {
        let node = &self.nodes[node as usize];
        (node.slot != IDLE).then(|| Moment::from_nanos(node.deadline))
    }

    pub(crate) fn arm(&mut self, node: u32, deadline: Moment) {
        self.disarm(node);
        let deadline = deadline.as_nanos();
        self.nodes[node as usize].deadline = deadline;
        self.file(node);
        self.armed += 1;
        if self.armed == 1 || self.earliest.is_some_and(|(earliest, _)| deadline < earliest) {
            self.earliest = Some((deadline, node));
        }
    }

    #[inline]
    pub(crate) fn disarm(&mut self, node: u32) {
        let Node { next, previous, slot, .. } = self.nodes[node as usize];
        if slot == IDLE {
            return;
        }
        let list = usize::from(slot);
        if previous == NIL {
            self.heads[list] = next;
        } else {
            self.nodes[previous as usize].next = next;
        }
        if next == NIL {
            self.tails[list] = previous;
        } else {
            self.nodes[next as usize].previous = previous;
        }
        if self.heads[list] == NIL && list != OVERDUE {
            self.occupied[list / SLOTS] &= !(1 << (list % SLOTS));
        }
        self.nodes[node as usize].slot = IDLE;
        self.armed -= 1;
        if self.earliest.is_some_and(|(_, earliest)| earliest == node) {
            self.earliest = None;
        }
    }

    /// The earliest deadline that is set. Constant time unless the earliest went since it was last asked; then the
    /// first slot is searched.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Moment> {
        if self.armed == 0 {
            return None;
        }
        if self.earliest.is_none() {
            let list = if self.heads[OVERDUE] != NIL { OVERDUE } else { self.first_slot()?.0 };
            let mut node = self.heads[list];
            let mut earliest = (u64::MAX, NIL);
            while node != NIL {
                earliest = earliest.min((self.nodes[node as usize].deadline, node));
                node = self.nodes[node as usize].next;
            }
            self.earliest = Some(earliest);
        }
        self.earliest.map(|(deadline, _)| Moment::from_nanos(deadline))
    }

    /// The owner of the earliest deadline, if that is known.
    pub(crate) fn coming(&self) -> Option<Owner> {
        self.earliest.map(|(_, node)| self.nodes[node as usize].owner)
    }

    /// The moment up to which it has been turned: the latest moment of a query.
    #[inline]
    pub(crate) fn turned(&self) -> Moment {
        Moment::from_nanos(self.turned)
    }

    /// Takes out the next owner whose deadline is not after `now`, which is not before [`turned`](Self::turned).
    pub(crate) fn expire(&mut self, now: Moment) -> Option<(Owner, Moment)> {
        let now = now.as_nanos();
        loop {
            let overdue = self.heads[OVERDUE];
            if overdue != NIL {
                return Some(self.take(overdue));
            }
            let Some((list, start)) = self.first_slot().filter(|&(_, start)| start <= now) else {
                // Nothing lies in the slots between, so what is filed stays rightly filed.
                self.turned = now;
                return None;
            };
            self.turned = start;
            if list < SLOTS {
                return Some(self.take(self.heads[list]));
            }
            let mut node = self.heads[list];
            self.heads[list] = NIL;
            self.tails[list] = NIL;
            self.occupied[list / SLOTS] &= !(1 << (list % SLOTS));
            while node != NIL {
                let next = self.nodes[node as usize].next;
                self.file(node);
                node = next;
            }
        }
    }

    fn take(&mut self, node: u32) -> (Owner, Moment) {
        let Node { owner, deadline, .. } = self.nodes[node as usize];
        self.disarm(node);
        (owner, Moment::from_nanos(deadline))
    }

    /// The first slot with a node, and the moment at which it begins.
    fn first_slot(&self) -> Option<(usize, u64)> {
        let level = self.occupied.iter().position(|&bits| bits != 0)?;
        let digit = self.occupied[level].trailing_zeros();
        let shift = DIGIT_BITS * level as u32;
        let above = u64::MAX.checked_shl(shift + DIGIT_BITS).unwrap_or(0);
        Some((level * SLOTS + digit as usize, self.turned & above | u64::from(digit) << shift))
    }

    /// Puts a node at the end of the list where its deadline belongs.
    fn file(&mut self, node: u32) {
        let deadline = self.nodes[node as usize].deadline;
        let list = if deadline <= self.turned {
            OVERDUE
        } else {
            let level = (63 - (deadline ^ self.turned).leading_zeros()) / DIGIT_BITS;
            let digit = deadline >> (DIGIT_BITS * level) & 63;
            self.occupied[level as usize] |= 1 << digit;
            level as usize * SLOTS + digit as usize
        };
        let tail = self.tails[list];
        let filed = &mut self.nodes[node as usize];
        filed.next = NIL;
        filed.previous = tail;
        filed.slot = list as u16;
        if tail == NIL {
            self.heads[list] = node;
        } else {
            self.nodes[tail as usize].next = node;
        }
        self.tails[list] = node;
    }
}
