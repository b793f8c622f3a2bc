//! The promises of the core, in one binary: each service alone, every status, the wheel against a sorted list, random
//! calls against a naive model, and small systems in all their states.
//!
//! After every call that is made through [`bench::Bench`] the core's own invariants are checked.

mod bench;
#[cfg(feature = "checks")]
mod checks;
mod deletions;
mod events;
mod explore;
mod fast_paths;
mod heaps;
mod joins;
mod mail;
mod naive;
mod pools;
mod refinement;
mod resources;
mod semaphores;
mod short_ways;
mod statuses;
mod suspension;
mod tasks;
mod thresholds;
mod timers;
mod waits;
mod wheel;

/// Factor on the size of an ordinary exploration: the value of `HAIRSPRING_PROOF`, else 1.
fn proof_factor() -> u32 {
    std::env::var("HAIRSPRING_PROOF").ok().and_then(|factor| factor.parse().ok()).unwrap_or(1)
}
