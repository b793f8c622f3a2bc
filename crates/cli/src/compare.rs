//! `hairspring compare`: sheets against the first of them, and gates on the ratios.

use hairspring_sheet::{Gate, Sheet, TextStyle, compare, render};

use crate::arguments::CompareArguments;
use crate::exit::{Exit, Failure};
use crate::{historic, output};

pub(crate) fn run(arguments: &CompareArguments) -> Result<Exit, Failure> {
    let gates = arguments.fail_if.iter().map(|text| Gate::parse(text)).collect::<Result<Vec<_>, _>>();
    let gates = gates.map_err(|error| Failure::bad_request(format!("--fail-if: {error}")))?;
    let sheets = arguments.sheets.iter().map(|file| historic::read(file)).collect::<Result<Vec<_>, _>>()?;
    let Some((baseline, others)) = sheets.split_first() else {
        return Err(Failure::bad_request("compare needs at least two sheets"));
    };
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
