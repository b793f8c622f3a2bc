//! `hairspring archive show` and `compare`: sheets by their ids.

use clap::Args;
use hairspring_archive::Archive;
use hairspring_sheet::{CompareTerms, ComparedSheets, Sheet, compare, render};

use crate::exit::{Exit, Failure};
use crate::measure::compare::{self, margin};
use crate::measure::destination::{Destination, Format};
use crate::output;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Id of the sheet, or its beginning
    #[arg(value_name = "ID")]
    sheet: String,
    #[command(flatten)]
    to: Destination,
}

pub(super) fn run(archive: &Archive, arguments: &Arguments) -> Result<Exit, Failure> {
    let format = arguments.to.format()?;
    let file = arguments.to.file()?;
    let found = archive.find(&arguments.sheet)?;
    let sheet = || archive.sheet(&found);
    let text = match format {
        // The very bytes that were added.
        Format::Json => archive.json(&found)?,
        Format::Md => render::markdown(&sheet()?),
        Format::Html => render::html(&sheet()?),
        Format::Text => {
            let sheet = sheet()?;
            let style = arguments.to.style(false);
            if sheet.summary.is_some() { render::first_page(&sheet, &style) } else { render::text(&sheet, &style) }
        }
    };
    output::finish(file, &text)?;
    Ok(Exit::Success)
}

#[derive(Args, Debug)]
pub(super) struct CompareArguments {
    /// A side: ids of sheets or their beginnings, with commas between; NAME= names it. Every side is compared with the
    /// first
    #[arg(value_name = "[NAME=]ID[,ID]", num_args = 2.., required = true)]
    sides: Vec<String>,
    /// Only these rows: ids, beginnings of ids up to a dot, or beginnings with a * at the end; separated by commas
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    only: Vec<String>,
    /// Changes below this are the same
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = margin)]
    margin: f64,
    #[command(flatten)]
    to: Destination,
    /// In text, list every row
    #[arg(long)]
    verbose: bool,
}

pub(super) fn compared(archive: &Archive, arguments: &CompareArguments) -> Result<Exit, Failure> {
    let format = arguments.to.format()?;
    let only = compare::patterns(&arguments.only)?;
    let file = arguments.to.file()?;
    let side = |written: &String| {
        let (name, ids) = written.split_once('=').unwrap_or((written, written));
        let mut found = Vec::new();
        for id in ids.split(',') {
            let sheet = archive.find(id)?;
            if found.contains(&sheet) {
                return Err(Failure::bad_request(format!("{written} names a sheet twice: that is one value, not two")));
            }
            found.push(sheet);
        }
        let sheets: Vec<Sheet> = found.iter().map(|sheet| archive.sheet(sheet)).collect::<Result<_, _>>()?;
        Ok(ComparedSheets { name: name.to_owned(), sheets })
    };
    let sides: Vec<ComparedSheets> = arguments.sides.iter().map(side).collect::<Result<_, _>>()?;
    let all: Vec<&Sheet> = sides.iter().flat_map(|side| &side.sheets).collect();
    // The ledger of one machine does not apply to another.
    let ledger = archive.ledger(&all)?.filter(|ledger| all.iter().all(|sheet| ledger.suits(sheet).is_ok()));
    let comparison = compare(&sides, &CompareTerms { same: Some(arguments.margin), ledger, only });
    let style = arguments.to.style(arguments.verbose);
    output::finish(file, &compare::rendered(&comparison, format, &style))?;
    Ok(Exit::Success)
}
