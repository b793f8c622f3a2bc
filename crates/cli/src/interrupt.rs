//! What asks the command to end, as a flag. A second Ctrl-C or SIGTERM ends it at once; the end of its terminal, which may be told
//! twice, does not.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::{Exit, Failure};
use crate::host::system::asking_to_end;

/// Lets every signal that asks for the end set this flag and do nothing else: for what must not end in the middle, such as an open
/// shutter. Who uses it looks at the flag at least ten times in a second.
pub(crate) fn flag_only(interrupted: &Arc<AtomicBool>) -> Result<(), Failure> {
    for signal in asking_to_end() {
        flag::register(signal, Arc::clone(interrupted))
            .map_err(|error| Failure::failed(format!("watch for Ctrl-C: {error}")))?;
    }
    Ok(())
}

/// A flag that the first signal sets.
pub(crate) fn watch() -> Result<Arc<AtomicBool>, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, i32::from(Exit::Interrupted.code()), Arc::clone(&interrupted))
            .map_err(|error| Failure::failed(format!("watch for Ctrl-C: {error}")))?;
    }
    // In this order: the first signal finds the flag down and raises it, the second finds it up.
    flag_only(&interrupted)?;
    Ok(interrupted)
}
