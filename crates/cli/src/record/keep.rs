//! `hairspring keep`: pins segments of a series, so that nothing deletes them, or releases them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use hairspring_record::series::{self, Pinned};
use hairspring_recording::Files;
use hairspring_recording::series::{pin_of, segment_of};
use hairspring_store::Ways;
use serde_json::json;

use crate::arguments::Plain;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::page::{Example, Page};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    name: "keep",
    examples: &[
        Example { does: "Keep a segment whatever the retention", line: "hairspring keep run5-000000" },
        Example { does: "Let retention delete it again", line: "hairspring keep run5-000000 --release" },
    ],
    files: &[("NAME-NUMBER.keep", "pins the segment; any program may make and remove it")],
    environment: &[],
};

/// Longest wait for a deletion under way, and the interval of polling. The deletion is over as soon as the disk has
/// synced twice.
const MOST_WAIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

/// Keep segments of a series from being deleted, or release them
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Segments, with or without an ending
    #[arg(value_name = "SEGMENT", required = true)]
    segments: Vec<PathBuf>,
    /// Release them
    #[arg(long)]
    release: bool,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut pinned = Vec::new();
    for path in &arguments.segments {
        let base = Files::base_of(path);
        if segment_of(&base).is_none() || !Files::of(&base).meta.exists() {
            let shown = base.display();
            return Err(Failure::bad_request(format!("{shown} is no segment of a series: name one, like run5-000012")));
        }
        if arguments.release {
            let pin = pin_of(&base);
            released(&pin).map_err(|error| Failure::failed(format!("failed to remove {}: {error}", pin.display())))?;
        } else {
            keep(&base)?;
        }
        pinned.push(base);
    }
    let names: Vec<String> = pinned.iter().map(|base| base.display().to_string()).collect();
    let what = if arguments.release { "released" } else { "kept" };
    output::print(&match arguments.format {
        Plain::Text => format!("{what}: {}\n", names.join(", ")),
        Plain::Json => {
            let value = json!({ "schema": "hairspring.kept/1", "segments": names, "kept": !arguments.release });
            format!("{value:#}\n")
        }
    })?;
    Ok(Exit::Success)
}

/// Pins a segment, and refuses if that came too late.
fn keep(segment: &Path) -> Result<(), Failure> {
    let (shown, deadline) = (segment.display(), Instant::now() + MOST_WAIT);
    let mut pause = || {
        std::thread::sleep(PAUSE);
        Instant::now() < deadline
    };
    let pinned = series::keep(&mut *hairspring_store::best(1, Ways::ALL), segment, &mut pause);
    match pinned.map_err(|error| Failure::failed(format!("failed to keep {shown}: {error}")))? {
        Pinned::Kept => Ok(()),
        Pinned::Gone => Err(Failure::failed(format!(
            "failed to keep {shown}: retention has deleted it or is deleting it: copy what is left of other segments before they are due"
        ))),
        // A deletion that was cut off; the process that next puts the series in order looks at the pin.
        Pinned::Undecided => Err(Failure::failed(format!(
            "failed to keep {shown} for sure: its deletion was begun and has not gone on; it is pinned, and `hairspring recover` keeps it"
        ))),
    }
}

fn released(pin: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(pin) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
