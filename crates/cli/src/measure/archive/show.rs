//! `hairspring archive show` and `compare`: sheets by their ids.

use std::path::PathBuf;

use clap::Args;
use hairspring_archive::Archive;
use hairspring_sheet::{CompareTerms, ComparedSheets, Sheet, TextStyle, compare, render};

use crate::exit::{Exit, Failure};
use crate::measure::compare::{self, finish, margin};
use crate::measure::sheet::{Format, format_of};
use crate::output::{self, OutputFile};

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Id of the sheet, or its beginning
    #[arg(value_name = "ID")]
    sheet: String,
    /// Format [default: by the ending of --out, otherwise text]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write to this file instead of the standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(archive: &Archive, arguments: &Arguments) -> Result<Exit, Failure> {
    let format = format_of(arguments.format, arguments.out.as_deref())?;
    let file = arguments.out.as_deref().map(OutputFile::create).transpose()?;
    let found = archive.find(&arguments.sheet)?;
    let sheet = || archive.sheet(&found);
    let text = match format {
        // The very bytes that were added.
        Format::Json => archive.json(&found)?,
        Format::Md => render::markdown(&sheet()?),
        Format::Html => render::html(&sheet()?),
        Format::Text => {
            let sheet = sheet()?;
            let style = style(file.is_some(), false);
            if sheet.summary.is_some() { render::first_page(&sheet, &style) } else { render::text(&sheet, &style) }
        }
    };
    finish(file, &text)?;
    Ok(Exit::Success)
}

/// A file has neither colours nor the width of a terminal.
pub(super) fn style(is_file: bool, verbose: bool) -> TextStyle {
    match is_file {
        true => TextStyle { width: output::WIDTH_USUAL, colour: false, verbose },
        false => output::style(verbose),
    }
}

#[derive(Args, Debug)]
pub(super) struct CompareArguments {
    /// A side: ids of sheets or their beginnings, with commas between; NAME= names it. Every side is compared with the first
    #[arg(value_name = "[NAME=]ID[,ID]", num_args = 2.., required = true)]
    sides: Vec<String>,
    /// Only these rows: ids, beginnings of ids up to a dot, or beginnings with a * at the end; separated by commas
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    only: Vec<String>,
    /// Changes below this are the same
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = margin)]
    margin: f64,
    /// Format [default: by the ending of --out, otherwise text]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write to this file instead of the standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// In text, list every row
    #[arg(long)]
    verbose: bool,
}

pub(super) fn compared(archive: &Archive, arguments: &CompareArguments) -> Result<Exit, Failure> {
    let format = format_of(arguments.format, arguments.out.as_deref())?;
    let only = arguments.only.iter().map(|text| compare::pattern(text)).collect::<Result<Vec<_>, _>>()?;
    let file = arguments.out.as_deref().map(OutputFile::create).transpose()?;
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
    // One machine's ledger says nothing of another.
    let ledger = archive.ledger(&all)?.filter(|ledger| all.iter().all(|sheet| ledger.suits(sheet).is_ok()));
    let comparison = compare(&sides, &CompareTerms { same: Some(arguments.margin), ledger, only });
    finish(file, &compare::rendered(&comparison, format, &style(arguments.out.is_some(), arguments.verbose)))?;
    Ok(Exit::Success)
}
