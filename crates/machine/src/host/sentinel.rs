//! The rseq sentinel: shows without a system call whether this thread has been off its CPU.
//!
//! # Problem
//! A polling loop sees a gap in time, but not whether the scheduler ran another thread, or an interrupt or the
//! hypervisor took the time.
//!
//! # Solution
//! Restartable sequences (rseq, Linux 4.18, registered for every thread by glibc since 2.35) let a thread point
//! `rseq_cs` at the description of a critical section. Whenever the thread was preempted, migrated or given a signal
//! and comes back to user code *outside* that section, the kernel clears the pointer. We point it at a section that is
//! never executed: as long as the pointer stands, the thread has not been off its CPU.
//!
//! ```text
//!   arm ──► pointer set ──(scheduled out, migrated, signal)──► pointer null ──► `intact` is false ──► arm again
//! ```
//!
//! # Conditions
//! * The description must be valid: version 0, the abort address outside the section, preceded by the signature with
//!   which the thread is registered. Else the kernel ends the process with SIGSEGV.
//! * A signal clears it too: a handled signal looks like a preemption.
//! * The pointer must be null again before the code that holds the description could be unloaded; `disarm` sees to
//!   that.
//!
//! # Why it works
//! The kernel looks at `rseq_cs` on its way back to user code after each of these events (`rseq_handle_notify_resume`),
//! and after no others; an interrupt that returns straight to the thread leaves it alone. The method was tried against
//! `ru_nivcsw`: see the tests.

use std::sync::atomic::{AtomicI32, AtomicIsize, AtomicU64, Ordering};

use super::arch;
use crate::Cpu;

/// Description of a critical section, as the kernel reads it (`struct rseq_cs`).
#[repr(C, align(32))]
pub(super) struct Descriptor {
    version: u32,
    flags: u32,
    start: unsafe extern "C" fn(),
    length: u64,
    abort: unsafe extern "C" fn(),
}

impl Descriptor {
    pub(super) const fn new(start: unsafe extern "C" fn(), length: u64, abort: unsafe extern "C" fn()) -> Self {
        Self { version: 0, flags: 0, start, length, abort }
    }
}

/// The head of the area that a thread shares with the kernel (`struct rseq`).
#[repr(C, align(32))]
struct Area {
    _cpu_id_start: u32,
    /// Negative while the thread is not registered.
    cpu_id: AtomicI32,
    section: AtomicU64,
}

/// The offset of the area from the thread pointer has not been looked up yet. Odd, unlike any offset, so that one test
/// distinguishes them.
const UNKNOWN: isize = 1;
/// This process has no rseq: an old glibc or kernel, or switched off. Odd, too.
const NONE: isize = 3;

/// Where the area lies, seen from the thread pointer; the same in every thread of the process.
static OFFSET: AtomicIsize = AtomicIsize::new(UNKNOWN);

/// The area of the calling thread, if the process has such areas. It is all zeros or negative if the thread is not
/// registered.
#[inline(always)]
fn area() -> Option<&'static Area> {
    // Relaxed: the value is a constant of the process, computed by the first caller; nothing else depends on it.
    let mut offset = OFFSET.load(Ordering::Relaxed);
    if offset & 1 != 0 {
        offset = find_offset();
        if offset == NONE {
            return None;
        }
    }
    // SAFETY: glibc promises (2.35 and later, `__rseq_size` > 0, checked in `find_offset`) that the area of every
    // thread lies at this offset from its thread pointer, aligned to 32 bytes, for as long as the thread lives. The
    // reference does not leave this file and is used at once on the same thread; the kernel, the only other writer,
    // acts like an interrupt on this thread, for which atomics are enough.
    Some(unsafe { &*arch::thread_pointer().offset(offset).cast::<Area>() })
}

/// The same if the kernel knows of it.
#[inline(always)]
fn registered() -> Option<&'static Area> {
    area().filter(|area| area.cpu_id.load(Ordering::Relaxed) >= 0)
}

#[cold]
fn find_offset() -> isize {
    if OFFSET.load(Ordering::Relaxed) == NONE {
        return NONE;
    }
    let symbol = |name: &std::ffi::CStr| {
        // SAFETY: dlsym only reads the NUL-terminated name; RTLD_DEFAULT is always a valid handle.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    };
    // SAFETY: glibc declares them `extern const ptrdiff_t` and `extern const unsigned int`, set before main.
    let (offset, size) =
        unsafe { (symbol(c"__rseq_offset").cast::<isize>().as_ref(), symbol(c"__rseq_size").cast::<u32>().as_ref()) };
    let found = offset_of_areas(offset.copied(), size.copied());
    OFFSET.store(found, Ordering::Relaxed);
    found
}

/// The offset by glibc's two symbols; `NONE` if it has none of them, or has registered nothing.
fn offset_of_areas(offset: Option<isize>, size: Option<u32>) -> isize {
    match (offset, size) {
        (Some(offset), Some(1..)) if offset & 1 == 0 => offset,
        _ => NONE,
    }
}

/// Sets the sentinel; false if this thread cannot have one.
#[inline(always)]
pub(super) fn arm() -> bool {
    let Some(area) = registered() else { return false };
    // Relaxed: the kernel reads the word on this very CPU, in program order.
    area.section.store(&raw const arch::SENTINEL as u64, Ordering::Relaxed);
    true
}

/// Whether the thread has stayed on its CPU since `arm`.
#[inline(always)]
pub(super) fn intact() -> bool {
    area().is_some_and(|area| area.section.load(Ordering::Relaxed) != 0)
}

/// Takes the sentinel away.
#[inline(always)]
pub(super) fn disarm() {
    if let Some(area) = area() {
        area.section.store(0, Ordering::Relaxed);
    }
}

/// The CPU of this thread, as the kernel left it in the area.
#[inline(always)]
pub(super) fn cpu() -> Option<Cpu> {
    let id = registered()?.cpu_id.load(Ordering::Relaxed);
    u32::try_from(id).ok().map(Cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, Machine};

    #[test]
    fn the_structures_have_the_layout_that_the_kernel_reads() {
        assert_eq!(std::mem::size_of::<Descriptor>(), 32);
        assert_eq!(std::mem::align_of::<Descriptor>(), 32);
        assert_eq!(std::mem::offset_of!(Descriptor, start), 8);
        assert_eq!(std::mem::offset_of!(Descriptor, abort), 24);
        assert_eq!(std::mem::offset_of!(Area, cpu_id), 4);
        assert_eq!(std::mem::offset_of!(Area, section), 8);
    }

    #[test]
    fn areas_lie_where_the_c_library_says_if_it_has_registered_them() {
        for (offset, size, expected) in [
            (Some(64), Some(20), 64),
            (Some(-160), Some(32), -160),
            (Some(64), Some(0), NONE),
            (Some(5), Some(20), NONE),
            (None, Some(20), NONE),
            (Some(64), None, NONE),
            (None, None, NONE),
        ] {
            assert_eq!(offset_of_areas(offset, size), expected, "{offset:?} {size:?}");
        }
    }

    /// Whether the C library has registered its threads for rseq.
    fn is_registered() -> bool {
        // SAFETY: dlsym only reads the name; glibc declares the variable `extern const unsigned int`.
        let size = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>().as_ref() };
        size.is_some_and(|size| *size > 0)
    }

    #[test]
    fn every_thread_has_a_sentinel_and_knows_its_cpu_if_the_c_library_registered_it() {
        let look = || {
            let armed = Host.sentinel_arm();
            let stood = (0..1_000).any(|_| Host.sentinel_arm() && Host.sentinel_intact());
            Host.sentinel_disarm();
            assert!(!Host.sentinel_intact());
            let asked = || {
                let mut number: libc::c_uint = 0;
                // SAFETY: the call writes one number to the address given, which is that of `number`; two addresses may
                // be null.
                let result = unsafe {
                    libc::syscall(
                        libc::SYS_getcpu,
                        &raw mut number,
                        std::ptr::null_mut::<libc::c_uint>(),
                        std::ptr::null_mut::<libc::c_void>(),
                    )
                };
                (result == 0).then_some(Cpu(number))
            };
            // The thread can be moved between two looks.
            let agree = (0..1_000).any(|_| Host.cpu().is_some() && Host.cpu() == asked());
            [armed, stood, agree, Host.cpu().is_some()]
        };
        let expected = [is_registered(); 4];
        assert_eq!(look(), expected);
        assert_eq!(std::thread::spawn(look).join().expect("it ends well"), expected);
    }

    /// The least time of some rounds of a hundred calls.
    fn least(call: impl Fn()) -> std::time::Duration {
        let round = |_| {
            let start = std::time::Instant::now();
            (0..100).for_each(|_| call());
            start.elapsed()
        };
        (0..300).map(round).min().expect("some were made")
    }

    #[test]
    fn a_look_at_the_sentinel_does_not_search_for_it_again() {
        if !is_registered() {
            let test = "host::sentinel::tests::a_look_at_the_sentinel_does_not_search_for_it_again";
            return testing::skip(test, "this kernel or C library has no rseq");
        }
        let look = least(|| {
            std::hint::black_box(intact());
        });
        let search = least(|| {
            std::hint::black_box(find_offset());
        });
        assert!(look * 2 < search, "{look:?} against {search:?}");
    }
}
