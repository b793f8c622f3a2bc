//! The account and the state of a running recorder.

use super::*;

impl Recorder {
    /// The account of every byte. It adds up at any moment if the source's counters are of the same moment as this
    /// call.
    pub fn ledger(&self, counters: SourceCounters) -> Ledger {
        let counters = self.sealed.unwrap_or(counters);
        let bytes_of = |frames: Frames| self.timeline.layout().bytes_of(frames).0;
        Ledger {
            produced_bytes: counters.produced_bytes + bytes_of(self.place.origin),
            stored_bytes: self.block_states.stored_bytes(),
            durable_bytes: self.block_states.durable_bytes(),
            in_flight_bytes: self.block_states.in_flight_bytes(),
            in_ring_bytes: self.inlet.head() - self.position + self.ahead_bytes(),
            in_fifo_bytes: counters.fifo_bytes,
            lost_bytes: counters.lost_bytes - self.place.source_lost_bytes + self.lost_bytes,
            left_out_bytes: self.left_out_bytes,
            earlier_bytes: bytes_of(self.place.first),
            dropped_bytes: 0,
        }
    }

    /// The present state. `free` is the free space in all targets' file systems, if it is known. The caller asks for
    /// it, because that may block.
    pub fn status(&self, counters: SourceCounters, free: Option<Bytes>) -> Status {
        let reserved: u64 = self.members.iter().map(Member::reserved_bytes).sum();
        Status {
            ledger: self.ledger(counters),
            fill: self.inlet.fill(),
            worst_stall: self.worst_stall,
            gaps: self.gaps.len() as u64,
            shots: self.triggers.len() as u64,
            free: free.map(|free| Bytes(free.0 + reserved)),
        }
    }
}
