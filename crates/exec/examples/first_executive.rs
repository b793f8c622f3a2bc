//! The first program with an executive: a task that samples, and a less urgent one that logs.
//!
//! `cargo run --release -p hairspring-exec --example first_executive`
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_exec::{Backend, Config, Create, Executive, Limit, Nanos, Priority, RunLimit, Services, Urgency};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut executive = Executive::new(Backend::fiber(), &Config::default())?;
    let [urgent, slow] = [10, 20].map(|number| Priority::new(number).expect("0 to 63"));
    let logger = executive.mail_task("logger", slow, [8, 0, 0, 0], |_, _, sample: u32| println!("sample {sample}"))?;
    let sampler = executive.task("sampler", urgent, move |ctx| {
        for sample in 0..5 {
            let _ = ctx.wait(Limit::For(Nanos::from_millis(10)));
            ctx.send(logger, Urgency::ALL[0], sample).expect("the mailbox has room for eight");
        }
    })?;
    executive.trigger(sampler)?;
    println!("{:?}", executive.run(RunLimit::Forever).stopped);
    Ok(())
}
