//! A semaphore: three tasks share two licences; the most urgent that waits gets the next one.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_exec::{Backend, Create, ExecConfig, Executive, Limit, Nanos, Priority, RunLimit, Services};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
    let licences = executive.semaphore(2, 2)?;
    for number in [30, 20, 10] {
        let priority = Priority::new(number).ok_or("a priority is 0 to 63")?;
        let worker = executive.task("worker", priority, move |ctx| {
            ctx.wait_semaphore(licences, Limit::Forever).expect("nobody deletes the semaphore");
            println!("priority {number} has a licence");
            // A wait, not work: others run meanwhile.
            let _ = ctx.delay(Nanos::from_millis(1));
            ctx.signal_semaphore(licences).expect("there are no more than two");
        })?;
        executive.trigger(worker)?;
    }
    println!("{:?}", executive.run(RunLimit::Forever).stopped);
    Ok(())
}
