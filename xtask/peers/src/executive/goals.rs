//! Our goals beside the measured values. They are checked and printed, never asserted, because machines and moments
//! differ.

use hairspring_sheet::Unit;
use hairspring_sheet::render::quantity;
use hairspring_suite::executive::{Compared, Round};

use super::from_c::{BACK_ENDS, Figures};
use super::rounds::{Candidate, Results};
use super::scaling::{GROWTH_MOST, Growth};

/// Limits for our fibers, in nanoseconds.
const FOUR_TS_MOST_NS: f64 = 20.0;
const WAKE_WAIT_MOST_NS: f64 = 10.0;
const SEND_RUN_MOST_NS: f64 = 12.0;
/// Limits for the ratio of ours to others that work the same way.
const OVER_COROUTINE_MOST: f64 = 4.0;
const OVER_ASYNCHRONOUS_MOST: f64 = 1.5;
const OVER_FUTEX_MOST: f64 = 1.05;
const DELAY_OVER_BARE_MOST: f64 = 1.1;
/// Limit for the ratio of a call from C to the same from Rust.
const FROM_C_MOST: f64 = 2.0;

/// A goal and the measured value.
struct Goal {
    what: String,
    /// Nothing: no result.
    seen: Option<(String, bool)>,
}

impl Goal {
    fn verdict(&self) -> &'static str {
        match self.seen {
            Some((_, true)) => "met",
            Some((_, false)) => "**missed**",
            None => "no result",
        }
    }
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

/// The goals about the compared scenarios. `wall` has the medians in nanoseconds for a round, `rate` those in
/// operations per second.
fn compared(
    wall: impl Fn(Compared, Candidate) -> Option<f64>,
    rate: impl Fn(Compared, Candidate) -> Option<f64>,
) -> Vec<Goal> {
    use Candidate::{Coroutine, Embassy, Fiber, FiberDirect, Futex, Pthread, ThreadUp, ThreadUpDirect, Tokio};
    let over = |what: &str, scenario, ours, theirs, most| {
        let ratio = wall(scenario, ours).zip(wall(scenario, theirs)).map(|(ours, theirs)| ours / theirs);
        at_most(what, ratio, most, Unit::Ratio)
    };
    // Times are the inverse of rates.
    let slower = |what: &str, scenario, theirs| {
        let ratio = rate(scenario, Fiber).zip(rate(scenario, theirs)).map(|(ours, theirs)| theirs / ours);
        at_most(what, ratio, OVER_ASYNCHRONOUS_MOST, Unit::Ratio)
    };
    let fiber = |what: &str, scenario, most_ns| at_most(what, wall(scenario, FiberDirect), most_ns, Unit::Ns);
    let switch = "fiber, wake + wait over resume + suspend of bare corosensei";
    let wake = "thread_up, wake + wait over a bare futex pair";
    vec![
        fiber("fiber, T1 + T2 + T3 + T4", Compared::FourTs, FOUR_TS_MOST_NS),
        fiber("fiber, wake + wait with two switches", Compared::WakeWait, WAKE_WAIT_MOST_NS),
        over(switch, Compared::WakeWait, FiberDirect, Coroutine, OVER_COROUTINE_MOST),
        fiber("fiber, mailbox of 12 bytes, send → run", Compared::SendRun, SEND_RUN_MOST_NS),
        slower("fiber, message without a switch over tokio", Compared::Messages, Tokio),
        slower("fiber, message without a switch over embassy", Compared::Messages, Embassy),
        slower("fiber, semaphore without a switch over tokio", Compared::Synchronisation, Tokio),
        slower("fiber, semaphore without a switch over embassy", Compared::Synchronisation, Embassy),
        over(wake, Compared::WakeWait, ThreadUpDirect, Futex, OVER_FUTEX_MOST),
        over("thread_up, delay T1 over bare threads", Compared::Delay, ThreadUp, Pthread, DELAY_OVER_BARE_MOST),
        above("thread_up, Thread-Metric cooperative", rate(Compared::Cooperative, ThreadUp), 170e3, "FreeRTOS"),
        above("thread_up, Thread-Metric preemptive", rate(Compared::Preemptive, ThreadUp), 91e3, "FreeRTOS"),
        above("fiber, Thread-Metric message", rate(Compared::Messages, Fiber), 17e6, "ThreadX"),
        above("fiber, Thread-Metric synchronisation", rate(Compared::Synchronisation, Fiber), 19e6, "ThreadX"),
    ]
}

/// The goal about the pairs of calls of one back-end, by the ratio of C to Rust: the greatest counts, and all must be
/// there.
fn from_c(back_end: &str, ratios: impl Iterator<Item = (&'static str, Option<f64>)>) -> Goal {
    let ratios: Option<Vec<_>> = ratios.map(|(pair, ratio)| Some((pair, ratio?))).collect();
    let greatest = ratios.and_then(|ratios| ratios.into_iter().max_by(|(_, one), (_, other)| one.total_cmp(other)));
    let goal = at_most(
        &format!("{back_end}, each of the calls from C over the same from Rust"),
        greatest.map(|(_, ratio)| ratio),
        FROM_C_MOST,
        Unit::Ratio,
    );
    let seen = goal.seen.zip(greatest).map(|((seen, met), (pair, _))| (format!("{seen} ({pair})"), met));
    Goal { seen, ..goal }
}

/// Prints the verdicts.
pub(crate) fn print(results: &Results, growths: &[Growth], ten_thousand: Option<Round>, figures: &Figures) {
    let mut goals = compared(
        |scenario, candidate| results.wall(scenario, candidate).map(|spread| spread.median),
        |scenario, candidate| results.rate(scenario, candidate).map(|spread| spread.median),
    );
    let preempted = ten_thousand.map(|batch| {
        let proven = batch.samples - batch.unproven;
        (format!("{proven} of {}", batch.samples), batch.unproven == 0)
    });
    goals.push(Goal {
        what: "thread_up, 10,000 of 10,000 preempted before the call returned".to_owned(),
        seen: preempted,
    });
    for growth in growths.iter().filter(|growth| growth.goal) {
        let what = format!("fiber, 10,000 over 10: {}", growth.name);
        goals.push(at_most(&what, growth.ratio(), GROWTH_MOST, Unit::Ratio));
    }
    goals.extend(BACK_ENDS.iter().enumerate().map(|(number, back_end)| from_c(back_end, figures.ratios(number))));
    println!("### Goals\n");
    println!(
        "Medians of this run; times of ours without the port, and with it where tokio, embassy and bare threads have it. FreeRTOS and ThreadX: their \
         POSIX ports on a machine of this kind, measured before.\n"
    );
    println!("| goal | seen | verdict |\n| --- | ---: | --- |");
    for goal in goals {
        let seen = goal.seen.as_ref().map_or("–", |(seen, _)| seen);
        println!("| {} | {seen} | {} |", goal.what, goal.verdict());
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdicts, by the beginning of the goal, if one cell has this value and all others 100 (ns, or operations per
    /// second).
    #[track_caller]
    fn check(scenario: Compared, candidate: Candidate, value: f64, what: &str, verdict: &str) {
        let cell = move |at: Compared, whose: Candidate| {
            Some(if (at.name(), whose) == (scenario.name(), candidate) { value } else { 100.0 })
        };
        let goals = compared(cell, cell);
        let goal = goals.iter().find(|goal| goal.what.starts_with(what)).expect("the goal");
        assert_eq!(goal.verdict(), verdict, "{}, seen {:?}", goal.what, goal.seen);
    }

    #[test]
    fn times_of_fibers_have_limits() {
        for (scenario, most_ns, what) in [
            (Compared::FourTs, 20.0, "fiber, T1 + T2"),
            (Compared::WakeWait, 10.0, "fiber, wake + wait with"),
            (Compared::SendRun, 12.0, "fiber, mailbox"),
        ] {
            check(scenario, Candidate::FiberDirect, most_ns, what, "met");
            check(scenario, Candidate::FiberDirect, most_ns + 0.1, what, "**missed**");
        }
    }

    #[test]
    fn ours_over_theirs_has_limits() {
        for (scenario, ours, most, what) in [
            (Compared::WakeWait, Candidate::FiberDirect, 4.0, "fiber, wake + wait over"),
            (Compared::WakeWait, Candidate::ThreadUpDirect, 1.05, "thread_up, wake + wait"),
            (Compared::Delay, Candidate::ThreadUp, 1.1, "thread_up, delay T1"),
        ] {
            check(scenario, ours, most * 100.0 - 0.1, what, "met");
            check(scenario, ours, most * 100.0 + 0.1, what, "**missed**");
        }
    }

    #[test]
    fn operations_without_a_switch_are_compared_with_both_asynchronous_executives() {
        for (scenario, what) in [(Compared::Messages, "message"), (Compared::Synchronisation, "semaphore")] {
            for (theirs, name) in [(Candidate::Tokio, "tokio"), (Candidate::Embassy, "embassy")] {
                let what = format!("fiber, {what} without a switch over {name}");
                check(scenario, theirs, 149.0, &what, "met");
                check(scenario, theirs, 151.0, &what, "**missed**");
            }
        }
    }

    #[test]
    fn the_greatest_ratio_of_c_to_rust_counts() {
        let goal = |ratios: [Option<f64>; 2]| from_c("fibers", ["mutex", "timer"].into_iter().zip(ratios));
        assert_eq!(goal([Some(2.0), Some(1.0)]).verdict(), "met");
        let missed = goal([Some(1.0), Some(2.01)]);
        assert_eq!(missed.verdict(), "**missed**");
        assert!(missed.seen.unwrap().0.ends_with("(timer)"));
        assert_eq!(goal([Some(1.0), None]).verdict(), "no result");
    }

    #[test]
    fn without_a_result_there_is_no_verdict() {
        let goals = compared(|_, _| None, |_, _| None);
        assert!(goals.len() == 14 && goals.iter().all(|goal| goal.verdict() == "no result"));
    }
}
