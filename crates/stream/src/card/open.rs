//! Opening a card: from the text's meaning to a source.

use super::{Card, CardError, Kind};
use crate::source::Source;
use crate::source::virtual_card::{Settings, UnpacedCard, VirtualCard};
use crate::units::{Bytes, Frames};

impl Card {
    /// Opens the source. It ends after `limit` frames, or after those that the card itself names, if that is less; both are
    /// rounded up to whole grains.
    ///
    /// A connection is made here, and waits for at most ten seconds; nothing else blocks.
    ///
    /// # Errors
    /// What the system refused, with what to do.
    pub fn open(&self, limit: Option<Frames>) -> Result<Box<dyn Source>, CardError> {
        let frames = [self.frames, limit].into_iter().flatten().min();
        let pattern = self.pattern.unwrap_or(crate::pattern::Pattern::Noise { seed: 0 });
        match (self.kind, self.rate()) {
            (Kind::Virtual, Some(rate)) => Ok(Box::new(VirtualCard::new(Settings {
                layout: self.layout,
                rate,
                pattern,
                fifo: self.fifo.unwrap_or(Bytes::mib(64)),
                jitter: self.jitter,
                hiccups: self.hiccups.clone(),
                bus: self.bus,
                frames,
            }))),
            (Kind::Unpaced, _) => Ok(Box::new(UnpacedCard::new(self.layout, pattern, frames))),
            (kind, _) => Err(CardError::Open {
                what: format!("a {} card", kind.name()),
                error: std::io::ErrorKind::Unsupported.into(),
                remedy: "choose virtual or unpaced",
            }),
        }
    }
}
