//! [`Slopes`]: the cost of an event, from two loops that differ only in their number of events.

/// The times of two loops, in the order fewer, more, more, fewer, made into one sample: the time that each further
/// event adds.
///
/// The order cancels a uniform drift. The loops are the same code with k events and with 2k, or with an event and
/// without it. The difference of their events is known, and their common part (stamps, the loop's own work) cancels.
/// Only this makes a row of the method [`Diff`](hairspring_sheet::Method::Diff).
#[derive(Clone, Debug)]
pub(crate) struct Slopes {
    /// The number of events by which the loops differ.
    events: f64,
    values: Vec<f64>,
}

impl Slopes {
    /// Room for samples of two loops that differ by `events` events.
    pub(crate) fn new(events: f64, room: usize) -> Self {
        Self { events, values: Vec::with_capacity(room) }
    }

    /// Takes a sample: `time` runs the loop with more events (true) or with fewer, and returns its time.
    #[inline(always)]
    pub(crate) fn take(&mut self, mut time: impl FnMut(bool) -> f64) {
        let times = [time(false), time(true), time(true), time(false)];
        self.push(times);
    }

    /// Adds the sample of four times, in the order fewer, more, more, fewer.
    pub(crate) fn push(&mut self, times: [f64; 4]) {
        self.values.push(slope(times, self.events));
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn events(&self) -> f64 {
        self.events
    }

    pub(crate) fn into_values(self) -> Vec<f64> {
        self.values
    }
}

/// The cost of an event, from four times of loops that differ by `events` events, in the order fewer, more, more,
/// fewer.
#[inline]
pub(crate) fn slope([fewer, more, more_again, fewer_again]: [f64; 4], events: f64) -> f64 {
    (more + more_again - fewer - fewer_again) / (2.0 * events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_drift_and_what_both_loops_have_are_not_in_a_slope() {
        let mut now = 0.0;
        let mut slopes = Slopes::new(100.0, 1);
        slopes.take(|more| {
            now += 17.0;
            25.0 + now + if more { 200.0 } else { 100.0 } * 3.5
        });
        assert_eq!((slopes.len(), slopes.events()), (1, 100.0));
        assert_eq!(slopes.into_values(), [3.5]);
        // An event that makes a loop faster has a negative cost, and it shows.
        assert_eq!(slope([100.0, 90.0, 90.0, 100.0], 5.0), -2.0);
    }
}
