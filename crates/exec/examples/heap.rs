//! Variable memory: records of any length in one heap. A task waits for a block until there is one and it is its turn.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_exec::{
    Backend, Create, ExecConfig, Executive, HeapMemory, HeapOrder, Limit, Priority, RunLimit, Services, Urgency,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
    let [urgent, slow] = [10, 20].map(|number| Priority::new(number).expect("0 to 63"));
    // 256 bytes, for at most 8 records at a time.
    let heap = executive.heap(HeapMemory::allocate(256), 8, HeapOrder::Arrival)?;
    let (full, free) = (heap.clone(), heap);
    let writer = executive.mail_task("writer", slow, [4, 0, 0, 0], move |ctx, _, parcel| {
        let record = full.open(ctx, parcel).expect("it is of this heap");
        println!("writes {} bytes of {}", record.len(), record[0]);
        // The block is freed here, and a task that waits for it goes on.
    })?;
    let reader = executive.task("reader", urgent, move |ctx| {
        for (number, bytes) in [(1, 100), (2, 16), (3, 200)] {
            let mut record = free.get(ctx, bytes, Limit::Forever).expect("no record is larger than the heap");
            record.fill(number);
            println!(
                "reads {number} into {} bytes, {} are free",
                record.len(),
                free.usage(ctx).expect("it lives").free_bytes
            );
            // The block goes with the message; nothing is copied.
            ctx.send(writer, Urgency::ALL[0], record.into_parcel()).expect("there is room for four");
        }
    })?;
    executive.trigger(reader)?;
    executive.run(RunLimit::Forever);
    Ok(())
}
