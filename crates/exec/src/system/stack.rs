//! Where a thread's stack lies, and how much of a stack has ever been touched.
#![expect(unsafe_code, reason = "asks the C library for a thread's stack, and the kernel for its pages")]

/// A stack: its lowest address, without guard page, and its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StackExtent {
    pub(crate) low: usize,
    pub(crate) bytes: usize,
}

/// How much of a stack was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackUse {
    /// Its size. With threads it includes 64 KiB for what threads of the standard library need, and the C library may
    /// give a larger one that an ended thread had.
    pub bytes: usize,
    /// The most that can have been used: from the deepest page that was ever touched. With threads, what an ended
    /// thread used counts, too. Pages that the kernel has swapped out do not count; a program that locks its memory has
    /// none.
    pub used_bytes: usize,
}

/// The stack of the calling thread; none if the C library does not know it.
pub(crate) fn own_stack() -> Option<StackExtent> {
    // SAFETY: the structure is filled by the first call and freed by the last; the pointers are to live locals.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return None;
        }
        let (mut low, mut bytes) = (std::ptr::null_mut(), 0);
        let known = libc::pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut bytes) == 0;
        libc::pthread_attr_destroy(&raw mut attributes);
        known.then_some(StackExtent { low: low as usize, bytes })
    }
}

/// The size of a page.
pub(crate) fn page() -> usize {
    // SAFETY: sysconf of a constant is a plain read.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0).max(4096)
}

impl StackExtent {
    /// A stack between these addresses, whose lowest page is its guard.
    pub(crate) fn above_guard(low: usize, high: usize) -> Self {
        Self { low: low + page(), bytes: (high - low).saturating_sub(page()) }
    }

    /// Gives the whole pages of an unused stack back to the kernel; they read as zeros then. One system call.
    pub(crate) fn release_pages(self) {
        // The kernel would round the length up, and the bytes behind a stack in memory of the program are not the
        // stack's.
        let (low, high) = (self.low.next_multiple_of(page()), (self.low + self.bytes) & !(page() - 1));
        if low >= high {
            return;
        }
        // SAFETY: the pages belong to a stack without a fiber, on which nothing lies; they read as zeros from now on.
        // If the kernel refuses, they stay as they were.
        unsafe { libc::madvise(low as *mut libc::c_void, high - low, libc::MADV_DONTNEED) };
    }

    /// How much of it was used, by the pages that the kernel has given it. Reads nothing of the stack itself. Some
    /// system calls; none if the stack is gone.
    pub(crate) fn touched(self) -> Option<StackUse> {
        let page = page();
        let low = self.low.next_multiple_of(page);
        let high = self.low + self.bytes;
        let mut present = [0_u8; 64];
        let mut at = low;
        while at < high {
            let pages = (high - at).div_ceil(page).min(present.len());
            // SAFETY: the kernel writes a byte for each page to the array, which has as many, and returns an error if
            // some page is not mapped.
            let code = unsafe { libc::mincore(at as *mut libc::c_void, pages * page, present.as_mut_ptr()) };
            if code != 0 {
                return None;
            }
            if let Some(first) = present[..pages].iter().position(|&byte| byte & 1 == 1) {
                return Some(StackUse { bytes: self.bytes, used_bytes: high - (at + first * page) });
            }
            at += pages * page;
        }
        Some(StackUse { bytes: self.bytes, used_bytes: 0 })
    }
}
