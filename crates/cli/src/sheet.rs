//! `hairspring sheet`: measures and renders.

use std::path::Path;

use hairspring_machine::{Cpu, Host};
use hairspring_sheet::{Build, Sheet, TextStyle, render};
use hairspring_suite::{Effort, Request, SheetError, select, take_sheet};

use crate::arguments::{Format, SheetArguments};
use crate::exit::{Exit, Failure};
use crate::output::{self, OutputFile};
use crate::progress::ProgressLine;
use crate::{beside, compare, historic, interrupt};

/// What this command is built from.
pub(crate) fn build() -> Build {
    Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: Some(env!("HAIRSPRING_COMMIT").to_owned()).filter(|commit| !commit.is_empty()),
        compiler: env!("HAIRSPRING_COMPILER").to_owned(),
        flags: env!("HAIRSPRING_FLAGS").to_owned(),
    }
}

pub(crate) fn run(arguments: &SheetArguments) -> Result<Exit, Failure> {
    let rows = select(&arguments.only).map_err(|error| Failure::bad_request(error.to_string()))?;
    let format = format(arguments)?;
    let beside = arguments.beside.as_deref().map(historic::find).transpose()?;
    if beside.is_some() && format != Format::Text {
        return Err(Failure::bad_request(
            "--beside prints a comparison below the text; write JSON with --out and use `hairspring compare` for others",
        ));
    }
    let file = arguments.out.as_deref().map(OutputFile::create).transpose()?;
    let effort = match (arguments.quick, arguments.thorough) {
        (true, _) => Effort::Quick,
        (false, true) => Effort::Thorough,
        (false, false) => Effort::Normal,
    };
    let request = Request {
        rows,
        effort,
        cpu: arguments.cpu.map(Cpu),
        priority: arguments.priority,
        redact: arguments.redact,
        build: build(),
        disks: arguments.disks.disks(effort)?,
        program: std::env::current_exe().ok(),
    };
    let interrupted = interrupt::watch()?;
    let line = ProgressLine::new();
    let taken = take_sheet(&Host, &request, &interrupted, &mut |progress| line.show(progress));
    line.end();
    let sheet = taken.map_err(|error| match error {
        SheetError::Calibration(_) => Failure::failed(format!("failed to {error}")),
        SheetError::NoSuchCpu(..) | SheetError::Priority(_) => Failure::bad_request(error.to_string()),
    })?;
    let style = match file {
        // Colours and the width of a terminal have no meaning in a file.
        Some(_) => TextStyle { width: output::WIDTH_USUAL, colour: false, verbose: arguments.verbose },
        None => output::style(arguments.verbose),
    };
    let mut text = rendered(&sheet, format, &style);
    if let Some(other) = &beside {
        let (other, own) = beside::paired(other, &sheet);
        text.push_str(&compare::rendered(&other, &[own], &style));
    }
    match file {
        Some(file) => file.finish(&text)?,
        None => drop(output::print(&text)?),
    }
    Ok(exit(&sheet))
}

fn exit(sheet: &Sheet) -> Exit {
    if sheet.taken.interrupted {
        Exit::Interrupted
    } else if sheet.rows().any(|row| row.figure().is_some()) {
        Exit::Success
    } else {
        Exit::AllAbsent
    }
}

fn rendered(sheet: &Sheet, format: Format, style: &TextStyle) -> String {
    match format {
        Format::Text => render::text(sheet, style),
        Format::Md => render::markdown(sheet),
        Format::Json => render::to_json(sheet),
        Format::Html => render::html(sheet),
    }
}

fn format(arguments: &SheetArguments) -> Result<Format, Failure> {
    if let Some(format) = arguments.format {
        return Ok(format);
    }
    let Some(file) = &arguments.out else { return Ok(Format::Text) };
    match Path::new(file).extension().and_then(|ending| ending.to_str()) {
        Some("json") => Ok(Format::Json),
        Some("html" | "htm") => Ok(Format::Html),
        Some("md" | "markdown") => Ok(Format::Md),
        Some("txt" | "text") | None => Ok(Format::Text),
        Some(other) => Err(Failure::bad_request(format!(
            "no format is known by the ending .{other}: name the file .txt, .md, .json or .html, or say --format"
        ))),
    }
}
