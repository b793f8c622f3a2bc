//! Signals that ask the command to end, as a flag. A second Ctrl-C or SIGTERM ends it at once. A second SIGHUP does not, because
//! a closing terminal may send it twice.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::{Exit, Failure};
use crate::host::asking_to_end;

/// Makes every such signal only set this flag, for work that must not end in the middle, such as an open shutter. The caller
/// checks the flag at least ten times a second.
pub(crate) fn flag_only(interrupted: &Arc<AtomicBool>) -> Result<(), Failure> {
    for signal in asking_to_end() {
        flag::register(signal, Arc::clone(interrupted))
            .map_err(|error| Failure::failed(format!("failed to watch for Ctrl-C: {error}")))?;
    }
    Ok(())
}

/// A flag that the first signal sets.
pub(crate) fn watch() -> Result<Arc<AtomicBool>, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, i32::from(Exit::Interrupted.code()), Arc::clone(&interrupted))
            .map_err(|error| Failure::failed(format!("failed to watch for Ctrl-C: {error}")))?;
    }
    // In this order: the first signal finds the flag clear and sets it, the second finds it set.
    flag_only(&interrupted)?;
    Ok(interrupted)
}
