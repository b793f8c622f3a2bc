//! The skew between two CPUs of this machine: two measurements agree within their stated bounds.

use hairspring_time::{Cpu, Host, Machine, Nanos, Skew, SkewError, Timebase};
use testing::skip;

/// Another program of higher priority can keep a CPU from answering; then it is tried again.
fn measure(timebase: &Timebase, first: Cpu, second: Cpu) -> Option<Skew> {
    (0..5).find_map(|_| match Skew::measure(timebase, first, second) {
        Ok(skew) => Some(skew),
        Err(SkewError::NoAnswer(_)) => None,
        Err(refused) => panic!("{refused}"),
    })
}

#[test]
fn the_skew_of_two_cpus_is_the_same_seen_from_either() {
    const NAME: &str = "skew::the_skew_of_two_cpus_is_the_same_seen_from_either";
    let timebase = Timebase::calibrate(Host).expect("this machine has a counter");
    let cpus = Host.affinity().0;
    let [first, second, ..] = cpus[..] else { return skip(NAME, "there is one CPU only") };
    let before = Host.affinity();
    let (Some(there), Some(back)) = (measure(&timebase, first, second), measure(&timebase, second, first)) else {
        return skip(NAME, "the other CPU did not answer in five attempts");
    };
    let apart = there.offset + back.offset;
    let allowed = there.uncertainty + back.uncertainty;
    assert!(apart <= allowed && -apart <= allowed, "{there:?} {back:?}");
    assert!(there.bound() >= there.uncertainty && there.bound() >= there.offset, "{there:?}");
    assert_eq!(Host.affinity(), before, "the measuring threads are its own");
    let timebase = timebase.with_skew(there.bound());
    assert_eq!(timebase.skew(), there.bound());
}

#[test]
fn a_cpu_that_does_not_exist_is_refused() {
    let timebase = Timebase::calibrate(Host).expect("this machine has a counter");
    let first = Host.affinity().0[0];
    let absent = Cpu(1_000);
    for (first, second) in [(first, absent), (absent, first)] {
        let error = Skew::measure(&timebase, first, second).expect_err("no such CPU");
        assert!(matches!(error, SkewError::Refused(_)), "{error}");
        assert!(error.to_string().contains("1000"), "{error}");
    }
}

#[test]
fn a_skew_allows_for_its_offset_and_its_uncertainty() {
    for offset in [-30, 0, 30] {
        let skew = Skew { offset: Nanos::new(offset), uncertainty: Nanos::new(12), rounds: 1 };
        assert_eq!(skew.bound(), Nanos::new(offset.abs() + 12));
    }
}

/// Regression: two threads on one CPU waited for each other a time slice per round, for tens of seconds.
#[test]
fn a_cpu_is_not_measured_against_itself() {
    let (sim, timebase) = super::calibrated(hairspring_machine::sim::Script::default());
    let before = sim.true_picos();
    assert_eq!(Skew::measure(&timebase, Cpu(0), Cpu(0)), Err(SkewError::SameCpu(Cpu(0))));
    assert_eq!(sim.true_picos(), before, "nothing is tried");
}
