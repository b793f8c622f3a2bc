//! Descriptions of cards and triggers: an accepted text is printed such that it can be read again.

use hairspring_ring::{ByteRate, Bytes, SampleRate};
use hairspring_source::card::Card;
use hairspring_source::sound::SoundCard;
use hairspring_source::trigger::Trigger;

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let Some(text) = crate::text(bytes) else { return };
    if let Ok(card) = text.parse::<Card>() {
        assert_eq!(card.to_string().parse::<Card>().expect("what was printed is read"), card);
    }
    if let Ok(card) = text.parse::<SoundCard>() {
        assert_eq!(card.to_string().parse::<SoundCard>().expect("what was printed is read"), card);
    }
    if let Ok(trigger) = text.parse::<Trigger>() {
        assert_eq!(trigger.to_string().parse::<Trigger>().expect("what was printed is read"), trigger);
    }
    let _ = (text.parse::<Bytes>(), text.parse::<ByteRate>(), text.parse::<SampleRate>());
}
