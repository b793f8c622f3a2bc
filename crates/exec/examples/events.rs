//! An event group: a task that goes on when the door is closed and the pump runs, in whatever order that happens.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_exec::{Backend, Bits, Create, ExecConfig, Executive, Limit, Nanos, Priority, RunLimit, Services};

const DOOR: u32 = 1;
const PUMP: u32 = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
    let [urgent, slow] = [10, 20].map(|number| Priority::new(number).expect("0 to 63"));
    let ready = executive.events(0)?;
    let beam = executive.task("beam", urgent, move |ctx| {
        let bits = ctx.wait_events(ready, Bits::All(DOOR | PUMP), false, Limit::For(Nanos::from_secs(1)));
        println!("beam on: {bits:?}");
    })?;
    let operator = executive.task("operator", slow, move |ctx| {
        for (what, bit) in [("pump", PUMP), ("door", DOOR)] {
            println!("{what}");
            ctx.signal_events(ready, bit).expect("nobody deletes the group");
        }
    })?;
    executive.trigger(beam)?;
    executive.trigger(operator)?;
    executive.run(RunLimit::Forever);
    Ok(())
}
