//! [`blame`]: divides the time that a thread lost among its culprits.
//!
//! The steps, numbered in the code:
//! 1. Time in which the history is unknown has no culprit, and then the whole gap has none.
//! 2. While another task had the CPU, that task took the time, if the thread could have run. If the CPU was idle
//!    meanwhile and the thread came back to it, the kernel throttled the thread; if the thread did not come back, the
//!    kernel moved it to another CPU. From the moment at which the kernel's task for that ran, the move took the time,
//!    whatever ran here. If the thread waited of its own accord, its own call is the culprit.
//! 3. An interrupt or softirq took the time in which it was the innermost.
//! 4. Time in which the thread itself had the CPU, as the kernel sees it: after a page fault it belongs to the fault. A
//!    stretch beside an interrupt that is not longer than the delivery of one belongs to that interrupt.
//! 5. Any longer stretch was taken below the kernel: by the hypervisor, or by the firmware.
//! 6. An interrupt that begins in the last moments of a gap, after such a theft, was delivered at the end of the theft:
//!    it belongs to the theft.
//! 7. If an interrupt of a guest took more than ten times its usual time, the hypervisor took the rest.

use hairspring_machine::{Instant, Nanos};

use crate::culprit::{Culprit, WhyUnexplained};
use crate::history::{Away, CpuHistory, Occupant};
use crate::record::{Context, KernelTask, LeftAs};

/// Time in which a thread wanted a CPU and did not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostTime {
    /// The thread.
    pub thread: u32,
    /// The last moment at which the thread certainly ran, or at which it should have run.
    pub from: Instant,
    /// The first moment at which it ran again.
    pub to: Instant,
    /// Its state when it lost the time.
    pub wanted: Wanted,
}

/// State of a thread when it lost time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It ran, and wanted to continue.
    Run,
    /// It slept, and wanted to be woken.
    Wake,
}

/// Properties of the machine for [`blame`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Whether there is a hypervisor below the kernel.
    pub guest: bool,
    /// Longest delivery of an interrupt before its first record.
    pub delivery: Nanos,
    /// Longest return from an interrupt to the thread after the last record.
    pub way_back: Nanos,
    /// Longest time of a thread from its switch to its first own stamp.
    pub way_out: Nanos,
}

/// The least number of cases to learn from.
const CASES_LEAST: usize = 10;
/// The longest delivery by the kernel, even on a nested guest.
const LONGEST: Nanos = Nanos::from_micros(50);

impl Terms {
    /// The terms of a guest, where the host takes part in the delivery of interrupts.
    pub const fn guest() -> Self {
        Self { guest: true, ..Self::bare_metal() }
    }

    /// The terms of a machine without a hypervisor.
    pub const fn bare_metal() -> Self {
        let (delivery, way_back, way_out) = (Nanos::from_micros(2), Nanos::from_micros(2), Nanos::from_micros(5));
        Self { guest: false, delivery, way_back, way_out }
    }

    /// These terms, lengthened if this machine takes longer: twice the median of the given cases, and at most 50 µs.
    ///
    /// A theft shorter than that, with an interrupt at its end, cannot be distinguished from the delivery of the
    /// interrupt.
    #[must_use]
    pub fn learned(self, lost: &[LostTime], history: &CpuHistory) -> Self {
        let (mut deliveries, mut ways_back, mut ways_out) = (Vec::new(), Vec::new(), Vec::new());
        for lost in lost {
            let occupants = history.occupants(lost.from, lost.to);
            let own = |place: &(Instant, Instant, Occupant)| match &place.2 {
                Occupant::Task(task) if task.pid == lost.thread => Some(place.1 - place.0),
                _ => None,
            };
            let [first, second, ..] = occupants.as_slice() else { continue };
            let [.., before, last] = occupants.as_slice() else { continue };
            if let (Some(head), Occupant::Context(_)) = (own(first), &second.2) {
                deliveries.push(head);
            }
            match (own(last), &before.2) {
                (Some(tail), Occupant::Context(_)) => ways_back.push(tail),
                (Some(tail), Occupant::Task(_) | Occupant::Worker(..)) => ways_out.push(tail),
                _ => {}
            }
        }
        let longer = |least: Nanos, seen: &mut Vec<Nanos>| {
            if seen.len() < CASES_LEAST {
                return least;
            }
            let middle = seen.len() / 2;
            (*seen.select_nth_unstable(middle).1 * 2).clamp(least, LONGEST)
        };
        Self {
            guest: self.guest,
            delivery: longer(self.delivery, &mut deliveries),
            way_back: longer(self.way_back, &mut ways_back),
            way_out: longer(self.way_out, &mut ways_out),
        }
    }

    /// The culprit for time that the kernel did not see.
    fn below(self) -> Culprit {
        if self.guest { Culprit::Hypervisor } else { Culprit::Firmware }
    }
}

/// The culprit of one gap or late wake-up, with the lost time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The time that was lost.
    pub lost: LostTime,
    /// The culprits, in order and without a gap.
    pub parts: Vec<BlamePart>,
}

/// A stretch of lost time with one culprit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlamePart {
    /// Its beginning.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
    /// The culprit.
    pub culprit: Culprit,
}

/// The share of one culprit in one gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The culprit.
    pub culprit: Culprit,
    /// The time.
    pub time: Nanos,
}

impl Blame {
    /// The time that was lost.
    pub fn time(&self) -> Nanos {
        (self.lost.to - self.lost.from).max(Nanos::ZERO)
    }

    /// The share of each culprit, the greatest first. The shares add up to the lost time.
    pub fn shares(&self) -> Vec<Share> {
        let mut shares: Vec<Share> = Vec::new();
        for part in &self.parts {
            let time = part.to - part.from;
            match shares.iter_mut().find(|share| share.culprit == part.culprit) {
                Some(share) => share.time += time,
                None => shares.push(Share { culprit: part.culprit.clone(), time }),
            }
        }
        shares.sort_by_key(|share| std::cmp::Reverse(share.time));
        shares
    }

    /// The culprit that took the most; `None` if no time was lost.
    pub fn chief(&self) -> Option<Share> {
        self.shares().into_iter().next()
    }
}

/// A stretch without a culprit yet.
enum Stretch {
    /// By the kernel's records the thread itself had the CPU.
    Own,
    Of(Culprit),
}

/// Divides the time that a thread lost among the culprits. `history` is that of the CPU on which the thread ran, or on
/// which it was woken.
pub fn blame(lost: &LostTime, history: &CpuHistory, terms: &Terms) -> Blame {
    let done = |parts| Blame { lost: *lost, parts };
    if lost.to <= lost.from {
        return done(Vec::new());
    }
    let occupants = history.occupants(lost.from, lost.to);
    // Step 1.
    if let Some(why) = occupants.iter().find_map(|(_, _, occupant)| unknown(occupant)) {
        let culprit = Culprit::Unexplained(why);
        return done(vec![BlamePart { from: lost.from, to: lost.to, culprit }]);
    }
    let fault = history.fault(lost.thread, lost.from, lost.to);
    let major = fault.is_some_and(|fault| waited_after(fault, &occupants, lost, history));
    let moved = history.moved(lost.thread, lost.from, lost.to);
    let mut stretches = Vec::new();
    for (from, to, occupant) in occupants {
        if moved.is_some_and(|moved| from >= moved) {
            // From the move on, events on the old CPU do not concern the thread.
            stretches.push((from, to, Stretch::Of(Culprit::Migration)));
            continue;
        }
        match (of_occupant(occupant, from, lost, history), fault) {
            // Step 4, the fault. It may lie inside the stretch.
            (Stretch::Own, Some(fault)) if fault < to => {
                let begin = fault.max(from);
                if begin > from {
                    stretches.push((from, begin, Stretch::Own));
                }
                stretches.push((begin, to, Stretch::Of(Culprit::PageFault { major })));
            }
            (Stretch::Of(Culprit::OwnCall), Some(fault)) if fault <= from && lost.wanted == Wanted::Run => {
                stretches.push((from, to, Stretch::Of(Culprit::PageFault { major: true })));
            }
            (stretch, _) => stretches.push((from, to, stretch)),
        }
    }
    let mut parts = settle(&stretches, lost, history, terms);
    consequences(&mut parts, lost, terms);
    excess(&mut parts, history, terms);
    done(joined(parts))
}

fn unknown(occupant: &Occupant) -> Option<WhyUnexplained> {
    match occupant {
        Occupant::Unknown(why) => Some(*why),
        _ => None,
    }
}

/// Whether the thread gave up the CPU voluntarily after its fault.
fn waited_after(
    fault: Instant,
    occupants: &[(Instant, Instant, Occupant)],
    lost: &LostTime,
    history: &CpuHistory,
) -> bool {
    occupants.iter().any(|(from, _, occupant)| {
        let other = matches!(occupant, Occupant::Task(task) | Occupant::Worker(task, _) if task.pid != lost.thread);
        other
            && *from > fault
            && history.away(lost.thread, *from, lost.to).is_some_and(|away| away.left_as == LeftAs::Blocked)
    })
}

/// Steps 2 and 3.
fn of_occupant(occupant: Occupant, at: Instant, lost: &LostTime, history: &CpuHistory) -> Stretch {
    match occupant {
        Occupant::Task(task) | Occupant::Worker(task, _) if task.pid == lost.thread => Stretch::Own,
        Occupant::Task(task) if task.is_worker() => of_other(task, Culprit::Worker(task, None), at, lost, history),
        Occupant::Task(task) => of_other(task, Culprit::Task(task), at, lost, history),
        Occupant::Worker(task, function) => of_other(task, Culprit::Worker(task, function), at, lost, history),
        Occupant::Context(context) => Stretch::Of(Culprit::Context(context)),
        Occupant::Nmi => Stretch::Of(Culprit::Nmi),
        Occupant::Unknown(why) => Stretch::Of(Culprit::Unexplained(why)),
    }
}

/// Step 2.
fn of_other(task: KernelTask, culprit: Culprit, at: Instant, lost: &LostTime, history: &CpuHistory) -> Stretch {
    let away = history.away(lost.thread, at, lost.to);
    // A thread that slept when the lost time began did not leave this CPU runnable, whatever it did here before.
    let could_run =
        |away: &Away| away.left_as == LeftAs::Runnable && (lost.wanted == Wanted::Run || away.since >= lost.from);
    Stretch::Of(match (away, lost.wanted) {
        (Some(away), _) if could_run(&away) && away.came_back && away.cpu_was_idle => Culprit::Throttling,
        (Some(away), _) if could_run(&away) && !away.came_back && task.is_idle() => Culprit::Migration,
        (Some(away), Wanted::Run) if away.left_as == LeftAs::Blocked => Culprit::OwnCall,
        (_, Wanted::Wake) if task.is_idle() => Culprit::IdleExit,
        (None, Wanted::Run) if task.is_idle() => Culprit::OwnCall,
        _ => culprit,
    })
}

/// Steps 4 and 5: the culprits of stretches in which the thread itself had the CPU.
fn settle(
    stretches: &[(Instant, Instant, Stretch)],
    lost: &LostTime,
    history: &CpuHistory,
    terms: &Terms,
) -> Vec<BlamePart> {
    let of = |place: usize| match stretches.get(place) {
        Some((_, _, Stretch::Of(culprit))) => Some(culprit.clone()),
        _ => None,
    };
    let below = |from, to| {
        if lost.wanted == Wanted::Wake && history.frequency_changed(from, to) {
            Culprit::Frequency
        } else {
            terms.below()
        }
    };
    let mut parts = Vec::new();
    for (place, (from, to, stretch)) in stretches.iter().enumerate() {
        let (from, to) = (*from, *to);
        let culprit = match stretch {
            Stretch::Of(culprit) => culprit.clone(),
            Stretch::Own => {
                let before = place.checked_sub(1).and_then(of);
                let length = to - from;
                match (before, of(place + 1)) {
                    (_, Some(next)) if length <= terms.delivery => next,
                    (Some(_), None) if length <= terms.way_out && lost.wanted == Wanted::Wake => Culprit::OwnCall,
                    (Some(Culprit::Context(context)), None) if length <= terms.way_back => Culprit::Context(context),
                    (Some(Culprit::Context(_)), None) => below(from, to),
                    (Some(before), None) if length <= terms.way_out => before,
                    _ => below(from, to),
                }
            }
        };
        parts.push(BlamePart { from, to, culprit });
    }
    parts
}

/// Step 6.
fn consequences(parts: &mut [BlamePart], lost: &LostTime, terms: &Terms) {
    let moments = lost.to - terms.delivery;
    let first = parts.iter().position(|part| part.from >= moments).unwrap_or(parts.len());
    let stolen = first.checked_sub(1).is_some_and(|before| parts[before].culprit == terms.below());
    if stolen {
        parts[first..].iter_mut().for_each(|part| part.culprit = terms.below());
    }
}

/// Step 7.
fn excess(parts: &mut Vec<BlamePart>, history: &CpuHistory, terms: &Terms) {
    const FACTOR: i64 = 10;
    if !terms.guest {
        return;
    }
    let mut divided = Vec::with_capacity(parts.len());
    for part in parts.drain(..) {
        let usual = match &part.culprit {
            Culprit::Context(context @ (Context::Vector(_) | Context::Interrupt { .. })) => history.usual(context),
            _ => None,
        };
        match usual {
            Some(usual) if part.to - part.from > usual * FACTOR + terms.delivery * 2 => {
                let own = part.from + usual;
                divided.push(BlamePart { from: part.from, to: own, culprit: part.culprit });
                divided.push(BlamePart { from: own, to: part.to, culprit: terms.below() });
            }
            _ => divided.push(part),
        }
    }
    *parts = divided;
}

/// Merges neighbours with the same culprit.
fn joined(parts: Vec<BlamePart>) -> Vec<BlamePart> {
    let mut joined: Vec<BlamePart> = Vec::with_capacity(parts.len());
    for part in parts {
        match joined.last_mut() {
            Some(last) if last.culprit == part.culprit => last.to = part.to,
            _ => joined.push(part),
        }
    }
    joined
}
