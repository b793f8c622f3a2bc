//! Interrupt service: from the source's write to the procedure, and from the procedure back to the interrupted task; and how
//! long the executive keeps others out.

use hairspring_machine::Nanos;
use hairspring_sheet::{Absent, Figure, Method, Unit, Value};

use super::bench::{Bench, Cache, Rig, Samples, Taken, all_absent, proof_comes};
use super::firing::{FiringThread, Waiting, rehearse};
use super::port::{Ability, Calls, Port};
use super::waitwake::{self, LOW};

/// Runs of which each gives its longest time.
const RUNS: i64 = 8;

/// T1 and T2: entry and exit of a procedure that makes no calls.
pub(crate) fn raw<P: Port>(bench: &Bench, cache: Cache) -> Vec<(&'static str, Value)> {
    values::<P>(bench, ["t1", "t2"], handled::<P>(bench, cache, false))
}

/// T3 and T4: entry and exit of a procedure that may make calls.
pub(crate) fn conforming<P: Port>(bench: &Bench, cache: Cache) -> Vec<(&'static str, Value)> {
    values::<P>(bench, ["t3", "t4"], handled::<P>(bench, cache, true))
}

fn values<P: Port>(
    bench: &Bench,
    quantities: [&'static str; 2],
    taken: Result<Taken, Absent>,
) -> Vec<(&'static str, Value)> {
    match taken {
        Ok(mut taken) => {
            let exit = P::unable(Ability::PreemptsCaller);
            let exit = exit.map_or_else(|| taken.value(1, Unit::Ns, Method::Stamp, bench), Value::Absent);
            vec![(quantities[0], taken.value(0, Unit::Ns, Method::Stamp, bench)), (quantities[1], exit)]
        }
        Err(absent) => all_absent(quantities, &absent),
    }
}

fn handled<P: Port>(bench: &Bench, cache: Cache, conforming: bool) -> Result<Taken, Absent> {
    let unable = P::unable(if conforming { Ability::Interrupt } else { Ability::RawInterrupt });
    if let Some(absent) = unable {
        return Err(absent);
    }
    let mut rig = Rig::<P>::new(bench)?;
    let (board, clock) = rig.share();
    let mut proof = 0;
    let mut procedure = move || {
        board.mark(1, clock.stamp());
        proof += 1;
        board.mark(2, clock.stamp());
        board.prove(proof);
    };
    let interrupt = if conforming { rig.port.attach(move |_| procedure()) } else { rig.port.attach_raw(procedure) }?;
    let (_firing, trigger) = FiringThread::start(bench, &rig.board, interrupt, Waiting::Rests)?;

    let ((board, _), (clock, slice, tray), mut sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let task = rig.port.spawn("A", LOW, async move |calls| {
        let mut samples = Samples::new(2);
        if !rehearse::<P>(calls, &board, &trigger, &clock).await {
            calls.stop().await;
            return;
        }
        let end = clock.after(slice);
        let mut proof = 1;
        while end.since(clock.stamp()) > 0 && !samples.is_full() {
            sweep.sweep();
            proof += 1;
            trigger.arm(proof);
            if !proof_comes::<P>(calls, &board, proof, &clock).await {
                break;
            }
            let goes_on = clock.stamp();
            let (entry, exit) = (board.at(1).since(board.at(0)), goes_on.since(board.at(2)));
            samples.push(true, [clock.ns(entry), clock.ns(exit)]);
        }
        tray.put(samples);
        calls.stop().await;
    })?;
    rig.run(task)
}

/// The longest times without the lock for others, or without a look at interrupts, while tasks trigger and wake each other.
pub(crate) fn longest<P: Port>(bench: &Bench, polling: bool) -> Value {
    let ability = if polling { Ability::PollTime } else { Ability::LockTime };
    if let Some(absent) = P::unable(ability) {
        return Value::Absent(absent);
    }
    let mut place = bench.place;
    place.measure_latency = true;
    let slice = Nanos::new(bench.slice.count() / RUNS);
    let watched = Bench { place, slice, ..bench.clone() };
    let mut longest = Vec::new();
    for _ in 0..RUNS {
        match waitwake::closed::<P>(&watched, Cache::Hot, true) {
            Ok(Taken { outcome, .. }) => {
                if let Some(void) = outcome.void {
                    return Value::Absent(void);
                }
                let time = if polling { outcome.longest_unpolled } else { outcome.longest_lock };
                longest.extend(time.map(|time| time.count() as f64));
            }
            Err(absent) => return Value::Absent(absent),
        }
    }
    if longest.is_empty() {
        return Value::Absent(Absent::final_("the executive told no longest time"));
    }
    Value::Figure(Figure::from_samples(Unit::Ns, Method::Stamp, &mut longest))
}
