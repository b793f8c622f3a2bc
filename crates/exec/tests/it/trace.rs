//! Exports of a trace: read back by readers that are not ours, and held against each other and against the replay.

mod chrome;
mod vcd;

use hairspring_exec::programs;
use hairspring_exec::trace::Trace;
use hairspring_exec::{
    CallStatus, Create, ExecConfig, Executive, InterruptSource, Limit, Priority, ResourceProtocol, RunLimit, Services,
};
use hairspring_machine::Nanos;

/// A priority that exists.
fn priority(number: u8) -> Priority {
    Priority::new(number).expect("0 to 63")
}

/// A short run in virtual time with a little of everything: names that formats do not take as they are, a resource with
/// inheritance, a time-out, a suspension, a timer that overruns, an interrupt.
fn little() -> Trace {
    let config = ExecConfig { trace: Some(10_000), ..ExecConfig::default() };
    let mut executive = Executive::new(programs::backend("sim").expect("it exists"), &config).expect("it is made");
    let begin = executive.now();
    let micros = |count: i64| begin + Nanos::new(1_000 * count);
    let resource = executive.resource(ResourceProtocol::Inherit).expect("made");
    let low = executive.task("low & slow", priority(30), move |ctx| {
        let held = ctx.reserve(resource, Limit::Forever);
        ctx.work(Nanos::from_micros(100));
        drop(held);
        // One wake is kept for it; the second wait ends by time.
        let _ = ctx.wait(Limit::Forever);
        let _ = ctx.wait(Limit::For(Nanos::from_micros(20)));
    });
    let low = low.expect("made");
    let high = executive.task("3rd $end \"high\"\n", priority(10), move |ctx| {
        let _ = ctx.suspend(low);
        ctx.work(Nanos::from_micros(5));
        let _ = ctx.resume(low);
        drop(ctx.reserve(resource, Limit::Forever));
    });
    let high = high.expect("made");
    let last = micros(150);
    let timer = executive.timer("tick", move |ctx, expiry| {
        if expiry.deadline >= last {
            let _ = ctx.stop_timer(ctx.timer());
        }
    });
    let timer = timer.expect("made");
    let isp = executive.attach("edge", InterruptSource::Software, move |ctx, _| {
        let _ = ctx.trigger(high);
        let _ = ctx.wake(low);
    });
    let isp = isp.expect("attached");
    executive.trigger(low).expect("idle");
    executive.start_periodic(timer, micros(10), Nanos::from_micros(7)).expect("made");
    assert!(executive.interrupt_at(&isp, micros(40)));
    executive.run(RunLimit::Until(micros(400)));
    executive.trace().expect("asked for")
}

/// Traces of every program on every back-end.
fn programs_everywhere() -> impl Iterator<Item = (String, Trace)> {
    let runs = programs::BACKENDS.into_iter().flat_map(|backend| programs::all().map(|program| (backend, program)));
    runs.map(|(backend, program)| {
        let run = program.run(programs::backend(backend).expect("it exists"), Some(100_000)).expect("it runs");
        (format!("{} on {backend}", program.name), run.trace.expect("it was asked for"))
    })
}

#[test]
fn the_table_of_a_trace_is_as_reviewed() {
    insta::assert_snapshot!(little().to_text().expect("it replays"));
}

#[test]
fn a_trace_that_was_full_says_so_in_every_form() {
    let backend = programs::backend("sim").expect("it exists");
    let run = programs::all()[0].run(backend, Some(100)).expect("it runs");
    let trace = run.trace.expect("asked for");
    assert!(trace.lost > 0);
    let lost = trace.lost.to_string();
    for text in [trace.to_vcd(), trace.to_chrome(), trace.to_text()] {
        let text = text.expect("it replays");
        assert!(text.lines().any(|line| line.contains(&lost) && line.contains("lost") | line.contains("missing")));
    }
}

#[test]
fn a_trace_that_the_core_does_not_agree_with_is_not_exported() {
    let mut trace = little();
    let place = trace.records.len() / 2;
    trace.records[place].reply.status = CallStatus::NotAcknowledged;
    for refused in [trace.to_vcd(), trace.to_chrome(), trace.to_text()] {
        let mismatch = refused.expect_err("the replay differs");
        assert_eq!(mismatch.record, place);
        assert!(mismatch.to_string().contains("NotAcknowledged"), "{mismatch}");
    }
}

#[test]
fn an_empty_trace_is_exported_too() {
    let trace = Trace { records: Vec::new(), ..little() };
    let trace = Trace { tasks: Vec::new(), timers: Vec::new(), isps: Vec::new(), ..trace };
    assert!(trace.to_vcd().is_ok_and(|text| text.contains("$enddefinitions")));
    assert!(trace.to_chrome().is_ok_and(|text| text.contains("traceEvents")));
    assert!(trace.to_text().is_ok_and(|text| text.lines().count() == 1));
}
