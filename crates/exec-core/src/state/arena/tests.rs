//! Random blocks against a list of them: none overlap, none are lost, and a block is refused only where the rule of
//! classes lets it.

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

/// The blocks at 0 and 16 are in use, 8 units between them and 40 above are free: the areas 0 to 3. Five records are
/// unused.
fn in_use() -> Arena {
    let mut arena = Arena::new(64, 4);
    assert_eq!([(); 3].map(|()| arena.get(8, true)), [Some(0), Some(8), Some(16)]);
    assert!(arena.free(8, false));
    arena
}

/// Passes the check before `break_it`, and fails it with the text `expected` afterwards.
#[track_caller]
fn check(mut arena: Arena, break_it: impl FnOnce(&mut Arena), expected: &str) {
    assert_eq!(arena.check(), Ok(()));
    break_it(&mut arena);
    assert_eq!(arena.check(), Err(expected));
}

#[test]
fn areas_that_do_not_follow_each_other_are_noticed() {
    const WRONG: &str = "an area does not begin where the one below it ends";
    check(in_use(), |arena| arena.areas[2].below = 0, WRONG);
    check(in_use(), |arena| arena.areas[2].first = 17, WRONG);
    check(in_use(), |arena| arena.areas[3].units = 0, WRONG);
    check(in_use(), |arena| arena.areas[3].units = 39, "the areas do not cover the memory");
    let freed = |arena: &mut Arena| (arena.areas[2].what, arena.blocks[16]) = (Use::Free, NIL);
    check(in_use(), freed, "two free areas are neighbours");
}

#[test]
fn areas_blocks_and_records_that_are_lost_or_miscounted_are_noticed() {
    check(in_use(), |arena| arena.unlist(1), "a free area is not listed");
    let listed = |arena: &mut Arena| arena.heads[class_of(1)] = 2;
    check(in_use(), listed, "an area is listed that is not free");
    check(in_use(), |arena| arena.blocks[16] = NIL, "a block is not found");
    check(in_use(), |arena| arena.blocks[30] = 3, "a block begins where there is none");
    check(in_use(), |arena| arena.free -= 1, "free units or blocks are miscounted");
    check(in_use(), |arena| arena.in_use += 1, "free units or blocks are miscounted");
    check(in_use(), |arena| arena.unused = arena.areas[4].next, "a record is lost");
    // Lists that lead in a circle.
    check(Arena::new(0, 4), |arena| arena.areas[8].next = 0, "a record is lost");
    check(Arena::new(8, 4), |arena| arena.areas[8].next = 1, "a record is lost");
}

#[test]
fn a_memory_without_room_for_another_block_has_none_to_give() {
    let mut arena = Arena::new(8, 1);
    assert_eq!((arena.usage().largest, arena.get(3, true), arena.usage().largest), (8, Some(0), 0));
}

#[test]
fn a_block_is_cut_from_an_area_that_is_large_enough_whatever_its_class() {
    // Areas of 32 to 35 units are of one class.
    let mut arena = Arena::new(100, 4);
    assert_eq!(
        [arena.get(33, true), arena.get(1, true), Some(arena.free(0, false).into())],
        [Some(0), Some(33), Some(1)]
    );
    assert_eq!([arena.get(35, true), arena.get(32, true)], [Some(34), Some(0)]);
    // A class whose bit is not in the first word.
    assert!(class_of(2_000) >= 64);
    assert_eq!(Arena::new(2_000, 1).get(1, true), Some(0));
}
