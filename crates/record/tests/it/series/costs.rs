//! The costs of a series that must not grow with its length, counted in calls of the store and bytes.

use std::ffi::OsStr;
use std::sync::Mutex;

use hairspring_recording::series::open::find;
use hairspring_ring::notifier::Notifier;
use hairspring_store::owner::{Holder, OwnError, Ownership, PathFacts, Work};
use hairspring_store::{Completion, Fallback, FileFacts, FileId, LentMemory, MemoryId, Op, Open, StoreError, Token};

use super::*;

/// The calls of stores and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Asked {
    opens: u64,
    attached: u64,
    put_bytes: u64,
    others: u64,
}

/// Counts the calls of a store. Something else may happen before each look into a folder.
pub(super) struct Counted(Box<dyn Store>, Arc<Mutex<Asked>>, Box<dyn FnMut() + Send>);

impl Counted {
    pub(super) fn with(store: Box<dyn Store>, before_names: Box<dyn FnMut() + Send>) -> Self {
        Self(store, Arc::default(), before_names)
    }

    fn count(&self, one: impl FnOnce(&mut Asked)) {
        one(&mut self.1.lock().expect("no panic"));
    }
}

impl Store for Counted {
    fn attach(&mut self, memory: LentMemory) -> MemoryId {
        self.count(|asked| asked.attached += 1);
        self.0.attach(memory)
    }

    fn open(&mut self, path: &Path, how: Open) -> Result<FileId, StoreError> {
        self.count(|asked| asked.opens += 1);
        self.0.open(path, how)
    }

    fn create_like(&mut self, path: &Path, other: &Path, how: Open) -> Result<FileId, StoreError> {
        self.count(|asked| asked.opens += 1);
        self.0.create_like(path, other, how)
    }

    fn close(&mut self, file: FileId) {
        self.0.close(file);
    }

    fn facts(&self, file: FileId) -> FileFacts {
        self.0.facts(file)
    }

    fn depth(&self) -> usize {
        self.0.depth()
    }

    fn submit(&mut self, token: Token, op: Op) {
        self.count(|asked| asked.others += 1);
        self.0.submit(token, op);
    }

    fn flush(&mut self) {
        self.0.flush();
    }

    fn reap(&mut self, completions: &mut Vec<Completion>) {
        self.0.reap(completions);
    }

    fn wait(&mut self, notifier: &Notifier, until: Instant) {
        self.0.wait(notifier, until);
    }

    fn truncate(&mut self, file: FileId, length: u64) -> Result<(), StoreError> {
        self.0.truncate(file, length)
    }

    fn put(&mut self, path: &Path, content: &[u8]) -> Result<(), StoreError> {
        self.count(|asked| asked.put_bytes += content.len() as u64);
        self.0.put(path, content)
    }

    fn own(&mut self, files: &[PathBuf], work: Work) -> Result<Ownership, OwnError> {
        self.count(|asked| asked.others += 1);
        self.0.own(files, work)
    }

    fn lend(&mut self, ownership: &Ownership) {
        self.0.lend(ownership);
    }

    fn holder(&self, path: &Path) -> Option<Holder> {
        self.0.holder(path)
    }

    fn look(&self, path: &Path) -> Result<PathFacts, StoreError> {
        self.count(|asked| asked.others += 1);
        self.0.look(path)
    }

    fn look_at(&self, file: FileId) -> Result<PathFacts, StoreError> {
        self.0.look_at(file)
    }

    fn remove(&mut self, path: &Path) -> Result<(), StoreError> {
        self.count(|asked| asked.others += 1);
        self.0.remove(path)
    }

    fn discard(&mut self, path: &Path) -> Result<(), StoreError> {
        self.count(|asked| asked.others += 1);
        self.0.discard(path)
    }

    fn names(&mut self, folder: &Path, each: &mut dyn FnMut(&OsStr)) -> Result<(), StoreError> {
        self.count(|asked| asked.others += 1);
        (self.2)();
        self.0.names(folder, each)
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Result<(), StoreError> {
        self.0.rename(from, to)
    }

    fn sync_folder(&mut self, folder: &Path) -> Result<(), StoreError> {
        self.count(|asked| asked.others += 1);
        self.0.sync_folder(folder)
    }

    fn free_bytes(&self, folder: &Path) -> Option<u64> {
        self.0.free_bytes(folder)
    }

    fn fallbacks(&self) -> Vec<Fallback> {
        self.0.fallbacks()
    }
}

/// A series of `segments` segments of a block each.
fn series_of(segments: u64) -> ScriptedDisk {
    let case = Case { frames: segments * BLOCK / 6, blocks: 1, ..Case::default() };
    disk_of(&run(&case, Image::default(), |_, _| {}).disk.image_after_kill(0))
}

fn counted(disk: &ScriptedDisk) -> (StoreMaker, Arc<Mutex<Asked>>) {
    let (disk, asked) = (disk.clone(), Arc::new(Mutex::new(Asked::default())));
    let counter = Arc::clone(&asked);
    let maker = Box::new(move || {
        Box::new(Counted(Box::new(disk.store(64)), Arc::clone(&counter), Box::new(|| {}))) as Box<dyn Store>
    });
    (maker, asked)
}

/// The calls needed to delete `deleted` of the segments.
fn deleting(disk: &ScriptedDisk, segments: u64, deleted: u64) -> Asked {
    let (stores, asked) = counted(disk);
    let index = index_at(&mut self::stores(disk), Path::new("a/x")).expect("read").expect("an index");
    let kept = u32::try_from(segments - deleted).expect("few");
    let retention = Retention { segments: Some(kept), ..Retention::default() };
    let mut keeper = Keeper::resume(bases(1), index, retention, stores).expect("resumed");
    *asked.lock().expect("no panic") = Asked::default();
    keeper.sweep(&moment());
    assert_eq!((keeper.kept() as u64, keeper.troubles()), (segments - deleted, Vec::new()));
    *asked.lock().expect("no panic")
}

/// Each deletion checked the pins of all segments, and wrote all segments into the collection.
#[test]
fn a_deletion_costs_the_same_whatever_the_length_of_the_series() {
    let [short, long] =
        [(40, 15), (400, 15)].map(|(segments, deleted)| deleting(&series_of(segments), segments, deleted));
    assert!(long.opens <= short.opens + 2 && long.others <= short.others + 2, "{short:?} {long:?}");
    // Ten times as many segments in the collection, which is written half as often.
    assert!(long.put_bytes <= 8 * short.put_bytes, "{short:?} {long:?}");
}

/// Each segment that was opened left a buffer of 64 KiB in the store.
#[test]
fn opening_a_series_takes_one_buffer_and_three_files_a_segment() {
    for segments in [20, 200] {
        let disk = series_of(segments);
        let (mut stores, asked) = counted(&disk);
        let mut store = stores();
        let found = find(&mut *store, Path::new("a/x")).expect("read").expect("a series");
        let recording = found.open(&mut *store).expect("opens");
        assert_eq!(recording.members().len() as u64, segments);
        let Asked { opens, attached, .. } = *asked.lock().expect("no panic");
        assert!(attached <= 4 && opens <= 3 * segments + 8, "{attached} buffers and {opens} files opened");
    }
}
