//! Answers of sound cards. A set-up that is accepted does not contradict itself. Of any pointers and times, frames are
//! counted without an overflow. A recording of a card that stops, is deaf, or is pulled out accounts for every frame.

use hairspring_machine::{Instant, Nanos};
use hairspring_source::sound::PointerCount;
use hairspring_source::sound::testing::negotiated;

use crate::Input;

const BUFFER: u64 = 4800;
const BOUNDARY: u64 = BUFFER << 3;

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    if which & 1 == 0 { set_up(bytes) } else { count(bytes) }
}

fn set_up(answers: &[u8]) {
    if let Ok(setup) = negotiated(answers) {
        assert!(setup.period.0 > 0 && setup.buffer.0 >= 2 * setup.period.0, "{setup:?}");
        assert!(setup.boundary.0.is_multiple_of(setup.buffer.0), "{setup:?}");
        assert!(setup.significant_bits <= 16 && setup.fifo.0 <= setup.buffer.0 / 8, "{setup:?}");
        assert_eq!(setup.frame_bytes(), 4);
    }
}

fn count(looks: &[u8]) {
    let mut input = Input(looks);
    let step = u64::from(input.short());
    let mut count = PointerCount::new(BOUNDARY, BUFFER, step, 48_000.0, input.long(), Instant::BOOT);
    while !input.is_empty() {
        let (pointer, time) = (input.long(), Nanos::new(input.long().cast_signed() >> 2));
        let passed = count.advance(pointer, Instant::from_monotonic(time));
        assert!(passed.least <= passed.most, "{passed:?}");
    }
}
