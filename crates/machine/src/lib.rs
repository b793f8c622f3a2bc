//! The machine: the only seam to CPU and kernel.
//!
//! All other crates ask a [`Machine`] for ticks, clock readings, sleep, placement and facts. [`Host`] is this computer.
//! [`Sim`] is a computer in virtual time with a script of disturbances. Only this crate contains code that depends on
//! the CPU or asks the kernel about time and scheduling.
//!
//! ```
//! use hairspring_machine::{Clock, Host, Machine};
//! let before = Host.read(Clock::Monotonic);
//! let ticks = Host.ticks_ordered();
//! assert!(Host.read(Clock::Monotonic) >= before);
//! # let _ = ticks;
//! ```

pub mod facts;
mod host;
mod idle;
mod instant;
mod machine;
mod nanos;
mod settings;
pub mod sim;
mod ticks;

pub use host::Host;
pub use idle::IdleLimit;
pub use instant::{Epoch, EpochMismatch, Instant};
pub use machine::{
    Clock, ClockCall, CounterEvidence, Cpu, CpuCounters, CpuSet, Discipline, Heat, Machine, Policy, PublishedRate,
    Refused, SleepCall, ThreadUsage, Woken,
};
pub use nanos::{DurationError, Nanos};
pub use settings::{Held, Owner, Setting, ThreadSettings, Wish, renew};
pub use sim::Sim;
pub use ticks::Ticks;
