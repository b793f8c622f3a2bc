//! A program with one dependency: a task that waits 20 µs by polling in each of three runs, and reports how late it
//! was.
//!
//! `cargo run --release -p hairspring --example one_dependency`
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring::exec::{Backend, Create, ExecConfig, Executive, Priority, RunLimit, Services};
use hairspring::{Host, Nanos, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate(Host)?;
    let mut executive = Executive::new(Backend::fiber(), &ExecConfig::default())?;
    let mut runs = 0;
    let pulse = executive.task("pulse", Priority::new(10).ok_or("a priority is 0 to 63")?, move |ctx| {
        runs += 1;
        match timebase.delay(Nanos::from_micros(20)) {
            Ok(report) => println!("run {runs}: late by {}", report.late),
            Err(error) => println!("run {runs}: {error}"),
        }
        if runs == 3 {
            ctx.stop();
        }
    })?;
    let beat = executive.timer("beat", move |ctx, _| {
        let _ = ctx.trigger(pulse);
    })?;
    executive.start_periodic(beat, executive.now(), Nanos::from_millis(5))?;
    println!("{:?}", executive.run(RunLimit::Forever).stopped);
    Ok(())
}
