//! A sampler with a period of 1 ms, its logger, and what was late or lost.
//!
//! `cargo run --release -p hairspring-exec --example periodic_sampler [sim|fiber|thread_up|thread_smp]`; without a back-end, on all of them
//! in turn.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_exec::programs::{self, sampler};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1);
    for backend in programs::backends(name.as_deref())? {
        println!("-- {} --", backend.name());
        println!("{}", sampler::run(backend, &sampler::Setup::default(), None)?);
    }
    Ok(())
}
