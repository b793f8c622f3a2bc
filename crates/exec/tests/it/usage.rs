//! Resources of a task: stacks of its own size, their high-water mark, CPU time and switches.

use hairspring_exec::{
    Backend, Create, ExecConfig, Executive, Inspect, Limit, Nanos, RunLimit, Services, TaskOptions, TaskUsage,
};

use crate::backends::{FOREVER, LIMIT, all, alone, hush, micros, panic_on_purpose, priority};

/// Uses `BYTES` bytes of stack at once, in one frame.
#[inline(never)]
fn dig<const BYTES: usize>() -> usize {
    let mut bytes = [1_u8; BYTES];
    // By reference: a copy would need as much again.
    std::hint::black_box(&mut bytes).iter().map(|&byte| usize::from(byte)).sum()
}

#[test]
fn a_task_has_a_stack_of_its_own_size_and_its_high_water_mark_is_known() {
    for backend in all() {
        let _alone = alone();
        let shown = backend.name();
        let mut executive = Executive::new(backend, &ExecConfig::default()).expect("it can be made");
        let large = || TaskOptions::default().with_stack_bytes(1 << 20);
        let deep = executive.task_with("deep", priority(10), large(), |_| assert_eq!(dig::<600_000>(), 600_000));
        let small = TaskOptions::default().with_stack_bytes(1);
        let flat = executive.task_with("flat", priority(20), small, |_| {});
        let usual = executive.task("usual", priority(30), |_| assert_eq!(dig::<20_000>(), 20_000));
        let mail = executive.mail_task_with("mail", priority(40), [1, 0, 0, 0], large(), |_, _, number: u32| {
            assert_eq!(dig::<300_000>(), number as usize);
        });
        let [deep, flat, usual] = [deep, flat, usual].map(|task| task.expect("few objects"));
        let mail = mail.expect("few objects");
        assert_eq!(executive.stack_use(deep).map_or(0, |stack| stack.used_bytes / 600_000), 0, "{shown}: not yet");
        for task in [deep, flat, usual] {
            executive.trigger(task).expect("it is idle");
        }
        executive.send(mail, hairspring_exec::Urgency::ALL[0], 300_000).expect("there is room");
        let finish = executive.run(LIMIT);
        assert!(finish.clean(), "{shown}: {finish:?}");
        let [deep, flat, usual, mail] =
            [deep, flat, usual, mail.id()].map(|task| executive.stack_use(task).expect("it has run"));
        assert!(deep.bytes >= 1 << 20 && mail.bytes >= 1 << 20, "{shown}: {deep:?} {mail:?}");
        assert!(deep.used_bytes >= 600_000 && deep.used_bytes <= deep.bytes, "{shown}: {deep:?}");
        assert!(mail.used_bytes >= 300_000 && usual.used_bytes >= 20_000, "{shown}: {mail:?} {usual:?}");
        assert!(flat.bytes >= 16 * 1024, "{shown}: a wish below the least: {flat:?}");
        // The C library may give a thread a larger stack that another one had before.
        if !shown.starts_with("thread") {
            assert!(
                deep.bytes < 1_100_000 && usual.bytes < 70_000 && flat.bytes < 20_000,
                "{shown}: {deep:?} {usual:?} {flat:?}"
            );
            assert!(usual.used_bytes < 60_000, "{shown}: {usual:?}");
        }
    }
}

#[test]
fn a_stack_that_is_used_again_begins_clean() {
    let mut executive = Executive::new(Backend::fiber(), &ExecConfig::default()).expect("it can be made");
    hush();
    let panics = executive.task("digs", priority(10), |_| {
        dig::<50_000>();
        // A task that panics gives its stack back.
        panic_on_purpose();
    });
    let panics = panics.expect("few objects");
    executive.trigger(panics).expect("it is idle");
    executive.run(LIMIT);
    assert!(executive.stack_use(panics).is_some_and(|stack| stack.used_bytes >= 50_000));
    let next = executive.task("next", priority(10), |_| {}).expect("few objects");
    executive.trigger(next).expect("it is idle");
    assert!(executive.run(LIMIT).clean());
    let stack = executive.stack_use(next).expect("it has run");
    assert!(stack.used_bytes < 50_000, "{stack:?}");
}

/// A task computes for 2 ms in four parts; another one for 1 ms, and asks.
fn measured(backend: Backend, config: &ExecConfig) -> [Option<TaskUsage>; 2] {
    let _alone = alone();
    let mut executive = Executive::new(backend, config).expect("it can be made");
    let urgent = executive.task("urgent", priority(10), |ctx| {
        for _ in 0..4 {
            ctx.work(micros(500));
            ctx.delay(Nanos::from_millis(2)).expect("nobody breaks it off");
        }
    });
    let other = executive.task("other", priority(20), |ctx| {
        ctx.work(micros(1_000));
        assert!(ctx.wait(Limit::For(Nanos::from_millis(20))).is_err(), "nobody wakes it");
    });
    let tasks = [urgent, other].map(|task| task.expect("few objects"));
    for task in tasks {
        executive.trigger(task).expect("it is idle");
    }
    let finish = executive.run(RunLimit::For(Nanos::from_secs(20)));
    assert!(finish.clean(), "{finish:?}");
    tasks.map(|task| executive.task_usage(task))
}

#[test]
fn cpu_time_and_switches_of_each_task_are_counted() {
    let config = ExecConfig { measure_usage: true, ..ExecConfig::default() };
    for backend in all() {
        let (shown, exact) = (backend.name(), backend.name() == "sim");
        let [urgent, other] = measured(backend, &config).map(|usage| usage.expect("it is measured"));
        assert!(
            urgent.cpu >= Nanos::from_millis(2) && other.cpu >= Nanos::from_millis(1),
            "{shown}: {urgent:?} {other:?}"
        );
        if exact {
            // In virtual time only readings of the clock take any more.
            assert!(urgent.cpu < micros(2_010) && other.cpu < micros(1_010), "{urgent:?} {other:?}");
            assert_eq!((urgent.switches, other.switches), (5, 2));
        }
        // Four delays and the beginning; the wait and the beginning, and the preemptions.
        assert!(urgent.switches >= 5 && other.switches >= 2, "{shown}: {urgent:?} {other:?}");
    }
}

#[test]
fn what_is_not_measured_is_absent_and_not_zero() {
    assert_eq!(measured(Backend::fiber(), &ExecConfig::default()), [None, None]);
    let mut executive = Executive::new(Backend::thread_smp(), &ExecConfig::default()).expect("it can be made");
    let deleted = executive.spawn("once", priority(10), |_| ()).expect("few objects");
    let (task, mut deleted) = (deleted.task(), deleted);
    let taker = executive.task("taker", priority(20), move |ctx| deleted.wait(ctx, FOREVER).expect("it ends"));
    executive.trigger(taker.expect("few objects")).expect("it is idle");
    assert!(executive.run(LIMIT).clean());
    assert_eq!((executive.task_usage(task), executive.stack_use(task)), (None, None));
}
