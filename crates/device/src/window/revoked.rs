//! [`Revocable`]: windows that the kernel may take away while they are used.
//!
//! **Problem.** The kernel can revoke the mappings of a card's windows: with the card on older kernels, for a driver that claims it on newer
//! ones. The next access is a `SIGBUS`, which ends the process in the middle of whatever it did, with every other device of it in the
//! state it was in.
//!
//! **Solution.** A handler of `SIGBUS` that knows the windows. If the address lies in one of them, it maps ordinary memory over the
//! whole window, full of zeros, marks it as revoked, and returns: the access is repeated and succeeds, and who made it looks at the mark
//! and reports the loss. Any other bus error goes to whoever handled it before, or ends the process as ever.
//!
//! **Conditions.** The handler is installed with the first window and stays. Who installs a handler for `SIGBUS` later than that takes
//! it away from here, unless it passes on what it does not know.
//!
//! **Why it works.** The handler does one `mmap`, which is a bare system call, and stores into atomics; it neither allocates nor locks. A
//! store to a revoked window is repeated into the memory that replaces it, and so is lost, like one that was on the way to the card.

#![expect(unsafe_code, reason = "a signal handler that maps memory")]

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Windows that can be mapped at once by one process.
const MOST: usize = 64;

struct Slot {
    /// 0 is free, 1 is being taken or given back.
    address: AtomicUsize,
    bytes: AtomicUsize,
    revoked: AtomicBool,
}

static SLOTS: [Slot; MOST] =
    [const { Slot { address: AtomicUsize::new(0), bytes: AtomicUsize::new(0), revoked: AtomicBool::new(false) } };
        MOST];
const FREE: usize = 0;
const TAKEN: usize = 1;

/// The handler that was there before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// A window that the handler knows.
#[derive(Debug)]
pub(super) struct Revocable {
    slot: usize,
}

impl Revocable {
    /// Has the handler know a mapping of whole pages.
    pub(super) fn new(address: usize, bytes: usize) -> io::Result<Self> {
        install()?;
        let free = |slot: &Slot| {
            // Acquire: pairs with the Release of who gave it back.
            slot.address.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let Some(slot) = SLOTS.iter().position(free) else {
            return Err(io::Error::other(format!("this process has mapped {MOST} windows already")));
        };
        SLOTS[slot].bytes.store(bytes, Ordering::Relaxed);
        SLOTS[slot].revoked.store(false, Ordering::Relaxed);
        // Release: pairs with the Acquire of the handler, which then sees the length.
        SLOTS[slot].address.store(address, Ordering::Release);
        Ok(Self { slot })
    }

    /// Whether the kernel has taken it away.
    pub(super) fn is_revoked(&self) -> bool {
        // Relaxed: set by a handler that interrupts this very thread, or by that of another thread, whose access came before.
        SLOTS[self.slot].revoked.load(Ordering::Relaxed)
    }

    /// Has the handler forget it; before it is unmapped.
    pub(super) fn release(&self) {
        SLOTS[self.slot].address.store(FREE, Ordering::Release);
    }
}

fn install() -> io::Result<()> {
    // Another thread that comes meanwhile waits until it is done.
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let error = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
    let installed = INSTALLED.get_or_init(|| {
        // SAFETY: all zeros are a `sigaction` with the usual action and no flags.
        let (mut action, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handle as *const () as usize;
        // On the alternative stack where the thread has one: the fibers of the executive have theirs.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // What was there before is kept before the handler can need it.
        // SAFETY: only asks; `before` lives until the call returns.
        if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) } != 0 {
            return Err(error());
        }
        let _ = BEFORE.set(before);
        // SAFETY: the handler has the form that `SA_SIGINFO` wants, lives as long as the program, and does only what may be done
        // in a handler (see the head of this file).
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
        // Acquire: pairs with the Release in `new`.
        let (address, bytes) = (slot.address.load(Ordering::Acquire), slot.bytes.load(Ordering::Relaxed));
        if address > TAKEN && (address..address + bytes).contains(&fault) {
            slot.revoked.store(true, Ordering::Relaxed);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            // SAFETY: the range is a mapping of ours that is known here as long as it exists (`release` comes before its end), and no
            // references into it exist, only volatile accesses.
            let mapped = unsafe { libc::mmap(address as *mut _, bytes, access, flags, -1, 0) };
            if mapped != libc::MAP_FAILED {
                return;
            }
        }
    }
    pass_on(signal, info, context);
}

/// Lets whoever handled it before have it, or lets it end the process.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.get();
    match before.map(|before| (before.sa_sigaction, before.sa_flags & libc::SA_SIGINFO != 0)) {
        Some((handler, true)) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
            // SAFETY: the kernel had this address as a handler of this form.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        Some((handler, false)) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
            // SAFETY: as above, of the form without information.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
        _ => {
            // SAFETY: the usual action; the access is repeated when the handler returns, and ends the process.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    /// Maps a file of two pages and cuts it to nothing, which makes accesses the same bus errors as a window that is revoked.
    fn mapped_and_cut() -> (usize, usize) {
        let (file, bytes) = (tempfile::tempfile().expect("a file"), 8192);
        file.set_len(bytes as u64).expect("room");
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping, wherever the kernel likes; its result is checked.
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
        // SAFETY: within the mapping; the bus error that it makes is what the handler is for.
        let value = unsafe { word.read_volatile() };
        assert_eq!((value, revocable.is_revoked()), (0, true));
        // SAFETY: as above; the whole of it is memory now.
        unsafe { (address as *mut u32).write_volatile(7) };
        revocable.release();
        // SAFETY: the memory that has replaced the mapping, which nobody uses any more.
        unsafe { libc::munmap(address as *mut _, bytes) };
    }

    #[test]
    fn windows_are_given_back() {
        for _ in 0..2 * MOST {
            // Addresses that nobody accesses.
            Revocable::new(4096, 4096).expect("room").release();
        }
    }
}
