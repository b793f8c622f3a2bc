//! `hairspring scope --device`: watches the lines of a virtual board, and writes the edges as a value change dump or as
//! a drawing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use hairspring_device::{DeviceDescription, Lines, Scope, Traced};
use hairspring_machine::{Cpu, CpuSet, Host, Machine};
use hairspring_sheet::{Figure, MARKERS_MAX, Method, Overlay, Unit};
use hairspring_time::{Nanos, Timebase};
use serde_json::json;

use crate::arguments::{Plain, duration, number};
use crate::drive::drawing::{self, DRAWING};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::listing::{Listing, grouped, span};
use crate::output::{self, OutputFile};

/// How to watch a board.
#[derive(Args, Clone, Debug)]
pub(super) struct BoardArguments {
    /// Most edges to keep
    #[arg(long, value_name = "N", default_value_t = 100_000, allow_negative_numbers = true)]
    #[arg(help_heading = "Board", conflicts_with = "live")]
    #[arg(value_parser = number::<u32>(1, 10_000_000))]
    edges: u32,
    /// CPU to watch from; it is busy all the time
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Board", conflicts_with = "live")]
    cpu: Option<u32>,
    /// Write the edges to this file: as a value change dump (.vcd), or drawn as pulses over each other (.svg)
    #[arg(long, value_name = "FILE", help_heading = "Board", conflicts_with = "live")]
    out: Option<PathBuf>,
    /// Mark these widths in the drawing, at most 4; pulses shorter than the first mark are highlighted
    #[arg(long, value_name = "DURATION", value_parser = duration, value_delimiter = ',', requires = "out")]
    #[arg(help_heading = "Board")]
    marker: Vec<Nanos>,
}

/// Parsed arguments.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) device: DeviceDescription,
    /// Length of the watch.
    pub(super) length: Nanos,
    pub(super) format: Plain,
    pub(super) more: BoardArguments,
}

/// Age of the calibration before watching begins.
const AGE: Nanos = Nanos::from_millis(100);

pub(super) fn run(arguments: &Request) -> Result<Exit, Failure> {
    let file = arguments.more.out.as_deref().map(|file| form(arguments, file).and_then(|_| OutputFile::create(file)));
    let file = file.transpose()?;
    let stop = interrupt::watch()?;
    let timebase = Timebase::calibrate_to(Host, 1.0, AGE);
    let timebase = timebase.map_err(Failure::failed_to)?;
    let board = arguments.device.open_board(&timebase).map_err(|error| Failure::bad_request(error.to_string()))?;
    let in_force = arguments.device.in_force(&timebase).map_err(|error| Failure::bad_request(error.to_string()))?;
    let arguments = &Request { device: in_force, ..arguments.clone() };
    if let Some(cpu) = arguments.more.cpu {
        let placed = Host.set_affinity(&CpuSet(vec![Cpu(cpu)]));
        placed.map_err(|refused| Failure::bad_request(format!("--cpu {cpu}: failed to {refused}")))?;
    }
    let scope = Scope { span: arguments.length, most_edges: arguments.more.edges as usize };
    let traced = scope.watch(&board, &timebase, &stop);
    if let Some((file, named)) = file.zip(arguments.more.out.as_deref()) {
        match form(arguments, named)? {
            Form::Dump => file.finish(&traced.to_vcd())?,
            Form::Drawing => file.finish(&drawing(arguments, &traced)?)?,
        }
    }
    output::print(&match arguments.format {
        Plain::Text => text(arguments, &traced, output::style(false).width),
        Plain::Json => json(arguments, &traced),
    })?;
    if traced.board_gone {
        return Err(Failure::failed(
            "failed to watch the board to the end: its file was truncated; remove the file and start all programs that use it again"
                .to_owned(),
        ));
    }
    Ok(Exit::Success)
}

/// Kinds of file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Dump,
    Drawing,
}

/// The kind that the file's ending asks for.
fn form(arguments: &Request, file: &Path) -> Result<Form, Failure> {
    let bad = |text: String| Err(Failure::bad_request(text));
    if arguments.more.marker.len() > MARKERS_MAX || arguments.more.marker.iter().any(|marker| *marker <= Nanos::ZERO) {
        return bad("--marker takes at most 4 widths, each more than 0; write for instance 2us,3us".to_owned());
    }
    match (drawing::ends_with(file, DRAWING), drawing::ends_with(file, "vcd")) {
        (true, _) => Ok(Form::Drawing),
        (false, true) if !arguments.more.marker.is_empty() => {
            bad("--marker needs a drawing: write --out FILE.svg".to_owned())
        }
        (false, true) => Ok(Form::Dump),
        (false, false) => bad(format!("--out {}: write a name that ends in .vcd or .svg", file.display())),
    }
}

/// A drawing for every line with pulses, the lowest line on top.
fn drawing(arguments: &Request, traced: &Traced) -> Result<String, Failure> {
    let widths = widths(traced).into_iter().filter(|(_, widths)| !widths.is_empty());
    let title = |line: u32| format!("line {line} of {}", arguments.device);
    let overlays: Vec<Overlay> =
        widths.map(|(line, widths)| drawing::seen(title(line), &widths, &arguments.more.marker)).collect();
    drawing::drawn(&overlays)
}

/// The lines that changed, each with the pulses whose both edges were seen.
fn widths(traced: &Traced) -> BTreeMap<u32, Vec<(Nanos, Nanos)>> {
    let mut before = traced.begin;
    let mut changed = Lines(0);
    for edge in &traced.edges {
        changed.0 |= before.0 ^ edge.lines.0;
        before = edge.lines;
    }
    (0..u32::BITS).filter(|line| changed.is_high(*line)).map(|line| (line, traced.widths(line))).collect()
}

fn figure(widths: &[(Nanos, Nanos)], read: fn(&(Nanos, Nanos)) -> Nanos) -> Figure {
    let mut samples: Vec<f64> = widths.iter().map(|width| read(width).count() as f64).collect();
    Figure::from_samples(Unit::Ns, Method::Stamp, &mut samples)
}

fn text(arguments: &Request, traced: &Traced, width: usize) -> String {
    let mut listing = Listing::new(width);
    let edges = grouped(traced.edges.len() as u64);
    listing.heading(&format!("{edges} edges of {} in {}", arguments.device, span(traced.span)));
    match traced.missed() {
        0 => listing.fact("missed", "nothing"),
        missed => listing.fact("missed", &format!("{} writes came between two looks", grouped(missed))),
    }
    if traced.dropped > 0 {
        listing.fact("no room", &format!("for {} edges; allow more with --edges", grouped(traced.dropped)));
    }
    for (line, widths) in widths(traced) {
        let [least, most] = [figure(&widths, |width| width.0), figure(&widths, |width| width.1)];
        let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |nanos| span(Nanos::new(nanos as i64)));
        let told = match widths.len() {
            0 => "changed; no pulse was seen from edge to edge".to_owned(),
            count => format!(
                "{} pulses; their median is from {} to {}, the longest at most {}",
                grouped(count as u64),
                shown(least.median),
                shown(most.median),
                shown(most.max)
            ),
        };
        listing.fact(&format!("line {line}"), &told);
    }
    if let Some(file) = &arguments.more.out {
        let reader = if drawing::ends_with(file, DRAWING) { "for a browser" } else { "for GTKWave or PulseView" };
        listing.fact("written", &format!("{}, {reader}", file.display()));
    }
    listing.finish()
}

fn json(arguments: &Request, traced: &Traced) -> String {
    let lines: Vec<_> = widths(traced)
        .into_iter()
        .map(|(line, widths)| {
            let [least, most] = [figure(&widths, |width| width.0), figure(&widths, |width| width.1)];
            json!({
                "line": line,
                "pulses": widths.len(),
                "at_least_ns": { "min": least.min, "median": least.median, "max": least.max },
                "at_most_ns": { "min": most.min, "median": most.median, "max": most.max },
            })
        })
        .collect();
    let value = json!({
        "schema": "hairspring.scope/1",
        "device": arguments.device.to_string(),
        "span_ns": traced.span.count(),
        "edges": traced.edges.len(),
        "missed_writes": traced.missed(),
        "dropped_edges": traced.dropped,
        "lines": lines,
        "files": arguments.more.out.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}
