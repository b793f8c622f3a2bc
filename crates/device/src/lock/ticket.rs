//! [`TicketLock`]: a ticket lock in memory that processes share. Threads get it in the order of their arrival.
//!
//! **How it works.** Each waiter takes the next ticket and stores its thread number in that ticket's slot. A thread has
//! the lock when the turn is that of its ticket. The owner releases the lock by advancing the turn. Slots are reused in
//! rounds, so each slot names its ticket.
//!
//! **Abandoned tickets.** Waiters skip a ticket whose thread no longer exists, whose thread gave up waiting, or whose
//! thread took it and stored nothing for [`LOOKS`] looks.
//!
//! **Why there is never more than one owner.** A waiter skips such a silent ticket only after it has stored [`GONE`] in
//! the slot. The ticket's thread has the lock only after it has stored its own number there. Both use
//! compare-and-exchange, so one of them finds the other's value and gives way. The model in `loom_checks` fails if
//! either uses a plain store.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[cfg(not(loom))]
use hairspring_machine::Nanos;

/// Most threads that can wait in order; later ones wait for a free slot. The model has fewer, so that slots are reused
/// within a few steps.
const PLACES: u32 = if cfg!(loom) { 2 } else { 64 };
/// Time between two checks whether the owner still lives.
#[cfg(not(loom))]
const LOOK: Nanos = Nanos::from_millis(20);
/// Polls after which a ticket without an owner counts as abandoned. In the model its thread may only be slow.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 10 };
/// Stands for a thread that no longer waits. No thread has this number.
const GONE: u32 = u32::MAX;

/// The memory of the lock. All zeros: unlocked.
#[repr(C)]
pub(super) struct TicketLock {
    /// The next ticket, and the one whose turn it is.
    next: AtomicU32,
    turn: AtomicU32,
    /// By ticket modulo [`PLACES`]: the ticket in the upper half, its thread in the lower; 0 is no thread.
    places: [AtomicU64; PLACES as usize],
}

fn packed(ticket: u32, thread: u32) -> u64 {
    u64::from(ticket) << 32 | u64::from(thread)
}

/// The holder of a ticket, by its slot: empty yet, a thread, or [`GONE`] if a later ticket uses the slot already.
fn holder(found: u64, ticket: u32) -> Option<u32> {
    let (of, thread) = ((found >> 32) as u32, found as u32);
    let is_older = ticket.wrapping_sub(of).wrapping_sub(1) < u32::MAX / 2;
    match thread {
        0 => None,
        _ if is_older => None,
        _ => Some(if of == ticket { thread } else { GONE }),
    }
}

impl TicketLock {
    /// Initialises the lock, in memory that is not shared yet.
    pub(super) fn make(&self) {
        self.next.store(0, Ordering::Relaxed);
        self.places.iter().for_each(|place| place.store(0, Ordering::Relaxed));
        // Release: pairs with the first load of a turn.
        self.turn.store(0, Ordering::Release);
    }

    fn place(&self, ticket: u32) -> &AtomicU64 {
        &self.places[(ticket % PLACES) as usize]
    }

    /// Whether it is this thread's turn.
    pub(super) fn is_turn_of(&self, thread: u32) -> bool {
        // Relaxed: only this thread can have stored a value that makes this true.
        let turn = self.turn.load(Ordering::Relaxed);
        self.place(turn).load(Ordering::Relaxed) == packed(turn, thread)
    }

    /// Takes a ticket and waits for its turn. `false` if `is_over`, which is called after each interval without a
    /// change. `died` is called before the turn of a dead thread passes on, so that the next owner sees its effects.
    pub(super) fn wait(&self, thread: u32, died: impl Fn(), is_over: &mut dyn FnMut() -> bool) -> bool {
        'ticket: loop {
            // SeqCst: a thread that gives the lock back now either sees this arrival, or has stored the turn before it
            // is read here.
            let mine = self.next.fetch_add(1, Ordering::SeqCst);
            let (mut is_written, mut looks) = (false, 0);
            loop {
                let turn = self.turn.load(Ordering::SeqCst);
                let ahead = mine.wrapping_sub(turn);
                // A slot is free when the holder of its previous ticket is done.
                let is_passed = ahead > u32::MAX / 2 || !is_written && ahead < PLACES && !self.write(mine, thread);
                if is_passed {
                    continue 'ticket;
                }
                is_written |= ahead < PLACES;
                if is_written && turn == mine {
                    return true;
                }
                if sleep_while(&self.turn, turn) {
                    looks = 0;
                    continue;
                }
                looks += 1;
                self.pass(looks > LOOKS, &died);
                if is_over() {
                    if is_written {
                        self.leave(mine, thread);
                    }
                    return false;
                }
            }
        }
    }

    /// Stores the holder in a ticket's slot; `false` if the ticket was skipped.
    fn write(&self, ticket: u32, thread: u32) -> bool {
        let change = |found| holder(found, ticket).is_none().then_some(packed(ticket, thread));
        self.place(ticket).fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok()
    }

    /// Skips the ticket whose turn it is if its thread no longer exists; with `also_nobody`, also if its slot names no
    /// thread.
    fn pass(&self, also_nobody: bool, died: impl Fn()) {
        let turn = self.turn.load(Ordering::SeqCst);
        let place = self.place(turn);
        let found = place.load(Ordering::Acquire);
        match holder(found, turn) {
            Some(GONE) => {}
            Some(thread) if exists(thread) => return,
            Some(_) => died(),
            None if !also_nobody => return,
            None => {
                let passed = packed(turn, GONE);
                if place.compare_exchange(found, passed, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                    return;
                }
            }
        }
        self.turn_over(turn);
    }

    /// Gives up waiting.
    fn leave(&self, ticket: u32, thread: u32) {
        let (mine, gone) = (packed(ticket, thread), packed(ticket, GONE));
        // SeqCst: a thread that passes the turn to this ticket now either sees that it is gone, or has stored the turn
        // before it is read.
        if self.place(ticket).compare_exchange(mine, gone, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
            self.skip();
        }
    }

    /// Skips tickets whose threads gave up.
    fn skip(&self) {
        loop {
            let turn = self.turn.load(Ordering::SeqCst);
            if self.place(turn).load(Ordering::SeqCst) != packed(turn, GONE) {
                return;
            }
            self.turn_over(turn);
        }
    }

    /// Advances the turn from this ticket to the next, unless another thread has done so.
    fn turn_over(&self, turn: u32) {
        if self.turn.compare_exchange(turn, turn.wrapping_add(1), Ordering::SeqCst, Ordering::Relaxed).is_ok() {
            wake_all(&self.turn);
        }
    }

    /// Releases the lock. Only its owner calls this.
    pub(super) fn give_back(&self) {
        let next = self.turn.load(Ordering::Relaxed).wrapping_add(1);
        // SeqCst, like all that follows: pairs with arriving and with leaving waiters. The next owner sees all stores
        // under the lock.
        self.turn.store(next, Ordering::SeqCst);
        self.skip();
        if self.next.load(Ordering::SeqCst) != next {
            wake_all(&self.turn);
        }
    }
}

#[cfg(not(loom))]
fn sleep_while(turn: &AtomicU32, value: u32) -> bool {
    crate::system::wait_while(turn, value, LOOK)
}

#[cfg(not(loom))]
fn wake_all(turn: &AtomicU32) {
    crate::system::wake_all(turn);
}

#[cfg(not(loom))]
use crate::system::thread_exists as exists;

/// In the model no thread sleeps, and all threads live.
#[cfg(loom)]
fn sleep_while(_: &AtomicU32, _: u32) -> bool {
    loom::thread::yield_now();
    false
}

#[cfg(loom)]
fn wake_all(_: &AtomicU32) {}

#[cfg(loom)]
fn exists(_: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn fresh() -> TicketLock {
        let places = std::array::from_fn(|_| AtomicU64::new(0));
        TicketLock { next: AtomicU32::new(0), turn: AtomicU32::new(0), places }
    }

    #[cfg(not(loom))]
    #[test]
    fn a_ticket_is_had_by_its_holder_or_passed_and_never_both() {
        let order = fresh();
        let turn = || order.turn.load(Ordering::Relaxed);
        // A thread has taken a ticket but not stored its id: the ticket is skipped, and the thread is too late.
        order.next.store(2, Ordering::Relaxed);
        order.pass(false, || panic!("nobody died"));
        assert_eq!(turn(), 0);
        order.pass(true, || panic!("nobody died"));
        assert_eq!((turn(), order.write(0, 7)), (1, false));
        // Also when the slot belongs to another ticket already.
        assert!(order.write(PLACES, 8) && !order.write(0, 7));
        // A ticket whose owner was written in time is not passed: this thread lives.
        let own = std::process::id();
        assert!(order.write(1, own));
        order.pass(true, || panic!("it lives"));
        assert!(turn() == 1 && order.is_turn_of(own) && !order.is_turn_of(8));
        order.give_back();
        assert_eq!(turn(), 2);
    }

    #[cfg(not(loom))]
    #[test]
    fn tickets_are_older_or_newer_across_the_end_of_their_numbers() {
        let last = u32::MAX;
        assert_eq!(holder(packed(last, 7), last), Some(7));
        assert_eq!(holder(packed(last, 7), last.wrapping_add(PLACES)), None);
        assert_eq!(holder(packed(PLACES - 1, 7), last), Some(GONE));
        assert_eq!(holder(0, 0), None);
    }
}

#[cfg(loom)]
#[cfg(test)]
mod loom_checks {
    //! All interleavings of threads that arrive, wait, release and give up, where every slow thread counts as dead.

    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// Switches between threads that are not forced.
    const PREEMPTIONS: usize = 3;

    /// Two arriving threads; one of them may give up at its first look.
    fn check(gives_up: bool) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(move || {
            let shared = Arc::new((tests::fresh(), UnsafeCell::new(0_u32)));
            let come = |thread: u32, gives_up: bool| {
                let shared = Arc::clone(&shared);
                move || {
                    let (order, cell) = &*shared;
                    let is_had = order.wait(thread, || panic!("nobody died"), &mut || gives_up);
                    if is_had {
                        // loom reports two owners at once.
                        cell.with_mut(|_| ());
                        order.give_back();
                    }
                    is_had
                }
            };
            let (first, second) = (come(1, false), come(2, gives_up));
            let other = thread::spawn(second);
            assert!(first());
            assert!(other.join().is_ok_and(|is_had| is_had || gives_up));
            // No owner remains for which another thread would have to wait.
            let order = &shared.0;
            assert_eq!(order.turn.load(Ordering::SeqCst), order.next.load(Ordering::SeqCst));
        });
    }

    #[test]
    fn there_are_never_two_and_nobody_waits_for_ever() {
        check(false);
    }

    #[test]
    fn who_gives_up_is_passed_at_once() {
        check(true);
    }
}
