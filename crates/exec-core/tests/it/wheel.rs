//! The wheel against a sorted list: never early, never twice, in order, and the next deadline exact.
//!
//! The wheel is seen from outside, through timers without a period. The moments are adversarial: at and beside the
//! borders of its digits, at both ends of the clock, in the past, equal to others, and anywhere.

use hairspring_exec_core::{By, Call, CallStatus, Core, Moment, TimerId};
use proptest::prelude::*;

/// Number of timers.
const TIMERS: usize = 10;

#[derive(Clone, Copy, Debug)]
enum Step {
    Start(usize, u64),
    Stop(usize),
    Tick(u64),
}

/// A moment: near a border of the digits beyond or below now, near now, near either end, one used before, or anywhere.
#[derive(Clone, Copy, Debug)]
enum When {
    Border { place: u32, digit: u64, offset_ns: i64 },
    Ahead { place: u32, offset_ns: i64 },
    Near { offset_ns: i64 },
    End { back_ns: u64 },
    Again,
    Anywhere { moment_ns: u64 },
}

impl When {
    fn moment_ns(self, now_ns: u64, last_ns: u64) -> u64 {
        match self {
            // The digits above `place` are those of now.
            Self::Border { place, digit, offset_ns } => {
                let above_ns = now_ns & u64::MAX.checked_shl(6 * (place + 1)).unwrap_or(0);
                (above_ns | digit << (6 * place)).wrapping_add_signed(offset_ns)
            }
            Self::Ahead { place, offset_ns } => {
                now_ns.saturating_add(1 << (6 * place)).saturating_add_signed(offset_ns)
            }
            Self::Near { offset_ns } => now_ns.saturating_add_signed(offset_ns),
            Self::End { back_ns } => u64::MAX - back_ns,
            Self::Again => last_ns,
            Self::Anywhere { moment_ns } => moment_ns,
        }
    }
}

fn when() -> impl Strategy<Value = When> {
    let (place, digit, offset_ns) = (0_u32..=10, 0_u64..64, -2_i64..=2);
    prop_oneof![
        (place.clone(), digit, offset_ns.clone()).prop_map(|(place, digit, offset_ns)| When::Border {
            place,
            digit,
            offset_ns
        }),
        (place, offset_ns).prop_map(|(place, offset_ns)| When::Ahead { place, offset_ns }),
        (-3_i64..=70).prop_map(|offset_ns| When::Near { offset_ns }),
        (0_u64..3).prop_map(|back_ns| When::End { back_ns }),
        Just(When::Again),
        any::<u64>().prop_map(|moment_ns| When::Anywhere { moment_ns }),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Wish {
    Start(usize, When),
    Stop(usize),
    Tick(When),
    /// To the next deadline, or a nanosecond beside it.
    TickToNext(i64),
}

fn wish() -> impl Strategy<Value = Wish> {
    prop_oneof![
        6 => (0..TIMERS, when()).prop_map(|(timer, when)| Wish::Start(timer, when)),
        1 => (0..TIMERS).prop_map(Wish::Stop),
        2 => when().prop_map(Wish::Tick),
        3 => (-1_i64..=1).prop_map(Wish::TickToNext),
    ]
}

/// The sorted list.
#[derive(Default)]
struct Naive {
    now_ns: u64,
    settings: u64,
    /// Whether it was overdue when it was set, its deadline, the order of setting, and its owner.
    armed: Vec<(bool, u64, u64, usize)>,
}

impl Naive {
    fn start(&mut self, timer: usize, at_ns: u64) {
        self.stop(timer);
        self.settings += 1;
        self.armed.push((at_ns > self.now_ns, at_ns, self.settings, timer));
    }

    fn stop(&mut self, timer: usize) -> bool {
        let before = self.armed.len();
        self.armed.retain(|armed| armed.3 != timer);
        self.armed.len() < before
    }

    fn tick(&mut self, now_ns: u64) -> Vec<(usize, u64)> {
        self.now_ns = self.now_ns.max(now_ns);
        // The overdue first, as they were set; the others by deadline, equal ones as they were set.
        self.armed.sort_by_key(|&(later, at_ns, setting, _)| (later, if later { at_ns } else { 0 }, setting));
        let (due, left) = self.armed.iter().partition(|armed| !armed.0 || armed.1 <= self.now_ns);
        self.armed = left;
        due.iter().map(|&(_, at_ns, _, timer): &(bool, u64, u64, usize)| (timer, at_ns)).collect()
    }
}

fn run(wishes: &[Wish]) -> Result<(), TestCaseError> {
    let mut core = Core::new(0, ());
    let timers: Vec<_> =
        (0..TIMERS).map(|_| TimerId::from_number(core.apply(By::Outside, Call::CreateTimer).value)).collect();
    let (mut naive, mut last_ns) = (Naive::default(), 0);
    for &wish in wishes {
        let step = match wish {
            Wish::Start(timer, when) => Step::Start(timer, when.moment_ns(naive.now_ns, last_ns)),
            Wish::Stop(timer) => Step::Stop(timer),
            Wish::Tick(when) => Step::Tick(when.moment_ns(naive.now_ns, last_ns)),
            Wish::TickToNext(offset_ns) => {
                let next = naive.armed.iter().map(|armed| armed.1).min().unwrap_or(naive.now_ns);
                Step::Tick(next.saturating_add_signed(offset_ns))
            }
        };
        match step {
            Step::Start(timer, at_ns) => {
                last_ns = at_ns;
                naive.start(timer, at_ns);
                let call = Call::StartTimer { timer: timers[timer], at: Moment::from_nanos(at_ns), period_ns: 0 };
                prop_assert_eq!(core.apply(By::Outside, call).status, CallStatus::Ok);
            }
            Step::Stop(timer) => {
                let reply = core.apply(By::Outside, Call::StopTimer { timer: timers[timer] });
                prop_assert_eq!(reply.value, u32::from(naive.stop(timer)));
            }
            Step::Tick(now_ns) => {
                let due = core.apply(By::Kernel, Call::Tick { now: Moment::from_nanos(now_ns) }).value;
                let mut served = Vec::new();
                for _ in 0..due {
                    let timer = TimerId::from_number(core.apply(By::Kernel, Call::NextTimer).value);
                    let expiry = core.take_expiry(timer);
                    prop_assert_eq!(expiry.overruns, 0, "it went off twice");
                    served.push((timer.index(), expiry.deadline.as_nanos()));
                }
                prop_assert_eq!(served, naive.tick(now_ns));
            }
        }
        let next = naive.armed.iter().map(|armed| Moment::from_nanos(armed.1)).min();
        prop_assert_eq!(core.next_deadline(), next, "after {:?}", step);
        prop_assert_eq!(core.has_deadlines(), next.is_some());
        prop_assert!(core.check().is_ok());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(6_000) })]

    #[test]
    fn deadlines_come_out_in_order_once_and_never_early(wishes in proptest::collection::vec(wish(), 1..60)) {
        run(&wishes)?;
    }
}

#[test]
fn every_border_between_two_digits_is_crossed_without_loss_in_either_direction() {
    for place in 0..=10 {
        for digit in [1, 2, 31, 63] {
            for start_ns in [0, 1, 62, 63, 64, 4_095] {
                let border = When::Border { place, digit, offset_ns: 0 };
                let tick = |offset_ns| Wish::Tick(When::Border { place, digit, offset_ns });
                let starts = (0..5).map(|timer| {
                    let offset_ns = timer as i64 - 2;
                    Wish::Start(timer, When::Border { place, digit, offset_ns })
                });
                let mut wishes = vec![Wish::Tick(When::Anywhere { moment_ns: start_ns })];
                wishes.extend(starts);
                wishes.extend([Wish::Start(5, border), Wish::Start(6, When::End { back_ns: 0 })]);
                wishes.extend([tick(-2), tick(-1), tick(0), tick(1), tick(2), Wish::TickToNext(0)]);
                run(&wishes).expect("as the sorted list");
            }
        }
    }
}
