//! A timer: a sampler that is started each millisecond without drift, how late it was, and how many periods it missed.
//!
//! `cargo run --release -p hairspring-exec --example periodic_sampler`
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::sync::mpsc;

use hairspring_exec::{Backend, Create, ExecConfig, Executive, Instant, Nanos, Priority, RunLimit, Services, Urgency};

const SAMPLES: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = ExecConfig { message_bytes: size_of::<(Instant, u64)>(), ..ExecConfig::default() };
    let mut executive = Executive::new(Backend::fiber(), &config)?;
    let urgent = Priority::new(10).ok_or("a priority is 0 to 63")?;
    let (told, samples) = mpsc::channel();
    let mut taken = 0;
    let sampler =
        executive.mail_task("sampler", urgent, [4, 0, 0, 0], move |ctx, _, (due, missed): (Instant, u64)| {
            let late_ns = (ctx.now() - due).count();
            let _ = told.send((late_ns, missed));
            taken += 1;
            if taken == SAMPLES {
                ctx.stop();
            }
        })?;
    let beat = executive.timer("beat", move |ctx, expiry| {
        // Missed periods are not made up for; the timer reports their number.
        let _ = ctx.send(sampler, Urgency::ALL[0], (expiry.deadline, expiry.missed));
    })?;
    executive.start_periodic(beat, executive.now(), Nanos::from_millis(1))?;
    let finish = executive.run(RunLimit::For(Nanos::from_secs(5)));

    let (mut late_ns, missed): (Vec<i64>, Vec<u64>) = samples.try_iter().unzip();
    late_ns.sort_unstable();
    println!("{:?} after {} samples", finish.stopped, late_ns.len());
    println!("late by {} ns (median), {} ns (worst)", late_ns[late_ns.len() / 2], late_ns[late_ns.len() - 1]);
    println!("missed {} periods", missed.iter().sum::<u64>());
    Ok(())
}
