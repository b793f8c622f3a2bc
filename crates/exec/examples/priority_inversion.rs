//! A resource: how long an urgent task waits for what a slow one owns, without a protocol, by inheritance and by a
//! ceiling.
//!
//! It runs in virtual time, so it prints the same in every run: without a protocol the task in the middle is in the
//! way.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::sync::mpsc;

use hairspring_exec::{
    Backend, Create, ExecConfig, Executive, Instant, Limit, Nanos, Priority, ResourceProtocol, RunLimit, Services,
    Urgency,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let high = Priority::new(10).ok_or("a priority is 0 to 63")?;
    for protocol in [ResourceProtocol::None, ResourceProtocol::Inherit, ResourceProtocol::Ceiling(high)] {
        println!("{protocol:?}: the urgent task waited {}", waited(protocol)?);
    }
    Ok(())
}

fn waited(protocol: ResourceProtocol) -> Result<Nanos, Box<dyn std::error::Error>> {
    let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
    let [high, middle, low] = [10, 20, 30].map(|number| Priority::new(number).expect("0 to 63"));
    let bus = executive.resource(protocol)?;
    let (told, waits) = mpsc::channel();
    let high = executive.mail_task("high", high, [1, 0, 0, 0], move |ctx, _, asked: Instant| {
        let held = ctx.reserve(bus, Limit::Forever).expect("nobody deletes the bus");
        let _ = told.send(ctx.now() - asked);
        ctx.work(Nanos::from_micros(100));
        drop(held);
    })?;
    let middle = executive.task("middle", middle, |ctx| ctx.work(Nanos::from_millis(5)))?;
    let low = executive.task("low", low, move |ctx| {
        let held = ctx.reserve(bus, Limit::Forever).expect("nobody deletes the bus");
        let now = ctx.now();
        ctx.send(high, Urgency::ALL[0], now).expect("the mailbox is empty");
        ctx.trigger(middle).expect("it does not run");
        ctx.work(Nanos::from_millis(1));
        drop(held);
    })?;
    executive.trigger(low)?;
    executive.run(RunLimit::Forever);
    Ok(waits.recv()?)
}
