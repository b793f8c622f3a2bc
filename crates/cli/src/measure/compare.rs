//! `hairspring compare`: compares sheets with the first one, and checks limits on the ratios.

use clap::Args;
use hairspring_sheet::{ComparisonGate, Sheet, TextStyle, compare, render};

use crate::exit::{Exit, Failure};
use crate::measure::historic;
use crate::output;
use crate::page::{Example, Page};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page::new(
    "compare",
    &[
        Example { does: "Show what changed between two sheets", line: "hairspring compare before.json after.json" },
        Example {
            does: "End with code 6 if reading the time became more than 20 % slower",
            line: "hairspring compare before.json after.json --fail-if 'clocks.read.now.later>1.2'",
        },
    ],
);

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Sheets, each a JSON file or the name of a historic sheet; every sheet is compared with the first
    #[arg(value_name = "NAME|FILE", num_args = 2.., required = true)]
    sheets: Vec<String>,
    /// End with exit code 6 if a ratio of medians exceeds a limit, for instance 'clocks.read.now.later>1.2'; may be repeated
    #[arg(long, value_name = "ID>RATIO")]
    fail_if: Vec<String>,
    /// List absent rows and rows without a difference, too
    #[arg(long)]
    verbose: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let gates = arguments.fail_if.iter().map(|text| ComparisonGate::parse(text)).collect::<Result<Vec<_>, _>>();
    let gates = gates.map_err(|error| Failure::bad_request(format!("--fail-if: failed to {error}")))?;
    let sheets = arguments.sheets.iter().map(|named| historic::find(named)).collect::<Result<Vec<_>, _>>()?;
    let Some((baseline, others)) = sheets.split_first() else {
        return Err(Failure::bad_request("compare needs at least two sheets"));
    };
    let covers_a_row = |gate: &&ComparisonGate| sheets.iter().flat_map(Sheet::rows).any(|row| gate.covers(&row.id));
    if let Some(gate) = gates.iter().find(|gate| !covers_a_row(gate)) {
        let text = format!("--fail-if {gate}: no row of these sheets has this id; `hairspring probes` lists all ids");
        return Err(Failure::bad_request(text));
    }
    output::print(&rendered(baseline, others, &output::style(arguments.verbose)))?;
    let comparison = compare(baseline, others);
    let failures: Vec<String> =
        gates.iter().flat_map(|gate| gate.check(&comparison)).map(|failure| failure.to_string()).collect();
    for failure in &failures {
        output::complain(failure);
    }
    Ok(if failures.is_empty() { Exit::Success } else { Exit::GateFailed })
}

/// The comparison as text.
pub(crate) fn rendered(baseline: &Sheet, others: &[Sheet], style: &TextStyle) -> String {
    render::comparison(&compare(baseline, others), style)
}
