//! Promises that only show in a separate process: under an injector of errors, or with fewer permissions.

use std::process::Command;

use super::*;

/// Set in the child.
const INSIDE: &str = "HAIRSPRING_STORE_CHILD";

/// Runs a test of this file once more, alone, under a command; true in the child itself, which then does the test.
/// The child's output is printed again.
#[track_caller]
fn inside(test: &str, wrapper: &[&str]) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    match Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            skip(test, format!("{}: {}", wrapper[0], String::from_utf8_lossy(&output.stderr).trim()));
            return false;
        }
        Err(error) => {
            skip(test, format!("{}: {error}", wrapper[0]));
            return false;
        }
    }
    let program = std::env::current_exe().expect("the path of this test");
    let path = format!("tests::child::{test}");
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg(program).args(["--exact", &path, "--nocapture", "--test-threads=1"]);
    let output = command.env(INSIDE, "1").output().expect("it ran just now");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    for line in said.lines().filter_map(|line| line.strip_prefix("test-skip: ")) {
        let (name, reason) = line.split_once(": ").unwrap_or((test, line));
        skip(name, reason);
    }
    false
}

fn five_writes_and_a_sync() -> Vec<Result<u64, Errno>> {
    let mut bench = Bench::new(Box::new(PlainStore::new(8, Ways::ALL)), temporary());
    let file = bench.open("x", Open::CreateData);
    let mut ops: Vec<Op> = (0..5).map(|index| Op::Write(file, index * 4096, bench.piece(0, 4096))).collect();
    ops.push(Op::Sync(file));
    bench.all(&ops)
}

const WHOLE: Result<u64, Errno> = Ok(4096);

#[test]
fn an_error_of_a_real_write_is_reported_for_that_write_alone() {
    let inject = ["strace", "-f", "-o", "/dev/null", "-e", "inject=pwrite64:error=EIO:when=3"];
    if inside("an_error_of_a_real_write_is_reported_for_that_write_alone", &inject) {
        let io = Err(Errno(libc::EIO));
        assert_eq!(five_writes_and_a_sync(), [WHOLE, WHOLE, io, WHOLE, WHOLE, Ok(0)]);
    }
}

#[test]
fn a_real_write_that_is_interrupted_is_repeated() {
    let inject = ["strace", "-f", "-o", "/dev/null", "-e", "inject=pwrite64:error=EINTR:when=2..4"];
    if inside("a_real_write_that_is_interrupted_is_repeated", &inject) {
        assert_eq!(five_writes_and_a_sync(), [WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, Ok(0)]);
    }
}

#[test]
fn an_error_of_a_real_sync_is_reported() {
    let inject = ["strace", "-f", "-o", "/dev/null", "-e", "inject=fdatasync:error=EIO:when=1"];
    if inside("an_error_of_a_real_sync_is_reported", &inject) {
        assert_eq!(five_writes_and_a_sync()[5], Err(Errno(libc::EIO)));
    }
}

#[test]
fn without_io_uring_plain_calls_are_used_and_the_reason_is_told() {
    let inject = ["strace", "-f", "-o", "/dev/null", "-e", "inject=io_uring_setup:error=EPERM"];
    if inside("without_io_uring_plain_calls_are_used_and_the_reason_is_told", &inject) {
        let store = crate::best(8, Ways::ALL);
        let fallbacks = store.fallbacks();
        assert_eq!((in_use(&fallbacks, "io_uring"), in_use(&fallbacks, "pwrite")), (Some(false), Some(true)));
        let why = fallback(&fallbacks, "io_uring").and_then(|fallback| fallback.refused.clone()).expect("a reason");
        assert!(why.contains("not permitted"), "{why}");
    }
}

#[test]
fn where_no_more_memory_may_be_locked_buffers_go_unregistered_and_the_limit_is_named() {
    let test = "where_no_more_memory_may_be_locked_buffers_go_unregistered_and_the_limit_is_named";
    let less = ["prlimit", "--memlock=65536", "setpriv", "--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock"];
    if !inside(test, &less) {
        return;
    }
    let Ok(store) = UringStore::new(8, Ways::ALL) else { return skip(test, "no io_uring here") };
    let mut bench = Bench::new(Box::new(store), temporary());
    let fallbacks = bench.store.fallbacks();
    let why = fallback(&fallbacks, "registered_buffers").and_then(|fallback| fallback.refused.clone());
    assert!(why.as_ref().is_some_and(|why| why.contains("ulimit -l")), "{why:?}");
    bench.fill(0, &pattern(4096));
    let file = bench.open("x", Open::CreateData);
    assert_eq!(bench.one(Op::Write(file, 0, bench.piece(0, 4096))), WHOLE);
    assert_eq!(bench.content("x"), pattern(4096));
}

/// A ring of 1 GiB is more than one buffer to the kernel. With the limit in the middle the kernel registered the first
/// buffer and returned success; transfers of the rest, sent as if it were registered, failed, and the target was given
/// up.
#[test]
fn where_the_limit_lies_in_the_middle_the_rest_of_a_memory_goes_unregistered() {
    let test = "where_the_limit_lies_in_the_middle_the_rest_of_a_memory_goes_unregistered";
    let less = ["prlimit", "--memlock=65536", "setpriv", "--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock"];
    if !inside(test, &less) {
        return;
    }
    let Ok(mut store) = UringStore::new(8, Ways::ALL) else { return skip(test, "no io_uring here") };
    store.buffers_mut().cut_shorter(32 << 10, 4096);
    let mut bench = Bench::new(Box::new(store), temporary());
    let fallbacks = bench.store.fallbacks();
    let why =
        fallback(&fallbacks, "registered_buffers").and_then(|fallback| fallback.refused.clone()).expect("half of it");
    assert!(why.contains("only ") && why.contains("ulimit -l"), "{why}");
    bench.fill(0, &pattern(SIZE));
    let file = bench.open("x", Open::CreateData);
    let ops: Vec<Op> =
        (0..16).map(|block| Op::Write(file, block * 4096, bench.piece(block as usize * 4096, 4096))).collect();
    let results: Vec<_> = ops.chunks(8).flat_map(|some| bench.all(some)).collect();
    assert_eq!(results, [WHOLE; 16]);
    // The second half of the addresses maps the same memory again.
    assert_eq!(bench.one(Op::Write(file, SIZE as u64, bench.piece(2 * SIZE - 4096, 4096))), WHOLE);
    assert_eq!(bench.content("x"), [&pattern(SIZE)[..], &pattern(SIZE)[SIZE - 4096..]].concat());
}

#[test]
fn a_sync_of_folders_that_is_not_offered_is_a_rung_and_no_error() {
    let inject = ["strace", "-f", "-o", "/dev/null", "-e", "inject=fsync:error=EINVAL:when=1"];
    if inside("a_sync_of_folders_that_is_not_offered_is_a_rung_and_no_error", &inject) {
        let mut bench = Bench::new(Box::new(PlainStore::new(8, Ways::ALL)), temporary());
        let folder = bench.folder.path().to_owned();
        bench.store.sync_folder(&folder).expect("not offered is no error");
        assert_eq!(in_use(&bench.store.fallbacks(), "folder_sync"), Some(false));
    }
}

#[test]
fn a_small_file_that_cannot_be_put_leaves_the_old_one_and_nothing_else() {
    let test = "a_small_file_that_cannot_be_put_leaves_the_old_one_and_nothing_else";
    let inject = ["strace", "-f", "-o", "/dev/null", "-e", "inject=/rename.*:error=EIO:when=2"];
    if inside(test, &inject) {
        let mut bench = Bench::new(Box::new(PlainStore::new(8, Ways::ALL)), temporary());
        let path = bench.path("x");
        bench.store.put(&path, b"old").expect("the first");
        let error = bench.store.put(&path, b"new").expect_err("the second");
        assert!(error.to_string().contains("the device reports an error"), "{error}");
        assert_eq!(std::fs::read(&path).expect("a file"), b"old");
        assert_eq!(count(bench.folder.path()), 1);
    }
}
