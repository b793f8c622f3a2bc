//! The ring: one thread writes, another reads in place, also across the end, and frames without room are counted.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::sync::Arc;

use hairspring_ring::{Bytes, Memory, OnOverrun, Pages, ring};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Mapped twice in a row: every piece is contiguous.
    let memory = Arc::new(Memory::mirrored(Bytes(64 << 10), Bytes(4 << 10), Pages::Small)?);
    let (mut producer, mut consumer) = ring(memory, Bytes(4 << 10), OnOverrun::Gap)?;
    let mut lost = 0_u64;
    for block in 0..20_u8 {
        match producer.reserve(10_000) {
            Some(room) => {
                room.fill(block);
                producer.commit(10_000);
            }
            None => lost += 10_000,
        }
        // The reader is too slow at first.
        if block >= 8 {
            while consumer.available() >= 10_000 {
                let at = consumer.next();
                let first = consumer.view(at, 10_000)[0];
                println!("10000 bytes of block {first} at {at}");
                // Taken bytes stay in place until they are released: a disk may still be at work on them.
                consumer.take(10_000);
                consumer.release(at + 10_000);
            }
        }
    }
    let fill = consumer.fill();
    println!("{lost} bytes did not fit; at most {} of {} were in it", fill.high_water, fill.capacity);
    Ok(())
}
