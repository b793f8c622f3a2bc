//! Three exposures of a shutter, of which one hangs and is aborted.
//!
//! `cargo run --release -p hairspring-exec --example shutter_sequence [sim|fiber|thread_up|thread_smp]`; without a back-end, on all of them
//! in turn.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_exec::programs::{self, shutter};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1);
    for backend in programs::backends(name.as_deref())? {
        println!("-- {} --", backend.name());
        println!("{}", shutter::run(backend, &shutter::Setup::default(), None)?);
    }
    Ok(())
}
