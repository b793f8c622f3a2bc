//! Channels of a set-up file and of the command line: an accepted text belongs to a channel of its card, and a mistake
//! has a place.

use hairspring_recording::channels::{file, written};
use hairspring_ring::Layout;

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let Some(text) = crate::text(bytes) else { return };
    let layouts = [Layout::analogue(4, 16), Layout::analogue(1, 12)].map(|layout| layout.expect("exists"));
    for layouts in [&layouts[..], &layouts[..1]] {
        match file::read(text, layouts) {
            Ok(cards) => {
                assert_eq!(cards.len(), layouts.len());
                for (channels, layout) in cards.iter().zip(layouts) {
                    assert!(channels.len() <= layout.channels() as usize);
                }
            }
            Err(why) => assert!(why.contains("line") || !why.is_empty()),
        }
        let lines: Vec<String> = text.lines().take(8).map(str::to_owned).collect();
        if let Ok(cards) = written::read(&lines, layouts) {
            assert_eq!(cards.len(), layouts.len());
        }
    }
}
