//! [`Report`]: what a delay did; [`DelayError`]: why it was refused.

use hairspring_machine::Nanos;

use crate::verdict::Verdict;

/// The longest delay that polls by default. During a longer one the machine would seem to hang.
pub const POLL_MOST: Nanos = Nanos::from_millis(100);

/// The longest delay of any kind, 100 days. A longer request is refused as a mistake.
pub const REQUEST_MOST: Nanos = Nanos::from_secs(100 * 86_400);

/// Result of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The time that the caller asked for.
    pub requested: Nanos,
    /// The time from the first reading inside the call to the last.
    pub actual: Nanos,
    /// `actual − requested`; negative only if a lead was asked for.
    pub late: Nanos,
    /// Time spent asleep in the kernel.
    pub slept: Nanos,
    /// Time spent polling.
    pub polled: Nanos,
    /// The planned time of polling before the deadline; zero for a delay that polls throughout.
    pub window: Nanos,
    /// The disturbances of the delay.
    pub verdict: Verdict,
}

impl Report {
    /// A report with nothing in it.
    pub(crate) const NONE: Self = {
        let none = Nanos::ZERO;
        Self {
            requested: none,
            actual: none,
            late: none,
            slept: none,
            polled: none,
            window: none,
            verdict: Verdict::CLEAN,
        }
    };
}

/// Why a delay was refused; all but [`Cancelled`](Self::Cancelled) return without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayError {
    /// The request is negative.
    Negative(Nanos),
    /// The request is longer than may be polled.
    TooLongToPoll(Nanos),
    /// The request is longer than [`REQUEST_MOST`].
    Absurd(Nanos),
    /// The deadline is an instant of another epoch or another time base.
    OtherEpoch,
    /// The flag of the delay was set. The delay had lasted this long.
    Cancelled(Nanos),
}

impl std::fmt::Display for DelayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Negative(span) => write!(f, "delay for {span}: a delay cannot be negative"),
            Self::TooLongToPoll(span) => {
                write!(f, "poll for {span}: more than {POLL_MOST} would lock up the machine; use LongDelay")
            }
            Self::Absurd(span) => write!(f, "delay for {span}: the longest is 100 days"),
            Self::OtherEpoch => {
                f.write_str("delay until an instant of another epoch: take the deadline from this time base")
            }
            Self::Cancelled(span) => write!(f, "finish the delay: cancelled after {span}"),
        }
    }
}

impl std::error::Error for DelayError {}

/// Refuses requests that are negative or absurd.
pub(crate) fn check(request: Nanos) -> Result<Nanos, DelayError> {
    if request.is_negative() {
        Err(DelayError::Negative(request))
    } else if request > REQUEST_MOST {
        Err(DelayError::Absurd(request))
    } else {
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_and_the_shortest_request_are_allowed() {
        for request in [Nanos::ZERO, REQUEST_MOST] {
            assert_eq!(check(request), Ok(request));
        }
    }
}
