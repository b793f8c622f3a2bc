//! Interrupt service: from the source's write to the procedure, and from the procedure back to the interrupted task;
//! and how long the executive locks others out.

use hairspring_machine::Nanos;
use hairspring_sheet::{Absent, Method, Unit};

use super::waitwake::{self, LOW};
use super::{Group, How, Scenario, diagrams, quantity};
use crate::executive::bench::firing::{FiringThread, Waiting, rehearse};
use crate::executive::bench::{Bench, Cache, Found, Rig, Sampled, all_absent, proof_comes, sampling};
use crate::executive::port::{Ability, Calls, Port};
use crate::probe::{Reading, Row, Taken, spin};

/// Number of runs, each of which gives its longest time.
const RUNS: i64 = 8;

/// The table: T1 and T2 of a procedure that makes no calls, T3 and T4 of one that may make calls.
pub(super) fn group<P: Port>() -> Group {
    let stamp = |segment, label, measures| quantity(segment, label, How::Stamp, measures);
    let raw = vec![
        stamp("t1", "T1", "a source on another CPU writes until a raw interrupt procedure runs"),
        stamp("t2", "T2", "a raw interrupt procedure returns until the interrupted task continues"),
    ];
    let conforming = vec![
        stamp("t3", "T3", "a source on another CPU writes until an interrupt procedure with IspCtx runs"),
        stamp("t4", "T4", "an interrupt procedure with IspCtx returns until the interrupted task continues"),
    ];
    Group {
        segment: "isp",
        title: "ISP handler",
        diagram: Some(diagrams::isp()),
        scenarios: vec![
            Scenario { quantities: raw, run: |bench, cache| entry_and_exit::<P>(bench, cache, false) },
            Scenario { quantities: conforming, run: |bench, cache| entry_and_exit::<P>(bench, cache, true) },
        ],
    }
}

fn entry_and_exit<P: Port>(bench: &Bench, cache: Cache, conforming: bool) -> Vec<Found> {
    match handled::<P>(bench, cache, conforming) {
        Ok(taken) => {
            let exit = P::unable(Ability::PreemptsCaller);
            vec![Ok(taken.series(0)), exit.map_or_else(|| Ok(taken.series(1)), Err)]
        }
        Err(absent) => all_absent::<2>(&absent),
    }
}

/// The latency of a raw procedure alone.
pub(super) fn latency<P: Port>(bench: &Bench) -> Found {
    handled::<P>(bench, Cache::Hot, false).map(|taken| taken.series(0))
}

fn handled<P: Port>(bench: &Bench, cache: Cache, conforming: bool) -> Result<Sampled, Absent> {
    let unable = P::unable(if conforming { Ability::Interrupt } else { Ability::RawInterrupt });
    if let Some(absent) = unable {
        return Err(absent);
    }
    let mut rig = Rig::<P>::new(bench)?;
    let (board, clock) = rig.share();
    let mut proof = 0;
    let mut procedure = move || {
        spin(0, 1);
        board.mark(1, clock.stamp());
        proof += 1;
        board.mark(2, clock.stamp());
        board.prove(proof);
    };
    let interrupt = if conforming { rig.port.attach(move |_| procedure()) } else { rig.port.attach_raw(procedure) }?;
    let (_firing, trigger) = FiringThread::start(bench, &rig.board, interrupt, Waiting::Rests)?;

    let ((board, _), (clock, slice, tray), sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let task = rig.port.spawn("A", LOW, async move |calls| {
        if !rehearse::<P>(calls, &board, &trigger, &clock).await {
            calls.stop().await;
            return;
        }
        let mut proof = 1;
        sampling!(calls, (clock, slice, tray), samples: 2 => {
            sweep.sweep();
            proof += 1;
            trigger.arm(proof);
            if !proof_comes::<P>(calls, &board, proof, &clock).await {
                break;
            }
            spin(1, 1);
            let goes_on = clock.stamp();
            let (entry, exit) = (board.at(1).since(board.at(0)), goes_on.since(board.at(2)));
            samples.push(true, [clock.ns(entry), clock.ns(exit)]);
        });
    })?;
    rig.run(task)
}

/// A probe of a longest time: its row, and the run.
pub(crate) struct Longest {
    pub(crate) row: Row,
    pub(crate) segment: &'static str,
    pub(crate) run: fn(&Bench) -> Taken,
}

/// Longest time for which an executive locks others out. Only fibers poll for interrupts; the others have no such row.
pub(crate) fn longest<P: Port>(polls: bool) -> Vec<Longest> {
    let row = |segment: &'static str, label: &str, measures: &str, run| {
        let row = Row::new(segment, label, Unit::Ns, Method::Stamp, measures);
        Longest { row, segment, run }
    };
    let mut rows = vec![row(
        "lock",
        "longest time locked",
        "the longest time in which the executive locks others out of its state while tasks trigger, wait, wake and end",
        |bench| longest_time::<P>(bench, false),
    )];
    if polls {
        rows.push(row(
            "poll",
            "longest time unpolled",
            "the longest time between two polls for interrupts in the same runs, with the code of tasks",
            |bench| longest_time::<P>(bench, true),
        ));
    }
    rows
}

/// The longest times in which others were locked out, or between two polls for interrupts, while tasks trigger and wake
/// each other.
fn longest_time<P: Port>(bench: &Bench, polling: bool) -> Taken {
    let ability = if polling { Ability::PollTime } else { Ability::LockTime };
    if let Some(absent) = P::unable(ability) {
        return Err(absent);
    }
    let mut place = bench.place;
    place.measure_latency = true;
    let slice = Nanos::new(bench.slice.count() / RUNS);
    let watched = Bench { place, slice, ..bench.clone() };
    let mut longest = Vec::new();
    for _ in 0..RUNS {
        let outcome = waitwake::closed_run::<P>(&watched, Cache::Hot, true)?.outcome;
        if let Some(void) = outcome.void {
            return Err(void);
        }
        let time = if polling { outcome.longest_unpolled } else { outcome.longest_lock };
        longest.extend(time.map(|time| time.count() as f64));
    }
    if longest.is_empty() {
        return Err(Absent::final_("the executive reported no longest time"));
    }
    Ok(Reading::samples(longest))
}
