//! Our goals beside the measured values. They are checked and printed, never asserted, because machines and moments differ.

use hairspring_sheet::Unit;
use hairspring_sheet::render::quantity;
use hairspring_suite::executive::{Compared, Round};

use super::rounds::{Candidate, Results};
use super::scaling::{GROWTH_MOST, Growth};

/// A goal and the measured value.
struct Goal {
    what: String,
    /// Nothing: no result.
    seen: Option<(String, bool)>,
}

/// An upper limit.
fn at_most(what: &str, value: Option<f64>, most: f64, unit: Unit) -> Goal {
    let seen = value.map(|value| (quantity(value, unit).to_string(), value <= most));
    Goal { what: format!("{what} ≤ {}", quantity(most, unit)), seen }
}

/// A lower limit, per second.
fn above(what: &str, value: Option<f64>, least: f64, whose: &str) -> Goal {
    let seen = value.map(|value| (quantity(value, Unit::PerSecond).to_string(), value > least));
    Goal { what: format!("{what} above {} ({whose})", quantity(least, Unit::PerSecond)), seen }
}

/// Prints the verdicts.
pub(crate) fn print(results: &Results, growths: &[Growth], ten_thousand: Option<Round>) {
    use Candidate::{Fiber, FiberDirect, Futex, ThreadUp, ThreadUpDirect};
    let wall = |scenario, candidate| results.wall(scenario, candidate).map(|spread| spread.median);
    let rate = |scenario, candidate| results.rate(scenario, candidate).map(|spread| spread.median);
    let futex = wall(Compared::WakeWait, Futex);
    let over = wall(Compared::WakeWait, ThreadUpDirect).zip(futex).map(|(ours, bare)| ours / bare);
    let preempted = ten_thousand.map(|batch| {
        let proven = batch.samples - batch.unproven;
        (format!("{proven} of {}", batch.samples), batch.unproven == 0)
    });
    let mut goals = vec![
        at_most("fiber, T1 + T2 + T3 + T4", wall(Compared::FourTs, FiberDirect), 25.0, Unit::Ns),
        at_most("fiber, wake + wait with two switches", wall(Compared::WakeWait, FiberDirect), 12.0, Unit::Ns),
        at_most("fiber, mailbox of 12 bytes, send → run", wall(Compared::SendRun, FiberDirect), 15.0, Unit::Ns),
        at_most("thread_up, wake + wait over a bare futex pair", over, 1.1, Unit::Ratio),
        Goal { what: "thread_up, 10,000 of 10,000 preempted before the call returned".to_owned(), seen: preempted },
        above("thread_up, Thread-Metric cooperative", rate(Compared::Cooperative, ThreadUp), 170e3, "FreeRTOS"),
        above("thread_up, Thread-Metric preemptive", rate(Compared::Preemptive, ThreadUp), 91e3, "FreeRTOS"),
        above("fiber, Thread-Metric message", rate(Compared::Messages, Fiber), 17e6, "ThreadX"),
        above("fiber, Thread-Metric synchronisation", rate(Compared::Synchronisation, Fiber), 19e6, "ThreadX"),
    ];
    for growth in growths.iter().filter(|growth| growth.goal) {
        let what = format!("fiber, 10,000 over 10: {}", growth.name);
        goals.push(at_most(&what, growth.ratio(), GROWTH_MOST, Unit::Ratio));
    }
    println!("### Goals\n");
    println!(
        "Medians of this run; times of ours without the port. FreeRTOS and ThreadX: their POSIX ports on a machine of this kind, measured before.\n"
    );
    println!("| goal | seen | verdict |\n| --- | ---: | --- |");
    for Goal { what, seen } in goals {
        let (seen, verdict) = match seen {
            Some((seen, true)) => (seen, "met"),
            Some((seen, false)) => (seen, "**missed**"),
            None => ("–".to_owned(), "no result"),
        };
        println!("| {what} | {seen} | {verdict} |");
    }
    println!();
}
