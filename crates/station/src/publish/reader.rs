//! [`StateReader`]: a reader of a page, in any process.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hairspring_device::DeviceError;
use hairspring_device::memory::page::Page;
use hairspring_device::refusal::refusal;
use hairspring_machine::{Instant, Machine, Nanos};

use super::layout::{Issue, decode};
use super::publisher::{MAGIC, PAGE_BYTES, PAYLOAD, STATE_FILE, StatePage};
use super::state::StationState;

/// Time without a new state after which a station counts as silent. It publishes ten times a second.
pub const SILENT_AFTER: Nanos = Nanos::from_secs(2);
/// Most attempts to read a page that is being written.
const TRIES: u32 = 100;
/// Pause between two attempts. A write takes microseconds, unless its thread is preempted.
const PAUSE: Duration = Duration::from_micros(200);

/// Reliability of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// The station publishes.
    Live,
    /// The station has not published for this time: it has ended, was killed, or hangs. The state is its last.
    Silent(Nanos),
    /// The station was killed, or hangs, in the middle of a write. The state is the last whole one that this reader has
    /// seen.
    Torn,
}

/// A state as a reader got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateView {
    /// The state.
    pub state: StationState,
    /// When the station published it.
    pub at: Instant,
    /// The number of this state in its run, from 1.
    pub number: u64,
    /// The process of the station.
    pub process: u64,
    /// Its reliability.
    pub validity: Validity,
}

/// A reader of a station's page. It keeps the last whole state.
#[derive(Debug)]
pub struct StateReader {
    path: PathBuf,
    page: Page,
    words: Vec<u64>,
    last: Option<(StationState, Issue)>,
    silent_after: Nanos,
}

impl StateReader {
    /// Opens the page in the folder of a station, for reading only.
    ///
    /// # Errors
    /// There is no page, or the file is of another kind.
    pub fn open(folder: &Path) -> Result<Self, DeviceError> {
        let path = folder.join(STATE_FILE);
        let page = Page::read_only(&path, PAGE_BYTES, MAGIC).map_err(|error| not_opened(&path, &error))?;
        Ok(Self { path, page, words: vec![0; PAYLOAD], last: None, silent_after: SILENT_AFTER })
    }

    /// Takes a station as silent after this time, in place of [`SILENT_AFTER`].
    #[must_use]
    pub fn silent_after(self, silent_after: Nanos) -> Self {
        Self { silent_after, ..self }
    }

    /// The latest state. A page that is being written is read again, for 20 ms at most. A station that is silent or was
    /// killed in mid-write gives its last whole state; the page is then opened again, in case a successor has made
    /// another.
    ///
    /// # Errors
    /// No whole state has been read yet.
    pub fn read<M: Machine>(&mut self, machine: &M) -> Result<StateView, DeviceError> {
        let mut torn = !self.look();
        let is_silent = |last: &Option<(StationState, Issue)>| {
            last.as_ref().is_none_or(|(_, issue)| machine.monotonic() - issue.at > self.silent_after)
        };
        if (torn || self.page.is_revoked() || is_silent(&self.last))
            && let Ok(page) = Page::read_only(&self.path, PAGE_BYTES, MAGIC)
        {
            self.page = page;
            torn = !self.look();
        }
        let Some((state, issue)) = &self.last else {
            return Err(DeviceError {
                attempted: format!("read the state of {}", self.path.display()),
                said: "no station has written a whole state".to_owned(),
                remedy: "start the station: hairspring serve STATION.toml --publish NAME",
            });
        };
        let age = machine.monotonic() - issue.at;
        let validity = match age {
            _ if torn => Validity::Torn,
            age if age > self.silent_after => Validity::Silent(age),
            _ => Validity::Live,
        };
        let Issue { number, at, process } = *issue;
        Ok(StateView { state: state.clone(), at, number, process, validity })
    }

    /// Reads a whole state; false if all attempts fail.
    fn look(&mut self) -> bool {
        let page = self.page.start::<StatePage>();
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(PAUSE);
            }
            if page.state.copy(&mut self.words).is_some() {
                // Zeros replace the page of a file that was truncated, and are no state.
                if let Some(read) = decode(&self.words) {
                    self.last = Some(read);
                }
                return true;
            }
        }
        false
    }
}

fn not_opened(path: &Path, error: &io::Error) -> DeviceError {
    let remedy = "start the station: hairspring serve STATION.toml --publish NAME";
    refusal(format!("open the state {}", path.display()), error, remedy)
}
