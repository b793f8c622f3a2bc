//! The promises of the machine seam, for `Host` and for `Sim`, in one binary.
//!
//! A test that this machine does not allow calls `testing::skip` and returns; `cargo xtask test` counts it as skipped.
//! Each test that changes a thread's settings runs on a thread of its own.

mod counter;
mod held;
mod host;
mod sentinel;
mod settings;
mod sim;
mod sim_exact;
mod values;

use std::time::{Duration, Instant};

use hairspring_machine::{Cpu, CpuSet, Host, Machine};

/// Runs a test on a thread of its own, whose settings end with it.
fn on_own_thread(test: impl FnOnce() + Send) {
    let ended = std::thread::scope(|scope| scope.spawn(test).join());
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}

/// Keeps a CPU busy from a thread of its own for `span` while `test` runs on the same CPU.
fn with_competitor(cpu: Cpu, span: Duration, test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        scope.spawn(move || {
            Host.set_affinity(&CpuSet(vec![cpu])).expect("the CPU is allowed");
            let start = Instant::now();
            while start.elapsed() < span {
                std::hint::spin_loop();
            }
        });
        on_own_thread(move || {
            Host.set_affinity(&CpuSet(vec![cpu])).expect("the CPU is allowed");
            test();
        });
    });
}
