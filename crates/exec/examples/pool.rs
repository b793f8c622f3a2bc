//! A pool of buffers: a reader fills them, a writer empties them, and a pool without a free buffer is an answer.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_exec::{Backend, Create, ExecConfig, Executive, Priority, RunLimit, Services, Urgency};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
    let [urgent, slow] = [10, 20].map(|number| Priority::new(number).expect("0 to 63"));
    let pool = executive.pool(vec![Vec::new(); 2])?;
    let (full, free) = (pool.clone(), pool);
    let writer = executive.mail_task("writer", slow, [2, 0, 0, 0], move |ctx, _, parcel| {
        let samples = ctx.open_parcel(&full, parcel).expect("it is of this pool");
        println!("writes {:?}", *samples);
    })?;
    let reader = executive.task("reader", urgent, move |ctx| {
        for block in 0..3_u32 {
            match ctx.buffer(&free) {
                Ok(mut samples) => {
                    samples.clear();
                    samples.extend([block; 4]);
                    // The buffer goes with the message; nothing is copied.
                    ctx.send(writer, Urgency::ALL[0], samples.into_parcel()).expect("there is room for two");
                }
                Err(why) => println!("block {block} is lost: {why:?}"),
            }
        }
    })?;
    executive.trigger(reader)?;
    executive.run(RunLimit::Forever);
    Ok(())
}
