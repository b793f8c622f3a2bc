//! [`BlockStates`]: the state of every block, in one place. Ledger, verdict, metadata and lengths of files follow from
//! it.
//!
//! ```text
//!                1               2                 3
//!   UnderWay ───────▸ Entered ───────▸ Journaled ───────▸ Durable
//!       │ 4              │ 4               │ 5               │ 5
//!       └──────────────▸ Lost ◂────────────┴─────────────────┘
//! ```
//!
//! 1. The write of the block is complete, and its record is in the buffer of its member's journal.
//! 2. The record is in the journal's file, so a reader finds the block. Only now does the block count as stored.
//! 3. A sync of the data and then one of the journal, both submitted after that, have succeeded.
//! 4. No target took the block, or its journal can no longer be written. A gap declares the loss.
//! 5. A record withdraws the block, because it follows the first block that no target took. A gap declares the loss.
//!    The withdrawal becomes durable by a sync, like the block's own record. Until then a power cut may leave a journal
//!    that promises the block, so its bytes stay in the file.
//!
//! No other edges exist, and each edge moves the block's bytes from one sum to another.

use std::collections::VecDeque;

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    UnderWay,
    Entered,
    Journaled,
    Durable,
    Lost,
}

/// A block of the stored stream and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) member: usize,
    pub(super) file_offset: u64,
    pub(super) length: u32,
    pub(super) standing: Standing,
}

impl Placed {
    /// The offset in its file after its last byte.
    pub(super) fn end(&self) -> u64 {
        self.file_offset + u64::from(self.length)
    }

    /// Whether a reader of the files finds it.
    pub(super) fn is_stored(&self) -> bool {
        matches!(self.standing, Standing::Journaled | Standing::Durable)
    }
}

/// Records of one member that are not durable yet, of blocks and of withdrawals: sequence number and block, ascending.
#[derive(Clone, Debug, Default)]
struct Waiting {
    /// Waiting to be in the file.
    entered: VecDeque<(u64, u64)>,
    /// Waiting for a sync.
    journaled: VecDeque<(u64, u64)>,
    /// Bytes of the blocks in both that are not lost.
    bytes: u64,
    durable_bytes: u64,
}

/// The state of every block.
#[derive(Clone, Debug)]
pub(super) struct BlockStates {
    blocks: Vec<Placed>,
    waiting: Vec<Waiting>,
    in_flight_bytes: u64,
    stored_bytes: u64,
    durable_bytes: u64,
}

impl BlockStates {
    pub(super) fn new(members: usize) -> Self {
        Self {
            blocks: Vec::with_capacity(4096),
            waiting: vec![Waiting::default(); members],
            in_flight_bytes: 0,
            stored_bytes: 0,
            durable_bytes: 0,
        }
    }

    /// How many blocks there are.
    pub(super) fn len(&self) -> u64 {
        self.blocks.len() as u64
    }

    pub(super) fn block(&self, index: u64) -> Option<Placed> {
        self.blocks.get(index as usize).copied()
    }

    /// Bytes handed to a disk and not yet in a journal.
    pub(super) fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Bytes that a reader finds.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// The part of the stored bytes that survives a power cut.
    pub(super) fn durable_bytes(&self) -> u64 {
        self.durable_bytes
    }

    /// Bytes of a member that are complete and not durable.
    pub(super) fn unsynced_bytes(&self, member: usize) -> u64 {
        self.waiting[member].bytes
    }

    /// Whether a sync of a member would make anything durable: a block or a withdrawal.
    pub(super) fn wants_sync(&self, member: usize) -> bool {
        let waiting = &self.waiting[member];
        !waiting.entered.is_empty() || !waiting.journaled.is_empty()
    }

    /// Whether records of blocks of a member are not in its journal's file yet.
    pub(super) fn has_entered(&self, member: usize) -> bool {
        !self.waiting[member].entered.is_empty()
    }

    /// Bytes of a member that are durable once a sync succeeds that covers the records before this sequence number.
    pub(super) fn covered_bytes(&self, member: usize, before: u64) -> u64 {
        let waiting = &self.waiting[member];
        let covered = waiting.journaled.iter().chain(&waiting.entered).take_while(|(sequence, _)| *sequence < before);
        let blocks =
            covered.filter_map(|(_, index)| self.block(*index)).filter(|block| block.standing != Standing::Lost);
        waiting.durable_bytes + blocks.map(|block| u64::from(block.length)).sum::<u64>()
    }

    /// A new block is handed to a member's disk.
    pub(super) fn begin(&mut self, member: usize, file_offset: u64, length: u32) {
        self.blocks.push(Placed { member, file_offset, length, standing: Standing::UnderWay });
        self.in_flight_bytes += u64::from(length);
    }

    /// A block under way goes to another place.
    pub(super) fn moves(&mut self, index: u64, member: usize, file_offset: u64) {
        if let Some(block) = self.blocks.get_mut(index as usize) {
            (block.member, block.file_offset) = (member, file_offset);
        }
    }

    /// Edge 1: the record of a block is entered under this sequence number.
    pub(super) fn entered(&mut self, index: u64, sequence: u64) {
        let Some(block) = self.block(index) else { return };
        let waiting = &mut self.waiting[block.member];
        waiting.entered.push_back((sequence, index));
        waiting.bytes += u64::from(block.length);
        self.stand(index, Standing::UnderWay, Standing::Entered);
    }

    /// The record that withdraws a block, which is lost with it, is entered under this sequence number.
    pub(super) fn withdrawn(&mut self, index: u64, sequence: u64) -> bool {
        let Some(block) = self.block(index) else { return false };
        self.waiting[block.member].entered.push_back((sequence, index));
        self.lose(index)
    }

    /// Edge 2: the records of a member before a sequence number are in the journal's file.
    pub(super) fn journaled(&mut self, member: usize, before: u64) {
        while let Some((sequence, index)) = self.waiting[member].entered.pop_front_if(|entry| entry.0 < before) {
            self.waiting[member].journaled.push_back((sequence, index));
            if self.stand(index, Standing::Entered, Standing::Journaled) {
                self.stored_bytes += self.length(index);
                self.in_flight_bytes -= self.length(index);
            }
        }
    }

    /// Edge 3: syncs of a member's data and journal succeeded that cover the records before a sequence number.
    pub(super) fn synced(&mut self, member: usize, before: u64) {
        while let Some((_, index)) = self.waiting[member].journaled.pop_front_if(|entry| entry.0 < before) {
            if self.stand(index, Standing::Journaled, Standing::Durable) {
                self.durable_bytes += self.length(index);
                self.waiting[member].durable_bytes += self.length(index);
                self.waiting[member].bytes -= self.length(index);
            }
        }
    }

    /// Edge 4 for the blocks whose record was entered but can no longer be written. Returns these blocks, ascending.
    pub(super) fn journal_died(&mut self, member: usize) -> Vec<u64> {
        let entered = std::mem::take(&mut self.waiting[member].entered);
        let mut lost: Vec<u64> = entered.into_iter().map(|(_, index)| index).collect();
        lost.retain(|index| self.lose(*index));
        lost.sort_unstable();
        lost
    }

    /// Edges 4 and 5: removes a block from the recording. Returns whether it was in it until now.
    pub(super) fn lose(&mut self, index: u64) -> bool {
        let Some(Placed { member, length, standing, .. }) = self.block(index) else { return false };
        let length = u64::from(length);
        match standing {
            Standing::Lost => return false,
            Standing::UnderWay => self.in_flight_bytes -= length,
            Standing::Entered => {
                self.in_flight_bytes -= length;
                self.waiting[member].bytes -= length;
            }
            Standing::Journaled => {
                self.stored_bytes -= length;
                self.waiting[member].bytes -= length;
            }
            Standing::Durable => {
                self.stored_bytes -= length;
                self.durable_bytes -= length;
                self.waiting[member].durable_bytes -= length;
            }
        }
        self.stand(index, standing, Standing::Lost)
    }

    /// The stored blocks of a member with their numbers.
    pub(super) fn stored_of(&self, member: usize) -> impl Iterator<Item = (u64, &Placed)> {
        (0..).zip(&self.blocks).filter(move |(_, block)| block.member == member && block.is_stored())
    }

    /// The length that the data file of a member must have: up to the last block that is stored, or whose withdrawal a
    /// power cut may undo. The second kind exists only after a failed sync.
    pub(super) fn needed_length(&self, member: usize) -> u64 {
        let stored = self.stored_of(member).map(|(_, block)| block.end());
        let withdrawn = self.waiting[member].journaled.iter().filter_map(|(_, index)| self.block(*index));
        stored.chain(withdrawn.map(|block| block.end())).max().unwrap_or(0)
    }

    fn length(&self, index: u64) -> u64 {
        self.block(index).map_or(0, |block| block.length.into())
    }

    /// Moves a block from one state to the next; a block that was lost meanwhile stays lost.
    fn stand(&mut self, index: u64, from: Standing, to: Standing) -> bool {
        match self.blocks.get_mut(index as usize) {
            Some(block) if block.standing == from => {
                block.standing = to;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three blocks of 10 bytes, of which the first two are of member 0.
    fn three() -> BlockStates {
        let mut states = BlockStates::new(2);
        states.begin(0, 0, 10);
        states.begin(0, 10, 10);
        states.begin(1, 0, 10);
        states
    }

    #[track_caller]
    fn sums(states: &BlockStates, in_flight: u64, stored: u64, durable: u64) {
        let found = (states.in_flight_bytes(), states.stored_bytes(), states.durable_bytes());
        assert_eq!(found, (in_flight, stored, durable));
    }

    #[test]
    fn a_block_is_stored_when_its_record_is_in_the_file_and_durable_when_a_sync_covers_that() {
        let mut states = three();
        states.entered(1, 5);
        states.entered(0, 6);
        sums(&states, 30, 0, 0);
        states.journaled(0, 6);
        sums(&states, 20, 10, 0);
        assert_eq!(states.covered_bytes(0, 7), 20);
        // A sync that was submitted with two records entered and succeeds with one in the file covers that one.
        states.synced(0, 7);
        sums(&states, 20, 10, 10);
        states.journaled(0, 7);
        states.synced(0, 6);
        sums(&states, 10, 20, 10);
        assert!(states.wants_sync(0) && !states.has_entered(0) && !states.wants_sync(1));
        assert_eq!(states.stored_of(0).map(|(index, _)| index).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn what_a_dead_journal_does_not_name_is_lost_and_nothing_else() {
        let mut states = three();
        states.entered(1, 5);
        states.journaled(0, 6);
        states.entered(0, 6);
        states.entered(2, 1);
        assert_eq!(states.journal_died(0), [0]);
        sums(&states, 10, 10, 0);
        assert_eq!(states.unsynced_bytes(0), 10, "only the block that the journal names can become durable");
        // Completions that were under way come later and change nothing for it.
        states.journaled(0, 9);
        states.journaled(1, 2);
        sums(&states, 0, 20, 0);
    }

    /// A recorder that cut the data of a durable block away when its withdrawal was not durable left, after a power
    /// cut, a journal that promised bytes which were not there.
    #[test]
    fn a_withdrawal_waits_for_a_sync_though_its_block_was_durable() {
        let mut states = three();
        states.entered(0, 1);
        states.journaled(0, 2);
        states.synced(0, 2);
        assert!(!states.wants_sync(0));
        assert_eq!(states.needed_length(0), 10);
        assert!(states.withdrawn(0, 2));
        sums(&states, 20, 0, 0);
        assert!(states.wants_sync(0) && states.has_entered(0));
        states.journaled(0, 3);
        assert!(states.wants_sync(0) && !states.has_entered(0));
        assert_eq!((states.unsynced_bytes(0), states.covered_bytes(0, 3), states.needed_length(0)), (0, 0, 10));
        states.synced(0, 3);
        assert!(!states.wants_sync(0));
        assert_eq!(states.needed_length(0), 0);
        sums(&states, 20, 0, 0);
    }

    #[test]
    fn a_block_that_was_withdrawn_stays_lost() {
        let mut states = three();
        states.entered(0, 1);
        states.journaled(0, 2);
        assert!(states.lose(0) && !states.lose(0));
        assert!(states.wants_sync(0), "its withdrawal is to be made durable");
        states.synced(0, 2);
        sums(&states, 20, 0, 0);
        states.entered(1, 3);
        states.journaled(0, 4);
        states.synced(0, 4);
        assert!(states.lose(1));
        sums(&states, 10, 0, 0);
        assert_eq!((states.unsynced_bytes(0), states.covered_bytes(0, 9)), (0, 0));
    }
}
