//! Invariants of every state of a system and of every step between two, checked through public queries only.

use hairspring_exec_core::{
    By, Call, CallStatus, Priority, Reply, ResourceId, ResourceProtocol, SemaphoreId, TaskId, TaskState, TaskView,
    Urgency, Waiting,
};

use super::{SEMAPHORE, System, World, runnable};

type Holds = Result<(), String>;

fn that(holds: bool, what: impl FnOnce() -> String) -> Holds {
    if holds { Ok(()) } else { Err(what()) }
}

pub(super) fn check(system: &System, before: &World, by: By, call: Call, reply: Reply, after: &World) -> Holds {
    after.core.check().map_err(|broken| broken.0)?;
    priorities_follow_the_formula(system, after)?;
    the_most_urgent_runs(after)?;
    lines_are_in_order(system, after)?;
    owners_and_waiters_fit(system, after)?;
    envelopes_are_conserved(system, after)?;
    nobody_waits_past_a_deadline(after)?;
    equals_keep_their_order(before, call, after)?;
    waits_end_for_a_cause(before, by, call, after)?;
    wakes_are_not_lost(before, call, reply, after)?;
    slices_end_among_equals(before, call, after)?;
    hand_over_is_direct(before, call, reply, after)
}

fn look(world: &World, task: TaskId) -> TaskView {
    world.core.look(task).expect("no task of these systems is deleted")
}

fn formula(system: &System, world: &World, task: TaskId) -> Priority {
    let mut priority = look(world, task).base.min(look(world, task).threshold);
    for (slot, protocol) in system.protocols.iter().enumerate() {
        let (owner, _) = world.core.resource(ResourceId::from_number(slot as u32)).unwrap_or_default();
        if owner != Some(task) {
            continue;
        }
        match *protocol {
            ResourceProtocol::None => {}
            ResourceProtocol::Ceiling(ceiling) => priority = priority.min(ceiling),
            ResourceProtocol::Inherit => {
                let waits = |waiter: &&TaskId| look(world, **waiter).waiting == Waiting::Resource(slot as u16);
                for &waiter in world.tasks.iter().filter(waits) {
                    priority = priority.min(formula(system, world, waiter));
                }
            }
        }
    }
    priority
}

fn priorities_follow_the_formula(system: &System, world: &World) -> Holds {
    for &task in &world.tasks {
        let (is, should) = (look(world, task).effective, formula(system, world, task));
        that(is == should, || format!("{task:?} runs at {is:?} instead of {should:?}"))?;
    }
    Ok(())
}

fn the_most_urgent_runs(world: &World) -> Holds {
    let ready = world.core.ready_tasks();
    that(world.core.first() == ready.first().copied(), || "the first is not the head of the ready".into())?;
    let priorities: Vec<_> = ready.iter().map(|&task| look(world, task).effective).collect();
    that(priorities.is_sorted(), || format!("the ready are not in order: {ready:?} at {priorities:?}"))?;
    let mut listed = ready;
    listed.sort_unstable();
    let may_run: Vec<_> = world.tasks.iter().copied().filter(|&task| runnable(world, task)).collect();
    that(listed == may_run, || format!("{may_run:?} may run and {listed:?} are ready"))
}

fn lines_are_in_order(system: &System, world: &World) -> Holds {
    let mut lines: Vec<_> = (0..system.protocols.len()).map(|slot| Waiting::Resource(slot as u16)).collect();
    lines.push(Waiting::Semaphore(SEMAPHORE));
    for waiting in lines {
        let line = world.core.line(waiting);
        let places: Vec<_> = line
            .iter()
            .map(|&task| match waiting {
                // The priorities these systems give with the wait.
                Waiting::Semaphore(_) => task.index() as u8 % 2,
                _ => look(world, task).effective.number(),
            })
            .collect();
        that(places.is_sorted(), || format!("the line of {waiting:?} is {line:?} at {places:?}"))?;
        let waits = |task: &&TaskId| look(world, **task).waiting == waiting;
        let count = world.tasks.iter().filter(waits).count();
        that(line.len() == count, || format!("{count} wait for {waiting:?} and {line:?} stand in line"))?;
    }
    Ok(())
}

fn owners_and_waiters_fit(system: &System, world: &World) -> Holds {
    let owner = |slot: u16| world.core.resource(ResourceId::from_number(u32::from(slot))).and_then(|(owner, _)| owner);
    for slot in 0..system.protocols.len() as u16 {
        let line = world.core.line(Waiting::Resource(slot));
        that(line.is_empty() || owner(slot).is_some(), || format!("resource {slot} is free, and {line:?} wait"))?;
        if let Some(owner) = owner(slot) {
            let state = look(world, owner).state;
            that(matches!(state, TaskState::Ready | TaskState::Waiting), || {
                format!("{owner:?} owns and is {state:?}")
            })?;
        }
    }
    for &task in &world.tasks {
        let (mut at, mut links) = (task, 0);
        while let Waiting::Resource(slot) = look(world, at).waiting {
            let Some(next) = owner(slot) else { break };
            (at, links) = (next, links + 1);
            that(links <= world.tasks.len(), || format!("{task:?} waits in a circle"))?;
        }
    }
    if system.semaphore {
        let (count, first) = world.core.semaphore(SemaphoreId::from_number(0)).unwrap_or_default();
        that(count == 0 || first.is_none(), || format!("{count} units lie there while {first:?} waits"))?;
    }
    Ok(())
}

fn envelopes_are_conserved(system: &System, world: &World) -> Holds {
    let total = if system.mailbox { 2 } else { 0 };
    let queued: usize =
        world.tasks.iter().flat_map(|&task| Urgency::ALL.map(|urgency| world.core.letters(task, urgency).len())).sum();
    let handed = world.tasks.iter().filter(|&&task| world.core.in_hand(task).is_some()).count();
    let free = world.core.free_envelopes();
    that(free + queued + handed == total, || format!("{free} free, {queued} queued, {handed} handed of {total}"))
}

fn nobody_waits_past_a_deadline(world: &World) -> Holds {
    for &task in &world.tasks {
        let deadline = world.core.wait_deadline(task);
        let waits = look(world, task).state == TaskState::Waiting;
        that(waits || deadline.is_none(), || format!("{task:?} does not wait and has a deadline"))?;
        let future = deadline.is_none_or(|deadline| deadline.as_nanos() > world.now_ns);
        that(future, || format!("{task:?} still waits until {deadline:?} at {}", world.now_ns))?;
    }
    Ok(())
}

/// Equals keep their order; a newcomer goes behind them, unless it was more urgent before.
fn equals_keep_their_order(before: &World, call: Call, after: &World) -> Holds {
    let (old, new) = (before.core.ready_tasks(), after.core.ready_tasks());
    // A task that leaves its place by its own call: another test checks where it goes.
    let moved = match call {
        Call::Yield | Call::End { .. } | Call::EndSlice => before.core.first(),
        Call::SetPriority { task, .. } => Some(task),
        _ => None,
    };
    let place = |task: TaskId| old.iter().position(|&other| other == task);
    let stayed = |task: TaskId| place(task).filter(|_| look(before, task).effective == look(after, task).effective);
    for (index, &ahead) in new.iter().enumerate() {
        for &behind in &new[index + 1..] {
            let equal = look(after, ahead).effective == look(after, behind).effective;
            if !equal || [Some(ahead), Some(behind)].contains(&moved) {
                continue;
            }
            let in_order = match (stayed(ahead), stayed(behind)) {
                (Some(ahead), Some(behind)) => ahead < behind,
                (None, Some(_)) => {
                    place(ahead).is_some() && look(before, ahead).effective < look(after, ahead).effective
                }
                _ => true,
            };
            that(in_order, || format!("{ahead:?} got before {behind:?}: {old:?} became {new:?}"))?;
        }
    }
    Ok(())
}

fn waits_end_for_a_cause(before: &World, by: By, call: Call, after: &World) -> Holds {
    for &task in &before.tasks {
        let (was, is) = (look(before, task), look(after, task));
        if was.state != TaskState::Waiting {
            let begins = is.state != TaskState::Waiting || by == By::Task(task);
            that(begins, || format!("{task:?} waits without having asked to"))?;
            continue;
        }
        let due = before.core.wait_deadline(task).is_some_and(|deadline| deadline.as_nanos() <= after.now_ns);
        let ended = is.state != TaskState::Waiting;
        that(!due || ended, || format!("{task:?} was due and waits on"))?;
        let cause = match call {
            Call::Tick { .. } => due,
            Call::Kill { task: killed } => killed == task,
            Call::Wake { task: woken } => woken == task && was.waiting == Waiting::Wake,
            Call::Send { task: to, .. } | Call::SendWait { task: to, .. } => {
                to == task && matches!(was.waiting, Waiting::Mail(_))
            }
            Call::SignalSemaphore { .. } => was.waiting == Waiting::Semaphore(SEMAPHORE),
            Call::Release { resource } => was.waiting == Waiting::Resource(resource.index() as u16),
            Call::Take | Call::Acknowledge { .. } | Call::Receive { .. } => {
                matches!(was.waiting, Waiting::Acknowledgement(_))
            }
            Call::End { .. } => matches!(was.waiting, Waiting::Acknowledgement(_) | Waiting::Resource(_)),
            _ => false,
        };
        that(!ended || cause, || format!("the wait of {task:?} for {:?} ended without a cause", was.waiting))?;
        if ended {
            let status = after.core.outcome(task).status;
            let fits = match call {
                Call::Tick { .. } => status == CallStatus::TimedOut,
                Call::Kill { .. } => status == CallStatus::Killed,
                Call::End { .. } | Call::Receive { .. } => {
                    matches!(status, CallStatus::Ok | CallStatus::NotAcknowledged)
                }
                _ => status == CallStatus::Ok,
            };
            that(fits, || format!("the wait of {task:?} came out as {status:?}"))?;
        }
    }
    Ok(())
}

fn wakes_are_not_lost(before: &World, call: Call, reply: Reply, after: &World) -> Holds {
    let Call::Wake { task } = call else { return Ok(()) };
    let (was, is) = (look(before, task), look(after, task));
    let (ready, kept) = (is.state == TaskState::Ready, is.latch);
    let holds = match (was.state, reply.status) {
        (TaskState::Waiting, CallStatus::Ok) => was.waiting == Waiting::Wake && ready && !kept,
        (TaskState::Ready | TaskState::Waiting, CallStatus::WakePending) => {
            was.waiting != Waiting::Wake && kept && !was.latch
        }
        (TaskState::Ready | TaskState::Waiting, CallStatus::WakeAlreadyPending) => {
            was.waiting != Waiting::Wake && kept && was.latch
        }
        (TaskState::Idle, CallStatus::NotStarted) => !kept || was.latch,
        _ => false,
    };
    that(holds, || format!("a wake of {task:?} came out as {:?}: {was:?} became {is:?}", reply.status))
}

/// The end of a slice moves the running task behind its equals, and nothing else; a task above its own priority stays.
fn slices_end_among_equals(before: &World, call: Call, after: &World) -> Holds {
    let Call::EndSlice = call else { return Ok(()) };
    let (old, new) = (before.core.ready_tasks(), after.core.ready_tasks());
    let mut should = old.clone();
    if let Some(&first) = old.first() {
        let at = look(before, first).effective;
        let equals = old.iter().take_while(|&&task| look(before, task).effective == at).count();
        if look(before, first).base == at {
            should[..equals].rotate_left(1);
        }
    }
    that(new == should, || format!("{old:?} became {new:?}, not {should:?}"))
}

fn hand_over_is_direct(before: &World, call: Call, reply: Reply, after: &World) -> Holds {
    match call {
        Call::Release { resource } if reply.status == CallStatus::Ok => {
            let heir = before.core.line(Waiting::Resource(resource.index() as u16)).first().copied();
            let (owner, depth) = after.core.resource(resource).unwrap_or_default();
            let was = before.core.resource(resource).unwrap_or_default();
            let holds = if was.1 > 1 { (owner, depth + 1) == was } else { owner == heir };
            that(holds, || format!("{resource:?} went to {owner:?} instead of {heir:?}"))
        }
        Call::SignalSemaphore { semaphore } => {
            let (count, first) = before.core.semaphore(semaphore).unwrap_or_default();
            let (now, _) = after.core.semaphore(semaphore).unwrap_or_default();
            match first {
                Some(first) => that(now == count && look(after, first).state == TaskState::Ready, || {
                    format!("a unit did not reach {first:?}")
                }),
                None => that(now == 1, || format!("the count went from {count} to {now}")),
            }
        }
        _ => Ok(()),
    }
}
