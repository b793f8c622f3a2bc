//! Proof: a watch counts as many preemptions as the kernel counts involuntary switches.
//!
//! In each round a competitor keeps the same CPU busy. The proof compares the watch's preemptions with `ru_nivcsw`, and
//! their length with the time that the thread waited for its CPU (`schedstat`). Every second round has no competitor.

use std::time::Duration;

use hairspring_machine::{CpuSet, ThreadUsage};
use hairspring_time::{Cause, Cpu, Gaps, Host, Machine, Nanos, Timebase, Watch};
use serde_json::{Map, json};

use crate::Verdict;
use crate::placement::last_cpu;

/// With fewer switches in a round a ratio is not significant.
const SWITCHES_LEAST: u64 = 5;

pub(crate) fn prove(rounds: u32, millis: u32) -> Verdict {
    let mut figures = Map::new();
    let Ok(timebase) = Timebase::calibrate(Host) else {
        figures.insert("defect".to_owned(), json!("no time base"));
        return Verdict { passed: false, figures };
    };
    let there = Host.sentinel_arm();
    Host.sentinel_disarm();
    if !there {
        figures.insert("defect".to_owned(), json!("this kernel or C library has no rseq"));
        return Verdict { passed: false, figures };
    }
    let span = Nanos::from_millis(i64::from(millis));
    let (mut table, mut compared, mut agreed, mut exact) = (Vec::new(), 0_u32, 0_u32, 0_u32);
    for round in 0..rounds.saturating_mul(2) {
        let contested = round % 2 == 0;
        let (gaps, before, after) = watched(&timebase, last_cpu(), span, contested);
        let Some(switches) = after.involuntary_switches.zip(before.involuntary_switches).map(|(a, b)| a - b) else {
            figures.insert("defect".to_owned(), json!("this kernel does not count switches"));
            return Verdict { passed: false, figures };
        };
        let breaks = u64::from(gaps.count);
        let waited = after.run_delay.zip(before.run_delay).map(|(after, before)| (after - before).count());
        if switches >= SWITCHES_LEAST {
            compared += 1;
            agreed += u32::from(breaks * 2 >= switches && breaks <= switches * 2);
        }
        exact += u32::from(breaks == switches);
        table.push(json!([u32::from(contested), breaks, switches, gaps.total.count(), waited]));
    }
    figures.insert("rounds".to_owned(), json!(table.len()));
    figures.insert("compared".to_owned(), json!(compared));
    figures.insert("within_a_factor_of_two".to_owned(), json!(agreed));
    figures.insert("equal_counts".to_owned(), json!(exact));
    figures.insert("rows: contested, breaks, switches, gaps_ns, waited_ns".to_owned(), json!(table));
    // At least half of the contested rounds must have enough switches to compare.
    Verdict { passed: agreed == compared && compared * 2 >= rounds && compared > 0, figures }
}

fn watched(timebase: &Timebase, cpu: Cpu, span: Nanos, contested: bool) -> (Gaps, ThreadUsage, ThreadUsage) {
    std::thread::scope(|scope| {
        if contested {
            scope.spawn(move || {
                let _ = Host.set_affinity(&CpuSet(vec![cpu]));
                let until = Host.monotonic() + span;
                while Host.monotonic() < until {
                    std::hint::spin_loop();
                }
            });
            // Both threads must run when the round begins.
            std::thread::sleep(Duration::from_millis(1));
        }
        let watching = scope.spawn(move || {
            let _ = Host.set_affinity(&CpuSet(vec![cpu]));
            let before = Host.usage();
            let start = timebase.stamp_ordered();
            let mut watch = Watch::begin(timebase, start);
            loop {
                let now = timebase.stamp();
                watch.look(now);
                if timebase.nanos(now.since(start)) >= span {
                    break;
                }
            }
            let gaps = watch.end().gaps(Cause::Preempted);
            (gaps, before, Host.usage())
        });
        watching.join().unwrap_or_default()
    })
}
