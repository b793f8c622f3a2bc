//! `hairspring archive trend`: figures of one machine over months.

use clap::Args;
use hairspring_archive::Archive;
use hairspring_sheet::{render, trends};

use crate::exit::{Exit, Failure};
use crate::measure::compare::patterns;
use crate::measure::destination::{Destination, Format};
use crate::output;

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
    #[command(flatten)]
    to: Destination,
}

pub(super) fn run(archive: &Archive, arguments: &Arguments) -> Result<Exit, Failure> {
    let format = arguments.to.format()?;
    if format == Format::Md {
        return Err(Failure::bad_request("there is no Markdown of figures over months; choose text, html or json"));
    }
    let rows = patterns(&arguments.rows)?;
    let file = arguments.to.file()?;
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
        Format::Text | Format::Md => render::trend_text(&found, &arguments.to.style(false)),
    };
    output::finish(file, &text)?;
    Ok(Exit::Success)
}
