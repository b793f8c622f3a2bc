//! The promises of every store, checked on each of them.

#![expect(unsafe_code, reason = "fills and reads the attached memories")]

mod child;
mod real;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hairspring_machine::{Instant, Nanos};

use super::plain::PlainStore;
use super::scripted::{DiskScript, Pace, ScriptedDisk};
use super::uring::UringStore;
use super::{
    Completion, Direct, Errno, Fallback, FileId, LentMemory, MemoryId, Op, Open, Piece, Store, Token, Ways, system,
};
use hairspring_ring::memory::{Memory, Pages};
use hairspring_ring::notifier::Notifier;
use hairspring_ring::units::Bytes;
use testing::skip;

/// One store with a mirrored memory and a folder.
struct Bench {
    store: Box<dyn Store>,
    memory: Arc<Memory>,
    id: MemoryId,
    folder: tempfile::TempDir,
    next: u64,
}

const SIZE: usize = 64 << 10;

impl Bench {
    fn new(mut store: Box<dyn Store>, folder: tempfile::TempDir) -> Self {
        let size = Bytes(SIZE as u64);
        let memory = Arc::new(Memory::mirrored(size, size, Pages::Small).expect("64 KiB"));
        // SAFETY: the bench makes no references to the memory, and waits for operations under way before it reads or
        // fills it.
        let lent = unsafe { LentMemory::new(Arc::clone(&memory)) };
        let id = store.attach(lent);
        Self { store, memory, id, folder, next: 0 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn piece(&self, at: usize, length: usize) -> Piece {
        Piece { memory: self.id, at, length }
    }

    fn fill(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.memory.reach());
        // SAFETY: within the reach, by the assertion; no operation on these bytes is under way while a test fills them.
        unsafe { self.memory.address().as_ptr().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    fn bytes(&self, at: usize, length: usize) -> Vec<u8> {
        assert!(at + length <= self.memory.reach());
        let mut bytes = vec![0; length];
        // SAFETY: within the reach, by the assertion; the test has waited for all reads into these bytes.
        unsafe { self.memory.address().as_ptr().add(at).copy_to_nonoverlapping(bytes.as_mut_ptr(), length) };
        bytes
    }

    /// Does some operations at once and waits for all of them; the results in the order of the operations.
    #[track_caller]
    fn all(&mut self, ops: &[Op]) -> Vec<Result<u64, Errno>> {
        assert!(ops.len() <= self.store.depth());
        let first = self.next;
        for op in ops {
            self.store.submit(Token(self.next), *op);
            self.next += 1;
        }
        self.store.flush();
        let notifier = Notifier::new().expect("a descriptor");
        let mut done: Vec<Completion> = Vec::new();
        while done.len() < ops.len() {
            let until = system::now() + Nanos::from_secs(60);
            self.store.wait(&notifier, until);
            self.store.reap(&mut done);
            assert!(system::now() < until, "no completion within a minute: {done:?}");
        }
        done.sort_by_key(|completion| completion.token.0);
        let tokens: Vec<u64> = done.iter().map(|completion| completion.token.0).collect();
        assert_eq!(tokens, (first..self.next).collect::<Vec<_>>(), "each token comes back once");
        done.into_iter().map(|completion| completion.result).collect()
    }

    #[track_caller]
    fn one(&mut self, op: Op) -> Result<u64, Errno> {
        self.all(&[op])[0]
    }

    fn open(&mut self, name: &str, how: Open) -> FileId {
        let path = self.path(name);
        self.store.open(&path, how).expect("a file")
    }

    /// The bytes of a file, read through the store.
    fn content(&mut self, name: &str) -> Vec<u8> {
        let file = self.open(name, Open::Mend);
        let mut bytes = Vec::new();
        loop {
            let read = self.one(Op::Read(file, bytes.len() as u64, self.piece(0, SIZE))).expect("a read") as usize;
            if read == 0 {
                return bytes;
            }
            bytes.extend(self.bytes(0, read));
        }
    }
}

/// Bytes without two equal sectors.
fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8 ^ (at >> 9) as u8).collect()
}

fn temporary() -> tempfile::TempDir {
    // Beside the test program: the folder for temporary files may be in memory and know no direct I/O.
    let program = std::env::current_exe().expect("the path of this test");
    program.parent().map_or_else(tempfile::tempdir, tempfile::tempdir_in).expect("a folder")
}

/// Runs a promise on all stores, in all ways.
#[track_caller]
fn on_all(test: &str, promise: impl Fn(&mut Bench)) {
    for direct in [false, true] {
        promise(&mut Bench::new(Box::new(PlainStore::new(8, Ways { direct, ..Ways::ALL })), temporary()));
        for registered in [false, true] {
            match UringStore::new(8, Ways { direct, registered, uring: true }) {
                Ok(store) => promise(&mut Bench::new(Box::new(store), temporary())),
                Err(fallback) => skip(test, format!("io_uring: {fallback:?}")),
            }
        }
    }
    for seed in 0..4 {
        let most_latency = Nanos::from_micros(100);
        let disk = ScriptedDisk::new(DiskScript { seed, pace: Pace::Leaping, most_latency, ..DiskScript::default() });
        promise(&mut Bench::new(Box::new(disk.store(8)), temporary()));
    }
}

#[test]
fn data_come_back_as_they_went_also_over_the_seam() {
    on_all("data_come_back_as_they_went_also_over_the_seam", |bench| {
        let data = pattern(SIZE);
        let half = SIZE / 2;
        // From the middle of the ring over its end to the middle again.
        bench.fill(half, &data);
        let file = bench.open("x", Open::CreateData);
        let quarter = SIZE / 4;
        let ops: Vec<Op> = (0..4)
            .map(|index| Op::Write(file, (index * quarter) as u64, bench.piece(half + index * quarter, quarter)))
            .collect();
        assert_eq!(bench.all(&ops), [Ok(quarter as u64); 4]);
        let straddling = bench.piece(SIZE - 4096, 8192);
        assert_eq!(bench.one(Op::Write(file, SIZE as u64, straddling)), Ok(8192));
        assert_eq!(bench.one(Op::Sync(file)), Ok(0));
        bench.fill(0, &vec![0; SIZE]);
        let file = bench.open("x", Open::ReadData);
        assert_eq!(bench.store.facts(file).size, SIZE as u64 + 8192);
        assert_eq!(bench.one(Op::Read(file, 0, bench.piece(half, SIZE))), Ok(SIZE as u64));
        assert_eq!(bench.bytes(half, SIZE), data);
        assert_eq!(bench.one(Op::Read(file, SIZE as u64, bench.piece(SIZE - 4096, 16384))), Ok(8192));
        assert_eq!(bench.bytes(SIZE - 4096, 8192), data[half - 4096..half + 4096]);
        assert_eq!(bench.one(Op::Read(file, 1 << 20, bench.piece(0, 4096))), Ok(0));
    });
}

#[test]
fn a_journal_takes_any_length_at_any_offset() {
    on_all("a_journal_takes_any_length_at_any_offset", |bench| {
        let data = pattern(1000);
        bench.fill(3, &data);
        let file = bench.open("x", Open::CreateJournal);
        let facts = bench.store.facts(file);
        assert_eq!((facts.alignment, facts.memory_alignment, facts.direct), (1, 1, Direct::No));
        assert_eq!(bench.one(Op::Write(file, 0, bench.piece(3, 333))), Ok(333));
        assert_eq!(bench.one(Op::Write(file, 333, bench.piece(336, 667))), Ok(667));
        assert_eq!(bench.one(Op::Sync(file)), Ok(0));
        assert_eq!(bench.content("x"), data);
    });
}

#[test]
fn pieces_that_are_aligned_as_the_facts_say_are_taken_and_others_are_refused_or_right() {
    on_all("pieces_that_are_aligned_as_the_facts_say_are_taken_and_others_are_refused_or_right", |bench| {
        let data = pattern(SIZE);
        bench.fill(0, &data);
        let file = bench.open("x", Open::CreateData);
        let facts = bench.store.facts(file);
        assert!(facts.alignment.is_power_of_two() && facts.memory_alignment.is_power_of_two(), "{facts:?}");
        let unit = facts.alignment.max(facts.memory_alignment) as usize;
        assert_eq!(bench.one(Op::Write(file, facts.alignment, bench.piece(unit, unit))), Ok(unit as u64));
        if facts.direct == Direct::No {
            assert_eq!(bench.one(Op::Write(file, 1, bench.piece(1, 999))), Ok(999));
        } else {
            assert_eq!(bench.one(Op::Write(file, 0, bench.piece(0, unit + 1))), Err(Errno(libc::EINVAL)));
            // A mistake of the caller does not send the file through the page cache.
            assert_eq!(bench.store.facts(file).direct, facts.direct);
        }
    });
}

#[test]
fn allocating_and_truncating_set_the_length() {
    on_all("allocating_and_truncating_set_the_length", |bench| {
        bench.fill(0, &pattern(SIZE));
        let file = bench.open("x", Open::CreateData);
        match bench.one(Op::Allocate(file, 0, 1 << 20)) {
            Err(Errno(libc::EOPNOTSUPP)) => return skip("allocate", "the file system does not offer it"),
            result => assert_eq!(result, Ok(0)),
        }
        assert_eq!(bench.store.facts(file).size, 1 << 20);
        assert_eq!(bench.one(Op::Write(file, 4096, bench.piece(0, 4096))), Ok(4096));
        assert_eq!(bench.store.facts(file).size, 1 << 20);
        bench.store.truncate(file, 8000).expect("shorter");
        assert_eq!(bench.store.facts(file).size, 8000);
        let mut expected = vec![0; 4096];
        expected.extend(&pattern(SIZE)[..3904]);
        assert_eq!(bench.content("x"), expected);
    });
}

#[test]
fn what_exists_is_not_overwritten_and_what_does_not_is_not_opened() {
    on_all("what_exists_is_not_overwritten_and_what_does_not_is_not_opened", |bench| {
        bench.fill(0, b"abc");
        let file = bench.open("x", Open::CreateJournal);
        assert_eq!(bench.one(Op::Write(file, 0, bench.piece(0, 3))), Ok(3));
        let path = bench.path("x");
        for how in [Open::CreateData, Open::CreateJournal] {
            let error = bench.store.open(&path, how).expect_err("it exists");
            assert_eq!(error.errno, Errno(libc::EEXIST));
            assert!(
                error.to_string().starts_with("create ") && error.to_string().contains("choose another"),
                "{error}"
            );
        }
        assert_eq!(bench.content("x"), b"abc");
        let path = bench.path("y");
        for how in [Open::ReadData, Open::Mend] {
            assert_eq!(bench.store.open(&path, how).expect_err("nothing there").errno, Errno(libc::ENOENT));
        }
    });
}

#[test]
fn putting_a_file_replaces_it_wholly_and_leaves_nothing_else() {
    on_all("putting_a_file_replaces_it_wholly_and_leaves_nothing_else", |bench| {
        let path = bench.path("x");
        bench.store.put(&path, b"a longer first content").expect("put");
        bench.store.put(&path, b"second").expect("put");
        let folder = bench.folder.path().to_owned();
        bench.store.sync_folder(&folder).expect("a folder");
        assert_eq!(bench.content("x"), b"second");
        assert!(count(&folder) <= 1, "temporary files are left");
    });
}

fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("a folder").count()
}

#[test]
fn a_full_depth_of_writes_ends_with_one_completion_each() {
    on_all("a_full_depth_of_writes_ends_with_one_completion_each", |bench| {
        let file = bench.open("x", Open::CreateData);
        for round in 0..20 {
            let ops: Vec<Op> =
                (0..8).map(|index| Op::Write(file, (round * 8 + index) * 4096, bench.piece(0, 4096))).collect();
            assert_eq!(bench.all(&ops), [Ok(4096); 8]);
        }
        assert_eq!(bench.store.facts(file).size, 160 * 4096);
    });
}

#[test]
#[should_panic(expected = "reaches out of its memory")]
fn a_piece_that_reaches_out_of_its_memory_is_a_callers_bug() {
    let mut bench = Bench::new(super::best(8, Ways::ALL), temporary());
    let file = bench.open("x", Open::CreateJournal);
    bench.store.submit(Token(0), Op::Write(file, 0, bench.piece(2 * SIZE - 1, 2)));
}

fn fallback<'a>(fallbacks: &'a [Fallback], name: &str) -> Option<&'a Fallback> {
    fallbacks.iter().find(|fallback| fallback.name == name)
}

/// The state of a name in the fallbacks: in use, refused, or absent.
fn in_use(fallbacks: &[Fallback], name: &str) -> Option<bool> {
    fallback(fallbacks, name).map(|fallback| fallback.refused.is_none())
}
