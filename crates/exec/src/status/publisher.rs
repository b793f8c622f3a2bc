//! [`Publication`]: the thread that asks an executive for its state and keeps the file.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hairspring_machine::Nanos;

use super::document::ExecStatus;
use super::file::StatusFile;
use super::sample::{Sample, Sampled};
use crate::config::ExecError;

/// The time from one sample to the next. Long compared with an answer (some microseconds), short compared with what a
/// human sees.
pub const SAMPLE_PERIOD: Nanos = Nanos::from_millis(10);
/// The time from one version of the file to the next.
pub const WRITE_PERIOD: Nanos = Nanos::from_millis(200);

/// A published executive. Dropped, it ends the publication and removes the file.
pub(crate) struct Publication {
    /// Dropped first: the thread ends when the other end is gone.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Publication {
    /// Publishes under a name.
    pub(crate) fn start(name: &str, backend: &'static str, source: Arc<dyn Sampled>) -> Result<Self, ExecError> {
        let file = StatusFile::create(name)?;
        let name = name.to_owned();
        file.replace(&ExecStatus::of(&name, backend, &Sample::default()))?;
        let (end, ended) = channel();
        let thread = std::thread::Builder::new().name("status".to_owned()).spawn(move || {
            let (mut sample, mut left) = (Sample::default(), 0_i64);
            let period = Duration::from_nanos(SAMPLE_PERIOD.count().unsigned_abs());
            let mut fresh = false;
            while ended.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                fresh |= source.sample(&mut sample);
                left -= SAMPLE_PERIOD.count();
                if fresh && left <= 0 {
                    // A full disk may have room the next time.
                    let _ = file.replace(&ExecStatus::of(&name, backend, &sample));
                    (fresh, left) = (false, WRITE_PERIOD.count());
                }
            }
        })?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by the panic hook, and the file goes with it.
            let _ = thread.join();
        }
    }
}
