//! Spans and instants as values: their arithmetic at its ends, equality, and their text.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use hairspring_machine::{DurationError, Epoch, EpochMismatch, Instant, Nanos, Ticks};

#[test]
fn checked_arithmetic_gives_the_result_or_none() {
    let (two, three, most) = (Nanos::new(2), Nanos::new(3), Nanos::MAX);
    assert_eq!((two.checked_add(three), most.checked_add(two)), (Some(Nanos::new(5)), None));
    assert_eq!((two.checked_sub(three), Nanos::new(-3).checked_sub(most)), (Some(Nanos::new(-1)), None));
    assert_eq!((two.checked_mul(-3), most.checked_mul(2)), (Some(Nanos::new(-6)), None));
}

#[test]
fn instants_are_equal_if_their_readings_are_and_a_set_holds_each_once() {
    let at = |nanos: i64| Instant::from_monotonic(Nanos::new(nanos));
    assert!(at(5) == at(5) && at(5) != at(6) && at(-5) != at(5));
    let set: HashSet<Instant> = [5, 6, 5, -5].into_iter().map(at).collect();
    assert_eq!(set.len(), 3);
    let hasher = RandomState::new();
    assert!(hasher.hash_one(at(5)) == hasher.hash_one(at(5)) && hasher.hash_one(at(5)) != hasher.hash_one(at(6)));
    assert_eq!(at(0).to_string(), "0.000000000 s");
    assert_eq!(at(-1_500_000_000).to_string(), "-1.500000000 s");
    assert_eq!(at(81_234_000_000_500).to_string(), "81234.000000500 s");
}

#[test]
fn epochs_of_different_beginnings_differ_and_none_is_the_kernels() {
    let mut epochs = HashSet::from([Epoch::KERNEL.number()]);
    for tick in 0..1_000 {
        let epoch = Epoch::beginning_at(Ticks::new(tick << 20));
        assert!(epochs.insert(epoch.number()) || tick == 0, "tick {tick}");
        assert!(epoch.other() != epoch && epoch.other() != Epoch::KERNEL);
    }
    assert_eq!(Epoch::KERNEL.number(), 0);
}

#[test]
fn a_span_that_does_not_fit_and_a_unit_that_is_none_are_refused() {
    // The nearest number to 2^63 nanoseconds is 2^63, one too many.
    assert_eq!(Nanos::try_from_secs_f64(9_223_372_036.854_776), Err(DurationError::TooLong));
    assert!(Nanos::try_from_secs_f64(9_223_372_036.0).is_ok());
    assert_eq!("5eggs".parse::<Nanos>(), Err(DurationError::UnknownUnit { unit: "eggs".to_owned() }));
    assert_eq!("5e2us".parse(), Ok(Nanos::from_micros(500)));
}

#[test]
fn instants_of_two_epochs_have_no_distance_and_the_error_says_why() {
    let error = EpochMismatch.to_string();
    assert!(error.contains("different epochs") && error.contains("suspend"), "{error}");
}
