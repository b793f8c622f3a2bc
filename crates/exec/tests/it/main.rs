//! The promises of the executive, through its public interface, in one binary of tests.

mod backends;
mod backends_random;
mod hooks;
mod host;
mod interrupts;
mod interrupts_compile;
mod interrupts_descriptors;
mod kill;
mod messages;
mod overflow;
mod placement;
mod pools;
mod programs;
mod promptness;
mod published;
mod results;
mod scale;
mod services;
mod services_resources;
mod shared;
mod sources;
mod stopped;
mod timers;
mod trace;
mod usage;
mod watchdog;
