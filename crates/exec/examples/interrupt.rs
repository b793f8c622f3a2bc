//! An interrupt procedure: another thread posts, the procedure wakes a task, and no arrival is lost without being
//! counted.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::time::Duration;

use hairspring_exec::{Backend, Create, ExecConfig, Executive, InterruptSource, Nanos, Priority, RunLimit, Services};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut executive = Executive::new(Backend::fiber(), &ExecConfig::default())?;
    let urgent = Priority::new(10).ok_or("a priority is 0 to 63")?;
    let mut seen = 0;
    let task = executive.task("trigger", urgent, move |ctx| {
        seen += 1;
        println!("trigger {seen}");
        if seen == 3 {
            ctx.stop();
        }
    })?;
    // `InterruptSource::Readable` and `InterruptSource::Counter` take descriptors: a socket, a UIO device, an eventfd.
    let isp = executive.attach("card", InterruptSource::Software, move |ctx, _arrival| {
        let _ = ctx.trigger(task);
    })?;
    let card = std::thread::spawn(move || {
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(5));
            let _ = isp.post();
        }
    });
    let finish = executive.run(RunLimit::For(Nanos::from_secs(5)));
    println!("{:?}, {} lost", finish.stopped, finish.interrupts_lost);
    card.join().map_err(|_| "the card panicked")?;
    Ok(())
}
