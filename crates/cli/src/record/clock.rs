//! What a recording knows of time, in one line and as JSON.

use hairspring_record::clock::{ClockChange, ClockChangeKind};
use hairspring_record::sigmf::{About, datetime};
use hairspring_time::Nanos;
use serde_json::{Value, json};

use crate::listing::span;

/// When frame 0 was taken, the card's true rate, and what the clocks did.
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

/// The same for programs; null if frame 0 has no time.
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
