//! A queue whose sender waits for room, data behind a mutex, and the result of a task.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_exec::{
    Backend, Create, ExecConfig, Executive, Limit, Nanos, Priority, ResourceProtocol, RunLimit, Services,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
    let lines = executive.message_queue::<String>(2)?;
    let longest = executive.mutex(ResourceProtocol::Inherit, 0)?;

    let (from, record) = (lines.clone(), longest.clone());
    let mut reader = executive.spawn("reader", Priority::HIGHEST, move |ctx| {
        let mut count = 0;
        // No line for 1 ms: the writer is done.
        while let Ok(line) = from.receive(ctx, Limit::For(Nanos::from_millis(1))) {
            let mut record = record.lock(ctx, Limit::Forever).expect("no task keeps it");
            *record = line.len().max(*record);
            count += 1;
        }
        count
    })?;
    let writer = executive.task("writer", Priority::LOWEST, move |ctx| {
        for line in ["a", "longer", "line"] {
            lines.send(ctx, line.to_owned(), Limit::Forever).expect("the reader makes room");
        }
    })?;
    executive.trigger(writer)?;
    let finish = executive.run(RunLimit::Forever);
    println!("{} lines, {:?}", reader.take().ok_or("the reader has ended")?, finish.stopped);
    Ok(())
}
