//! The promises of the executive, through its public interface, in one binary of tests.

mod backends;
mod interrupts;
mod interrupts_descriptors;
mod kill;
mod messages;
mod pools;
mod programs;
mod services;
mod trace;
