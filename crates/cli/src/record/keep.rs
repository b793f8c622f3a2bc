//! `hairspring keep`: pins segments of a series, so that nothing deletes them, or releases them.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use hairspring_record::recording::Files;
use hairspring_record::series::{pin_of, segment_of};
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
        let pin = pin_of(&base);
        let done = if arguments.release { released(&pin) } else { kept(&pin) };
        done.map_err(|error| Failure::failed(format!("failed to write {}: {error}", pin.display())))?;
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

fn kept(pin: &Path) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(pin)?;
    file.sync_all()?;
    hairspring_record::store::sync_folder(pin)
}

fn released(pin: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(pin) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
