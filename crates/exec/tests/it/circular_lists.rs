//! Circular lists: the order of the values, and sharing between tasks and procedures.

use std::collections::VecDeque;

use hairspring_exec::errors::ObjectError;
use hairspring_exec::{Backend, CircularList, Create, ExecConfig, Executive, Services};
use proptest::prelude::*;

use crate::backends::{FOREVER, check, nth, sim};

/// Adds or removes, at the top or the bottom.
fn act(list: &CircularList<u32>, site: &Executive, (adds, top): (bool, bool), value: u32) -> Result<u32, ObjectError> {
    match (adds, top) {
        (true, true) => list.add_top(site, value).map(u32::from),
        (true, false) => list.add_bottom(site, value).map(u32::from),
        (false, true) => list.remove_top(site).map(Option::unwrap_or_default),
        (false, false) => list.remove_bottom(site).map(Option::unwrap_or_default),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn a_list_does_what_a_deque_of_bounded_length_does(
        slots in 0..6_usize,
        acts in proptest::collection::vec(any::<(bool, bool)>(), 0..80),
    ) {
        let executive = Executive::new(sim(), &ExecConfig::default()).expect("no threads");
        let list = executive.circular_list(slots);
        let mut deque = VecDeque::new();
        for (value, what) in (1..).zip(acts) {
            let expected = match what {
                (true, _) if deque.len() == slots => 0,
                (true, true) => { deque.push_front(value); 1 }
                (true, false) => { deque.push_back(value); 1 }
                (false, true) => deque.pop_front().unwrap_or_default(),
                (false, false) => deque.pop_back().unwrap_or_default(),
            };
            prop_assert_eq!(act(&list, &executive, what, value), Ok(expected), "{:?}", what);
            prop_assert_eq!(list.count(&executive), Ok(deque.len()));
        }
    }
}

#[test]
fn tasks_and_procedures_share_a_list_and_its_order_is_that_of_the_steps() {
    check("full:Ok(false) 1 2 3 empty:Ok(None) = Asked", |bench| {
        let list = bench.executive.circular_list::<u32>(3);
        let theirs = list.clone();
        let isp = bench.isp(move |ctx, _| {
            assert_eq!(theirs.add_top(ctx, 1), Ok(true));
            ctx.wake(nth(0)).expect("it is in a run");
        });
        bench.start("task", 20, move |ctx, log| {
            assert_eq!((list.add_bottom(ctx, 2), list.add_bottom(ctx, 3)), (Ok(true), Ok(true)));
            isp.post().expect("the ring is empty");
            ctx.wait(FOREVER).expect("the procedure wakes it");
            log.tell("full", list.add_top(ctx, 9));
            while let Ok(Some(value)) = list.remove_top(ctx) {
                log.note(value);
            }
            log.tell("empty", list.remove_bottom(ctx));
            // An attached source keeps the run of the real back-ends going.
            ctx.stop();
        });
    });
}

#[test]
fn many_tasks_lose_and_double_nothing() {
    check("sum:1500 left:0 = Finished", |bench| {
        let list = bench.executive.circular_list::<u32>(7);
        for number in 0..3 {
            let list = list.clone();
            bench.start("adds", 20, move |ctx, _| {
                for _ in 0..500 {
                    while list.add_bottom(ctx, 1) == Ok(false) {
                        ctx.yield_now();
                    }
                    if number == 1 {
                        ctx.yield_now();
                    }
                }
            });
        }
        bench.start("removes", 20, move |ctx, log| {
            let mut sum = 0;
            while sum < 1_500 {
                match list.remove_top(ctx) {
                    Ok(Some(value)) => sum += value,
                    _ => ctx.yield_now(),
                }
            }
            log.note(format!("sum:{sum}"));
            log.note(format!("left:{}", list.count(ctx).expect("it exists")));
        });
    });
}

#[test]
fn a_deleted_list_and_one_of_another_executive_are_refused() {
    let here = Executive::new(sim(), &ExecConfig::default()).expect("no threads");
    let there = Executive::new(Backend::fiber(), &ExecConfig::default()).expect("no threads");
    let list = here.circular_list::<u32>(2);
    let refused = |list: &CircularList<u32>, site: &Executive| {
        for what in [(true, true), (true, false), (false, true), (false, false)] {
            assert_eq!(act(list, site, what, 1), Err(ObjectError::NoSuchObject));
        }
        assert_eq!(list.count(site), Err(ObjectError::NoSuchObject));
        assert_eq!(list.delete(site), Err(ObjectError::NoSuchObject));
    };
    refused(&list, &there);
    assert_eq!(list.clone().delete(&here), Ok(()));
    refused(&list, &here);
}
