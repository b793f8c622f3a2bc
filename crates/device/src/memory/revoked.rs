//! [`Revocable`]: mappings that the kernel may revoke while they are used.
//!
//! **Problem.** The kernel can revoke the mapping of a card's window (with the card on older kernels, for a driver that
//! claims it on newer ones), and any process with write permission can truncate the file of a window, a board, a lock
//! or a signal. The next access is a `SIGBUS`, which ends the process at any point and leaves all its devices as they
//! were.
//!
//! **Solution.** A handler of `SIGBUS` that knows the mappings. If the address lies in one of them, the handler maps
//! zeroed anonymous memory over the whole mapping, marks it as revoked, and returns. The access is repeated and
//! succeeds; the code that made it then looks at the mark and reports the loss. Any other bus error goes to the handler
//! that was there before, or ends the process as usual.
//!
//! **Conditions.** The handler is installed with the first mapping and stays. A handler of `SIGBUS` that is installed
//! later replaces it, unless the later one passes unknown faults on.
//!
//! **Why it works.** The handler makes one `mmap`, which is a bare system call, and stores into atomics; it neither
//! allocates nor locks. Place and length of a mapping are one word, so the handler never takes the length of one
//! mapping for that of another. A store to a revoked mapping is repeated into the memory that replaces it, and is lost,
//! like one that was on the way to the card.

#![expect(unsafe_code, reason = "a signal handler that maps memory")]

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Mappings that one process can have at once: windows, boards, locks and signals together.
pub(crate) const MOST: usize = 256;

/// Bits of a slot's word that hold the number of pages; the rest holds the number of the first page.
const COUNT_BITS: u32 = 19;
/// A page, as slots count them. The kernel's own may be larger, which makes a mapping no shorter.
const PAGE: usize = 4096;

struct Slot {
    /// `FREE`, `TAKEN`, or address and length of a mapping as in `packed`.
    range: AtomicU64,
    revoked: AtomicBool,
}

static SLOTS: [Slot; MOST] = [const { Slot { range: AtomicU64::new(FREE), revoked: AtomicBool::new(false) } }; MOST];
const FREE: u64 = 0;
/// Being filled. No mapping has this value: page 0 is never mapped.
const TAKEN: u64 = 1;

/// The handler that was there before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Address and length of a mapping in one word; `None` if they do not fit.
fn packed(address: usize, bytes: usize) -> Option<u64> {
    let (first, count) = ((address / PAGE) as u64, bytes.div_ceil(PAGE) as u64);
    let fits = address.is_multiple_of(PAGE) && first > 0 && first >> (u64::BITS - COUNT_BITS) == 0;
    (fits && count >> COUNT_BITS == 0).then_some(first << COUNT_BITS | count)
}

/// The address and the length in bytes, whole pages, of a slot's word.
fn unpacked(range: u64) -> (usize, usize) {
    ((range >> COUNT_BITS) as usize * PAGE, (range & ((1 << COUNT_BITS) - 1)) as usize * PAGE)
}

/// A mapping registered with the handler.
#[derive(Debug)]
pub(crate) struct Revocable {
    slot: usize,
}

impl Revocable {
    /// Registers a mapping with the handler.
    pub(crate) fn new(address: usize, bytes: usize) -> io::Result<Self> {
        install()?;
        let Some(range) = packed(address, bytes) else {
            return Err(io::Error::other(format!(
                "{bytes} bytes at {address:#x} are not a mapping that can be watched"
            )));
        };
        let free = |slot: &Slot| {
            // Acquire: pairs with the Release of `release`.
            slot.range.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let Some(slot) = SLOTS.iter().position(free) else {
            return Err(io::Error::other(format!(
                "this process has {MOST} mappings of windows, boards, locks and signals"
            )));
        };
        SLOTS[slot].revoked.store(false, Ordering::Relaxed);
        // Release: the handler that finds the range must not have its mark cleared afterwards.
        SLOTS[slot].range.store(range, Ordering::Release);
        Ok(Self { slot })
    }

    /// Whether the kernel has revoked it. Correct after an access to the mapping, and final.
    #[inline]
    pub(crate) fn is_revoked(&self) -> bool {
        // Relaxed: set by a handler that interrupts this very thread, or by that of another thread, whose access came
        // earlier.
        SLOTS[self.slot].revoked.load(Ordering::Relaxed)
    }

    /// Makes the handler forget it; called before it is unmapped.
    pub(crate) fn release(&self) {
        SLOTS[self.slot].range.store(FREE, Ordering::Release);
    }
}

fn install() -> io::Result<()> {
    // Another thread that arrives meanwhile waits until it is done.
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let error = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
    let installed = INSTALLED.get_or_init(|| {
        // SAFETY: all zeros are a `sigaction` with the default action and no flags.
        let (mut action, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handle as *const () as usize;
        // Use the alternative stack of threads that have one, as the fibers of the executive do.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // The old action is stored before the handler can need it. SAFETY: only queries; `before` lives until the call
        // returns.
        if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) } != 0 {
            return Err(error());
        }
        let _ = BEFORE.set(before);
        // SAFETY: the handler has the signature that `SA_SIGINFO` requires, lives as long as the program, and does only
        // what a handler may do (see the head of this file).
        match unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(error()),
        }
    });
    installed.map_err(io::Error::from_raw_os_error)
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a `siginfo_t` of a fault, which has an address.
    let fault = unsafe { (*info).si_addr() } as usize;
    for slot in &SLOTS {
        // Acquire: pairs with the Release in `new`. `FREE` and `TAKEN` contain no address: page 0 is never mapped.
        let (address, bytes) = unpacked(slot.range.load(Ordering::Acquire));
        if address > 0 && (address..address + bytes).contains(&fault) {
            slot.revoked.store(true, Ordering::Relaxed);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            // SAFETY: the range is a mapping of ours that is known here as long as it exists (`release` comes before
            // its end). It is accessed only by volatile accesses and atomics, for which zeros are a valid value.
            let mapped = unsafe { libc::mmap(address as *mut _, bytes, access, flags, -1, 0) };
            if mapped != libc::MAP_FAILED {
                return;
            }
        }
    }
    pass_on(signal, info, context);
}

/// Passes the signal to the handler before ours, or lets it end the process.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.get();
    match before.map(|before| (before.sa_sigaction, before.sa_flags & libc::SA_SIGINFO != 0)) {
        Some((handler, true)) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
            // SAFETY: the kernel returned this address as a handler with this signature.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        Some((handler, false)) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
            // SAFETY: as above, with the signature without information.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
        _ => {
            // SAFETY: the default action; the access is repeated when the handler returns, and ends the process.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    /// Maps a file of two pages and truncates it to zero: accesses cause the same bus errors as those to a revoked
    /// window.
    fn mapped_and_cut() -> (usize, usize) {
        let (file, bytes) = (tempfile::tempfile().expect("a file"), 8192);
        file.set_len(bytes as u64).expect("room");
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice; its result is checked.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, file.as_raw_fd(), 0) };
        assert_ne!(address, libc::MAP_FAILED);
        file.set_len(0).expect("cut");
        (address as usize, bytes)
    }

    #[test]
    fn an_access_to_a_window_that_was_taken_away_returns_and_is_told() {
        let (address, bytes) = mapped_and_cut();
        let revocable = Revocable::new(address, bytes).expect("room for one");
        assert!(!revocable.is_revoked());
        let word = (address + 4096 + 8) as *mut u32;
        // SAFETY: within the mapping; the handler catches the bus error.
        let value = unsafe { word.read_volatile() };
        assert_eq!((value, revocable.is_revoked()), (0, true));
        // SAFETY: as above; all of it is ordinary memory now.
        unsafe { (address as *mut u32).write_volatile(7) };
        revocable.release();
        // SAFETY: the memory that has replaced the mapping, which is not used any more.
        unsafe { libc::munmap(address as *mut _, bytes) };
    }

    #[test]
    fn slots_are_given_back() {
        for _ in 0..2 * MOST {
            // Addresses that are never accessed.
            Revocable::new(4096, 4096).expect("room").release();
        }
    }

    #[test]
    fn place_and_length_are_one_word() {
        let gib = 1 << 30;
        for (address, bytes, whole) in
            [(4096, 1, 4096), (0x7fff_ffff_f000, gib, gib), ((1 << 56) - 4096, 8193, 12288), (8192, 4096, 4096)]
        {
            assert_eq!(packed(address, bytes).map(unpacked), Some((address, whole)), "{bytes} at {address:#x}");
        }
        for (address, bytes) in [(0, 4096), (4097, 4096), (4096, 1 << 31), (usize::MAX - 4095, 4096)] {
            assert_eq!(packed(address, bytes), None, "{bytes} at {address:#x}");
        }
        assert_eq!([unpacked(FREE).0, unpacked(TAKEN).0], [0, 0]);
    }
}
