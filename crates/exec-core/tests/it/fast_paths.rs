//! Random programs whose calls are nearly all simple enough for the fast paths, against the naive model.
//!
//! Random calls of every kind meet a fast path once in sixty. Here the state chooses: the running task makes a call
//! that a fast path takes now. A few calls of any kind come between, so that wakes are kept, tasks are suspended, and
//! mail and starts are pending when the next ones are made.

use hairspring_exec_core::{By, Call, Ending, SemaphoreId, TaskId, TaskState, Until, Urgency, Waiting};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::refinement::{Pair, Seed, pick, seed};

/// One call in this many is of any kind.
const ODD_ONE_IN: u8 = 24;
/// The calls of one program.
const LENGTH: usize = 200;
/// Programs of an ordinary run: 100,000 calls.
const PROGRAMS: u32 = 500;

/// The calls of the running task that are simple now, by the model.
fn simple_calls(pair: &Pair, me: TaskId, letter: Urgency) -> Vec<Call> {
    let mut calls = Vec::new();
    for man in pair.naive.men.iter().filter(|man| man.state != TaskState::Deleted) {
        let task = man.id;
        match man.state {
            TaskState::Idle => {
                calls.push(Call::Trigger { task });
                if pair.naive.free_envelopes > 0 && pair.core.letters(task, letter).is_empty() {
                    calls.push(Call::Send { task, urgency: letter });
                }
            }
            TaskState::Waiting if man.waiting == Waiting::Wake => calls.push(Call::Wake { task }),
            TaskState::Waiting if matches!(man.waiting, Waiting::Mail(_)) && pair.naive.free_envelopes > 0 => {
                calls.push(Call::Send { task, urgency: letter });
            }
            TaskState::Ready if task == me => {
                if pair.naive.free_envelopes > 0 && pair.core.letters(task, letter).is_empty() {
                    calls.push(Call::Send { task, urgency: letter });
                }
                // Now and then for a message that is still to come.
                if man.hand.is_none() && (pair.core.mail_waiting(task) > 0 || letter == Urgency::ALL[0]) {
                    calls.push(Call::Receive { urgency: None, until: Until::Forever });
                }
                if !man.latch && !man.killed && !man.suspended {
                    calls.push(Call::Wait { until: Until::Forever });
                }
                if man.starts == 0 && man.hand.is_none() && man.owned.is_empty() {
                    calls.push(Call::End { how: Ending::Returned });
                }
            }
            _ => {}
        }
    }
    for (_, number, &(count, limit)) in pair.naive.semaphores.iter() {
        let semaphore = SemaphoreId::from_number(number);
        if count > 0 {
            calls.push(Call::WaitSemaphore { semaphore, until: Until::Forever, at: None });
        } else if limit > 0 {
            calls.push(Call::SignalSemaphore { semaphore });
        }
    }
    calls
}

/// The next caller and its call.
fn next(pair: &Pair, seed: Seed) -> (By, Call) {
    let Some(me) = pair.core.first() else {
        // All wait: a caller from outside ends a wait or begins a run.
        if let Some(man) = pair.naive.men.iter().find(|man| man.suspended && man.state != TaskState::Deleted) {
            return (By::Outside, Call::Resume { task: man.id });
        }
        let woken = pair.naive.men.iter().find(|man| man.waiting == Waiting::Wake && man.state == TaskState::Waiting);
        let call = match woken {
            Some(man) => Call::Wake { task: man.id },
            None => Call::Trigger { task: pick(&pair.core.tasks(), seed.a) },
        };
        return (By::Outside, call);
    };
    if seed.kind.is_multiple_of(ODD_ONE_IN) {
        let by = pair.caller(seed.who);
        return (by, pair.call(Seed { kind: seed.b, ..seed }));
    }
    // Take the message that is in a task's hand, else no end of a run is simple any more.
    let holds = pair.naive.men.iter().any(|man| man.id == me && man.hand.is_some());
    if holds && seed.c.is_multiple_of(2) {
        return (By::Task(me), Call::Take);
    }
    let calls = simple_calls(pair, me, Urgency::ALL[usize::from(seed.c % 4)]);
    match calls.is_empty() {
        true => (By::Task(me), Call::Yield),
        false => (By::Task(me), pick(&calls, seed.a)),
    }
}

fn play(seeds: &[Seed]) -> Result<Pair, TestCaseError> {
    let mut pair = Pair::new(1)?;
    for &seed in seeds {
        let (by, call) = next(&pair, seed);
        pair.apply(by, call)?;
    }
    Ok(pair)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(PROGRAMS * crate::proof_factor()) })]

    #[test]
    fn calls_that_take_a_fast_path_come_out_as_in_the_naive_model(seeds in proptest::collection::vec(seed(), LENGTH)) {
        play(&seeds)?;
    }
}

/// Else the comparison above would not be one of fast paths.
#[test]
fn most_random_calls_take_a_fast_path_and_all_of_them_are_taken() {
    let mut runner = TestRunner::deterministic();
    let strategy = proptest::collection::vec(seed(), LENGTH);
    let (mut all, mut simple) = (0, 0);
    for _ in 0..100 {
        let seeds = strategy.new_tree(&mut runner).expect("a program").current();
        simple += play(&seeds).expect("as the model").simple;
        all += LENGTH as u64;
    }
    println!("figure: calls compared: {}", u64::from(PROGRAMS * crate::proof_factor()) * LENGTH as u64);
    println!("figure: calls on a fast path, in 100: {}", simple * 100 / all);
    assert!(simple * 2 > all, "only {simple} of {all} calls took a fast path");
}
