//! The futex calls of Linux: sleeping on a word of memory, and waking the sleepers.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;

use hairspring_exec_core::Moment;
use rustix::thread::futex::{self, Flags, Timespec};

/// Sleeps while the word holds `expected`, at most until `deadline` on `CLOCK_MONOTONIC`. May return spuriously:
/// callers look at the word again. Blocks; one system call.
pub(crate) fn sleep_while(word: &AtomicU32, expected: u32, deadline: Option<Moment>) {
    let until = deadline.map(|moment| Timespec {
        tv_sec: (moment.as_nanos() / 1_000_000_000).cast_signed(),
        tv_nsec: (moment.as_nanos() % 1_000_000_000).cast_signed(),
    });
    // This call, unlike the plain one, takes an absolute time. The caller looks again whatever it returns.
    let _ = futex::wait_bitset(word, Flags::PRIVATE, expected, until.as_ref(), NonZeroU32::MAX);
}

/// Wakes one thread that sleeps on the word, if there is one. Does not block; one system call.
pub(crate) fn wake_one(word: &AtomicU32) {
    wake(word, 1);
}

#[cfg_attr(loom, expect(dead_code, reason = "the model of its only user has its own"))]
/// Wakes all threads that sleep on the word. Does not block; one system call.
pub(crate) fn wake_all(word: &AtomicU32) {
    wake(word, i32::MAX.unsigned_abs());
}

fn wake(word: &AtomicU32, most: u32) {
    // The word is mapped, so this cannot fail.
    let _ = futex::wake(word, Flags::PRIVATE, most);
}
