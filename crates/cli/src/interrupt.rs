//! Signals that ask the command to end, as a flag. A later Ctrl-C or SIGTERM ends it at once. A later SIGHUP does not,
//! because a closing terminal may send it twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use hairspring_machine::{Host, Machine, Nanos};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::exit::{Exit, Failure};
use crate::host::asking_to_end;

/// Signals within this time are one request. `timeout` signals its program and then its process group, and on a busy
/// computer the program handles the first signal before `timeout` sends the second. A user presses Ctrl-C again later
/// than that.
const ONE_REQUEST: Nanos = Nanos::from_millis(500);

/// Makes every such signal only set this flag, for work that must not end in the middle, such as an open shutter. The
/// caller checks the flag at least ten times a second.
pub(crate) fn flag_only(interrupted: &Arc<AtomicBool>) -> Result<(), Failure> {
    for signal in asking_to_end() {
        flag::register(signal, Arc::clone(interrupted)).map_err(failed)?;
    }
    Ok(())
}

/// A flag that the first signal sets.
pub(crate) fn watch() -> Result<Arc<AtomicBool>, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    end_at_second()?;
    flag_only(&interrupted)?;
    Ok(interrupted)
}

/// Makes SIGINT and SIGTERM end the process when [`ONE_REQUEST`] has passed since the first of them.
#[expect(unsafe_code, reason = "a signal handler that reads the clock")]
pub(crate) fn end_at_second() -> Result<(), Failure> {
    // In nanoseconds of CLOCK_MONOTONIC; 0 before there is one.
    let first = Arc::new(AtomicI64::new(0));
    for signal in [SIGINT, SIGTERM] {
        let first = Arc::clone(&first);
        let action = move || {
            let now = Host.monotonic().as_monotonic().count();
            // Relaxed: the time alone is shared.
            let earlier = first.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
            if earlier.is_err_and(|first| now - first > ONE_REQUEST.count()) {
                low_level::exit(i32::from(Exit::Interrupted.code()));
            }
        };
        // SAFETY: the action reads a clock of the kernel, accesses an atomic and calls _exit. A signal handler may do
        // all three.
        unsafe { low_level::register(signal, action) }.map_err(failed)?;
    }
    Ok(())
}

fn failed(error: std::io::Error) -> Failure {
    Failure::failed(format!("failed to watch for Ctrl-C: {error}"))
}
