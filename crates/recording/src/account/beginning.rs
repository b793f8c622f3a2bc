//! [`Beginning`]: when the first frame of a recording was taken, by two clocks, and how exactly that is known.
//!
//! ```text
//!   CLOCK_MONOTONIC      a ────────── b        the time of day is read between two readings
//!   CLOCK_REALTIME            r
//! ```
//!
//! At `b` the time of day was between `r` and `r + (b − a)`. A [`Beginning`] states the later end, and as `within` how
//! much earlier the frame may have been taken.

use hairspring_machine::{Clock, Instant, Machine, Nanos};

/// Brackets that are taken. The narrowest is kept, because a wider one was disturbed.
const TRIES: usize = 5;

/// When the first frame was taken: at these readings of two clocks, or up to `within` earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// On `CLOCK_MONOTONIC`.
    pub monotonic: Instant,
    /// The time of day (`CLOCK_REALTIME`).
    pub realtime: Nanos,
    /// How much earlier it may have been; 0 or more.
    pub within: Nanos,
}

impl Beginning {
    /// The present time by both clocks, for a frame that is taken now.
    pub fn now(machine: &impl Machine) -> Self {
        let brackets = std::array::from_fn::<_, TRIES, _>(|_| {
            let before = machine.monotonic();
            let realtime = machine.read(Clock::Realtime);
            let monotonic = machine.monotonic();
            let within = monotonic - before;
            Self { monotonic, realtime: realtime + within, within }
        });
        // Take the latest of equally narrow brackets: an earlier one is older by the length of the later ones.
        let narrowest = brackets.iter().map(|one| one.within).min();
        *brackets.iter().rfind(|one| Some(one.within) == narrowest).unwrap_or(&brackets[TRIES - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hairspring_machine::Host;

    #[test]
    fn the_moment_lies_in_its_bracket() {
        let before = Host.monotonic();
        let earliest = Host.read(Clock::Realtime);
        let beginning = Beginning::now(&Host);
        let after = Host.monotonic();
        assert!(before <= beginning.monotonic - beginning.within && beginning.monotonic <= after, "{beginning:?}");
        assert!(earliest <= beginning.realtime, "{beginning:?}");
    }
}
