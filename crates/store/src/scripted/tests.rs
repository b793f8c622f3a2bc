//! The promises of a scripted disk: each kind of fault, each kind of end.

#![expect(unsafe_code, reason = "attaches memories to the disk under test")]

use super::*;
use crate::LentMemory;
use crate::{Errno, Piece};
use hairspring_ring::memory::{Memory, Pages};
use hairspring_ring::units::{ByteRate, Bytes};

const BLOCK: usize = 4096;

struct Bench {
    disk: ScriptedDisk,
    store: ScriptedStore,
    memory: Arc<Memory>,
    id: MemoryId,
}

impl Bench {
    fn new(script: DiskScript) -> Self {
        Self::on(&ScriptedDisk::new(script))
    }

    fn on(disk: &ScriptedDisk) -> Self {
        let size = Bytes(64 << 10);
        let memory = Arc::new(Memory::plain(size, size, Pages::Small).expect("64 KiB"));
        let mut store = disk.store(8);
        // SAFETY: no code here makes references to the memory; the disk copies when it is asked to, in this thread.
        let lent = unsafe { LentMemory::new(Arc::clone(&memory)) };
        let id = store.attach(lent);
        Self { disk: disk.clone(), store, memory, id }
    }

    fn fill(&self, block: usize, value: u8) {
        let mut memories = Memories::default();
        memories.attach(Arc::clone(&self.memory));
        let piece = Piece { memory: MemoryId(0), at: block * BLOCK, length: BLOCK };
        memories.span(piece).copy_in(&[value; BLOCK]);
    }

    fn create(&mut self, path: &str) -> FileId {
        self.store.open(Path::new(path), Open::CreateData).expect("a new file")
    }

    /// A block of the memory to the same block of a file.
    fn write(&self, file: FileId, block: usize) -> Op {
        Op::Write(file, (block * BLOCK) as u64, Piece { memory: self.id, at: block * BLOCK, length: BLOCK })
    }

    /// Does one operation after the other, each to its end.
    fn all(&mut self, ops: &[Op]) -> Vec<Result<u64, Errno>> {
        let mut results = Vec::new();
        for op in ops {
            self.store.submit(Token(0), *op);
            self.store.flush();
            while let Some(due) = self.disk.next_due() {
                self.disk.advance(due);
            }
            let mut done = Vec::new();
            self.store.reap(&mut done);
            assert_eq!(done.len(), 1);
            results.push(done[0].result);
        }
        results
    }

    fn reaped(&mut self) -> Vec<u64> {
        let mut done = Vec::new();
        self.store.reap(&mut done);
        done.iter().map(|completion| completion.token.0).collect()
    }
}

fn block(value: u8) -> Vec<u8> {
    vec![value; BLOCK]
}

const IO: Errno = Errno(libc::EIO);
const FULL: Errno = Errno(libc::ENOSPC);
const WHOLE: Result<u64, Errno> = Ok(BLOCK as u64);

#[track_caller]
fn writes(faults: Vec<Fault>, expected: &[Result<u64, Errno>]) -> Bench {
    let mut bench = Bench::new(DiskScript { faults, ..DiskScript::default() });
    let file = bench.create("d/x");
    let ops: Vec<Op> = (0..expected.len()).map(|index| bench.write(file, index)).collect();
    assert_eq!(bench.all(&ops), expected);
    bench
}

#[test]
fn an_error_strikes_the_operation_it_is_for_and_no_other() {
    let error = What::Error(IO);
    writes(vec![Fault::nth(OpKind::Write, 2, error)], &[WHOLE, Err(IO), WHOLE]);
    writes(vec![Fault::nth(OpKind::Read, 2, error)], &[WHOLE, WHOLE, WHOLE]);
    writes(vec![Fault { when: When::From(2), ..Fault::nth(OpKind::Write, 0, error) }], &[WHOLE, Err(IO), Err(IO)]);
    writes(vec![Fault::nth(OpKind::Write, 2, error).on("d/x")], &[WHOLE, Err(IO), WHOLE]);
    writes(vec![Fault::nth(OpKind::Write, 2, error).on("y")], &[WHOLE, WHOLE, WHOLE]);
    let interrupted = Errno(libc::EINTR);
    writes(vec![Fault::nth(OpKind::Write, 1, What::Error(interrupted))], &[Err(interrupted), WHOLE]);
}

#[test]
fn a_short_write_moves_what_it_says_and_no_more() {
    let bench = writes(vec![Fault::nth(OpKind::Write, 2, What::Short(512))], &[WHOLE, Ok(512)]);
    assert_eq!(bench.disk.image_after_kill(0).length("d/x"), Some(BLOCK as u64 + 512));
}

#[test]
fn a_disk_that_is_thinner_than_it_says_is_full_in_the_middle_of_a_write() {
    let faults = vec![Fault::full_after(Bytes(BLOCK as u64 * 2 + 1024))];
    writes(faults, &[WHOLE, WHOLE, Ok(1024), Err(FULL), Err(FULL)]);
}

#[test]
fn a_full_disk_refuses_space_at_once_and_writes_at_its_end() {
    let capacity = Some(Bytes(BLOCK as u64 * 3));
    let mut bench = Bench::new(DiskScript { capacity, ..DiskScript::default() });
    let file = bench.create("x");
    assert_eq!(bench.all(&[Op::Allocate(file, 0, 1 << 20)]), [Err(FULL)]);
    assert_eq!(bench.all(&[Op::Allocate(file, 0, BLOCK as u64 * 2)]), [Ok(0)]);
    assert_eq!(bench.store.free_bytes(Path::new("")), Some(BLOCK as u64));
    let ops: Vec<Op> = (0..4).map(|index| bench.write(file, index)).collect();
    assert_eq!(bench.all(&ops), [WHOLE, WHOLE, WHOLE, Err(FULL)]);
    let error = bench.store.put(Path::new("meta"), b"no room").expect_err("full");
    assert_eq!(error.errno, FULL);
    bench.store.truncate(file, BLOCK as u64).expect("shorter");
    bench.store.put(Path::new("meta"), b"room").expect("room");
    bench.store.remove(Path::new("x")).expect("it is there");
    assert_eq!(bench.store.free_bytes(Path::new("")), Some(BLOCK as u64 * 3 - 4));
}

#[test]
fn blocking_acts_fail_as_scripted_and_change_nothing() {
    let path = Path::new("x");
    for kind in [OpKind::Open, OpKind::Put, OpKind::Truncate, OpKind::SyncFolder, OpKind::Remove] {
        let mut bench =
            Bench::new(DiskScript { faults: vec![Fault::nth(kind, 2, What::Error(IO))], ..DiskScript::default() });
        let file = bench.create("x");
        let mut acts = || -> Result<(), StoreError> {
            bench.store.truncate(file, 10)?;
            bench.store.put(Path::new("m"), b"1")?;
            bench.store.sync_folder(Path::new("."))?;
            bench.store.truncate(file, 20)?;
            bench.store.put(Path::new("m"), b"22")?;
            bench.store.sync_folder(Path::new("."))?;
            bench.store.remove(Path::new("m"))?;
            bench.store.open(path, Open::Mend)?;
            bench.store.remove(path)
        };
        assert_eq!(acts().expect_err("the second of its kind").errno, IO, "{kind:?}");
        let image = bench.disk.image_after_kill(0);
        assert_eq!(image.length("x"), Some(if kind == OpKind::Truncate { 10 } else { 20 }), "{kind:?}");
        let m = image.read("m");
        match kind {
            OpKind::Put => assert_eq!(m.as_deref(), Some(&b"1"[..])),
            OpKind::SyncFolder => assert_eq!(m.as_deref(), Some(&b"22"[..])),
            OpKind::Open | OpKind::Remove => assert_eq!(m, None),
            _ => {}
        }
    }
}

#[test]
fn a_stall_holds_up_the_whole_disk_and_time_goes_on_while_one_waits() {
    let stall = Nanos::from_secs(3);
    let faults = vec![Fault::nth(OpKind::Write, 2, What::Stall(stall))];
    let mut bench = Bench::new(DiskScript { faults, pace: Pace::Leaping, ..DiskScript::default() });
    let file = bench.create("x");
    for index in 0..3 {
        bench.store.submit(Token(index), bench.write(file, index as usize));
    }
    bench.store.flush();
    assert_eq!(bench.reaped(), [0]);
    let notifier = Notifier::new().expect("a descriptor");
    bench.store.wait(&notifier, Instant::BOOT + Nanos::from_secs(1));
    assert_eq!((bench.disk.now(), bench.reaped()), (Instant::BOOT + Nanos::from_secs(1), vec![]));
    notifier.notify();
    bench.store.wait(&notifier, Instant::BOOT + Nanos::from_secs(2));
    assert_eq!(bench.disk.now(), Instant::BOOT + Nanos::from_secs(1));
    assert!(notifier.clear());
    bench.store.wait(&notifier, Instant::BOOT + Nanos::from_secs(10));
    assert_eq!((bench.disk.now(), bench.reaped()), (Instant::BOOT + stall, vec![1, 2]));
}

#[test]
fn completions_come_when_they_are_due_in_any_order_and_the_same_each_time() {
    let run = |seed| {
        let most_latency = Nanos::from_millis(10);
        let mut bench = Bench::new(DiskScript { seed, most_latency, ..DiskScript::default() });
        let file = bench.create("x");
        for index in 0..8 {
            bench.store.submit(Token(index), bench.write(file, index as usize));
        }
        assert_eq!(bench.disk.next_due(), None, "nothing begins before it is flushed");
        bench.store.flush();
        bench.disk.advance(Instant::BOOT + most_latency);
        bench.reaped()
    };
    let orders: Vec<_> = (0..10).map(run).collect();
    assert_eq!(orders, (0..10).map(run).collect::<Vec<_>>());
    assert!(orders.iter().any(|order| !order.is_sorted()));
}

#[test]
fn a_real_pace_follows_the_clock() {
    let latency = Nanos::from_millis(20);
    let script =
        DiskScript { pace: Pace::Real, least_latency: latency, most_latency: latency, ..DiskScript::default() };
    let mut bench = Bench::new(script);
    let file = bench.create("x");
    let begin = system::now();
    bench.store.submit(Token(7), bench.write(file, 0));
    bench.store.flush();
    let notifier = Notifier::new().expect("a descriptor");
    let mut done = Vec::new();
    while done.is_empty() {
        bench.store.wait(&notifier, Instant::END);
        bench.store.reap(&mut done);
    }
    assert!(system::now() - begin >= latency);
}

#[test]
fn memory_that_is_reused_before_a_write_completes_is_found_out() {
    let wrong = (0..32)
        .filter(|&seed| {
            let latency = Nanos::from_millis(1);
            let script = DiskScript { seed, least_latency: latency, most_latency: latency, ..DiskScript::default() };
            let mut bench = Bench::new(script);
            let file = bench.create("x");
            bench.fill(0, 1);
            bench.store.submit(Token(0), bench.write(file, 0));
            bench.store.flush();
            bench.fill(0, 2);
            bench.disk.advance(Instant::BOOT + latency);
            assert_eq!(bench.reaped(), [0]);
            bench.disk.image_after_kill(0).read("x") != Some(block(1))
        })
        .count();
    assert!((8..=24).contains(&wrong), "about half of the seeds: {wrong}");
}

/// Two blocks that were synced, two that were not, one that is under way.
fn half_synced() -> (Bench, FileId) {
    let latency = Nanos::from_millis(1);
    let mut bench = Bench::new(DiskScript { least_latency: latency, most_latency: latency, ..DiskScript::default() });
    let file = bench.create("d/x");
    bench.store.sync_folder(Path::new("d")).expect("a folder");
    (0..5).for_each(|index| bench.fill(index, index as u8 + 1));
    let (first, second) = (bench.write(file, 0), bench.write(file, 1));
    let results = bench.all(&[Op::Allocate(file, 0, BLOCK as u64 * 8), first, second, Op::Sync(file)]);
    assert_eq!(results, [Ok(0), WHOLE, WHOLE, Ok(0)]);
    let (third, fourth) = (bench.write(file, 2), bench.write(file, 3));
    assert_eq!(bench.all(&[third, fourth]), [WHOLE, WHOLE]);
    bench.store.submit(Token(9), bench.write(file, 4));
    bench.store.flush();
    (bench, file)
}

/// The states of a block in some images: lost, whole, torn.
fn fates(images: impl Iterator<Item = Image>, index: usize) -> [usize; 3] {
    let mut fates = [0; 3];
    for image in images {
        let content = image.read("d/x").expect("its name is durable");
        assert_eq!(content.len(), BLOCK * 8);
        let found = &content[index * BLOCK..][..BLOCK];
        assert!(found.iter().all(|&byte| byte == 0 || byte == index as u8 + 1), "only old or new bytes");
        let fate = match found.iter().filter(|&&byte| byte == 0).count() {
            BLOCK => 0,
            0 => 1,
            _ => 2,
        };
        fates[fate] += 1;
    }
    fates
}

#[test]
fn a_power_cut_keeps_what_was_synced_and_of_the_rest_all_some_or_nothing() {
    let (bench, _) = half_synced();
    let images = |index| fates((0..64).map(|seed| bench.disk.image_after_power_cut(seed)), index);
    assert_eq!((images(0), images(1)), ([0, 64, 0], [0, 64, 0]));
    for index in 2..5 {
        assert!(images(index).iter().all(|&count| count > 0), "{index}: {:?}", images(index));
    }
}

#[test]
fn a_kill_keeps_what_was_complete_and_of_what_was_under_way_all_some_or_nothing() {
    let (bench, _) = half_synced();
    let images = |index| fates((0..64).map(|seed| bench.disk.image_after_kill(seed)), index);
    for index in 0..4 {
        assert_eq!(images(index), [0, 64, 0]);
    }
    assert!(images(4).iter().all(|&count| count > 0), "{:?}", images(4));
}

#[test]
fn what_a_failed_sync_was_to_cover_is_never_made_durable_by_a_later_one() {
    let faults = vec![Fault::nth(OpKind::Sync, 1, What::Error(IO))];
    let mut bench = Bench::new(DiskScript { faults, ..DiskScript::default() });
    let file = bench.create("d/x");
    bench.store.sync_folder(Path::new("d")).expect("a folder");
    (0..8).for_each(|index| bench.fill(index, index as u8 + 1));
    let (first, second, last) = (bench.write(file, 0), bench.write(file, 1), bench.write(file, 7));
    let ops = [first, Op::Sync(file), second, last, Op::Sync(file)];
    assert_eq!(bench.all(&ops), [WHOLE, Err(IO), WHOLE, WHOLE, Ok(0)]);
    let images = |index| fates((0..64).map(|seed| bench.disk.image_after_power_cut(seed)), index);
    assert!(images(0)[0] > 0 && images(0)[1] > 0, "{:?}", images(0));
    assert_eq!((images(1), images(7)), ([0, 64, 0], [0, 64, 0]));
}

#[test]
fn what_completes_after_a_sync_was_submitted_is_not_covered_by_it() {
    let (mut bench, file) = half_synced();
    // The sync is submitted while block 4 is under way, and completes after it.
    bench.store.submit(Token(10), Op::Sync(file));
    bench.store.flush();
    bench.disk.advance(Instant::BOOT + Nanos::from_secs(1));
    assert_eq!(bench.reaped(), [9, 10]);
    let images = |index| fates((0..64).map(|seed| bench.disk.image_after_power_cut(seed)), index);
    assert_eq!((images(2), images(3)), ([0, 64, 0], [0, 64, 0]));
    assert!(images(4)[0] > 0, "{:?}", images(4));
}

#[test]
fn names_are_durable_after_a_sync_of_their_folder_and_not_before() {
    let survives = |bench: &Bench, path: &str| {
        (0..64).filter(|&seed| bench.disk.image_after_power_cut(seed).length(path).is_some()).count()
    };
    let mut bench = Bench::new(DiskScript::default());
    bench.create("d/x");
    bench.create("e/y");
    assert!((1..64).contains(&survives(&bench, "d/x")));
    bench.store.sync_folder(Path::new("d")).expect("a folder");
    assert_eq!(survives(&bench, "d/x"), 64);
    assert!((1..64).contains(&survives(&bench, "e/y")));
    bench.store.remove(Path::new("d/x")).expect("it is there");
    assert!((1..64).contains(&survives(&bench, "d/x")));
    bench.store.sync_folder(Path::new("d")).expect("a folder");
    assert_eq!(survives(&bench, "d/x"), 0);
}

#[test]
fn at_every_step_a_crash_leaves_what_was_synced_and_either_the_old_or_the_new_small_file() {
    let run = |faults: Vec<Fault>| {
        let disk = ScriptedDisk::new(DiskScript { faults, ..DiskScript::default() });
        let mut bench = Bench::on(&disk);
        let mut durable = 0;
        let mut acts = || -> Result<(), StoreError> {
            let file = bench.store.open(Path::new("d/x"), Open::CreateData)?;
            bench.store.put(Path::new("d/meta"), b"old")?;
            (0..4).for_each(|index| bench.fill(index, index as u8 + 1));
            for index in 0..4 {
                let write = bench.write(file, index);
                if bench.all(&[write, Op::Sync(file)]) == [WHOLE, Ok(0)] {
                    durable = index + 1;
                }
            }
            bench.store.put(Path::new("d/meta"), b"new")
        };
        let ended = acts();
        (disk, durable, ended)
    };
    let (disk, durable, ended) = run(Vec::new());
    assert_eq!((durable, ended), (4, Ok(())));
    let steps = disk.operations();
    for step in 1..=steps {
        let (disk, durable, ended) = run(vec![Fault::crash_at(step)]);
        assert!(disk.is_crashed());
        assert_eq!(ended.expect_err("it was gone").errno, Errno(libc::ENODEV));
        for image in (0..16).flat_map(|seed| [disk.image_after_kill(seed), disk.image_after_power_cut(seed)]) {
            let Some(meta) = image.read("d/meta") else {
                assert!(step <= 2, "{step}");
                continue;
            };
            assert!(meta == b"old" || (meta == b"new" && step == steps), "{step}: {meta:?}");
            let content = image.read("d/x").expect("the folder was synced");
            for index in 0..durable {
                assert_eq!(content[index * BLOCK..][..BLOCK], block(index as u8 + 1), "{step}");
            }
        }
    }
}

#[test]
fn an_image_can_be_written_to_a_folder_and_be_put_on_another_disk() {
    let (bench, _) = half_synced();
    let image = bench.disk.image_after_kill(1);
    let folder = tempfile::tempdir().expect("a folder");
    image.write_to(folder.path()).expect("room for 32 KiB");
    assert_eq!(std::fs::read(folder.path().join("d/x")).ok(), image.read("d/x"));
    let disk = ScriptedDisk::with(DiskScript::default(), image.clone());
    assert_eq!(disk.image_after_power_cut(3), image);
    let mut store = disk.store(1);
    let file = store.open(Path::new("d/x"), Open::ReadData).expect("it is there");
    assert_eq!(store.facts(file).size, BLOCK as u64 * 8);
}

#[test]
fn a_disk_without_contents_tells_how_long_more_than_memory_holds_would_take() {
    let rate = ByteRate::new(64.0 * 1024.0 * 1000.0);
    let mut bench = Bench::new(DiskScript { rate, forgetful: true, pace: Pace::Leaping, ..DiskScript::default() });
    let file = bench.create("x");
    let notifier = Notifier::new().expect("a descriptor");
    let length = 64 << 10;
    for index in 0..1000_u64 {
        let piece = Piece { memory: bench.id, at: 0, length };
        bench.store.submit(Token(index), Op::Write(file, index * length as u64, piece));
        bench.store.wait(&notifier, Instant::END);
        assert_eq!(bench.reaped(), [index]);
    }
    assert_eq!(bench.disk.now(), Instant::BOOT + Nanos::from_secs(1));
    assert_eq!(bench.store.facts(file).size, 64_000 << 10);
}
