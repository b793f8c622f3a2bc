//! Limits and signals of the system, and how the command handles them, all in this file.
//!
//! | event | by default | here |
//! |---|---|---|
//! | a file reaches its limit (`ulimit -f`, `LimitFSIZE=`) | SIGXFSZ ends the process | the write fails with EFBIG |
//! | the reader of a pipe ended | SIGPIPE ends the process | ignored; [`print`](crate::output::print) ends quietly |
//! | the system refuses memory (`ulimit -v`, `LimitAS=`) | Rust aborts the process | one line, and exit code 1 |
//! | any other limit | a call of the system fails | [`remedy`] is added to its error |
//!
//! Programs that `run` and `watch` start get the system's defaults: a handler does not outlive the start of another
//! program.

#![expect(unsafe_code, reason = "the program's allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::borrow::Cow;
use std::io::Write as _;

use crate::exit::Exit;

/// Sets up the process, for every command. Call it once, before anything else.
pub(crate) fn begin() {
    crate::host::ignore_the_limit_of_files();
}

/// Limits of a process: the number of the system's error, a word of an error text that names the limit already, and the
/// remedy.
const LIMITS: [(i32, &str, &str); 6] = [
    (
        27,
        "ulimit -f",
        "a limit (ulimit -f, LimitFSIZE=) or the file system takes no file that large: raise the limit, or write less",
    ),
    (
        12,
        "ulimit -v",
        "no memory is left: raise the limit (ulimit -v, LimitAS=, that of the control group), or ask for less",
    ),
    (24, "ulimit -n", "no descriptors are left: raise the limit (ulimit -n, LimitNOFILE=)"),
    (23, "fs.file-max", "the system has no descriptors left: close other programs, or raise fs.file-max"),
    (
        11,
        "ulimit -u",
        "the system refuses for now: raise the limits of threads and of memory (ulimit -u, ulimit -v), or try again",
    ),
    (28, "free ", "no space or no inodes are left on the device: free some (df, df -i)"),
];

/// Adds a remedy to an error text that was caused by a limit of the system and does not name it.
pub(crate) fn remedy(text: &str) -> Cow<'_, str> {
    let met = LIMITS.iter().find(|(number, ..)| text.contains(&format!("(os error {number})")));
    match met {
        Some((_, word, remedy)) if !text.contains(word) => format!("{text}; {remedy}").into(),
        _ => text.into(),
    }
}

/// The system's allocator. If an allocation fails, the process ends with a line that gives the reason: Rust would abort
/// it.
struct Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

// SAFETY: every call goes to the system's allocator with the caller's arguments, and its answer goes back unchanged, if
// there is one.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the rules of `alloc`, which are those of the system's allocator.
        unsafe { System.alloc(layout) }.or_end(layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller got the place from this allocator, and so from the system's.
        unsafe { System.dealloc(place, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        unsafe { System.alloc_zeroed(layout) }.or_end(layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as for `dealloc` and `alloc`.
        unsafe { System.realloc(place, layout, size) }.or_end(size)
    }
}

/// Memory, or the end of the process.
trait OrEnd {
    fn or_end(self, bytes: usize) -> Self;
}

impl OrEnd for *mut u8 {
    #[inline]
    fn or_end(self, bytes: usize) -> Self {
        if self.is_null() { without_memory(bytes) } else { self }
    }
}

/// Ends the process without an allocation.
#[cold]
fn without_memory(bytes: usize) -> ! {
    // A failure here cannot be reported anywhere.
    let _ = writeln!(
        std::io::stderr(),
        "hairspring: failed to get {bytes} bytes of memory: the system has none for this process; raise the limit (ulimit -v, LimitAS=, that \
         of the control group), or ask for less"
    );
    signal_hook::low_level::exit(i32::from(Exit::Failed.code()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_limit_says_what_to_do_and_no_other_error_does() {
        for (number, word, _) in LIMITS {
            let error = std::io::Error::from_raw_os_error(number);
            let told = remedy(&format!("failed to write x: {error}")).into_owned();
            assert!(told.len() > error.to_string().len() + 40, "{told}");
            assert_eq!(remedy(&format!("{error}; {word}")), format!("{error}; {word}"), "it says so already");
        }
        assert_eq!(remedy("failed to open x: No such file or directory (os error 2)").matches(';').count(), 0);
    }
}
