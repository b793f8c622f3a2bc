//! The page of a running station: from any words a reader gets a state that can be published again, or none.

use hairspring_station::publish::published_again;

use crate::Input;

/// Words of the station's block and of a unit's.
const BLOCK: usize = 64;

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let mut input = Input(bytes);
    let units = usize::from(input.byte() % 6);
    let mut words = vec![0; BLOCK * (1 + units)];
    (words[0], words[4], words[8]) = (words.len() as u64, 1, units as u64);
    while !input.is_empty() {
        let place = usize::from(input.short()) % words.len();
        words[place] = input.long();
    }
    if let Some((state, again)) = published_again(&words) {
        assert_eq!(state.units.len(), units);
        // Invalid text becomes longer when it is replaced, and is cut at the end of its place, once.
        let (first, again) = published_again(&again).expect("what was published is read");
        assert_eq!(published_again(&again), Some((first, again)));
    }
}
