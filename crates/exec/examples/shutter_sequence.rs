//! Two tasks and a semaphore: exposures of 20 ms with an instrument in the middle, and a supervisor that aborts one
//! that hangs.
//!
//! It runs in virtual time. With `Backend::fiber()` or `Backend::thread_up()` the same tasks run in real time.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_exec::{Backend, Create, ExecConfig, Executive, Limit, Nanos, Priority, RunLimit, Services, Urgency};

const OPEN: Nanos = Nanos::from_millis(20);
/// A sound exposure is over by then.
const PATIENCE: Nanos = Nanos::from_millis(50);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
    let [watching, exposing] = [5, 10].map(|number| Priority::new(number).expect("0 to 63"));
    let closed = executive.semaphore(0, 1)?;
    let exposure = executive.mail_task("exposure", exposing, [1, 0, 0, 0], move |ctx, _, number: u32| {
        let end = ctx.now() + OPEN;
        println!("{number}: open");
        if number == 2 {
            // The instrument never answers; the supervisor's wake ends the wait.
            let _ = ctx.wait(Limit::Forever);
            println!("{number}: closed, aborted");
        } else {
            let _ = ctx.delay(Nanos::from_millis(3));
            println!("{number}: the instrument has answered");
            let _ = ctx.delay_until(end);
            println!("{number}: closed on time");
        }
        let _ = ctx.signal_semaphore(closed);
    })?;
    let supervisor = executive.task("supervisor", watching, move |ctx| {
        for number in 1..=3 {
            ctx.send(exposure, Urgency::ALL[0], number).expect("the mailbox is empty");
            if ctx.wait_semaphore(closed, Limit::For(PATIENCE)).is_err() {
                println!("{number}: hangs since {PATIENCE}");
                ctx.wake(exposure.id()).expect("it waits");
                ctx.wait_semaphore(closed, Limit::Forever).expect("it closes the shutter");
            }
        }
    })?;
    executive.trigger(supervisor)?;
    println!("{:?}", executive.run(RunLimit::Forever).stopped);
    Ok(())
}
