//! Scheduler hooks that panic: in the middle of a call, wherever that is made.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hairspring_exec::{Create, Ending, ExecConfig, Observer, Priority, ResourceId, Services, TaskId, TimerId, Waiting};
use hairspring_machine::{Host, Machine, Nanos};

use crate::backends::{Bench, FOREVER, LIMIT, all, alone, hush, micros, panic_on_purpose};

/// Panics at the n-th call of this hook.
struct Clumsy(&'static str, u32);

impl Clumsy {
    fn told(&mut self, what: &str) {
        if what == self.0 {
            self.1 -= 1;
            if self.1 == 0 {
                panic_on_purpose();
            }
        }
    }
}

impl Observer for Clumsy {
    fn readied(&mut self, _: TaskId) {
        self.told("readied");
    }
    fn started(&mut self, _: TaskId) {
        self.told("started");
    }
    fn stopped(&mut self, _: TaskId, _: Waiting) {
        self.told("stopped");
    }
    fn timed_out(&mut self, _: TaskId) {
        self.told("timed_out");
    }
    fn ended(&mut self, _: TaskId, _: Ending) {
        self.told("ended");
    }
    fn priority(&mut self, _: TaskId, _: Priority) {
        self.told("priority");
    }
    fn owned(&mut self, _: ResourceId, _: Option<TaskId>) {
        self.told("owned");
    }
    fn expired(&mut self, _: TimerId, _: u64) {
        self.told("expired");
    }
}

#[test]
fn a_hook_that_panics_ends_the_run_and_leaves_nothing_behind() {
    // Symptom: the panic left the core in the middle of the call, came out of whatever code had made it, and, where
    // that was the carrier, left its policy and timer slack as they were in the run, and a watchdog that went on.
    hush();
    for told in ["readied", "started", "stopped", "timed_out", "ended", "priority", "owned", "expired"] {
        for number in 1..=2 {
            for backend in all() {
                let _alone = alone();
                let name = format!("{told} {number} on {}", backend.name());
                let slack = Host.timer_slack();
                let mut bench =
                    Bench::new(backend, &ExecConfig { watchdog: Nanos::from_millis(50), ..ExecConfig::default() });
                let resource =
                    bench.executive.resource(hairspring_exec::ResourceProtocol::Inherit).expect("few objects");
                let timer = bench.executive.timer("timer", |_, _| {}).expect("few objects");
                let first = bench.executive.now() + Nanos::new(200_000);
                bench.executive.start_periodic(timer, first, micros(200)).expect("a sensible period");
                let waiter = bench.task("waiter", 10, move |ctx, _| {
                    ctx.delay(micros(50)).expect("nobody kills it");
                    drop(ctx.reserve(resource, FOREVER).expect("it comes"));
                });
                let task = bench.start("task", 20, move |ctx, _| {
                    for _ in 0..3 {
                        ctx.trigger(waiter).expect("it is idle");
                        let held = ctx.reserve(resource, FOREVER).expect("it is free");
                        ctx.work(micros(300));
                        drop(held);
                    }
                    ctx.stop();
                });
                bench.executive.set_hooks(Clumsy(told, number + 1));
                let ended = catch_unwind(AssertUnwindSafe(|| bench.executive.run(LIMIT)));
                let payload = ended.err().unwrap_or_else(|| panic!("{name}: no panic came out"));
                assert_eq!(payload.downcast_ref::<&str>(), Some(&"on purpose"), "{name}");
                assert_eq!(Host.timer_slack(), slack, "{name}");
                // The core is whole, and so is the task in whose call it happened.
                bench.executive.trigger(task).unwrap_or_else(|status| panic!("{name}: {status}"));
                let finish = bench.executive.run(LIMIT);
                assert_eq!(finish.stopped, hairspring_exec::StopReason::Asked, "{name}");
                assert!(finish.mishaps.is_empty(), "{name}: {:?}", finish.mishaps);
            }
        }
    }
}
