//! [`TriggerSignal`]: triggers by the signal USR1.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use hairspring_machine::{Host, Machine};
use hairspring_record::session::RecordProgress;
use hairspring_source::trigger::ExternalTrigger;
use signal_hook::consts::SIGUSR1;

use crate::exit::Failure;

/// Passes signals on to the cards. A thread waits for signals, so that each trigger is stamped when it arrives.
pub(crate) struct TriggerSignal {
    triggers: Arc<Mutex<Vec<ExternalTrigger>>>,
    handed_over: bool,
}

impl TriggerSignal {
    /// Begins to listen. A signal before the recording has started is ignored.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::failed(format!("failed to watch for the signal USR1: {error}"));
        let (mut ours, theirs) = UnixStream::pair().map_err(failed)?;
        signal_hook::low_level::pipe::register(SIGUSR1, theirs).map_err(failed)?;
        let triggers: Arc<Mutex<Vec<ExternalTrigger>>> = Arc::default();
        let fired = Arc::clone(&triggers);
        // The thread waits as long as the command runs.
        std::thread::Builder::new()
            .name("external".to_owned())
            .spawn(move || {
                while matches!(ours.read(&mut [0]), Ok(1..)) {
                    let now = Host.monotonic();
                    for trigger in fired.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                        trigger.fire(now);
                    }
                }
            })
            .map_err(failed)?;
        Ok(Self { triggers, handed_over: false })
    }

    /// Takes the cards' handles as soon as they exist.
    pub(crate) fn hand_over(&mut self, cards: &[RecordProgress]) {
        if !self.handed_over {
            self.handed_over = true;
            let handles = cards.iter().filter_map(|card| card.external.clone());
            self.triggers.lock().unwrap_or_else(PoisonError::into_inner).extend(handles);
        }
    }
}
