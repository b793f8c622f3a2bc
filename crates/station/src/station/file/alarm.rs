//! Latencies of a unit from which on control systems raise an alarm, checked.

use hairspring_machine::Nanos;
use toml::Spanned;

use super::{Alarm, Span, Wrong};
use crate::station::LatencyAlarm;

/// The limits.
///
/// # Errors
/// There is no limit, they are in the wrong order, or the hysteresis is not shorter than each.
pub(super) fn limits(alarm: &Spanned<Alarm>) -> Result<LatencyAlarm, Wrong> {
    let of = |span: &Option<Span>| span.as_ref().map(|Span(span)| *span);
    let Alarm { minor, major, hysteresis } = alarm.get_ref();
    let (minor, major, hysteresis) = (of(minor), of(major), of(hysteresis).unwrap_or(Nanos::ZERO));
    let wrong = match (minor.into_iter().chain(major).min(), minor.zip(major)) {
        (None, _) => "an alarm needs a limit: write minor = \"20us\" or major = \"100us\"",
        (_, Some((minor, major))) if minor >= major => "minor must be less than major",
        (Some(least), _) if hysteresis >= least => "the hysteresis must be shorter than the limits",
        _ => return Ok(LatencyAlarm { minor, major, hysteresis }),
    };
    Err((alarm.span(), wrong.to_owned()))
}
