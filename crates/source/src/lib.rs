//! What produces a stream: a [`Card`] as a user describes it, and the [`Source`] that it opens.
//!
//! A [`Source`] is clocked and never waits: what does not fit is a [`Gap`](hairspring_ring::Gap) with its first frame, length and
//! cause. Sources are files and pipes ([`reader`]), datagrams ([`udp`]) and cards in virtual time ([`virtual_card`]). A [`Pattern`] is
//! a stream that can be computed again and so be verified. A [`trigger`] says which parts of a stream are kept.

pub mod card;
pub mod pattern;
mod source;
pub mod trigger;

pub use card::{Card, CardError};
pub use pattern::Pattern;
pub use source::{Ignored, Next, Source, SourceCounters, SourceDescription, reader, udp, virtual_card};
