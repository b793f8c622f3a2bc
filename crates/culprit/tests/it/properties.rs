//! Properties that hold for any records and any gap.

use hairspring_culprit::{CpuHistory, KernelEvent, KernelRecord, LeftAs, LostTime, Tally, Terms, Wanted, blame};
use hairspring_machine::{Instant, Nanos};
use proptest::prelude::*;

use crate::script::{POLLER, RCU, TIMER, disk, task};

fn event() -> impl Strategy<Value = KernelEvent> {
    let context = || prop_oneof![Just(TIMER), Just(RCU), Just(disk())];
    let pid = || prop_oneof![Just(0_u32), Just(POLLER), Just(200), Just(300)];
    prop_oneof![
        3 => (pid(), any::<bool>(), pid()).prop_map(|(from, runnable, to)| KernelEvent::Switch {
            from: task(from),
            left_as: if runnable { LeftAs::Runnable } else { LeftAs::Blocked },
            to: task(to),
        }),
        3 => context().prop_map(KernelEvent::Enter),
        3 => context().prop_map(KernelEvent::Exit),
        1 => pid().prop_map(|pid| KernelEvent::Fault { pid }),
        1 => (0_i64..100).prop_map(|length| KernelEvent::Nmi(Nanos::new(length))),
        1 => pid().prop_map(|pid| KernelEvent::WorkBegins { pid, function: None }),
        1 => pid().prop_map(|pid| KernelEvent::WorkEnds { pid }),
        1 => Just(KernelEvent::Frequency),
        1 => Just(KernelEvent::Lost),
    ]
}

fn at_ns(at: i64) -> Instant {
    Instant::BOOT + Nanos::new(at)
}

/// Records 0 to 200 ns apart.
fn records() -> impl Strategy<Value = Vec<KernelRecord>> {
    prop::collection::vec((0_i64..200, event()), 0..60).prop_map(|steps| {
        let mut at = 0;
        let next = |(step, event)| {
            at += step;
            KernelRecord { at: at_ns(at), event }
        };
        steps.into_iter().map(next).collect()
    })
}

fn history(records: &[KernelRecord]) -> CpuHistory {
    let mut history = CpuHistory::new();
    records.iter().for_each(|record| history.push(record.clone()));
    history.known_until(at_ns(13_000));
    history
}

fn gap() -> impl Strategy<Value = LostTime> {
    (0_i64..12_000, 0_i64..3_000, any::<bool>()).prop_map(|(from, length, runs)| LostTime {
        thread: POLLER,
        from: at_ns(from),
        to: at_ns(from + length),
        wanted: if runs { Wanted::Run } else { Wanted::Wake },
    })
}

fn unexplained(lost: &LostTime, history: &CpuHistory) -> bool {
    blame(lost, history, &Terms::guest()).parts.iter().any(|part| !part.culprit.is_named())
}

proptest! {
    #[test]
    fn the_parts_add_up_to_the_gap_without_a_hole(records in records(), lost in gap()) {
        let blame = blame(&lost, &history(&records), &Terms::guest());
        let mut at = lost.from;
        for part in &blame.parts {
            prop_assert_eq!(part.from, at);
            prop_assert!(part.to > part.from);
            at = part.to;
        }
        prop_assert_eq!(at, lost.to);
        let shares: Nanos = blame.shares().iter().map(|share| share.time).sum();
        prop_assert_eq!(shares, blame.time());
        let mut tally = Tally::new();
        tally.add(&blame);
        let tolls: Nanos = tally.culprits().iter().map(|(_, toll)| toll.total).sum();
        prop_assert_eq!(tolls, tally.whole().total);
    }

    #[test]
    fn the_time_of_a_cpu_is_covered_once(records in records(), lost in gap()) {
        let mut at = lost.from;
        for (from, to, _) in history(&records).occupants(lost.from, lost.to) {
            prop_assert_eq!(from, at);
            prop_assert!(to > from);
            at = to;
        }
        prop_assert_eq!(at, lost.to);
    }

    #[test]
    fn more_lost_records_never_turn_unexplained_into_a_name(
        records in records(),
        lost in gap(),
        first in 0_usize..60,
        count in 0_usize..20,
    ) {
        let mut fewer = records.clone();
        let first = first.min(fewer.len());
        let last = (first + count).min(fewer.len());
        if let Some(at) = fewer[first..last].last().map(|record| record.at) {
            fewer.splice(first..last, [KernelRecord { at, event: KernelEvent::Lost }]);
            if unexplained(&lost, &history(&records)) {
                prop_assert!(unexplained(&lost, &history(&fewer)));
            }
        }
    }
}
