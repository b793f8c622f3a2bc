//! Sleeping on a word of memory and waking who sleeps there: the futex calls of Linux.
#![expect(unsafe_code, reason = "futex has no wrapper in std that takes an absolute time")]

use std::sync::atomic::AtomicU32;

use hairspring_exec_core::Moment;

/// Sleeps while the word holds `expected`, at most until `deadline` on `CLOCK_MONOTONIC`. May return for no reason:
/// callers look at the word again. Blocks; one system call.
pub(crate) fn sleep_while(word: &AtomicU32, expected: u32, deadline: Option<Moment>) {
    let until = deadline.map(|moment| libc::timespec {
        tv_sec: (moment.as_nanos() / 1_000_000_000).cast_signed(),
        tv_nsec: (moment.as_nanos() % 1_000_000_000).cast_signed(),
    });
    let until = until.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word and the time live until the call returns; FUTEX_WAIT_BITSET without CLOCK_REALTIME takes an absolute
    // CLOCK_MONOTONIC time.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            expected,
            until,
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        );
    }
}

/// Wakes one thread that sleeps on the word, if there is one. Does not block; one system call.
pub(crate) fn wake_one(word: &AtomicU32) {
    wake(word, 1);
}

#[cfg_attr(loom, expect(dead_code, reason = "the model of its only user has its own"))]
/// Wakes all threads that sleep on the word. Does not block; one system call.
pub(crate) fn wake_all(word: &AtomicU32) {
    wake(word, i32::MAX);
}

fn wake(word: &AtomicU32, most: i32) {
    // SAFETY: the word is live; the kernel only looks up who sleeps on its address.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, most);
    }
}
