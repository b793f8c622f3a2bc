//! Wishes that are held and released in any order: the most recent one is in force, and at the end everything is as
//! before.

use std::cell::Cell;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hairspring_machine::sim::{Disturbance, Script};
use hairspring_machine::{Cpu, CpuSet, Held, Host, Machine, Nanos, Policy, Setting, Sim, Wish, renew};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use testing::skip;

use super::on_own_thread;

/// Programs that an ordinary run tries on each machine; `HAIRSPRING_PROOF` multiplies their number.
const PROGRAMS: u32 = 200;
const STEPS_MOST: usize = 30;
const ABSENT: Cpu = Cpu(1_000);

/// A test that asserts that the memory of this process is not locked keeps the others away.
static MEMORY: Mutex<()> = Mutex::new(());

pub(super) fn alone_with_the_memory() -> MutexGuard<'static, ()> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the kernel has locked memory of this process.
pub(super) fn is_locked() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("a line VmLck").to_owned();
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") > 0
}

/// A machine whose memory lock can be looked at, and which may take permissions away.
trait Subject: Machine {
    fn memory_is_locked(&self) -> bool;
    fn lose_permission(&self) -> bool;
    /// The lowest limit on idle states that this program holds; `None` if it cannot be distinguished from other
    /// programs' limits.
    fn idle_limit(&self) -> Option<Option<Nanos>>;
}

impl Subject for Sim {
    fn memory_is_locked(&self) -> bool {
        self.is_memory_locked()
    }

    fn lose_permission(&self) -> bool {
        self.disturb(self.true_time(), Disturbance::LoseRealTime);
        self.work(Nanos::new(1));
        true
    }

    fn idle_limit(&self) -> Option<Option<Nanos>> {
        Some(Sim::idle_limit(self))
    }
}

impl Subject for Host {
    fn memory_is_locked(&self) -> bool {
        is_locked()
    }

    fn lose_permission(&self) -> bool {
        false
    }

    fn idle_limit(&self) -> Option<Option<Nanos>> {
        None
    }
}

#[derive(Clone, Debug)]
enum Step {
    Take(Wish),
    /// Ends one of the wishes that are held: by `release`, or by dropping it.
    End {
        which: prop::sample::Index,
        told: bool,
    },
    LosePermission,
}

#[derive(Clone, Debug)]
struct Program {
    /// Settings of the thread before: a policy, and a slack if the policy has one.
    policy: Policy,
    slack: Nanos,
    steps: Vec<Step>,
}

fn wish() -> impl Strategy<Value = Wish> {
    let policies = [
        Policy::Other,
        Policy::Fifo(50),
        Policy::Fifo(60),
        Policy::RoundRobin(3),
        // SCHED_BATCH
        Policy::Unknown(3),
        Policy::Fifo(0),
    ];
    // Numbers from 0 stand for the CPUs that the machine has.
    let cpus = [vec![Cpu(0)], vec![Cpu(1)], vec![Cpu(0), Cpu(1)], vec![], vec![ABSENT], vec![Cpu(0), ABSENT]];
    prop_oneof![
        8 => prop::sample::select(policies.to_vec()).prop_map(Wish::Policy),
        6 => prop::sample::select(cpus.to_vec()).prop_map(|cpus| Wish::Affinity(CpuSet(cpus))),
        6 => prop::sample::select(&[1, 7_000, 80_000][..]).prop_map(|slack| Wish::TimerSlack(Nanos::new(slack))),
        1 => Just(Wish::MemoryLock),
        2 => prop::sample::select(&[0, 20_000][..]).prop_map(|most| Wish::Idle(Nanos::new(most))),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    let end = (any::<prop::sample::Index>(), any::<bool>()).prop_map(|(which, told)| Step::End { which, told });
    let step = prop_oneof![20 => wish().prop_map(Step::Take), 18 => end, 1 => Just(Step::LosePermission)];
    let policy = prop::sample::select(&[Policy::Other, Policy::Unknown(3), Policy::RoundRobin(9)][..]);
    let slack = prop::sample::select(&[50_000, 1_234][..]).prop_map(Nanos::new);
    (policy, slack, prop::collection::vec(step, 0..STEPS_MOST)).prop_map(|(policy, slack, steps)| Program {
        policy,
        slack,
        steps,
    })
}

fn is_real_time(policy: Policy) -> bool {
    matches!(policy, Policy::Fifo(_) | Policy::RoundRobin(_))
}

/// Expected view of an observer: for each setting the value before the first wish, and the wishes that are held.
struct Expected {
    policy: Policy,
    policy_before: Policy,
    affinity_before: CpuSet,
    slack_before: Nanos,
    held: Vec<(usize, Wish)>,
    permitted: bool,
}

impl Expected {
    fn held_of(&self, setting: Setting) -> Option<(usize, &Wish)> {
        self.held.iter().rev().find(|(_, wish)| wish.setting() == setting).map(|(number, wish)| (*number, wish))
    }

    fn took(&mut self, number: usize, wish: Wish) {
        if let Wish::Policy(policy) = wish {
            if self.held_of(Setting::Policy).is_none() {
                self.policy_before = self.policy;
            }
            self.policy = policy;
        }
        self.held.push((number, wish));
    }

    fn may(&self, policy: Policy) -> bool {
        self.permitted || !is_real_time(policy)
    }

    /// How many ways back were refused.
    fn ended(&mut self, number: usize) -> usize {
        let Some(place) = self.held.iter().position(|(other, _)| *other == number) else { return 1 };
        let was_in_force = self.held_of(self.held[place].1.setting()).is_some_and(|(latest, _)| latest == number);
        let (_, wish) = self.held.remove(place);
        let mut refused = 0;
        if was_in_force && wish.setting() == Setting::Policy {
            loop {
                let (next, given_up) = match self.held_of(Setting::Policy) {
                    Some((number, &Wish::Policy(policy))) => (policy, Some(number)),
                    _ => (self.policy_before, None),
                };
                if self.may(next) {
                    self.policy = next;
                    break;
                }
                refused += 1;
                let Some(given_up) = given_up else { break };
                self.held.retain(|(number, _)| *number != given_up);
            }
        }
        refused
    }

    #[track_caller]
    fn check<M: Subject>(&self, machine: &M) {
        assert_eq!(machine.policy(), self.policy);
        let affinity = match self.held_of(Setting::Affinity) {
            Some((_, Wish::Affinity(cpus))) => cpus,
            _ => &self.affinity_before,
        };
        assert_eq!(&machine.affinity(), affinity);
        let slack = match self.held_of(Setting::TimerSlack) {
            Some((_, Wish::TimerSlack(slack))) => *slack,
            _ => self.slack_before,
        };
        // Under a real-time policy older kernels report the slack that they do not heed.
        if !is_real_time(self.policy) {
            assert_eq!(machine.timer_slack(), slack, "under {:?}", self.policy);
        }
        assert_eq!(machine.memory_is_locked(), self.held_of(Setting::MemoryLock).is_some());
        if let Some(limit) = machine.idle_limit() {
            let held =
                self.held.iter().filter_map(|(_, wish)| if let Wish::Idle(most) = wish { Some(*most) } else { None });
            assert_eq!(limit, held.min());
        }
    }
}

/// Runs a program on a fresh thread of a machine. Returns the wishes that were refused for want of a permission.
fn check<M: Subject>(machine: &M, program: &Program) -> Option<String> {
    let cpus = machine.affinity().0;
    let usual = machine.timer_slack();
    if let Err(refused) = machine.set_policy(program.policy) {
        return Some(refused.to_string());
    }
    let slack_before = if is_real_time(program.policy) { usual } else { program.slack };
    machine.set_timer_slack(slack_before);
    let mut expected = Expected {
        policy: program.policy,
        policy_before: program.policy,
        affinity_before: CpuSet(cpus.clone()),
        slack_before,
        held: Vec::new(),
        permitted: true,
    };
    expected.check(machine);
    let mut refusal = None;
    let mut guards: Vec<(usize, Held<'_, M>)> = Vec::new();
    let end = |expected: &mut Expected, (number, held): (usize, Held<'_, M>), told: bool| {
        let refused = expected.ended(number);
        if told {
            assert_eq!(held.release().err().map_or(0, |refusals| refusals.len()), refused);
        } else {
            drop(held);
        }
        expected.check(machine);
    };
    for (number, step) in program.steps.iter().enumerate() {
        match step {
            Step::Take(wish) => {
                let wish = match wish {
                    Wish::Affinity(CpuSet(of)) => {
                        let named = |cpu: &Cpu| if *cpu == ABSENT { ABSENT } else { cpus[cpu.0 as usize % cpus.len()] };
                        let mut named: Vec<Cpu> = of.iter().map(named).collect();
                        named.dedup();
                        Wish::Affinity(CpuSet(named))
                    }
                    other => other.clone(),
                };
                let meaningless = match &wish {
                    Wish::Policy(policy) => *policy == Policy::Fifo(0),
                    Wish::Affinity(cpus) => cpus.0.is_empty() || cpus.0.contains(&ABSENT),
                    _ => false,
                };
                let forbidden = match wish {
                    Wish::Policy(policy) => !expected.may(policy),
                    Wish::MemoryLock | Wish::Idle(_) => !expected.permitted,
                    _ => false,
                };
                match Held::take(machine, wish.clone()) {
                    Ok(held) => {
                        assert!(!meaningless && !forbidden, "{wish:?} was granted");
                        guards.push((number, held));
                        expected.took(number, wish);
                    }
                    Err(refused) if meaningless || forbidden => assert!(!refused.remedy.is_empty()),
                    Err(refused) => refusal = Some(refused.to_string()),
                }
                expected.check(machine);
            }
            Step::End { which, told } if !guards.is_empty() => {
                end(&mut expected, guards.remove(which.index(guards.len())), *told);
            }
            Step::End { .. } => {}
            Step::LosePermission => expected.permitted &= !machine.lose_permission(),
        }
    }
    while let Some(guard) = guards.pop() {
        end(&mut expected, guard, guards.len().is_multiple_of(2));
    }
    if expected.permitted {
        assert_eq!((machine.policy(), machine.affinity().0), (program.policy, cpus));
        assert!(is_real_time(program.policy) || machine.timer_slack() == program.slack);
    }
    assert!(!machine.memory_is_locked());
    refusal
}

#[expect(clippy::print_stdout, reason = "a figure of a proof; the harness captures it in an ordinary run")]
fn programs() -> TestRunner {
    let factor = std::env::var("HAIRSPRING_PROOF").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1);
    println!("figure: random programs on each machine: {}", PROGRAMS * factor);
    TestRunner::new(Config { cases: PROGRAMS * factor, failure_persistence: None, ..Config::default() })
}

#[test]
fn whatever_is_held_and_released_in_any_order_the_most_recent_wish_is_in_force_on_the_simulated_machine() {
    let run = |program| {
        assert_eq!(check(&Sim::new(Script::default()), &program), None);
        Ok(())
    };
    programs().run(&program(), run).unwrap_or_else(|failed| panic!("{failed}"));
}

#[test]
fn whatever_is_held_and_released_in_any_order_the_most_recent_wish_is_in_force_on_this_machine() {
    let _alone = alone_with_the_memory();
    let refused = Cell::new(None);
    let run = |program| {
        let mut refusal = None;
        on_own_thread(|| refusal = check(&Host, &program));
        refused.set(refusal.or(refused.take()));
        Ok(())
    };
    programs().run(&program(), run).unwrap_or_else(|failed| panic!("{failed}"));
    if let Some(refused) = refused.take() {
        skip(
            "held::whatever_is_held_and_released_in_any_order_the_most_recent_wish_is_in_force_on_this_machine",
            refused,
        );
    }
}

#[test]
fn a_wish_that_is_refused_on_the_way_back_is_given_up_and_both_are_told() {
    let sim = Sim::new(Script::default());
    let take = |policy| Held::take(&sim, Wish::Policy(policy)).expect("permitted");
    let (lowest, middle, top) = (take(Policy::Other), take(Policy::Fifo(50)), take(Policy::Fifo(60)));
    assert!(sim.lose_permission());
    let refusals = top.release().expect_err("FIFO 50 is refused now");
    assert_eq!((refusals.len(), sim.policy()), (1, Policy::Other));
    assert_eq!(middle.release(), Err(refusals), "its holder did not lose it without a word");
    assert_eq!(lowest.release(), Ok(()));
}

/// Checks on a machine whose threads have wishes of their own, or on one that has a single thread.
fn check_renewal<M: Machine>(machine: &M) {
    let usual = machine.timer_slack();
    assert_eq!(renew(machine, Setting::TimerSlack), Ok(()), "nothing is wished");
    assert_eq!(machine.timer_slack(), usual);
    let held = Held::take(machine, Wish::TimerSlack(Nanos::from_micros(7))).expect("no permission is needed");
    machine.set_timer_slack(Nanos::from_micros(9));
    assert_eq!(renew(machine, Setting::Affinity), Ok(()), "another setting");
    assert_eq!(machine.timer_slack(), Nanos::from_micros(9));
    assert_eq!(renew(machine, Setting::TimerSlack), Ok(()));
    assert_eq!(machine.timer_slack(), Nanos::from_micros(7));
    assert_eq!(held.release(), Ok(()));
    assert_eq!(machine.timer_slack(), usual);
}

#[test]
fn a_wish_that_other_code_has_overridden_can_be_renewed() {
    check_renewal(&Sim::new(Script::default()));
    on_own_thread(|| check_renewal(&Host));
}

fn check_restored<M: Machine>(machine: &M) {
    for slack in [Nanos::from_micros(70), Nanos::from_micros(3)] {
        machine.set_timer_slack(slack);
        let held = Held::take(machine, Wish::TimerSlack(Nanos::from_micros(20))).expect("no permission is needed");
        assert_eq!(held.release(), Ok(()));
        assert_eq!(machine.timer_slack(), slack);
    }
}

#[test]
fn the_value_from_before_the_first_wish_is_the_one_at_that_time_and_no_older_one() {
    check_restored(&Sim::new(Script::default()));
    on_own_thread(|| check_restored(&Host));
}

#[test]
fn a_renewal_that_the_system_refuses_says_so() {
    let sim = Sim::new(Script::default());
    let held = Held::take(&sim, Wish::Policy(Policy::Fifo(50))).expect("permitted");
    assert!(sim.lose_permission());
    assert!(renew(&sim, Setting::Policy).is_err());
    assert_eq!(held.release(), Ok(()));
}

#[test]
fn wishes_may_be_released_by_their_thread_and_by_any_once_it_has_ended() {
    let own = || Host.thread_settings().expect("the thread is not ending").owner();
    let (here, again) = (own(), own());
    assert!(here.admits(&Host) && again.admits(&Host));
    on_own_thread(|| {
        assert!(!here.admits(&Host), "its thread lives");
        assert!(own().admits(&Host));
    });
    let mut ended = None;
    on_own_thread(|| ended = Some(own()));
    assert!(ended.is_some_and(|ended| ended.admits(&Host)));
}

#[test]
fn a_thread_whose_children_do_not_inherit_its_policy_keeps_that() {
    // A change of the policy took SCHED_RESET_ON_FORK away for good; without a permission it was refused for its sake.
    on_own_thread(|| {
        let test = "held::a_thread_whose_children_do_not_inherit_its_policy_keeps_that";
        let thread = std::fs::read_link("/proc/thread-self").expect("a link to this thread");
        let thread = thread.file_name().expect("its number").to_str().expect("digits").to_owned();
        let chrt = |arguments: &[&str]| {
            let told = Command::new("chrt").args(arguments).arg(&thread).output();
            told.map_err(|error| format!("chrt: {error}")).and_then(|told| {
                let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                if told.status.success() { Ok(said(&told.stdout)) } else { Err(said(&told.stderr)) }
            })
        };
        if let Err(refused) = chrt(&["--reset-on-fork", "--rr", "--pid", "7"]) {
            return skip(test, refused);
        }
        let before = chrt(&["--pid"]).expect("it could be set");
        assert!(before.contains("SCHED_RESET_ON_FORK"), "{before}");
        assert_eq!(Host.policy(), Policy::RoundRobin(7));
        let held = Held::take(&Host, Wish::Policy(Policy::Fifo(50))).expect("permitted");
        assert_eq!(Host.policy(), Policy::Fifo(50));
        assert!(chrt(&["--pid"]).expect("as before").contains("SCHED_RESET_ON_FORK"));
        held.release().expect("what was there can come back");
        assert_eq!(chrt(&["--pid"]).expect("as before"), before);
    });
}
