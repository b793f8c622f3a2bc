//! Further promises of the stores on real disks: the fallbacks, waking, ends in the middle, full disks.

use std::os::unix::fs::OpenOptionsExt as _;

use super::*;

/// A store on the best fallbacks that a choice of ways leaves, after some use.
fn used(ways: Ways) -> Bench {
    let mut bench = Bench::new(super::super::best(8, ways), temporary());
    let file = bench.open("x", Open::CreateData);
    assert_eq!(bench.one(Op::Write(file, 0, bench.piece(0, 4096))), Ok(4096));
    bench
}

#[test]
fn the_ladder_says_what_is_in_use_and_why_the_rest_is_not() {
    for (uring, direct, registered) in
        [(true, true, true), (true, true, false), (true, false, true), (false, true, true)]
    {
        let ways = Ways { uring, direct, registered };
        let bench = used(ways);
        let fallbacks = bench.store.fallbacks();
        assert!(
            fallbacks.iter().all(|fallback| fallback.refused.as_ref().is_none_or(|why| !why.is_empty())),
            "{fallbacks:?}"
        );
        // Never better than requested.
        for (name, wanted) in [("io_uring", uring), ("direct", direct), ("registered_buffers", uring && registered)] {
            assert!(wanted || in_use(&fallbacks, name) != Some(true), "{ways:?} {fallbacks:?}");
        }
        // Always exactly one of the two engines.
        assert_ne!(in_use(&fallbacks, "io_uring"), Some(in_use(&fallbacks, "pwrite") == Some(true)), "{fallbacks:?}");
        assert!(in_use(&fallbacks, "direct").is_some(), "{fallbacks:?}");
    }
}

/// The features of the machine, detected without the store: the store uses each, or its fallbacks are wrong.
#[test]
fn what_the_machine_has_is_used() {
    let test = "what_the_machine_has_is_used";
    let fallbacks = used(Ways::ALL).store.fallbacks();
    let folder = temporary();
    let path = folder.path().join("probe");
    std::fs::write(&path, [0; 8192]).expect("a file");
    let direct = std::fs::OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(&path);
    match direct {
        Ok(_) => assert_eq!(in_use(&fallbacks, "direct"), Some(true), "{fallbacks:?}"),
        Err(error) => skip(test, format!("no direct I/O here: {error}")),
    }
    match io_uring::IoUring::new(8) {
        Ok(ring) => {
            assert_eq!(in_use(&fallbacks, "io_uring"), Some(true), "{fallbacks:?}");
            match ring.submitter().register_buffers_sparse(8) {
                Ok(()) => assert_eq!(in_use(&fallbacks, "registered_buffers"), Some(true), "{fallbacks:?}"),
                Err(error) => skip(test, format!("no buffers can be registered here: {error}")),
            }
        }
        Err(error) => skip(test, format!("no io_uring here: {error}")),
    }
}

#[test]
fn memory_in_place_of_a_disk_never_counts_as_direct_io() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return skip("memory_in_place_of_a_disk_never_counts_as_direct_io", "no /dev/shm");
    };
    let mut bench = Bench::new(super::super::best(8, Ways::ALL), folder);
    let file = bench.open("x", Open::CreateData);
    assert_ne!(bench.store.facts(file).direct, Direct::Proven);
    assert_eq!(bench.one(Op::Write(file, 0, bench.piece(0, 4096))), Ok(4096));
}

#[track_caller]
fn check_fallback(bench: &mut Bench, file: FileId) {
    bench.fill(0, &pattern(SIZE));
    let ops: Vec<Op> =
        (0..4).map(|index| Op::Write(file, index * 1000, bench.piece(index as usize * 1000, 1000))).collect();
    assert_eq!(bench.all(&ops), [Ok(1000); 4]);
    assert_eq!(bench.store.facts(file).direct, Direct::No);
    let fallbacks = bench.store.fallbacks();
    let why = fallback(&fallbacks, "direct").and_then(|fallback| fallback.refused.clone()).expect("reported");
    assert!(why.contains("/x:"), "{why}");
    assert_eq!(bench.content("x"), pattern(SIZE)[..4000]);
}

/// A file system may accept direct I/O when a file is opened and refuse it at each transfer. Here the file's stated
/// alignment is forgotten, so that the kernel's refusal of odd pieces looks the same.
#[test]
fn direct_io_that_is_refused_at_the_first_write_falls_back_and_is_reported() {
    let mut plain = PlainStore::new(8, Ways::ALL);
    let folder = temporary();
    let file = plain.open(&folder.path().join("x"), Open::CreateData).expect("a file");
    if plain.facts(file).direct == Direct::No {
        return skip("direct_io_that_is_refused_at_the_first_write_falls_back_and_is_reported", "no direct I/O here");
    }
    plain.files_mut().claim_any_alignment(file);
    check_fallback(&mut Bench::new(Box::new(plain), folder), file);
    let Ok(mut uring) = UringStore::new(8, Ways::ALL) else {
        return skip("direct_io_that_is_refused_at_the_first_write_falls_back_and_is_reported", "no io_uring here");
    };
    let folder = temporary();
    let file = uring.open(&folder.path().join("x"), Open::CreateData).expect("a file");
    uring.files_mut().claim_any_alignment(file);
    check_fallback(&mut Bench::new(Box::new(uring), folder), file);
}

#[test]
fn a_wait_ends_with_the_bell_with_a_completion_and_with_its_time() {
    for ways in [Ways::ALL, Ways { uring: false, ..Ways::ALL }] {
        let mut bench = used(ways);
        let file = bench.open("y", Open::CreateData);
        let (notifier, never) = (Notifier::new().expect("a descriptor"), Instant::END);
        notifier.notify();
        bench.store.wait(&notifier, never);
        assert!(notifier.clear());
        bench.store.wait(&notifier, system::now());
        assert!(!notifier.clear());
        bench.store.submit(Token(1), Op::Write(file, 0, bench.piece(0, 4096)));
        bench.store.flush();
        let mut done = Vec::new();
        while done.is_empty() {
            bench.store.wait(&notifier, never);
            bench.store.reap(&mut done);
        }
        assert_eq!(done, [Completion { token: Token(1), result: Ok(4096) }]);
        // Another thread notifies while this one waits, or before it does.
        for _ in 0..1000 {
            std::thread::scope(|scope| {
                scope.spawn(|| notifier.notify());
                while !notifier.clear() {
                    bench.store.wait(&notifier, never);
                }
            });
        }
    }
}

#[test]
fn dropping_a_store_with_writes_under_way_lets_them_end_before_the_memory_goes() {
    let data = pattern(SIZE);
    for _ in 0..20 {
        let mut bench = Bench::new(super::super::best(8, Ways::ALL), temporary());
        bench.fill(0, &data);
        let file = bench.open("x", Open::CreateData);
        for index in 0..8 {
            bench.store.submit(Token(index), Op::Write(file, index * SIZE as u64, bench.piece(0, SIZE)));
        }
        bench.store.flush();
        let Bench { store, memory, folder, .. } = bench;
        drop(store);
        assert_eq!(Arc::strong_count(&memory), 1, "the store has let go of the memory");
        drop(memory);
        let content = std::fs::read(folder.path().join("x")).expect("a file");
        assert_eq!(content.len(), 8 * SIZE);
        assert!(content.chunks(SIZE).all(|chunk| chunk == data), "all that was handed over is there");
    }
}

/// Mounts something for the time of a test.
struct Mount(tempfile::TempDir);

impl Mount {
    fn new(arguments: &[&str]) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let output = std::process::Command::new("mount").args(arguments).arg(folder.path()).output();
        match output {
            Ok(output) if output.status.success() => Ok(Self(folder)),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: the kernel closes the files of an io_uring some time after the ring, and until then the file system
        // is busy.
        let _ = std::process::Command::new("umount").arg("--lazy").arg(self.0.path()).output();
    }
}

fn fills(ways: Ways, folder: &Path) {
    let mut bench = Bench::new(super::super::best(8, ways), tempfile::tempdir_in(folder).expect("a folder"));
    let folder = bench.folder.path().to_owned();
    let free = bench.store.free_bytes(&folder).expect("a number");
    assert!(free > 0 && free <= 8 << 20, "{free}");
    let file = bench.open("x", Open::CreateData);
    assert_eq!(bench.one(Op::Allocate(file, 0, 1 << 30)), Err(Errno(libc::ENOSPC)));
    let mut at = 0;
    let refused = loop {
        match bench.one(Op::Write(file, at, bench.piece(0, SIZE))) {
            Ok(written) => at += written,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, Errno(libc::ENOSPC));
    assert!(at >= free / 2, "{at} of {free}");
    let error = bench.store.put(&bench.path("meta"), &vec![1; SIZE * 2]).expect_err("full");
    assert!(error.errno == Errno(libc::ENOSPC) && error.to_string().contains("free some there"), "{error}");
    assert_eq!(count(&folder), 1, "no temporary file is left");
}

#[test]
fn a_full_disk_is_reported_and_what_was_written_stays() {
    let test = "a_full_disk_is_reported_and_what_was_written_stays";
    for ways in [Ways::ALL, Ways { uring: false, ..Ways::ALL }] {
        match Mount::new(&["-t", "tmpfs", "-o", "size=4m", "none"]) {
            Ok(mount) => fills(ways, mount.0.path()),
            Err(why) => skip(test, format!("tmpfs: {why}")),
        }
        let folder = temporary();
        let image = folder.path().join("image").display().to_string();
        let made = std::fs::File::create(&image).and_then(|file| file.set_len(8 << 20));
        let formatted = std::process::Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0", &image]).output();
        if !(made.is_ok() && formatted.is_ok_and(|output| output.status.success())) {
            skip(test, "no mkfs.ext4");
            continue;
        }
        match Mount::new(&["-o", "loop", &image]) {
            Ok(mount) => fills(ways, mount.0.path()),
            Err(why) => skip(test, format!("loop: {why}")),
        }
    }
}

#[test]
fn a_read_only_file_system_is_told_with_what_to_do() {
    let mount = match Mount::new(&["-t", "tmpfs", "-o", "ro,size=1m", "none"]) {
        Ok(mount) => mount,
        Err(why) => return skip("a_read_only_file_system_is_told_with_what_to_do", &why),
    };
    let mut store = super::super::best(8, Ways::ALL);
    let error = store.open(&mount.0.path().join("x"), Open::CreateData).expect_err("read-only");
    assert!(error.errno == Errno(libc::EROFS) && error.to_string().contains("read-only"), "{error}");
}

#[test]
fn what_is_absent_is_called_by_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = crate::best(1, Ways::ALL);
    let absent = folder.path().join("absent");
    let read = store.open(&absent, Open::ReadData).expect_err("it is not there").to_string();
    assert!(read.contains("moved or removed") && !read.contains("make the folder"), "{read}");
    for how in [Open::CreateData, Open::CreateJournal] {
        let made = store.open(&absent.join("x"), how).expect_err("there is no folder").to_string();
        assert!(made.contains("make the folder first"), "{made}");
    }
}
