//! `hairspring soak`: watches a job for hours, and keeps the result on the disk.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use std::io::Write;

use clap::Args;
use hairspring_advice::soak::{ASKED, Soak, SoakJob, SoakRequest, soak_sheet};
use hairspring_advice::summarize;
use hairspring_file::{NewFile, folder_of};
use hairspring_machine::{Clock, Cpu, Host, Machine, Nanos};
use hairspring_sheet::{Absent, Sheet, TextStyle, render};
use hairspring_suite::soak_load::{RunningLoads, SoakLoad, serve_load};
use hairspring_suite::{SheetError, timestamp};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

use super::answer::{self, Answer};
use super::jobs::{Asked, JobArguments};
use crate::arguments::{duration, parsed};
use crate::exit::{Exit, Failure};
use crate::listing::clock;
use crate::measure::destination::Format;
use crate::measure::historic;
use crate::measure::sheet::build;
use crate::page::{Example, Page};
use crate::placement::Measuring;
use crate::progress_line::ProgressLine;
use crate::table::wrapped;
use crate::{interrupt, output};

pub(crate) const PAGE: Page = Page {
    name: "soak",
    examples: &[
        Example {
            does: "Watch a loop of 1 kHz and the gaps in a polling loop over night",
            line: "hairspring soak --for 8h",
        },
        Example {
            does: "Watch a job under load, and end at the first clear no",
            line: "hairspring soak \"loop 1kHz jitter 100us misses 1/h\" --for 8h --load cpu,disk=20MB/s --until-no",
        },
        Example { does: "Show the present result, also while it runs", line: "hairspring soak --show soak.json" },
        Example {
            does: "Make a page with the plots",
            line: "hairspring soak --show soak.json --format html > soak.html",
        },
    ],
    files: &[(
        "soak-DATE-TIME.json",
        "the sheet, in the current folder unless --out names another; written after each block",
    )],
    environment: &[],
};

/// Watch a job for hours, under a load, and keep the result
///
/// Writes a sheet after each minute, which is always valid. The sheet has the worst cases with the time of day, and a
/// plot of extreme values that says how far to trust it. The terminal may close meanwhile.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Requirement of the job, as for `hairspring can`; several take turns [default: watch a loop of 1 kHz, and the
    /// gaps in a polling loop]
    #[arg(value_name = "REQUIREMENT")]
    requirements: Vec<String>,
    #[command(flatten)]
    jobs: JobArguments,
    /// How long to watch, for instance 8h
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, required_unless_present = "show")]
    span: Option<Nanos>,
    /// Load beside the job: cpu, memory, disk, net; optionally with a rate, like disk=20MB/s [disk: 5 MB/s, net: 10
    /// MB/s]
    #[arg(long, value_name = "LOAD,...", value_delimiter = ',', value_parser = parsed::<SoakLoad>)]
    load: Vec<SoakLoad>,
    /// End as soon as an answer is no
    #[arg(long)]
    until_no: bool,
    /// Time between two writes of the sheet; SIGKILL and a power cut lose no more than that
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    block: Nanos,
    /// Write the sheet to this file, which must not exist. The load `disk` writes in its folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    place: Measuring,
    /// Show the sheet of a soak, also of a running one, without measuring
    #[arg(long, value_name = "FILE", conflicts_with_all = ["requirements", "job", "jobs", "span", "load", "until_no", "out", "cpu"])]
    show: Option<String>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The shortest block: each ends with a synced write.
const BLOCK_LEAST: Nanos = Nanos::from_millis(100);

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(named) = &arguments.show {
        let sheet = historic::find(named)?;
        return show(&sheet, arguments.format, Some(named));
    }
    let request = request(arguments)?;
    let path = path(arguments)?;
    let interrupted = signals()?;
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::failed(format!("failed to find this program: {error}")))?;
    let mut loads =
        RunningLoads::start(&arguments.load, &program, &["load"], folder_of(&path), Host.affinity().0.len())
            .map_err(|error| Failure::failed(format!("failed to start the load: {error}")))?;
    let named = path.display().to_string();
    announce(&request, &named);
    let mut live = ProgressLine::new(false);
    let mut sheet = None;
    let soak = Soak::run(request, &mut loads, &interrupted, &mut |soak: &Soak| {
        let taken = checkpoint(soak, &path).map_err(|error| {
            Absent::new(
                format!("{named} could not be written: {error}"),
                "free some space, or name another file with --out",
            )
        });
        sheet = Some(taken?);
        live.show(soak.elapsed, || format!("{} of {}, {named}", clock(soak.elapsed), clock(soak.request.span)));
        Ok(())
    });
    live.end();
    drop(loads);
    // The blocks written before remain.
    soak.map_err(|absent| {
        let remedy = absent.remedy.map_or_else(String::new, |remedy| format!(": {remedy}"));
        Failure::failed(format!("{}{remedy}", absent.reason))
    })?;
    match &sheet {
        Some(sheet) => shown_last(sheet, arguments.format, &interrupted),
        None => Ok(Exit::Interrupted),
    }
}

/// Prints the end of a soak. If the terminal is closed, the file holds the result.
fn shown_last(sheet: &Sheet, format: Format, interrupted: &AtomicBool) -> Result<Exit, Failure> {
    let exit = show(sheet, format, None);
    match exit {
        _ if interrupted.load(Ordering::Relaxed) => Ok(Exit::Interrupted),
        Ok(exit) => Ok(exit),
        Err(_) => Ok(answer::exit(&said(sheet)?)),
    }
}

fn request(arguments: &Arguments) -> Result<SoakRequest, Failure> {
    let asked = arguments.jobs.asked(&arguments.requirements)?;
    let jobs = match asked.is_empty() {
        true => SoakJob::usual(),
        false => SoakJob::of(asked.into_iter().map(Asked::on_time).collect::<Result<Vec<_>, _>>()?),
    };
    let cpus = Host.affinity().0;
    let cpu = arguments.place.cpu.map(Cpu).or_else(|| cpus.last().copied()).unwrap_or(Cpu(0));
    if !cpus.contains(&cpu) {
        return Err(Failure::bad_request(SheetError::NoSuchCpu(cpu, cpus).to_string()));
    }
    let span = arguments.span.unwrap_or(Nanos::ZERO);
    if span <= Nanos::ZERO {
        return Err(Failure::bad_request("--for 0s: write how long to watch, for instance 8h"));
    }
    if arguments.block < BLOCK_LEAST {
        return Err(Failure::bad_request(format!("--block {}: write {BLOCK_LEAST} or more", arguments.block)));
    }
    let (block, priority, until_no) = (arguments.block, arguments.place.priority, arguments.until_no);
    Ok(SoakRequest { jobs, span, block, cpu, priority, until_no })
}

/// The name of the sheet; no file may exist under it.
fn path(arguments: &Arguments) -> Result<PathBuf, Failure> {
    let path = arguments.out.clone().unwrap_or_else(|| {
        let digits: String = timestamp(Host.read(Clock::Realtime)).chars().filter(char::is_ascii_digit).collect();
        let (date, time) = digits.split_at(digits.len().min(8));
        PathBuf::from(format!("soak-{date}-{time}.json"))
    });
    if path.symlink_metadata().is_ok() {
        let named = path.display();
        let text = format!("{named} exists: choose another name for --out, or show it with --show {named}");
        return Err(Failure::bad_request(text));
    }
    // Removed at once: only checks the name before hours are spent.
    let begun = NewFile::begin(&path).map(drop);
    begun.map_err(|error| Failure::bad_request(format!("cannot write {}: {error}", path.display())))?;
    Ok(path)
}

/// The flag that Ctrl-C, SIGTERM and Ctrl-\ set; a later Ctrl-C or SIGTERM ends the process. A closing terminal does
/// neither.
fn signals() -> Result<Arc<AtomicBool>, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let failed = |error| Failure::failed(format!("failed to watch for Ctrl-C: {error}"));
    interrupt::end_at_second()?;
    for signal in [SIGINT, SIGTERM, SIGQUIT] {
        flag::register(signal, Arc::clone(&interrupted)).map_err(failed)?;
    }
    flag::register(SIGHUP, Arc::new(AtomicBool::new(false))).map_err(failed)?;
    Ok(interrupted)
}

fn announce(request: &SoakRequest, named: &str) {
    let (id, block) = (std::process::id(), request.block);
    let text = format!(
        "watching for {}; {named} is written every {block}; `hairspring soak --show {named}` shows it. The soak continues when the \
         terminal closes; Ctrl-C or `kill -INT {id}` ends it cleanly.\n",
        clock(request.span)
    );
    // A closed terminal must not end the soak.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Writes the present sheet. When this returns, the sheet is on the disk under its name.
fn checkpoint(soak: &Soak, path: &Path) -> std::io::Result<Sheet> {
    let mut sheet = soak_sheet(soak, build());
    sheet.summary = Some(summarize(&sheet));
    let mut file = NewFile::begin(path)?;
    file.write_all(render::to_json(&sheet).as_bytes())?;
    file.replace()?;
    File::open(folder_of(path))?.sync_all()?;
    Ok(sheet)
}

/// The answers in the sheet of a soak.
fn said(sheet: &Sheet) -> Result<Vec<Answer>, Failure> {
    let asked = sheet.conditions.facts.iter().filter(|fact| fact.id.starts_with(ASKED));
    let asked = asked.filter_map(|fact| sheet.conditions.value(&fact.id));
    let asked: Vec<Asked> = asked.map(|text| Asked::new(text, None)).collect::<Result<_, _>>()?;
    asked.into_iter().map(|asked| answer::from_sheet(asked, sheet, "the soak")).collect()
}

fn show(sheet: &Sheet, format: Format, named: Option<&str>) -> Result<Exit, Failure> {
    if sheet.chapters.iter().all(|chapter| chapter.id != "soak") {
        let named = named.unwrap_or("this");
        return Err(Failure::bad_request(format!("{named} is not a sheet of a soak: give it to `hairspring compare`")));
    }
    let said = said(sheet)?;
    let style = output::style(false);
    output::print(&match format {
        Format::Text => text(sheet, &said, &style),
        Format::Md => render::markdown(sheet),
        Format::Json => render::to_json(sheet),
        Format::Html => render::html_unfolded(sheet),
    })?;
    Ok(answer::exit(&said))
}

/// The state first, then the answers, then the whole sheet.
fn text(sheet: &Sheet, said: &[Answer], style: &TextStyle) -> String {
    let value = |id| sheet.conditions.value(id).unwrap_or("an unknown time");
    let watched = Nanos::try_from_secs_f64(sheet.taken.duration_s).unwrap_or(Nanos::ZERO);
    let state = match sheet.taken.interrupted {
        false => "the requested time",
        true => "less than the requested time: it is running, or was ended",
    };
    let mut text =
        format!("Watched for {} of {}, until {}: {state}\n\n", clock(watched), value("soak.span"), value("soak.until"));
    if let Some(other) = answer::other_conditions(sheet) {
        for line in wrapped(&other, style.width) {
            text.push_str(&format!("{line}\n"));
        }
        text.push('\n');
    }
    if !said.is_empty() {
        text.push_str(&answer::text(said, style.width));
        text.push('\n');
    }
    text.push_str(&render::text(sheet, style));
    text
}

/// The hidden command `load`: produces a load until its parent ends.
pub(crate) fn load(load: SoakLoad, folder: &Path) -> Result<Exit, Failure> {
    serve_load(load, folder).map_err(|error| Failure::failed(format!("failed to produce the load {load}: {error}")))?;
    Ok(Exit::Success)
}
