//! Time facts of a recording, in one line and as JSON.

use hairspring_recording::clock::external::ExternalSilence;
use hairspring_recording::clock::{ClockChange, ClockChangeKind};
use hairspring_recording::sigmf::{About, datetime};
use hairspring_time::Nanos;
use serde_json::{Value, json};

use crate::listing::span;

/// Steps and silences in a line; the JSON has all of them.
const FEW: usize = 3;

/// The time of frame 0, the card's true rate, and the state of the clocks.
pub(crate) fn line(about: &About) -> Option<String> {
    let within = about.started_within?;
    let half = Nanos::new(within.count() / 2);
    let middle = about.started_realtime - half;
    let moment = datetime(middle, within - half);
    let how = about.clock.frame0().map_or_else(String::new, |mark| format!(" ({})", mark.how.name().replace('_', " ")));
    let mut told = vec![format!("frame 0 at {moment} ± {}{how}", span(within - half))];
    let axis = about.time_axis();
    if let Some([low, high]) = about.rate.and_then(|rate| axis.rate_ppb(rate)) {
        told.push(format!("rate {:+.3} to {:+.3} ppm over {}", low / 1e3, high / 1e3, span(axis.over())));
    } else if let Some([low, high]) = axis.rate_hz() {
        told.push(format!("rate {low:.3} to {high:.3} frames/s over {}", span(axis.over())));
    }
    if axis.off_line() > Nanos::ZERO {
        told.push(format!(
            "the frames are off a steady clock by {}: varying delay, a clock that stepped, or frames lost without notice",
            span(axis.off_line())
        ));
    }
    told.extend(about.clock.changes().iter().map(change));
    Some(told.join("; "))
}

fn change(change: &ClockChange) -> String {
    match change.kind {
        ClockChangeKind::Step(by) => format!("the time of day stepped by {by}"),
        ClockChangeKind::Suspend(by) => format!("the computer was suspended for {}", span(by)),
        ClockChangeKind::Slew(before, after) => {
            format!("the computer's clock was slewed from {:+.1} to {:+.1} ppm", before / 1e3, after / 1e3)
        }
    }
}

/// Drift of the kernel's clock and of the card against the external clock, and its effect; `None` without an external
/// clock.
pub(crate) fn reference(about: &About) -> Option<String> {
    let clock = &about.clock;
    let facts = clock.external.as_ref()?;
    let ppm = |[low, high]: [f64; 2]| format!("{:+.3} to {:+.3} ppm", low / 1e3, high / 1e3);
    let mut told = Vec::new();
    match clock.external_rate() {
        Some(rate) => {
            told.push(format!("CLOCK_MONOTONIC {} over {}", ppm(rate.ppb), span(rate.over)));
            told.extend(about.external_rate_ppb().map(|ppb| format!("the card {}", ppm(ppb))));
            if rate.off_line > Nanos::ZERO {
                told.push(format!(
                    "the clocks are off a steady rate by {}: one of them was corrected, or a stamp was late",
                    span(rate.off_line)
                ));
            }
        }
        None if clock.external_readings().is_empty() => told.push("it was never read".to_owned()),
        None => told.push("no rate, because it was read once, or stood or stepped between all readings".to_owned()),
    }
    few(&mut told, clock.external_steps().iter().map(|step| format!("it stepped by {}", step.by)));
    let silences = clock.external_silences().iter().map(|silence| {
        let why = if silence.is_gone { "it was gone or refused" } else { "it gave nothing" };
        format!("{why} for {}", span(silence.before - silence.after))
    });
    few(&mut told, silences);
    Some(format!("{facts}: {}", told.join("; ")))
}

/// The first of many, and how many more there are.
fn few(told: &mut Vec<String>, mut all: impl ExactSizeIterator<Item = String>) {
    told.extend(all.by_ref().take(FEW));
    if all.len() > 0 {
        told.push(format!("and {} times more", all.len()));
    }
}

/// The same for programs; null without an external clock.
pub(crate) fn reference_json(about: &About) -> Value {
    let clock = &about.clock;
    let Some(facts) = &clock.external else { return Value::Null };
    let rate = clock.external_rate();
    let silence = |it: &ExternalSilence| {
        let monotonic_ns = [it.after, it.before].map(|at| at.as_monotonic().count());
        json!({ "monotonic_ns": monotonic_ns, "gone": it.is_gone })
    };
    json!({
        "kind": facts.kind.name(),
        "id": facts.id,
        "name": facts.name,
        "late_ns": facts.late.count(),
        "readings": clock.external_readings().len(),
        "monotonic_ppb": rate.map(|rate| rate.ppb),
        "over_ns": rate.map(|rate| rate.over.count()),
        "off_line_ns": rate.map(|rate| rate.off_line.count()),
        "rate_hz": about.external_rate_hz(),
        "rate_ppb": about.external_rate_ppb(),
        "steps_ns": clock.external_steps().iter().map(|step| step.by.count()).collect::<Vec<_>>(),
        "silences": clock.external_silences().iter().map(silence).collect::<Vec<_>>(),
    })
}

/// The facts of [`line`], for programs; null if frame 0 has no time.
pub(crate) fn json(about: &About) -> Value {
    let axis = about.time_axis();
    let Some(within) = about.started_within else { return Value::Null };
    json!({
        "frame0_realtime_ns": [(about.started_realtime - within).count(), about.started_realtime.count()],
        "how": about.clock.frame0().map(|mark| mark.how.name()),
        "rate_hz": axis.rate_hz(),
        "rate_ppb": about.rate.and_then(|rate| axis.rate_ppb(rate)),
        "over_ns": axis.over().count(),
        "off_line_ns": axis.off_line().count(),
        "marks": about.clock.marks().len(),
        "changes": about.clock.changes().iter().map(change).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_steps_the_first_are_told_and_the_number_of_the_others() {
        let check = |count: usize, expected: &[&str]| {
            let mut told = Vec::new();
            few(&mut told, (0..count).map(|number| number.to_string()));
            assert_eq!(told, expected);
        };
        check(0, &[]);
        check(3, &["0", "1", "2"]);
        check(4095, &["0", "1", "2", "and 4092 times more"]);
    }
}
