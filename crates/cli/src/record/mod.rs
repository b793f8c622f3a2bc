//! `hairspring record`: records cards to disk and says what became of every byte.

pub(crate) mod card;
mod external;
pub(crate) mod json;
mod levels;
mod request;
pub(crate) mod standing;
pub(crate) mod text;

use std::io::ErrorKind;

use hairspring_stream::Verdict;
use hairspring_stream::recorder::RecorderError;
use hairspring_stream::session::{self, RecordError, Recorded};

use crate::arguments::{Plain, RecordArguments};
use crate::exit::{Exit, Failure};
use crate::live::Live;
use crate::{interrupt, output};

use external::External;
use levels::Levels;
use request::Request;

pub(crate) fn run(arguments: &RecordArguments) -> Result<Exit, Failure> {
    let request = Request::new(arguments)?;
    // Before anything is opened: the first Ctrl-C ends the recording in order wherever it comes, the second one at once.
    let stop = interrupt::watch()?;
    let mut external = request.is_triggered_from_outside().then(External::listen).transpose()?;
    let inputs = request.open()?;
    let mut live = Live::new(arguments.quiet);
    let mut levels = arguments.monitor.then(Levels::default);
    let recorded = session::record(inputs, request.config(), &stop, &mut |cards| {
        if let Some(external) = &mut external {
            external.hand_over(cards);
        }
        let Some(first) = cards.first() else { return };
        live.show(first.elapsed, || {
            let standing = standing::line(cards, request.length(), request.config().wait);
            levels.as_mut().map_or_else(|| standing.clone(), |levels| format!("{standing}  {}", levels.look(cards)))
        });
    });
    live.end();
    let recorded = recorded.map_err(refused)?;
    output::print(&match arguments.format {
        Plain::Text => text::report(&recorded, &request, output::style(false).width),
        Plain::Json => json::report(&recorded, &request),
    })?;
    Ok(worst(&recorded).into())
}

/// The worst verdict of all cards.
fn worst(recorded: &[Recorded]) -> Verdict {
    recorded.iter().map(|card| card.outcome.verdict).max().unwrap_or(Verdict::Complete)
}

/// Why nothing was recorded, and whether another request would help.
pub(crate) fn refused(error: RecordError) -> Failure {
    match &error {
        RecordError::Memory(_) | RecordError::Calibration(_) | RecordError::Thread(_) => {
            Failure::failed(format!("failed to begin: {error}"))
        }
        RecordError::Panicked(..) => Failure::failed(error.to_string()),
        RecordError::Recorder(RecorderError::Store(refused)) => match refused.errno.kind() {
            ErrorKind::AlreadyExists => Failure::bad_request(error.to_string()),
            ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::FileTooLarge
            | ErrorKind::InvalidFilename => Failure::bad_request(format!("failed to {refused}")),
            _ => Failure::failed(format!("failed to {refused}")),
        },
        _ => Failure::bad_request(error.to_string()),
    }
}
