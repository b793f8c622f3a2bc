//! Error codes with their names and sentences, and the guard through which every call passes.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Success.
pub const HS_OK: c_int = 0;
/// A pointer is NULL that must not be, or is not aligned for its type.
pub const HS_E_NULL: c_int = -1;
/// Not a handle of this kind: NULL, a handle of another kind, or other memory.
pub const HS_E_HANDLE: c_int = -2;
/// The handle has been freed.
pub const HS_E_FREED: c_int = -3;
/// The handle is in use by another call, in another thread.
pub const HS_E_BUSY: c_int = -4;
/// The handle belongs to another thread, or to the process that forked this one.
pub const HS_E_THREAD: c_int = -5;
/// The number is NaN.
pub const HS_E_NAN: c_int = -6;
/// The number is negative.
pub const HS_E_NEGATIVE: c_int = -7;
/// The number is outside its range; a delay of more than 100 days counts as a mistake.
pub const HS_E_RANGE: c_int = -8;
/// A delay of more than 100 ms is not polled; use a long delay.
pub const HS_E_TOO_LONG_TO_POLL: c_int = -9;
/// The instants belong to different epochs or time bases.
pub const HS_E_EPOCH: c_int = -10;
/// The delay was cancelled, or another task broke off the wait.
pub const HS_E_CANCELLED: c_int = -11;
/// The counter and the kernel's clock did not advance together.
pub const HS_E_CALIBRATION: c_int = -12;
/// A file could not be opened, read or mapped.
pub const HS_E_IO: c_int = -13;
/// A text is not UTF-8.
pub const HS_E_TEXT: c_int = -14;
/// A file is not a sheet.
pub const HS_E_SHEET: c_int = -15;
/// The command `hairspring` could not be run, or failed.
pub const HS_E_COMMAND: c_int = -16;
/// The window is read-only.
pub const HS_E_READ_ONLY: c_int = -17;
/// A span was ended that had not begun.
pub const HS_E_ORDER: c_int = -18;
/// Nothing has this name or number.
pub const HS_E_NOT_FOUND: c_int = -19;
/// The system refused to restore a setting.
pub const HS_E_REFUSED: c_int = -20;
/// The limit of a wait passed first.
pub const HS_E_TIMED_OUT: c_int = -21;
/// The calling task has been killed, or the run ends; it must return from its function.
pub const HS_E_KILLED: c_int = -22;
/// The call is not for this caller: a task, a procedure, or the program around them.
pub const HS_E_CALLER: c_int = -23;
/// No room: the queue, the envelopes or the ring are full.
pub const HS_E_FULL: c_int = -24;
/// Nothing to take: no free block, or no sender that waits.
pub const HS_E_EMPTY: c_int = -25;
/// The task, block or ticker is in another state: idle, in a run, suspended, not in use, not started.
pub const HS_E_STATE: c_int = -26;
/// A count is at its limit: starts, a kept wake, units, nested reservations.
pub const HS_E_OVERFLOW: c_int = -27;
/// The wait would never end: what is waited for waits for the caller.
pub const HS_E_DEADLOCK: c_int = -28;
/// The resource or mutex belongs to another task, or to none.
pub const HS_E_NOT_OWNER: c_int = -29;
/// A task is more urgent than the ceiling of the resource.
pub const HS_E_CEILING: c_int = -30;
/// The receiver was killed, or returned, without an acknowledgement.
pub const HS_E_NOT_ACKNOWLEDGED: c_int = -31;
/// The executive has as many objects of this kind as it may, or the system has no more threads.
pub const HS_E_TOO_MANY: c_int = -32;
/// A bug in the library; please report it.
pub const HS_E_PANIC: c_int = -99;

/// The version of the header, first part. hs_version() has that of the library.
pub const HS_VERSION_MAJOR: c_int = 0;
/// Second part.
pub const HS_VERSION_MINOR: c_int = 1;
/// Third part.
pub const HS_VERSION_PATCH: c_int = 0;

/// Stands for an absent time: a figure that was not taken, or a reading through an invalid handle.
pub const HS_ABSENT_NS: i64 = i64::MIN;

/// Code, name, meaning.
const CODES: [(c_int, &CStr, &CStr); 34] = [
    (HS_OK, c"OK", c"no error"),
    (HS_E_NULL, c"NULL", c"a pointer that is NULL or not aligned for its type"),
    (HS_E_HANDLE, c"HANDLE", c"not a handle of this kind"),
    (HS_E_FREED, c"FREED", c"a handle that has been freed"),
    (HS_E_BUSY, c"BUSY", c"a handle in use by another thread"),
    (HS_E_THREAD, c"THREAD", c"a handle that belongs to another thread"),
    (HS_E_NAN, c"NAN", c"not a number"),
    (HS_E_NEGATIVE, c"NEGATIVE", c"a negative number"),
    (HS_E_RANGE, c"RANGE", c"a number outside its range"),
    (HS_E_TOO_LONG_TO_POLL, c"TOO_LONG_TO_POLL", c"a delay too long to poll"),
    (HS_E_EPOCH, c"EPOCH", c"instants of different epochs"),
    (HS_E_CANCELLED, c"CANCELLED", c"a delay or wait that was cancelled"),
    (HS_E_CALIBRATION, c"CALIBRATION", c"a counter that cannot be calibrated"),
    (HS_E_IO, c"IO", c"a file that cannot be used"),
    (HS_E_TEXT, c"TEXT", c"a text that is not UTF-8"),
    (HS_E_SHEET, c"SHEET", c"a file that is not a sheet"),
    (HS_E_COMMAND, c"COMMAND", c"the command failed"),
    (HS_E_READ_ONLY, c"READ_ONLY", c"a read-only window"),
    (HS_E_ORDER, c"ORDER", c"a span that has not begun"),
    (HS_E_NOT_FOUND, c"NOT_FOUND", c"nothing under this name"),
    (HS_E_REFUSED, c"REFUSED", c"a setting that the system does not restore"),
    (HS_E_TIMED_OUT, c"TIMED_OUT", c"a limit that passed first"),
    (HS_E_KILLED, c"KILLED", c"a task that has been killed"),
    (HS_E_CALLER, c"CALLER", c"a call that is not for this caller"),
    (HS_E_FULL, c"FULL", c"no room"),
    (HS_E_EMPTY, c"EMPTY", c"nothing to take"),
    (HS_E_STATE, c"STATE", c"an object in another state"),
    (HS_E_OVERFLOW, c"OVERFLOW", c"a count at its limit"),
    (HS_E_DEADLOCK, c"DEADLOCK", c"a wait that would never end"),
    (HS_E_NOT_OWNER, c"NOT_OWNER", c"a resource of another task"),
    (HS_E_CEILING, c"CEILING", c"a task above the ceiling"),
    (HS_E_NOT_ACKNOWLEDGED, c"NOT_ACKNOWLEDGED", c"a message without acknowledgement"),
    (HS_E_TOO_MANY, c"TOO_MANY", c"too many objects"),
    (HS_E_PANIC, c"PANIC", c"a bug in the library"),
];

/// Bytes for a sentence with its NUL; a longer sentence is cut.
const SENTENCE_BYTES: usize = 1_024;

thread_local! {
    /// The latest sentence. It has no destructor, so its address stays valid as long as the thread lives.
    static LAST: Cell<[u8; SENTENCE_BYTES]> = const { Cell::new([0; SENTENCE_BYTES]) };
    /// The latest sentence, if it is one of the library's own.
    static FIXED: Cell<Option<&'static CStr>> = const { Cell::new(None) };
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: c_int,
    text: String,
}

impl Failure {
    pub(crate) fn new(code: c_int, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// The failure of a C function called from here, whose sentence is kept already.
    pub(crate) fn told(code: c_int) -> Self {
        Self { code, text: String::new() }
    }

    /// Keeps the sentence for `hs_last_error`, and returns the code.
    #[cold]
    pub(crate) fn tell(self) -> c_int {
        if self.text.is_empty() {
            return self.code;
        }
        // Errors of the crates below begin with these words already.
        let text = self.text.strip_prefix("failed to ").unwrap_or(&self.text);
        let text = format!("failed to {text}").replace('\0', " ");
        let mut room = [0; SENTENCE_BYTES];
        let cut = text.floor_char_boundary(SENTENCE_BYTES - 1);
        room[..cut].copy_from_slice(&text.as_bytes()[..cut]);
        LAST.set(room);
        FIXED.set(None);
        self.code
    }
}

/// Keeps a sentence without copying it, and returns the code. For ordinary outcomes, such as a time-out.
pub(crate) fn say(code: c_int, sentence: &'static CStr) -> c_int {
    FIXED.set(Some(sentence));
    code
}

impl From<hairspring_time::DelayError> for Failure {
    fn from(error: hairspring_time::DelayError) -> Self {
        use hairspring_time::DelayError as E;
        let code = match error {
            E::Negative(_) => HS_E_NEGATIVE,
            E::TooLongToPoll(_) => HS_E_TOO_LONG_TO_POLL,
            E::Absurd(_) => HS_E_RANGE,
            E::OtherEpoch => HS_E_EPOCH,
            E::Cancelled(_) => HS_E_CANCELLED,
        };
        Self::new(code, error.to_string())
    }
}

/// Makes `hs_last_error` report a panic instead of printing it, because only the program decides what it prints. This
/// concerns only libhairspring's own copy of the standard library.
static QUIET: Once = Once::new();

#[cold]
fn keep_panics_to_ourselves() {
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string).unwrap_or_default();
        let what = panic.payload_as_str().unwrap_or("no more is known");
        Failure::new(HS_E_PANIC, format!("go on: a bug in the library, please report it: {what}, at {at}")).tell();
    }));
}

/// Runs a call and turns its error, or even its panic, into a code.
#[inline]
pub(crate) fn door(call: impl FnOnce() -> Result<(), Failure>) -> c_int {
    // The tests of this crate print their panics.
    if cfg!(not(test)) && !QUIET.is_completed() {
        QUIET.call_once(keep_panics_to_ourselves);
    }
    // A handle that a panic left half changed stays busy, so no call sees its state.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => HS_OK,
        Ok(Err(failure)) => failure.tell(),
        // The hook has kept its sentence.
        Err(_) => HS_E_PANIC,
    }
}

fn known(code: c_int) -> Option<&'static (c_int, &'static CStr, &'static CStr)> {
    CODES.iter().find(|(known, ..)| *known == code)
}

/// The meaning of a code in a few words; never NULL. Lives as long as the process.
#[unsafe(no_mangle)]
pub extern "C" fn hs_strerror(code: c_int) -> *const c_char {
    known(code).map_or(c"an unknown code", |(_, _, meaning)| *meaning).as_ptr()
}

/// The name of a code without `HS_E_`: "NAN" for HS_E_NAN, "UNKNOWN" for an invalid code; never NULL. Lives as long as
/// the process.
#[unsafe(no_mangle)]
pub extern "C" fn hs_error_name(code: c_int) -> *const c_char {
    known(code).map_or(c"UNKNOWN", |(_, name, _)| *name).as_ptr()
}

/// The sentence of the latest error in the calling thread, with its remedy; "" if there was none; never NULL. The next
/// error in this thread overwrites it. It lives as long as the thread.
#[unsafe(no_mangle)]
pub extern "C" fn hs_last_error() -> *const c_char {
    match FIXED.get() {
        Some(sentence) => sentence.as_ptr(),
        None => LAST.with(|last| last.as_ptr().cast_const().cast()),
    }
}

/// The version of the library, such as "0.1.0". Lives as long as the process.
#[unsafe(no_mangle)]
pub extern "C" fn hs_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        let room = LAST.get();
        CStr::from_bytes_until_nul(&room).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_becomes_a_code_without_a_word_and_the_next_call_works() {
        // In a process of its own, because the panic hook belongs to the process.
        const CHILD: &str = "HAIRSPRING_TEST_PANICS";
        if std::env::var_os(CHILD).is_some() {
            keep_panics_to_ourselves();
            assert_eq!(door(|| panic!("as if there were {}", "a bug")), HS_E_PANIC);
            assert!(
                last().contains("a bug in the library") && last().contains("as if there were a bug, at "),
                "{}",
                last()
            );
            assert_eq!(door(|| Ok(())), HS_OK);
            return;
        }
        let name = "error::tests::a_panic_becomes_a_code_without_a_word_and_the_next_call_works";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let ended = child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && said.is_empty(), "{}: {said}", ended.status);
    }

    #[test]
    fn a_sentence_is_kept_whole_up_to_its_room() {
        assert_eq!(door(|| Err(Failure::new(HS_E_IO, "open a\0b"))), HS_E_IO);
        assert_eq!(last(), "failed to open a b");
        assert_eq!(door(|| Err(Failure::new(HS_E_IO, "µ".repeat(SENTENCE_BYTES)))), HS_E_IO);
        assert!(last().len() >= SENTENCE_BYTES - 2, "{}", last().len());
        assert_eq!(door(|| Err(Failure::new(HS_E_IO, "x"))), HS_E_IO);
        assert_eq!(last(), "failed to x");
    }

    #[test]
    fn the_header_has_the_version_of_the_library() {
        let header = format!("{HS_VERSION_MAJOR}.{HS_VERSION_MINOR}.{HS_VERSION_PATCH}");
        assert_eq!(header, env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn codes_are_known_once() {
        for (index, (code, name, _)) in CODES.iter().enumerate() {
            assert!(CODES[..index].iter().all(|(other, known, _)| other != code && known != name), "{code} twice");
        }
        assert!(known(-1000).is_none());
    }
}
