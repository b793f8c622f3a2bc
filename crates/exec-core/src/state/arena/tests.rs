//! Random blocks against a list of them: none overlap, none are lost, and a block is refused only where the rule of classes lets it.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

#[test]
fn every_size_is_in_the_class_that_begins_at_or_below_it() {
    let sizes = (0..4_096).chain((0..26).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]));
    for units in sizes.chain([MOST_UNITS]) {
        let class = class_of(units);
        assert!(least_of(class) <= units && units < least_of(class + 1).max(units + 1), "{units}");
        let enough = class_for(units);
        assert!(least_of(enough) >= units && (enough == 0 || least_of(enough - 1) < units), "{units}");
        assert!(least_of(enough) - units <= units / 8, "{units}");
    }
    assert_eq!(CLASSES, 193);
}

/// The largest free stretch between these blocks.
fn largest_gap(units: u32, blocks: &[(u32, u32)]) -> u32 {
    let mut blocks = blocks.to_vec();
    blocks.sort_unstable();
    let (mut end, mut largest) = (0, 0);
    for (first, size) in blocks {
        assert!(first >= end, "two blocks overlap");
        largest = largest.max(first - end);
        end = first + size;
    }
    assert!(end <= units, "a block lies beyond the end");
    largest.max(units - end)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn blocks_are_found_split_and_joined_as_the_rule_says(
        units in 1..5_000_u32,
        most in 1..40_u16,
        steps in proptest::collection::vec((any::<bool>(), any::<u16>()), 1..300),
    ) {
        let mut arena = Arena::new(units, most);
        let mut blocks: Vec<(u32, u32)> = Vec::new();
        for (get, seed) in steps {
            let gap = largest_gap(units, &blocks);
            if get {
                let size = 1 + u32::from(seed) % (units.min(gap + 2) + 2);
                let promised = arena.usage().largest;
                let full = blocks.len() == usize::from(most);
                let got = arena.get(size, true);
                prop_assert!(got.is_some() || size > promised);
                match got {
                    Some(first) => {
                        prop_assert!(!full && size <= gap);
                        blocks.push((first, size));
                    }
                    None => prop_assert!(full || size > gap || size > gap - gap / 8, "{} of {}", size, gap),
                }
            } else if !blocks.is_empty() {
                let (first, size) = blocks.swap_remove(usize::from(seed) % blocks.len());
                prop_assert_eq!(arena.units_of(first), Some(size));
                prop_assert!(arena.free(first, false));
                prop_assert!(!arena.free(first, false), "a second time");
            }
            // An address at random.
            let stray = u32::from(seed);
            let known = blocks.iter().position(|&(first, _)| first == stray);
            prop_assert_eq!(arena.free(stray, false), known.is_some());
            if let Some(known) = known {
                blocks.swap_remove(known);
            }
            prop_assert_eq!(arena.check(), Ok(()));
            let used: u32 = blocks.iter().map(|&(_, size)| size).sum();
            prop_assert_eq!((arena.usage().free, usize::from(arena.in_use())), (units - used, blocks.len()));
        }
        for (first, _) in blocks {
            prop_assert!(arena.free(first, false));
        }
        // All of it is one area again.
        prop_assert_eq!((arena.usage().largest, arena.get(units, true)), (units, Some(0)));
    }
}

#[test]
fn a_block_that_was_granted_is_freed_only_by_the_core() {
    let mut arena = Arena::new(8, 2);
    assert_eq!(arena.get(3, false), Some(0));
    assert_eq!((arena.free(0, false), arena.granted(), arena.check()), (false, 1, Ok(())));
    arena.take(0);
    assert_eq!((arena.granted(), arena.free(0, false), arena.usage().least_free), (0, true, 5));
}
