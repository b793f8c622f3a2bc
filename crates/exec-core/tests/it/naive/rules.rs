//! The rules of the naive executive: which tasks may run, the order of the lists, the ends of waits, and the formula of
//! priorities.

use hairspring_exec_core::{
    Bits, By, CallStatus, Ending, MOST_STARTS, Moment, NO_ENVELOPE, Priority, Reply, ResourceProtocol, TaskId,
    TaskState, TimerId, Until, Urgency, Waiting,
};

use super::{Come, DONE, Deadline, Letter, Man, Naive, ok};

impl Naive {
    pub(super) fn back(&mut self) -> i64 {
        self.count += 1;
        self.count
    }

    pub(super) fn known(&self, task: TaskId) -> Come<usize> {
        let alive = |man: &Man| man.id == task && man.state != TaskState::Deleted;
        self.men.iter().position(alive).ok_or(CallStatus::NoSuchObject)
    }

    pub(super) fn started(&self, task: TaskId) -> Come<usize> {
        let man = self.known(task)?;
        match self.men[man].state {
            TaskState::Ready | TaskState::Waiting => Ok(man),
            TaskState::Idle => Err(CallStatus::NotStarted),
            TaskState::Dead | TaskState::Deleted => Err(CallStatus::Dead),
        }
    }

    /// All that may run, in the order in which they would.
    pub(crate) fn ready_men(&self) -> Vec<usize> {
        let mut men: Vec<_> = (0..self.men.len()).filter(|&man| self.men[man].may_run()).collect();
        men.sort_by_key(|&man| (self.men[man].effective, self.men[man].place));
        men
    }

    /// All that wait like this, first to last.
    pub(super) fn line(&self, waits: impl Fn(Waiting) -> bool) -> Vec<usize> {
        let mut men: Vec<_> = (0..self.men.len()).filter(|&man| waits(self.men[man].waiting)).collect();
        men.sort_by_key(|&man| {
            let man = &self.men[man];
            (man.given.unwrap_or(man.effective), man.place)
        });
        men
    }

    pub(super) fn ready(&mut self, man: usize, status: CallStatus, value: u32) {
        let place = self.back();
        let man = &mut self.men[man];
        (man.state, man.waiting, man.deadline, man.place) = (TaskState::Ready, Waiting::Nothing, None, place);
        man.outcome = Reply { status, value };
    }

    pub(super) fn able(&self, me: usize, until: Until) -> Come<()> {
        let man = &self.men[me];
        match () {
            () if man.killed => Err(CallStatus::Killed),
            () if man.suspended => Err(CallStatus::AlreadySuspended),
            () if until == Until::NoWait => Err(CallStatus::TimedOut),
            () => Ok(()),
        }
    }

    pub(super) fn wait(&mut self, me: usize, waiting: Waiting, until: Until, given: Option<Priority>) -> Come<Reply> {
        self.able(me, until)?;
        let place = self.back();
        let deadline = if let Until::At(moment) = until { Some(self.deadline(moment)) } else { None };
        let man = &mut self.men[me];
        (man.state, man.waiting, man.given, man.place, man.deadline) =
            (TaskState::Waiting, waiting, given, place, deadline);
        Err(CallStatus::Blocked)
    }

    pub(super) fn deadline(&mut self, moment: Moment) -> Deadline {
        let later = moment > self.now;
        Deadline { later, order: if later { moment } else { Moment::START }, set: self.back(), moment }
    }

    pub(super) fn trigger(&mut self, task: TaskId) -> Come<Reply> {
        let man = self.known(task)?;
        match self.men[man].state {
            TaskState::Idle => self.start(man, None),
            TaskState::Dead | TaskState::Deleted => return Err(CallStatus::Dead),
            _ if self.men[man].starts == MOST_STARTS => return Err(CallStatus::TriggerOverflow),
            _ => self.men[man].starts += 1,
        }
        DONE
    }

    pub(super) fn start(&mut self, man: usize, letter: Option<Letter>) {
        (self.men[man].latch, self.men[man].signals, self.men[man].hand) = (false, 0, letter);
        self.ready(man, CallStatus::Ok, letter.map_or(NO_ENVELOPE, |letter| letter.envelope));
    }

    pub(super) fn end(&mut self, me: usize, how: Ending) -> Come<Reply> {
        let how = if self.men[me].killed && how == Ending::Returned { Ending::Killed } else { how };
        self.men[me].threshold = Priority::LOWEST;
        let owes = std::mem::take(&mut self.men[me].owes);
        self.answer(owes, if how == Ending::Returned { CallStatus::Ok } else { CallStatus::NotAcknowledged }, 0);
        self.put_down(me);
        self.put_block_back(me);
        let held = !self.men[me].owned.is_empty();
        while let Some(&slot) = self.men[me].owned.last() {
            self.hand_on(me, slot);
        }
        (self.men[me].state, self.men[me].suspended, self.men[me].killed) = (TaskState::Idle, false, false);
        self.settle();
        for joiner in self.line(|waiting| waiting == Waiting::End(self.men[me].id.index() as u16)) {
            self.ready(joiner, CallStatus::Ok, how as u32);
        }
        if how != Ending::Returned {
            self.men[me].starts = 0;
            while let Some(letter) = self.men[me].mail.next(None) {
                self.free_envelopes += 1;
                self.answer(letter.ticket, CallStatus::NotAcknowledged, 0);
            }
        }
        if how == Ending::Panicked {
            self.men[me].state = TaskState::Dead;
        } else if let Some(letter) = self.men[me].mail.next(None) {
            self.start(me, Some(letter));
        } else if self.men[me].starts > 0 {
            self.men[me].starts -= 1;
            self.start(me, None);
        }
        if held { Err(CallStatus::ResourceHeld) } else { DONE }
    }

    pub(super) fn suspend(&mut self, by: By, task: TaskId) -> Come<Reply> {
        let man = self.started(task)?;
        let man = &mut self.men[man];
        if man.killed {
            return Err(CallStatus::Killed);
        }
        if std::mem::replace(&mut man.suspended, true) {
            return Err(CallStatus::AlreadySuspended);
        }
        if by == By::Task(task) && man.state == TaskState::Ready {
            man.outcome = Reply { status: CallStatus::Ok, value: 0 };
        }
        DONE
    }

    pub(super) fn resume(&mut self, task: TaskId) -> Come<Reply> {
        let man = self.started(task)?;
        if !std::mem::take(&mut self.men[man].suspended) {
            return Err(CallStatus::NotSuspended);
        }
        if self.men[man].state == TaskState::Ready {
            self.men[man].place = self.back();
        }
        DONE
    }

    pub(super) fn kill(&mut self, by: By, task: TaskId) -> Come<Reply> {
        let man = self.known(task)?;
        match self.men[man].state {
            TaskState::Idle => return DONE,
            TaskState::Dead | TaskState::Deleted => return Err(CallStatus::Dead),
            TaskState::Waiting => {
                self.men[man].waiting = Waiting::Nothing;
                self.settle();
                self.ready(man, CallStatus::Killed, 0);
            }
            TaskState::Ready if self.men[man].suspended => self.men[man].place = self.back(),
            TaskState::Ready => {}
        }
        (self.men[man].killed, self.men[man].suspended) = (true, false);
        if by == By::Task(task) { Err(CallStatus::Killed) } else { DONE }
    }

    pub(super) fn set_priority(&mut self, task: TaskId, priority: Priority) -> Come<Reply> {
        let man = self.known(task)?;
        let waits_for = |slot: usize| self.men[man].waiting == Waiting::Resource(slot as u16);
        let concerns = |slot: usize| self.things[slot].owner == Some(man) || waits_for(slot);
        let above = |slot: usize| matches!(self.things[slot].protocol, ResourceProtocol::Ceiling(ceiling) if priority < ceiling);
        if self.things.iter().any(|(slot, ..)| concerns(slot) && above(slot)) {
            return Err(CallStatus::AboveCeiling);
        }
        let before = self.men[man].effective;
        self.men[man].base = priority;
        self.settle();
        if self.men[man].effective > before && self.men[man].may_run() {
            self.men[man].place = self.back();
        }
        DONE
    }

    pub(super) fn send(&mut self, task: TaskId, urgency: Urgency, ticket: u32, chosen: u32) -> Come<Reply> {
        let man = self.known(task)?;
        let at = self.men[man].mail.room(urgency)?;
        if self.men[man].state == TaskState::Dead {
            return Err(CallStatus::Dead);
        }
        let letter = self.draw(ticket, chosen)?;
        match self.men[man].waiting {
            _ if self.men[man].state == TaskState::Idle => self.start(man, Some(letter)),
            Waiting::Mail(wanted) if wanted == 4 || usize::from(wanted) == at => {
                self.men[man].hand = Some(letter);
                self.ready(man, CallStatus::Ok, chosen);
            }
            _ => self.men[man].mail.letters[at].push(letter),
        }
        ok(chosen)
    }

    pub(super) fn post(&mut self, slot: usize, urgency: Urgency, chosen: u32) -> Come<Reply> {
        let at = self.exchanges[slot].room(urgency)?;
        let letter = self.draw(0, chosen)?;
        match self.line(|waiting| waiting == Waiting::Exchange(slot as u16)).first() {
            None => self.exchanges[slot].letters[at].push(letter),
            Some(&man) => {
                self.men[man].hand = Some(letter);
                self.ready(man, CallStatus::Ok, chosen);
            }
        }
        ok(chosen)
    }

    pub(super) fn draw(&mut self, ticket: u32, envelope: u32) -> Come<Letter> {
        self.free_envelopes = self.free_envelopes.checked_sub(1).ok_or(CallStatus::NoEnvelope)?;
        let boxes = self.men.iter().map(|man| &man.mail).chain(self.exchanges.iter().map(|(_, _, boxes)| boxes));
        let hands = self.men.iter().filter_map(|man| man.hand.as_ref());
        let mut letters = boxes.flat_map(|boxes| boxes.letters.iter().flatten()).chain(hands);
        assert!(letters.all(|letter| letter.envelope != envelope), "envelope {envelope} was in use");
        Ok(Letter { envelope, ticket })
    }

    pub(super) fn put_down(&mut self, me: usize) {
        if let Some(letter) = self.men[me].hand.take() {
            self.free_envelopes += 1;
            self.answer(letter.ticket, CallStatus::NotAcknowledged, 0);
        }
    }

    pub(super) fn answer(&mut self, ticket: u32, status: CallStatus, value: u32) -> bool {
        let sender = self.men.iter().position(|man| ticket > 0 && man.waiting == Waiting::Acknowledgement(ticket));
        if let Some(sender) = sender {
            self.ready(sender, status, value);
        }
        sender.is_some()
    }

    pub(super) fn reserve(&mut self, me: usize, slot: usize, until: Until, at: Option<Priority>) -> Come<Reply> {
        let thing = &mut self.things[slot];
        if self.men[me].killed {
            return Err(CallStatus::Killed);
        }
        if thing.owner == Some(me) {
            thing.depth += 1;
            return DONE;
        }
        if matches!(thing.protocol, ResourceProtocol::Ceiling(ceiling) if self.men[me].base < ceiling) {
            return Err(CallStatus::AboveCeiling);
        }
        let Some(mut owner) = thing.owner else {
            (thing.owner, thing.depth) = (Some(me), 1);
            self.men[me].owned.push(slot);
            return DONE;
        };
        self.able(me, until)?;
        while let Waiting::Resource(next) = self.men[owner].waiting {
            owner = self.things[usize::from(next)].owner.expect("what is waited for is owned");
        }
        if owner == me {
            return Err(CallStatus::Deadlock);
        }
        self.wait(me, Waiting::Resource(slot as u16), until, at)
    }

    pub(super) fn hand_on(&mut self, me: usize, slot: usize) {
        self.men[me].owned.retain(|&owned| owned != slot);
        (self.things[slot].owner, self.things[slot].depth) = (None, 0);
        if let Some(&heir) = self.line(|waiting| waiting == Waiting::Resource(slot as u16)).first() {
            (self.things[slot].owner, self.things[slot].depth) = (Some(heir), 1);
            self.men[heir].owned.push(slot);
            self.men[heir].waiting = Waiting::Nothing;
            self.settle();
            self.ready(heir, CallStatus::Ok, 0);
        }
    }

    pub(super) fn look_for(&mut self, slot: usize, wish: Bits, take: bool) -> Option<u32> {
        let bits = wish.satisfied_by(self.events[slot])?;
        if take {
            self.events[slot] &= !bits;
        }
        Some(bits)
    }

    pub(super) fn clock(&self, timer: TimerId) -> Come<usize> {
        self.clocks.iter().position(|clock| clock.alive && clock.id == timer).ok_or(CallStatus::NoSuchObject)
    }

    pub(super) fn stop(&mut self, timer: TimerId) -> Come<u32> {
        let clock = self.clock(timer)?;
        self.due.retain(|&due| due != clock);
        let clock = &mut self.clocks[clock];
        let ran = clock.deadline.take().is_some();
        Ok(u32::from(std::mem::take(&mut clock.due) || ran))
    }

    pub(super) fn tick(&mut self, now: Moment) -> Come<Reply> {
        self.now = self.now.max(now);
        loop {
            let men = self.men.iter().enumerate().filter_map(|(at, man)| Some((man.deadline?, false, at)));
            let clocks = self.clocks.iter().enumerate().filter_map(|(at, clock)| Some((clock.deadline?, true, at)));
            let due = men.chain(clocks).filter(|(deadline, ..)| deadline.moment <= self.now || !deadline.later).min();
            match due {
                None => return ok(self.due.len() as u32),
                Some((deadline, true, clock)) => self.go_off(clock, deadline.moment),
                Some((_, false, man)) => {
                    let delayed = self.men[man].waiting == Waiting::Delay;
                    self.men[man].waiting = Waiting::Nothing;
                    self.settle();
                    self.ready(man, if delayed { CallStatus::Ok } else { CallStatus::TimedOut }, 0);
                }
            }
        }
    }

    /// One expiration after the other, for as long as they are due.
    pub(super) fn go_off(&mut self, at: usize, first: Moment) {
        let (mut moment, mut next) = (first, None);
        let mut times = 1;
        if self.clocks[at].period_ns > 0 {
            let period_ns = self.clocks[at].period_ns;
            loop {
                next = moment.as_nanos().checked_add(period_ns).map(Moment::from_nanos);
                match next {
                    Some(after) if after <= self.now => (moment, times) = (after, times + 1),
                    _ => break,
                }
            }
        }
        let deadline = next.map(|next| self.deadline(next));
        let clock = &mut self.clocks[at];
        let missed = times - u64::from(!clock.due);
        clock.deadline = deadline;
        clock.told = (moment, clock.told.1 + missed, clock.told.2 + missed);
        if !std::mem::replace(&mut clock.due, true) {
            self.due.push(at);
        }
    }

    /// The formula: the most urgent of its own priority, its threshold, the ceilings of its resources, and the
    /// priorities of the tasks that wait for its resources with inheritance.
    pub(super) fn formula(&self, man: usize) -> Priority {
        let mut priority = self.men[man].base.min(self.men[man].threshold);
        for (slot, _, thing) in self.things.iter().filter(|(_, _, thing)| thing.owner == Some(man)) {
            match thing.protocol {
                ResourceProtocol::None => {}
                ResourceProtocol::Ceiling(ceiling) => priority = priority.min(ceiling),
                ResourceProtocol::Inherit => {
                    for waiter in self.line(|waiting| waiting == Waiting::Resource(slot as u16)) {
                        priority = priority.min(self.formula(waiter));
                    }
                }
            }
        }
        priority
    }

    /// Brings all priorities up to date: raised is last of its equals, lowered is first; in line always last.
    pub(super) fn settle(&mut self) {
        let formula: Vec<_> = (0..self.men.len()).map(|man| self.formula(man)).collect();
        for (man, priority) in formula.into_iter().enumerate() {
            let before = std::mem::replace(&mut self.men[man].effective, priority);
            let place = self.back();
            let man = &mut self.men[man];
            if priority != before && man.state == TaskState::Ready {
                man.place = if priority < before { place } else { -place };
            } else if priority != before && man.given.is_none() {
                man.place = place;
            }
        }
        self.serve_heaps();
    }
}
