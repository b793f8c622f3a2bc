//! Moves of blocks: their cost, and that they yield only good blocks.

use super::*;
use crate::recover::mend::mend;

/// The operations that the disk does to mend a recording whose first blocks never completed.
fn operations(hole: u64, blocks: u64) -> u64 {
    let spec = Spec { unwritten: (0..hole).collect(), stored: (hole + blocks) * 4096, ..Spec::killed() };
    let disk = disk(&spec.make(), Vec::new());
    run(&disk, RecoverOptions::default()).expect("recovered");
    disk.operations()
}

/// A move reads and writes. Moves with room for all are then made durable and entered together, in three operations:
/// many syncs would make a recovery take hours.
#[test]
fn as_many_blocks_move_between_two_syncs_as_have_room() {
    let more = |hole: u64, blocks: u64| operations(hole, 64 + blocks) - operations(hole, 64);
    // No more than one record is read with each block, and the plan reads nothing that a sync covers.
    assert_eq!(more(8, 128), 128 * 2 + 128 / 8 * 3);
    assert_eq!(more(1, 128), 128 * 2 + 128 * 3, "where one block has room, one moves");
    assert_eq!(operations(128, 256) - operations(128, 128), 128 * 2 + 2 * 3, "and at most 64");
}

#[test]
fn blocks_that_are_larger_than_the_buffer_move_as_they_are() {
    const LARGE: u64 = 2 * 1024 * 1024 + 4096;
    let spec = Spec { block: LARGE, stored: LARGE * 3, unwritten: vec![0], ..Spec::killed() };
    let (recovered, after) = check(&spec, &spec.make(), ALL);
    assert_eq!(recovered.ledger.stored_bytes, 2 * LARGE);
    assert!(after.read(Files::of(&Spec::base(0)).data).expect("data") == spec.content(LARGE, 2 * LARGE));
}

/// A hole that is smaller than the block after it needs a copy after the last block, and no more room.
#[test]
fn a_recovery_needs_room_for_one_block_at_most() {
    let spec = Spec { stored: 4096 * 3, ..Spec::killed() };
    let files = Files::of(&Spec::base(0));
    let mut image = shifted(&spec, 512);
    let all: u64 = image.paths().filter_map(|path| image.length(path)).sum();
    let data = image.read(&files.data).expect("data");
    image.put(&files.data, &data[..512 + spec.stored as usize]);
    // The metadata and the journal grow, too.
    let script = DiskScript { pace: Pace::Leaping, capacity: Some(Bytes(all + 4096)), ..DiskScript::default() };
    let disk = ScriptedDisk::with(script, image);
    run(&disk, ALL).expect("there is room");
    check_sound(&spec, &disk.image_after_power_cut(1), None);
}

/// A block that goes bad between its check and its move is not entered as good, and stays in place.
#[test]
fn a_block_that_changes_before_it_is_moved_stops_the_recovery() {
    let spec = Spec { unwritten: vec![0], ..Spec::killed() };
    let (image, data) = (spec.make(), Files::of(&Spec::base(0)).data);
    let mut store = disk(&image, Vec::new()).store(8);
    let recording = Recording::open_in(&mut store, &[Spec::base(0)]).expect("opens");
    let plan = planned(&mut store, &recording, true, &mut |_| ControlFlow::Continue(())).expect("planned");
    let mut bytes = image.read(&data).expect("data");
    bytes[4096 * 5 + 9] ^= 1;
    let mut changed = image;
    changed.put(&data, &bytes);
    let later = disk(&changed, Vec::new());
    let refused = mend(&mut later.store(8), &recording, &plan).expect_err("it changed").to_string();
    assert!(refused.contains("block 5 does not match its checksum any more"), "{refused}");
    let left = later.image_after_kill(0).read(&data).expect("data");
    assert!(left[4096 * 5..] == bytes[4096 * 5..], "that block and all behind it are where they were");
}
