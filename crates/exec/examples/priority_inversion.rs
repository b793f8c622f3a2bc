//! How long a high task waits for a resource that a low one owns, by protocol.
//!
//! `cargo run --release -p hairspring-exec --example priority_inversion [sim|fiber|thread_up|thread_smp]`; without a back-end, on all of them
//! in turn.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_exec::programs::{self, inversion};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1);
    for backend in programs::backends(name.as_deref())? {
        println!("-- {} --", backend.name());
        println!("{}", inversion::run(backend, &inversion::Setup::default(), None)?);
    }
    Ok(())
}
