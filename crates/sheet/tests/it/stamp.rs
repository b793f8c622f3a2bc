//! Figures by the way their samples were taken, and the events that are too short for it.

use hairspring_sheet::{Absent, Figure, Method, Stamps, Unit};
use proptest::prelude::*;

const STAMPS: Stamps = Stamps { step: Some(10.0), overhead: 5.0, beside: 0.0 };

fn stamped(samples: &[f64], stamps: Stamps) -> Result<Figure, Absent> {
    Figure::stamped(Unit::Ns, &mut samples.to_vec(), &stamps)
}

#[test]
fn what_takes_less_than_ten_steps_is_absent_and_says_what_to_do() {
    let absent = stamped(&[90.0; 50], STAMPS).expect_err("nine steps");
    assert!(absent.reason.contains("10 steps") && absent.remedy.is_some_and(|remedy| remedy.contains("batch")));
    assert!(stamped(&[100.0; 50], STAMPS).is_ok_and(|figure| figure.quantum == Some(10.0)));
    assert!(
        stamped(&[9.0; 50], Stamps { step: None, overhead: 1.0, ..STAMPS })
            .is_ok_and(|figure| figure.quantum.is_none())
    );
}

#[test]
fn the_cost_of_the_stamps_is_stated_marked_from_a_fifth_and_too_much_above_a_half() {
    let at = |overhead: f64| stamped(&[200.0; 50], Stamps { overhead, ..STAMPS });
    let plain = at(40.0).expect("a fifth");
    assert_eq!((plain.overhead, plain.caveats.len()), (Some(40.0), 0));
    let marked = at(41.0).expect("a little more");
    assert_eq!(
        (marked.overhead, marked.caveats.as_slice()),
        (Some(41.0), &["20 % of it is the pair of stamps itself".to_owned()][..])
    );
    assert!(at(100.0).is_ok());
    assert!(at(101.0).expect_err("more than half").reason.contains("more than half"));
}

#[test]
fn a_lateness_is_judged_by_the_span_between_the_stamps() {
    // A delay of 1 µs that is late by 20 ns took 1,020 ns, and one that is late by 0 took 1 µs.
    for late in [-3.0, 0.0, 20.0] {
        let figure = stamped(&[late; 50], Stamps { beside: 1_000.0, ..STAMPS }).expect("a hundred steps");
        assert_eq!((figure.median, figure.caveats.len(), figure.quantum), (Some(late), 0, Some(10.0)));
    }
    assert!(stamped(&[20.0; 50], Stamps { beside: 70.0, ..STAMPS }).is_err());
}

#[test]
fn between_ten_and_a_hundred_steps_the_median_lies_between_the_steps() {
    let shares = |few: usize, step: f64| [vec![20.0 * step; 100 - few], vec![21.0 * step; few]].concat();
    let near = stamped(&shares(30, 10.0), STAMPS).expect("twenty steps");
    let far = stamped(&shares(45, 10.0), STAMPS).expect("twenty steps");
    let medians = [near.median.unwrap(), far.median.unwrap()];
    assert!(200.0 < medians[0] && medians[0] < medians[1] && medians[1] < 205.0, "{medians:?}");
    let [low, high] = near.median_interval.unwrap();
    assert!(low <= 195.0 && medians[0] <= high, "{low} to {high}");
    // From a hundred steps on a step is a hundredth and less: the median is a sample.
    let long = stamped(&shares(30, 50.0), STAMPS).expect("a hundred steps");
    assert_eq!(long.median, Some(1_000.0));
}

#[test]
fn a_batch_has_its_share_of_step_and_overhead_and_says_nothing_of_single_events() {
    let mut means: Vec<f64> = (0..1_000).map(|i| 30.0 + f64::from(i * 7_919 % 10) / 10.0).collect();
    let figure = Figure::batched(Unit::Ns, &mut means, &STAMPS, 100.0).expect("3 µs");
    assert_eq!((figure.method, figure.quantum, figure.overhead), (Method::Mean, Some(0.1), Some(0.05)));
    assert_eq!((figure.median, figure.p99), (Some(30.4), None));
    assert!(Figure::batched(Unit::Ns, &mut [3.0; 50], &STAMPS, 30.0).is_err(), "90 ns between the stamps");
}

#[test]
fn a_difference_that_is_not_told_from_nothing_has_a_limit_and_no_number() {
    let spread =
        |centre: f64| (0..400).map(|i| centre + f64::from(i * 7_919 % 401) / 100.0 - 2.0).collect::<Vec<f64>>();
    let nothing = Figure::difference(Unit::Ns, &mut spread(0.1), None);
    assert_eq!((nothing.median, nothing.max, nothing.n), (None, None, 400));
    assert!(nothing.at_most.is_some_and(|most| (0.1..0.6).contains(&most)), "{:?}", nothing.at_most);
    let some = Figure::difference(Unit::Ns, &mut spread(3.0), None);
    assert!(
        some.at_most.is_none()
            && some.median.is_some_and(|median| (median - 3.0).abs() < 0.1)
            && some.caveats.is_empty()
    );
    let negative = Figure::difference(Unit::Ns, &mut spread(-3.0), None);
    assert!(negative.median.is_some_and(|median| median < -2.8) && negative.caveats.len() == 1, "{negative:?}");
    // Loops that always show the same step are equal to a step at best.
    let quantised = Figure::difference(Unit::Ns, &mut [0.0; 100], Some(10.0));
    assert!(quantised.median.is_none() && quantised.at_most.is_some_and(|most| most > 0.5), "{:?}", quantised.at_most);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_stamped_figure_is_below_ten_steps_or_half_overhead(
        span in 1.0..3_000.0f64, step in 0.1..100.0f64, overhead in 0.0..200.0f64, seed in 0..1_000_u32,
    ) {
        let samples: Vec<f64> = (0..200).map(|i| span * (1.0 + f64::from((i * 7_919 + seed) % 100) / 1_000.0)).collect();
        let stamps = Stamps { step: Some(step), overhead, beside: 0.0 };
        if let Ok(figure) = stamped(&samples, stamps) {
            let median = figure.median.unwrap();
            prop_assert!(median > 9.0 * step && overhead <= 0.55 * median, "{median}");
            prop_assert!(overhead <= 0.25 * median || figure.caveats.len() == 1);
            prop_assert!(overhead > 0.15 * median || figure.caveats.is_empty());
            let [low, high] = figure.median_interval.unwrap();
            prop_assert!(low <= median && median <= high);
        }
    }
}
