//! Sound cards: the converters that every computer has, by the kernel's own interface.
//!
//! A [`SoundCard`] is a description, which opens as a [`SoundInput`], a source, or as a [`Pcm`] that is played to. No
//! library stands between, so no program mixes or converts, and the positions and stamps are the driver's.
//!
//! **Nothing is ever silently missing.** The stream is set up so that the kernel never stops it, so a late program can
//! count the overwritten frames; see [`input`]. Losses in the hardware, before memory, are invisible here; a rate that
//! jumps shows it afterwards.
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
