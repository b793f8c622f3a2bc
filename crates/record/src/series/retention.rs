//! [`Retention`]: how much of a series to keep. It deletes whole closed segments, the oldest first.
//!
//! A pinned segment is skipped, and counts towards no limit. The age of a segment is a lower bound (`ages.rs`). Free
//! space differs: below the limit the recording stops in order. It deletes its own old segments instead only if the
//! user asked for that.

use hairspring_machine::Nanos;
use hairspring_ring::units::Bytes;

/// The limits of a series; without any limit everything is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The most closed segments.
    pub segments: Option<u32>,
    /// The time for which a closed segment is kept after its end.
    pub time: Option<Nanos>,
    /// The most bytes in closed segments.
    pub bytes: Option<Bytes>,
    /// The least free space in the file system of each target.
    pub free: Option<Bytes>,
    /// Whether segments are deleted when less space is free. Otherwise the recording stops.
    pub makes_room: bool,
}

/// The closed segments that may be deleted: those that are not pinned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldSegments {
    /// Their number.
    pub segments: usize,
    /// Bytes in their files.
    pub bytes: u64,
    /// The number of the oldest, and the lower bound of its age.
    pub oldest: Option<(u32, Nanos)>,
}

/// The action that is due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// Delete the segment with this number, and ask again.
    Delete(u32),
    /// End the recording: only this much space is free.
    Stop(Bytes),
}

/// How much room there is, by the limit of free space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoomLeft {
    /// Enough, or no limit is set.
    #[default]
    Enough,
    /// This much space is free, less than twice the limit: the recording will end soon.
    Low(Bytes),
    /// This much space is free, less than the limit: the recording must end.
    Short(Bytes),
}

impl Retention {
    /// How much more than the limit is made free at once, as a part of the limit.
    const MORE: u64 = 10;

    /// Decides. `making_room`: segments are being deleted for space already, which continues until a tenth more than
    /// the limit is free.
    pub fn due(&self, held: HeldSegments, free: Option<Bytes>, making_room: bool) -> Due {
        let delete = held.oldest.map(|(oldest, _)| Due::Delete(oldest));
        let too_many = self.segments.is_some_and(|most| held.segments as u64 > u64::from(most));
        let too_much = self.bytes.is_some_and(|most| held.bytes > most.0);
        let too_old = self.time.zip(held.oldest).is_some_and(|(keep, (_, age))| age > keep);
        if let (Some(delete), true) = (delete, too_many || too_much || too_old) {
            return delete;
        }
        let (Some(least), Some(free)) = (self.free, free) else { return Due::Nothing };
        let wanted = if making_room { Bytes(least.0.saturating_add(least.0 / Self::MORE)) } else { least };
        if free >= wanted {
            return Due::Nothing;
        }
        match delete.filter(|_| self.makes_room) {
            Some(delete) => delete,
            None if free < least => Due::Stop(free),
            None => Due::Nothing,
        }
    }

    /// Whether users must be warned: the free space is less than twice the limit, and nothing will be deleted to gain
    /// more.
    pub fn is_low(&self, free: Bytes) -> bool {
        !self.makes_room && self.free.is_some_and(|least| free.0 < least.0.saturating_mul(2))
    }

    /// Whether there is any limit.
    pub fn is_set(&self) -> bool {
        *self != Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The held segments, of 10 bytes each, that ended at these seconds; now is second 1000.
    fn held(ends: &[i64]) -> HeldSegments {
        let oldest = ends.first().map(|end| (0, Nanos::from_secs(1000 - end)));
        HeldSegments { segments: ends.len(), bytes: 10 * ends.len() as u64, oldest }
    }

    #[track_caller]
    fn due(retention: Retention, ends: &[i64], free: u64, making_room: bool, expected: Due) {
        assert_eq!(retention.due(held(ends), Some(Bytes(free)), making_room), expected, "{retention:?} {free}");
    }

    #[test]
    fn any_bound_that_is_reached_deletes_the_oldest() {
        let none = Retention::default();
        due(none, &[1, 2, 3], 0, false, Due::Nothing);
        let two = Retention { segments: Some(2), ..none };
        due(two, &[1, 2, 3], 0, false, Due::Delete(0));
        due(two, &[1, 2], 0, false, Due::Nothing);
        due(Retention { segments: Some(0), ..none }, &[], 0, false, Due::Nothing);
        let bytes = Retention { bytes: Some(Bytes(25)), ..none };
        due(bytes, &[1, 2, 3], 0, false, Due::Delete(0));
        due(bytes, &[1, 2], 0, false, Due::Nothing);
        let time = Retention { time: Some(Nanos::from_secs(100)), ..none };
        due(time, &[899, 990], 0, false, Due::Delete(0));
        due(time, &[900, 990], 0, false, Due::Nothing);
    }

    #[test]
    fn a_full_disk_stops_the_recording_and_deletes_only_where_that_was_allowed() {
        let free = Retention { free: Some(Bytes(100)), ..Retention::default() };
        due(free, &[1, 2], 100, false, Due::Nothing);
        due(free, &[1, 2], 99, false, Due::Stop(Bytes(99)));
        let room = Retention { makes_room: true, ..free };
        due(room, &[1, 2], 99, false, Due::Delete(0));
        due(room, &[1, 2], 109, true, Due::Delete(0));
        due(room, &[1, 2], 110, true, Due::Nothing);
        due(room, &[1, 2], 105, false, Due::Nothing);
        due(room, &[], 99, true, Due::Stop(Bytes(99)));
    }

    #[test]
    fn free_space_is_low_from_twice_the_limit_on_unless_room_is_made() {
        let free = Retention { free: Some(Bytes(100)), ..Retention::default() };
        assert!(free.is_low(Bytes(199)) && !free.is_low(Bytes(200)));
        assert!(!Retention { makes_room: true, ..free }.is_low(Bytes(1)));
        assert!(!Retention::default().is_low(Bytes(0)));
    }
}
