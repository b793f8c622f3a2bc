//! [`Ledger`]: where every byte that the source produced is now. An account that does not add up is part of the result.
//!
//! Each part of the recorder counts the entry that it sees happen. No entry is computed from the others, so the
//! equation
//!
//! ```text
//! produced = stored + in flight + in the ring + in the FIFO + lost + left out + dropped
//! ```
//!
//! can fail, and a recording is `complete` only if it holds at the end with nothing left under way.

use serde::{Deserialize, Serialize};

/// The account of one stream, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Bytes that the source produced, by its own counter or clock.
    pub produced_bytes: u64,
    /// In the files, and in their journals.
    pub stored_bytes: u64,
    /// The part of the stored bytes that survives a power cut: the write was complete when a successful sync was
    /// submitted.
    pub durable_bytes: u64,
    /// Handed to the disk, not yet complete or not yet in a journal.
    pub in_flight_bytes: u64,
    /// In the ring, not yet handed to the disk.
    pub in_ring_bytes: u64,
    /// In the hardware's FIFO, not yet in the ring.
    pub in_fifo_bytes: u64,
    /// Declared lost: the sum of all gaps.
    pub lost_bytes: u64,
    /// Left out because no trigger asked for it, or because it is before the first frame of a segment.
    pub left_out_bytes: u64,
    /// The part of the left out bytes that is before the first frame of a segment.
    #[serde(default)]
    pub earlier_bytes: u64,
    /// Stored once, and deleted since by the retention of a series. They are not lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde demands a reference")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

impl Ledger {
    /// The bytes produced minus all bytes accounted for. Anything but 0 means an undeclared loss or duplication.
    pub fn unaccounted_bytes(&self) -> i128 {
        let accounted = [
            self.stored_bytes,
            self.in_flight_bytes,
            self.in_ring_bytes,
            self.in_fifo_bytes,
            self.lost_bytes,
            self.left_out_bytes,
            self.dropped_bytes,
        ];
        i128::from(self.produced_bytes) - accounted.into_iter().map(i128::from).sum::<i128>()
    }

    /// Whether every byte is accounted for.
    pub fn holds(&self) -> bool {
        self.unaccounted_bytes() == 0
    }

    /// Whether no bytes are under way.
    pub fn is_settled(&self) -> bool {
        self.in_flight_bytes == 0 && self.in_ring_bytes == 0 && self.in_fifo_bytes == 0
    }
}

/// The verdict on a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordingVerdict {
    /// All requested data are there.
    Complete,
    /// The user ended it in order. All data until then are there.
    Stopped,
    /// Data are missing, and the recording states which.
    Incomplete,
    /// The account does not add up: data are missing or duplicated, and the recording does not state which.
    Unaccounted,
}

impl RecordingVerdict {
    /// Every verdict, best first.
    pub const ALL: [Self; 4] = [Self::Complete, Self::Stopped, Self::Incomplete, Self::Unaccounted];

    /// Its stable name in files and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Stopped => "stopped",
            Self::Incomplete => "incomplete",
            Self::Unaccounted => "unaccounted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_too_few_or_too_many_is_seen() {
        let mut ledger = Ledger { produced_bytes: 10, stored_bytes: 4, in_flight_bytes: 3, ..Ledger::default() };
        assert_eq!(ledger.unaccounted_bytes(), 3);
        ledger.lost_bytes = 2;
        ledger.left_out_bytes = 1;
        assert!(ledger.holds() && !ledger.is_settled());
        ledger.stored_bytes = 5;
        assert_eq!(ledger.unaccounted_bytes(), -1);
        assert!(!ledger.holds());
    }

    #[test]
    fn json_names_dropped_bytes_only_where_there_are_some() {
        let dropping = Ledger { produced_bytes: 9, dropped_bytes: 5, ..Ledger::default() };
        for (ledger, named) in [(Ledger::default(), None), (dropping, Some(5))] {
            let json = serde_json::to_value(ledger).expect("JSON");
            assert_eq!(json.get("dropped_bytes").and_then(serde_json::Value::as_u64), named);
            assert_eq!(serde_json::from_value::<Ledger>(json).expect("a ledger"), ledger);
        }
    }
}
