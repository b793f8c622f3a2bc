//! The promises of the core, in one binary: each service by itself, every status, the wheel against a sorted list, random
//! calls against a naive model, and small systems in all their states.
//!
//! After every call that is made through [`bench::Bench`] the core's own invariants are checked.

mod bench;
#[cfg(feature = "checks")]
mod checks;
mod events;
mod mail;
mod pools;
mod resources;
mod semaphores;
mod statuses;
mod suspension;
mod tasks;
mod timers;
mod waits;
mod wheel;
