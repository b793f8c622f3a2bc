//! Sound cards: the converters that every computer has, by the kernel's own interface.
//!
//! A [`SoundCard`] is a description, which opens as a [`SoundInput`], a source, or as a [`Pcm`] that is played to. No library stands between,
//! so no program mixes or converts, and the positions and stamps are the driver's.
//!
//! **Nothing is ever silently missing.** The kernel is told never to stop a stream, so a program that is late can count what was
//! overwritten; see [`input`]. What the hardware loses before it reaches memory cannot be seen here; a rate that jumps shows it afterwards.
//!
//! The mixer is read for the metadata, and never changed.

mod abi;
mod card;
mod count;
mod holder;
pub mod input;
mod kernel;
mod mixer;
mod open;
mod pcm;
mod setup;
mod stamps;
pub mod testing;

pub use card::SoundCard;
pub use count::{Passed, PointerCount};
pub use input::SoundInput;
pub use pcm::{Pcm, PcmState, PcmStatus};
pub use setup::{PcmSetup, PcmWire};
