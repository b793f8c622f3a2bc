//! Timers: once and periodic, overruns, restarts, deletion in the middle.

use hairspring_exec_core::{By, Call, CallStatus, Expired, Moment, TimerId};

use crate::bench::{Bench, at};

fn moment(nanos_ns: u64) -> Moment {
    Moment::from_nanos(nanos_ns)
}

#[track_caller]
fn starts(bench: &mut Bench, timer: TimerId, at_ns: u64, period_ns: u64) {
    bench.outside(Call::StartTimer { timer, at: moment(at_ns), period_ns }, CallStatus::Ok);
}

/// The kernel task asks which procedure to run, and must get this one.
#[track_caller]
fn serves(bench: &mut Bench, timer: TimerId) -> Expired {
    assert_eq!(TimerId::from_number(bench.call(By::Kernel, Call::NextTimer, CallStatus::Ok)), timer);
    bench.take_expiry(timer)
}

#[track_caller]
fn none_due(bench: &mut Bench) {
    bench.call(By::Kernel, Call::NextTimer, CallStatus::Empty);
}

fn expiry(deadline_ns: u64, missed: u64, overruns: u64) -> Expired {
    Expired { deadline: moment(deadline_ns), missed, overruns }
}

#[test]
fn a_timer_without_a_period_goes_off_once_at_its_moment() {
    let mut bench = Bench::new();
    let timer = bench.timer();
    starts(&mut bench, timer, 100, 0);
    assert_eq!(bench.timer_deadline(timer), Some(moment(100)));
    assert_eq!(bench.tick(99), 0);
    assert_eq!(bench.tick(100), 1);
    assert_eq!(serves(&mut bench, timer), expiry(100, 0, 0));
    assert_eq!((bench.tick(u64::MAX), bench.timer_deadline(timer)), (0, None));
    none_due(&mut bench);
}

#[test]
fn a_periodic_timer_goes_off_at_its_multiples_however_late_it_is_served() {
    let mut bench = Bench::new();
    let timer = bench.timer();
    starts(&mut bench, timer, 100, 30);
    for (tick_ns, deadline_ns) in [(107, 100), (130, 130), (189, 160), (190, 190)] {
        assert_eq!(bench.tick(tick_ns), 1);
        assert_eq!(serves(&mut bench, timer), expiry(deadline_ns, 0, 0));
    }
    assert_eq!(bench.timer_deadline(timer), Some(moment(220)));
}

#[test]
fn periods_that_passed_before_a_tick_are_counted_and_not_made_up_for() {
    let mut bench = Bench::new();
    let timer = bench.timer();
    starts(&mut bench, timer, 100, 10);
    assert_eq!(bench.tick(139), 1);
    assert_eq!(serves(&mut bench, timer), expiry(130, 3, 3));
    none_due(&mut bench);
    bench.tick(140);
    assert_eq!(serves(&mut bench, timer), expiry(140, 0, 3));
}

#[test]
fn a_timer_that_goes_off_while_its_procedure_is_still_due_counts_one_more() {
    let mut bench = Bench::new();
    let timer = bench.timer();
    starts(&mut bench, timer, 10, 10);
    bench.tick(10);
    bench.tick(20);
    assert_eq!(bench.tick(30), 1);
    assert_eq!(serves(&mut bench, timer), expiry(30, 2, 2));
    none_due(&mut bench);
}

#[test]
fn timers_are_served_in_the_order_in_which_they_went_off() {
    let mut bench = Bench::new();
    let timers = [0; 4].map(|_| bench.timer());
    for (timer, at_ns) in timers.into_iter().zip([30, 20, 30, 10]) {
        starts(&mut bench, timer, at_ns, 0);
    }
    assert_eq!(bench.tick(50), 4);
    for index in [3, 1, 0, 2] {
        serves(&mut bench, timers[index]);
    }
}

#[test]
fn starting_again_forgets_what_was_due_and_begins_anew() {
    let mut bench = Bench::new();
    let timer = bench.timer();
    starts(&mut bench, timer, 10, 10);
    bench.tick(55);
    starts(&mut bench, timer, 100, 0);
    none_due(&mut bench);
    assert_eq!(bench.next_deadline(), Some(moment(100)));
    bench.tick(100);
    assert_eq!(serves(&mut bench, timer), expiry(100, 0, 0));
}

#[test]
fn stopping_says_whether_it_ran_and_takes_back_what_was_due() {
    let mut bench = Bench::new();
    let timer = bench.timer();
    let stop = Call::StopTimer { timer };
    assert_eq!(bench.outside(stop, CallStatus::Ok), 0);
    starts(&mut bench, timer, 10, 0);
    assert_eq!(bench.outside(stop, CallStatus::Ok), 1);
    assert_eq!(bench.tick(10), 0);
    starts(&mut bench, timer, 20, 0);
    assert_eq!(bench.tick(20), 1);
    assert_eq!(bench.outside(stop, CallStatus::Ok), 1, "its procedure was due");
    none_due(&mut bench);
    assert_eq!(bench.outside(stop, CallStatus::Ok), 0);
}

#[test]
fn a_timer_may_be_deleted_in_its_own_procedure() {
    let mut bench = Bench::new();
    let timer = bench.timer();
    starts(&mut bench, timer, 10, 10);
    bench.tick(10);
    serves(&mut bench, timer);
    bench.outside(Call::DeleteTimer { timer }, CallStatus::Ok);
    assert!(!bench.has_deadlines());
    assert_eq!(
        (bench.tick(1_000), bench.timer_deadline(timer), bench.take_expiry(timer)),
        (0, None, Expired::default())
    );
}

#[test]
fn a_deleted_timer_that_was_due_is_not_served_and_its_slot_begins_anew() {
    let mut bench = Bench::new();
    let timer = bench.timer();
    starts(&mut bench, timer, 10, 3);
    bench.tick(100);
    bench.outside(Call::DeleteTimer { timer }, CallStatus::Ok);
    none_due(&mut bench);
    let fresh = bench.timer();
    assert_eq!((fresh.index(), fresh != timer), (timer.index(), true));
    for call in [
        Call::StartTimer { timer, at: moment(200), period_ns: 0 },
        Call::StopTimer { timer },
        Call::DeleteTimer { timer },
    ] {
        bench.outside(call, CallStatus::NoSuchObject);
    }
    let told = bench.take_expiry(fresh);
    assert_eq!((told.missed, told.overruns), (0, 0));
}

#[test]
fn a_timer_that_is_started_in_the_past_goes_off_with_the_next_tick() {
    let mut bench = Bench::new();
    let timer = bench.timer();
    bench.tick(1_000);
    starts(&mut bench, timer, 400, 0);
    assert_eq!(bench.next_deadline(), Some(moment(400)));
    assert_eq!(bench.tick(1_000), 1);
    assert_eq!(serves(&mut bench, timer), expiry(400, 0, 0));
}

/// Symptom: a timer went off once more at the very last moment of the clock, which is no multiple of its period. Cause:
/// the next deadline stayed at the end of the clock instead of going beyond it.
#[test]
fn a_periodic_timer_stops_where_its_next_deadline_is_beyond_the_clock() {
    let mut bench = Bench::new();
    let timer = bench.timer();
    starts(&mut bench, timer, u64::MAX - 5, 4);
    bench.tick(u64::MAX - 5);
    serves(&mut bench, timer);
    assert_eq!(bench.timer_deadline(timer), Some(moment(u64::MAX - 1)));
    bench.tick(u64::MAX - 1);
    assert_eq!(serves(&mut bench, timer), expiry(u64::MAX - 1, 0, 0));
    assert!(!bench.has_deadlines());
}

#[test]
fn a_period_of_1_ns_over_a_century_is_one_run_and_a_great_count() {
    let mut bench = Bench::new();
    let timer = bench.timer();
    let century_ns = 100 * 365 * 86_400 * 1_000_000_000;
    starts(&mut bench, timer, 0, 1);
    assert_eq!(bench.tick(century_ns), 1);
    assert_eq!(serves(&mut bench, timer), expiry(century_ns, century_ns, century_ns));
}

#[test]
fn an_id_never_means_two_timers_however_often_a_slot_is_used_again() {
    let mut bench = Bench::new();
    let first = bench.timer();
    let mut timer = first;
    for _ in 0..=u16::MAX {
        bench.apply(By::Outside, Call::DeleteTimer { timer });
        timer = TimerId::from_number(bench.apply(By::Outside, Call::CreateTimer).value);
    }
    assert_eq!(timer.index(), 1, "the slot is given up");
    bench.outside(Call::StopTimer { timer: first }, CallStatus::NoSuchObject);
}

#[test]
fn the_timer_that_goes_off_next_is_known_with_the_place_of_its_record() {
    let mut bench = Bench::new();
    let timers = [(); 3].map(|()| bench.timer());
    assert_eq!(bench.coming_timer(), None);
    let mut places = [0; 3];
    for (index, at_ns) in [(2, 300), (1, 200), (0, 100)] {
        starts(&mut bench, timers[index], at_ns, 0);
        let (coming, record) = bench.coming_timer().expect("it is the earliest");
        assert_eq!(coming, index);
        places[index] = record.addr();
    }
    // Neighbours in one table.
    assert!(places[0] < places[1] && places[1] - places[0] == places[2] - places[1], "{places:?}");
    // Of two at the same moment, the one that was started first.
    starts(&mut bench, timers[2], 100, 0);
    assert_eq!(bench.coming_timer().map(|(index, _)| index), Some(0));
    // Unknown until the first query.
    bench.outside(Call::StopTimer { timer: timers[0] }, CallStatus::Ok);
    assert_eq!((bench.coming_timer(), bench.next_deadline()), (None, Some(moment(100))));
    assert_eq!(bench.coming_timer().map(|(index, _)| index), Some(2));
    // A task's deadline is before it.
    let task = bench.started(20);
    bench.task(task, Call::Delay { until: at(50) }, CallStatus::Blocked);
    assert_eq!(bench.coming_timer(), None);
}
