//! `hairspring sheet`: measures this computer and renders the sheet.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use hairspring_advice::summarize;
use hairspring_archive::Archive;
use hairspring_machine::{Cpu, Host};
use hairspring_sheet::{Build, Sheet, TextStyle, render};
use hairspring_suite::{Effort, SheetError, SheetRequest, registry, select, take_sheet};

use crate::exit::{Exit, Failure};
use crate::host::DiskArguments;
use crate::interrupt;
use crate::measure::destination::{Destination, Format};
use crate::measure::progress::ProgressLine;
use crate::measure::{archive, historic, historic_pairs};
use crate::output;
use crate::page::{Example, Page};
use crate::placement::Measuring;

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    name: "sheet",
    examples: &[
        Example { does: "Measure everything except devices and disks; takes about 65 s", line: "hairspring sheet" },
        Example {
            does: "Measure only the clocks, and keep the figures",
            line: "hairspring sheet --quick --only clocks --out before.json",
        },
        Example { does: "Measure everything and keep the sheet in the archive", line: "hairspring sheet --archive" },
        Example {
            does: "Measure everything and two disks, and write a page with plots",
            line: "hairspring sheet --thorough --dir /disk1,/disk2 --out sheet.html",
        },
        Example {
            does: "Compare the executive with KADAK's on an 80486",
            line: "hairspring sheet --only executive --beside amx86-486sx",
        },
    ],
    files: &[("/proc, /sys", "facts about the computer, for the sheet's conditions")],
    environment: &[(
        "HAIRSPRING_LIBEXEC",
        "the folder with the programs that measure calls from C, Tcl and Python, if they are not installed beside the command",
    )],
};

/// Measure this computer and print its timing data sheet
///
/// A figure that cannot be measured here is reported as absent, with the reason and the remedy.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Measure only rows whose ids begin with this, for instance clocks.read,delays.minimum.fifo
    #[arg(long, value_name = "ID-PREFIX", value_delimiter = ',')]
    only: Vec<String>,
    /// Take less than half of the usual time
    #[arg(long, conflicts_with = "thorough")]
    quick: bool,
    /// Run everything, including the 10 s and 60 s requests (about ten minutes)
    #[arg(long)]
    thorough: bool,
    #[command(flatten)]
    place: Measuring,
    #[command(flatten)]
    to: Destination,
    /// Print a comparison with another sheet below the text: a JSON file, or a historic sheet by its name
    /// (fermilab-2007, fermilab-bit3, amx86-486sx, amx86-net186, amx86-turbo186, freertos-threadx-linux, an006-bus,
    /// an006-continuous, an006-reference-1, an006-reference-2, an006-reference-3, fesa-2007)
    #[arg(long, value_name = "NAME|FILE")]
    beside: Option<String>,
    /// Add the sheet to this archive, too [default: that of `hairspring archive`]
    #[arg(long, value_name = "FILE")]
    archive: Option<Option<PathBuf>>,
    #[command(flatten)]
    disks: DiskArguments,
    /// Leave out host name, paths, process names and command lines
    #[arg(long)]
    redact: bool,
    /// Show every chapter; on HTML pages, unfold them
    #[arg(long)]
    full: bool,
    /// In text, show this chapter, named as by `hairspring probes`. May be repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "full")]
    chapter: Vec<String>,
    /// In text, show every fact and the id of every row; in a comparison, show every row
    #[arg(long)]
    verbose: bool,
    /// Take all rounds in this process, to learn how much fresh processes vary
    #[arg(long, hide = true)]
    one_process: bool,
}

/// Version, commit, compiler and flags of this build.
pub(crate) fn build() -> Build {
    Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: Some(env!("HAIRSPRING_COMMIT").to_owned()).filter(|commit| !commit.is_empty()),
        compiler: env!("HAIRSPRING_COMPILER").to_owned(),
        flags: env!("HAIRSPRING_FLAGS").to_owned(),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let rows = select(&arguments.only).map_err(|error| Failure::bad_request(error.to_string()))?;
    let format = arguments.to.format()?;
    let beside = arguments.beside.as_deref().map(historic::find).transpose()?;
    if beside.is_some() && format != Format::Text {
        return Err(Failure::bad_request(
            "--beside prints a comparison below the text and suits no other format: write JSON with --out, and use `hairspring compare`",
        ));
    }
    if let Some(unknown) = arguments.chapter.iter().find(|name| registry().iter().all(|chapter| chapter.id != **name)) {
        let names: Vec<String> = registry().into_iter().map(|chapter| chapter.id).collect();
        return Err(Failure::bad_request(format!("no chapter is called {unknown}: choose from {}", names.join(", "))));
    }
    let file = arguments.to.file()?;
    let archive = arguments.archive.as_ref().map(|named| archive::path(named.as_deref())).transpose()?;
    // Opened before anything is measured, so that a bad name is refused at once.
    let archive = archive.map(|path| Archive::create(&path)).transpose()?;
    let effort = match (arguments.quick, arguments.thorough) {
        (true, _) => Effort::Quick,
        (false, true) => Effort::Thorough,
        (false, false) => Effort::Normal,
    };
    let request = SheetRequest {
        rows,
        effort,
        cpu: arguments.place.cpu.map(Cpu),
        priority: arguments.place.priority,
        redact: arguments.redact,
        build: build(),
        disks: arguments.disks.disks(effort)?,
        rounds: effort.rounds(),
        seed: seed(),
        program: std::env::current_exe().ok().filter(|_| !arguments.one_process),
    };
    let interrupted = interrupt::watch()?;
    let line = ProgressLine::new();
    let taken = take_sheet(&Host, &request, &interrupted, &mut |progress| line.show(progress));
    line.end();
    let mut sheet = taken.map_err(|error| match error {
        SheetError::Calibration(_) => Failure::failed(format!("failed to {error}")),
        SheetError::NoSuchCpu(..) | SheetError::NoSuchRow(_) | SheetError::Priority(_) => {
            Failure::bad_request(error.to_string())
        }
    })?;
    sheet.summary = arguments.only.is_empty().then(|| summarize(&sheet));
    let style = arguments.to.style(arguments.verbose);
    let mut text = rendered(arguments, &sheet, format, &style);
    if let Some(other) = &beside {
        let (other, own) = historic_pairs::paired(other, &sheet);
        text.push_str(&historic_pairs::rendered(other, own, &TextStyle { verbose: true, ..style }));
    }
    output::finish(file, &text)?;
    if let Some(mut archive) = archive {
        archive.add(&render::to_json(&sheet))?;
    }
    Ok(exit(&sheet))
}

/// A number that differs in each run.
pub(crate) fn seed() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    since.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(since.subsec_nanos()))
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

fn rendered(arguments: &Arguments, sheet: &Sheet, format: Format, style: &TextStyle) -> String {
    match format {
        Format::Text if !arguments.chapter.is_empty() => {
            let mut some = sheet.clone();
            some.chapters.retain(|chapter| arguments.chapter.contains(&chapter.id));
            render::text(&some, style)
        }
        // Selected rows are always shown, and so are the rows of a comparison.
        Format::Text if arguments.full || !arguments.only.is_empty() || arguments.beside.is_some() => {
            render::text(sheet, style)
        }
        Format::Text => render::first_page(sheet, style),
        Format::Md => render::markdown(sheet),
        Format::Json => render::to_json(sheet),
        Format::Html if arguments.full => render::html_unfolded(sheet),
        Format::Html => render::html(sheet),
    }
}
