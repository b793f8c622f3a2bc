//! [`SoakStates`]: how hot the machine was and how fast its CPU ran, block by block, in bounded memory.

use hairspring_machine::{Heat, Nanos};

use super::tally::BLOCKS_MOST;

/// Temperature and frequency over time, as far as the machine shows them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoakStates {
    /// In the order of time.
    pub states: Vec<SoakState>,
    /// One of `each` blocks is kept, and `passed` have come since the last one; zero before there are too many.
    each: u32,
    passed: u32,
}

/// Temperature and frequency at the end of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoakState {
    /// When the block began, from the begin of the soak.
    pub at: Nanos,
    /// Temperature and frequency.
    pub heat: Heat,
}

impl SoakStates {
    /// Enters the state at the end of a block. Where there are too many, every second one is dropped.
    pub fn enter(&mut self, at: Nanos, heat: Heat) {
        self.passed += 1;
        if self.passed < self.each {
            return;
        }
        self.passed = 0;
        self.states.push(SoakState { at, heat });
        if self.states.len() == BLOCKS_MOST {
            let mut place = 0;
            self.states.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.each = self.each.max(1) * 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_week_takes_no_more_states_than_a_day() {
        let mut states = SoakStates::default();
        for number in 0..50_000 {
            let heat = Heat { temperature_c: Some(f64::from(number)), frequency_hz: None };
            states.enter(Nanos::from_secs(number.into()), heat);
        }
        assert!((BLOCKS_MOST / 2..BLOCKS_MOST).contains(&states.states.len()), "{}", states.states.len());
        assert!(states.states.is_sorted_by(|a, b| a.at < b.at));
        let last = states.states.last().expect("some").at;
        assert!(last > Nanos::from_secs(49_900), "{last}");
    }
}
