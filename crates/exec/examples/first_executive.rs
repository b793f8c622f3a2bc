//! The first program with an executive: a timer that is due each 10 ms, and a task that samples when it is.
//!
//! `cargo run --release -p hairspring-exec --example first_executive`
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_exec::{Backend, Create, ExecConfig, Executive, Nanos, Priority, RunLimit, Services};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut executive = Executive::new(Backend::fiber(), &ExecConfig::default())?;
    let urgent = Priority::new(10).ok_or("a priority is 0 to 63")?;
    let mut sample = 0;
    let sampler = executive.task("sampler", urgent, move |ctx| {
        sample += 1;
        println!("sample {sample}");
        if sample == 5 {
            ctx.stop();
        }
    })?;
    let beat = executive.timer("beat", move |ctx, _| {
        let _ = ctx.trigger(sampler);
    })?;
    executive.start_periodic(beat, executive.now(), Nanos::from_millis(10))?;
    println!("{:?}", executive.run(RunLimit::Forever).stopped);
    Ok(())
}
