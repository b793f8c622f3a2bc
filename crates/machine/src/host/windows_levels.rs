//! Priorities of Windows as numbers: levels of the real-time class for priorities 1 to 99, and a class with a level as
//! one number. Pure, so that it is tested on every system.

/// The names that Windows has for the ends of a class's range, as numbers.
const IDLE: i32 = -15;
const TIME_CRITICAL: i32 = 15;
/// The base level of the real-time class, which its threads' levels are counted from, and its least and highest level.
const REAL_TIME_BASE: i32 = 24;
const REAL_TIME_LEAST: i32 = 16;
const REAL_TIME_MOST: i32 = 31;
/// The bits of a level in the number of a class and a level; classes are single bits above them.
const LEVEL_BITS: i32 = 0x1f;
const LEVEL_SIGN: i32 = 0x10;

/// The thread's level in the real-time class, as Windows writes it: 16 and 31 have names, the others count from 24.
pub(super) fn level_of(priority: u8) -> i32 {
    let span = REAL_TIME_MOST - REAL_TIME_LEAST;
    match REAL_TIME_LEAST + (i32::from(priority) - 1) * span / 98 {
        REAL_TIME_LEAST => IDLE,
        REAL_TIME_MOST => TIME_CRITICAL,
        level => level - REAL_TIME_BASE,
    }
}

/// The least priority that has this level.
pub(super) fn priority_of(level: i32) -> u8 {
    let absolute = match level {
        IDLE => REAL_TIME_LEAST,
        TIME_CRITICAL => REAL_TIME_MOST,
        level => (REAL_TIME_BASE + level).clamp(REAL_TIME_LEAST, REAL_TIME_MOST),
    };
    let span = REAL_TIME_MOST - REAL_TIME_LEAST;
    let above = (absolute - REAL_TIME_LEAST) * 98;
    u8::try_from(1 + (above + span - 1) / span).unwrap_or(99)
}

/// A class and a level as one number.
pub(super) fn packed(class: u32, level: i32) -> i32 {
    class.cast_signed() | (level & LEVEL_BITS)
}

/// The class and the level of such a number.
pub(super) fn unpacked(number: i32) -> (u32, i32) {
    ((number & !LEVEL_BITS).cast_unsigned(), ((number & LEVEL_BITS) ^ LEVEL_SIGN) - LEVEL_SIGN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_priority_has_a_level_of_the_real_time_class_and_is_read_back_as_it() {
        let levels: Vec<i32> = (1..=99).map(level_of).collect();
        assert_eq!((levels[0], levels[98]), (IDLE, TIME_CRITICAL));
        let absolute = |level: i32| match level {
            IDLE => REAL_TIME_LEAST,
            TIME_CRITICAL => REAL_TIME_MOST,
            level => REAL_TIME_BASE + level,
        };
        assert!(levels.is_sorted_by_key(|level| absolute(*level)), "{levels:?}");
        // Windows takes -7 to 6 and the two names in this class.
        assert!(levels.iter().all(|level| (-7..=6).contains(level) || level.abs() == 15), "{levels:?}");
        for priority in 1..=99 {
            let read = priority_of(level_of(priority));
            assert!(read <= priority && level_of(read) == level_of(priority), "{priority} {read}");
        }
    }

    #[test]
    fn a_class_and_a_level_go_into_one_number_and_back() {
        for class in [0x20, 0x40, 0x80, 0x4000, 0x8000] {
            for level in -15..=15 {
                assert_eq!(unpacked(packed(class, level)), (class, level));
            }
        }
    }
}
