//! [`Missing`]: how many datagrams are missing where a number determines it only up to whole turns of its counter.
//!
//! **Problem.** A number of 8 bits comes again after 256 datagrams. If 300 are lost, the numbers show 44; if 256 are
//! lost, they show nothing.
//!
//! **Solution.** The time between the arrivals of two datagrams limits how many the sender can have sent between them
//! ([`Sent`]). Every count that fits both the numbers and the limit is possible. The count nearest to the sender's rate
//! is declared, with the least and the most as bounds.
//!
//! **Conditions.** A sender never sends faster than [`FASTER`] times its rate for long. It may be slower, and it may
//! pause: so the least is always the count by the numbers alone. Counters of 32 and 64 bits turn too slowly for any
//! doubt.

use hairspring_machine::Nanos;

/// A number at most this far ahead is a loss. The limit is small, so that one wrong number makes no large gap. This
/// many datagrams may also come earlier than the rate allows.
pub(super) const NEAR: u64 = 64;

/// Factor by which a sender may exceed its stated rate.
const FASTER: f64 = 1.02;

/// Factor by which it may exceed its average, if no rate is stated.
const FASTER_THAN_AVERAGE: f64 = 2.0;

/// Number of datagrams that the sender has sent in a span: usual and most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sent {
    /// By its rate.
    pub(super) usual: f64,
    /// No more than this.
    pub(super) most: u64,
    /// Whether its user states the rate.
    stated: bool,
}

impl Sent {
    /// `per_s`: datagrams per second, stated or averaged since the start.
    pub(super) fn within(span: Nanos, per_s: f64, stated: bool) -> Self {
        let usual = span.as_secs_f64().max(0.0) * per_s;
        let faster = if stated { FASTER } else { FASTER_THAN_AVERAGE };
        // The conversion saturates.
        Self { usual, most: ((usual * faster) as u64).saturating_add(NEAR), stated }
    }
}

impl Sent {
    /// Whether a number of `bits` bits may belong to the next turn.
    pub(super) fn may_turn(self, bits: u8) -> bool {
        bits < 32 && self.usual > (1_u64 << bits) as f64 / 4.0
    }
}

/// Number of missing datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    /// The most likely count; `None` if only the bounds are known and `least` is 0.
    pub(super) likely: Option<u64>,
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Missing {
    pub(super) fn exactly(count: u64) -> Self {
        Self { likely: Some(count), least: count, most: count }
    }

    /// By the numbers, `ahead` datagrams are missing, or whole turns of 2^`bits` more.
    pub(super) fn of(ahead: u64, bits: u8, sent: Option<Sent>) -> Self {
        let (Some(sent), Some(turn)) = (sent, 1_u64.checked_shl(bits.into()).filter(|_| bits < 32)) else {
            return Self::exactly(ahead);
        };
        // The received datagram is one of those that were sent.
        let turns = sent.most.saturating_sub(ahead + 1) / turn;
        if turns == 0 {
            return Self::exactly(ahead);
        }
        let nearest = ((sent.usual - (ahead + 1) as f64) / turn as f64).round() as u64;
        // A sender with an unknown rate may have paused instead.
        let is_likely = sent.stated || ahead > 0;
        let likely = is_likely.then_some(ahead + nearest.min(turns) * turn);
        Self { likely: likely.filter(|likely| *likely > 0), least: ahead, most: ahead + turns * turn }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ahead: u64, bits: u8, sent: Option<(i64, f64, bool)>, expected: (Option<u64>, u64, u64)) {
        let sent = sent.map(|(ms, per_s, stated)| Sent::within(Nanos::from_millis(ms), per_s, stated));
        let Missing { likely, least, most } = Missing::of(ahead, bits, sent);
        assert_eq!((likely, least, most), expected, "{ahead} ahead, {bits} bits, {sent:?}");
    }

    #[test]
    fn turns_that_fit_the_time_are_counted_and_the_others_are_bounds() {
        // With 8 bits, 256 are lost within the time of 257: a pause would look the same.
        check(0, 8, Some((514, 500.0, true)), (Some(256), 0, 256));
        check(44, 8, Some((602, 500.0, true)), (Some(300), 44, 300));
        check(20, 16, Some((3278, 20_000.0, true)), (Some(65_556), 20, 65_556));
        // No turn fits.
        check(3, 8, Some((8, 500.0, true)), (Some(3), 3, 3));
        check(0, 8, Some((2, 500.0, true)), (Some(0), 0, 0));
        check(63, 8, Some((300, 500.0, true)), (Some(63), 63, 63));
        // Numbers too wide to turn in any relevant time, and an unknown rate.
        check(900, 32, Some((900_000, 1000.0, true)), (Some(900), 900, 900));
        check(0, 64, Some((900_000, 1000.0, true)), (Some(0), 0, 0));
        check(5, 8, None, (Some(5), 5, 5));
        // By the average alone it may have paused.
        check(0, 8, Some((514, 500.0, false)), (None, 0, 512));
        check(44, 8, Some((602, 500.0, false)), (Some(300), 44, 556));
        check(
            0,
            8,
            Some((i64::MAX / 1_000_000, 1e12, true)),
            (Some((u64::MAX - 1) / 256 * 256), 0, (u64::MAX - 1) / 256 * 256),
        );
    }
}
