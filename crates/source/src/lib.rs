//! The sources of streams: a [`Card`] is a user's description, and opening it gives a [`Source`].
//!
//! A clocked [`Source`] never waits: data that do not fit become a [`Gap`](hairspring_ring::Gap) with its first frame,
//! length and cause. Sources are files and pipes ([`reader`]), datagrams ([`udp`]), sound cards ([`sound`]) and cards
//! in virtual time ([`virtual_card`]). A [`Pattern`] is a stream that a program can compute again to verify it. A
//! recording compares the kernel's clock with an [`ExternalClock`](external::ExternalClock). A [`trigger`] selects the
//! parts of a stream that are kept.

pub mod card;
pub mod external;
pub mod pattern;
pub mod sound;
mod source;
pub mod trigger;

pub use card::{Card, CardError};
pub use pattern::Pattern;
pub use source::{
    FrameStamp, Ignored, Next, SenderCount, Source, SourceCounters, SourceDescription, StampTime, reader, udp,
    virtual_card,
};
