//! `hairspring archive trend`: figures of one machine over months.

use std::path::PathBuf;

use clap::Args;
use hairspring_archive::Archive;
use hairspring_sheet::{render, trends};

use super::show::style;
use crate::exit::{Exit, Failure};
use crate::measure::compare::{finish, pattern};
use crate::measure::sheet::{Format, format_of};
use crate::output::OutputFile;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Rows: ids, beginnings of ids up to a dot, or beginnings with a * at the end
    #[arg(value_name = "ID", required = true)]
    rows: Vec<String>,
    /// The machine: its name, or the beginning of its id [default: the only one]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Sheets of this effort [default: that of most sheets]
    #[arg(long, value_name = "EFFORT")]
    effort: Option<String>,
    /// Format [default: by the ending of --out, otherwise text]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write to this file instead of the standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(archive: &Archive, arguments: &Arguments) -> Result<Exit, Failure> {
    let format = format_of(arguments.format, arguments.out.as_deref())?;
    if format == Format::Md {
        return Err(Failure::bad_request("there is no Markdown of figures over months; choose text, html or json"));
    }
    let rows = arguments.rows.iter().map(|text| pattern(text)).collect::<Result<Vec<_>, _>>()?;
    let file = arguments.out.as_deref().map(OutputFile::create).transpose()?;
    let machine = archive.machine(arguments.machine.as_deref())?;
    let history = archive.history(&machine, arguments.effort.as_deref(), &rows)?;
    if history.rows.is_empty() {
        let known = archive.rows()?;
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let similar = hairspring_suite::similar_ids(&arguments.rows[0], &known);
        let similar =
            if similar.is_empty() { String::new() } else { format!("; did you mean {}?", similar.join(" or ")) };
        return Err(Failure::bad_request(format!(
            "{}: no sheet of {} has a figure for that{similar}",
            arguments.rows.join(" "),
            machine.name()
        )));
    }
    let found = trends(&history);
    let text = match format {
        Format::Html => render::trend_html(&found),
        Format::Json => render::trend_json(&found),
        Format::Text | Format::Md => render::trend_text(&found, &style(file.is_some(), false)),
    };
    finish(file, &text)?;
    Ok(Exit::Success)
}
