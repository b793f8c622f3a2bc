//! A mailbox: messages are copied, urgent ones come first, and a full mailbox is an answer.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_exec::{Backend, Create, ExecConfig, Executive, Priority, RunLimit, Services, Urgency};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
    let [urgent, slow] = [10, 20].map(|number| Priority::new(number).expect("0 to 63"));
    // Room for one alarm and two samples. The first sample is taken when it comes, so the third has room.
    let [deadline_check, sample] = [Urgency::ALL[0], Urgency::ALL[1]];
    let logger =
        executive.mail_task("logger", slow, [1, 2, 0, 0], |_, _, message: u32| println!("logged {message}"))?;
    let source = executive.task("source", urgent, move |ctx| {
        for number in 1..=3 {
            println!("sample {number}: {:?}", ctx.send(logger, sample, number));
        }
        println!("deadline_check: {:?}", ctx.send(logger, deadline_check, 99));
    })?;
    executive.trigger(source)?;
    executive.run(RunLimit::Forever);
    Ok(())
}
