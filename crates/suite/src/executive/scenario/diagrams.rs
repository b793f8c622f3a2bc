//! The timing diagrams of the tables. Times have arbitrary units; only their order matters.

use hairspring_sheet::{Diagram, Origin};

/// Wait and wake.
pub(super) fn waitwake() -> Diagram {
    Diagram::new("B triggers A, which is more urgent and waits; B wakes A, which ends.", Origin::Guide, &["A", "B"])
        .run(1, 0, 3)
        .call(1, 3, "trigger(A)")
        .run(0, 6, 9)
        .call(0, 9, "wait()")
        .run(1, 12, 15)
        .call(1, 15, "wake(A)")
        .run(0, 18, 21)
        .call(0, 21, "end")
        .run(1, 24, 27)
        .span("T1", 3, 6, "B calls trigger(A) until the first instruction of A")
        .span("T2", 9, 12, "A calls wait() until B continues after trigger")
        .span("T3", 15, 18, "B calls wake(A) until A continues after wait")
        .span("T4", 21, 24, "A ends until B continues after wake")
}

/// A message.
pub(super) fn mailbox() -> Diagram {
    Diagram::new("B sends 12 bytes to A, which is more urgent, has its own copy, and ends.", Origin::Guide, &["A", "B"])
        .run(1, 0, 3)
        .call(1, 3, "send(A, 12 bytes)")
        .run(0, 8, 12)
        .call(0, 12, "end")
        .run(1, 15, 18)
        .span("T1", 3, 8, "B calls send until A runs with its copy of the message")
        .span("T2", 12, 15, "A ends until B continues after send")
}

/// Timers.
pub(super) fn timer() -> Diagram {
    Diagram::new(
        "A computes; once the clock is checked with none due, once a timer expires.",
        Origin::Ours,
        &["procedure", "A"],
    )
    .run(1, 0, 3)
    .call(1, 3, "tick, none due")
    .run(1, 6, 10)
    .call(1, 10, "timer is due")
    .run(0, 14, 17)
    .run(1, 20, 23)
    .span("T1", 3, 6, "a check of the clock with none due")
    .span("T2", 10, 14, "the moment the timer is due until its procedure is entered")
    .span("T3", 17, 20, "the procedure returns until A continues")
}

/// A delay.
pub(super) fn delay() -> Diagram {
    Diagram::new("A delays; X, which is less urgent, runs until A is due.", Origin::Ours, &["A", "X"])
        .run(0, 0, 3)
        .call(0, 3, "delay")
        .run(1, 6, 12)
        .call(1, 12, "A is due")
        .run(0, 16, 19)
        .span("T1", 3, 6, "A calls delay until X runs")
        .span("T2", 12, 16, "the moment A is due until A continues after delay")
}

/// Interrupt procedures.
pub(super) fn isp() -> Diagram {
    Diagram::new(
        "A source on another CPU interrupts A: once with a raw procedure, once with one that makes calls.",
        Origin::Ours,
        &["raw ISP", "ISP with IspCtx", "A"],
    )
    .run(2, 0, 3)
    .call(2, 3, "the source writes")
    .run(0, 6, 8)
    .run(2, 11, 14)
    .call(2, 14, "the source writes")
    .run(1, 18, 20)
    .run(2, 24, 27)
    .span("T1", 3, 6, "the source writes until the raw procedure runs")
    .span("T2", 8, 11, "the raw procedure returns until A continues")
    .span("T3", 14, 18, "the source writes until the procedure with IspCtx runs")
    .span("T4", 20, 24, "the procedure with IspCtx returns until A continues")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_diagram_can_be_drawn() {
        for diagram in [waitwake(), mailbox(), timer(), delay(), isp()] {
            diagram.check().expect("it can be drawn");
        }
    }
}
