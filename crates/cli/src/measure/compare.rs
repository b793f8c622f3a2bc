//! `hairspring compare`: reports the differences between sheets of two builds or two machines, and checks limits on the
//! ratios.

use std::path::{Path, PathBuf};

use clap::Args;
use hairspring_archive::Archive;
use hairspring_sheet::{
    CompareTerms, ComparedSheets, Comparison, ComparisonGate, GateOutcome, RowPattern, Sheet, SheetLedger, TextStyle,
    compare, compare_interleaved, render,
};

use crate::exit::{Exit, Failure};
use crate::measure::destination::{Destination, Format};
use crate::measure::historic::{self, Document};
use crate::measure::{drift, historic_pairs};
use crate::output;
use crate::page::{Example, Page};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    files: &[
        ("SHEET", "a sheet that was written with --format json, a folder of them, or the name of a historic sheet"),
        (
            "--ledger DIR|FILE",
            "five or more sheets of one build on this machine; `sheet --out` writes them, and `archive` keeps them",
        ),
    ],
    ..Page::new(
        "compare",
        &[
            Example { does: "Show the ratios of two sheets", line: "hairspring compare before.json after.json" },
            Example {
                does: "Say what differs between two builds, three sheets of each",
                line: "hairspring compare old=1.json,2.json,3.json new=4.json,5.json,6.json",
            },
            Example {
                does: "End with code 6 if reading the time became more than 20 % slower, with 8 if undecided",
                line: "hairspring compare old=before/ new=after/ --fail-if 'clocks.read.now.later>1.2'",
            },
            Example {
                does: "Show when figures of this machine changed for good, and what changed with them",
                line: "hairspring compare --drift sheets/ --only clocks.read",
            },
            Example {
                does: "Write a page with a plot of every ratio of the delays",
                line: "hairspring compare before.json after.json --only delays --out delays.html",
            },
        ],
    )
};

/// Compare sheets: what differs, and what cannot be decided
///
/// A verdict on a row needs three sheets a side, a ledger of this machine's sheets, or two builds that `ab` measured in
/// turns. Two single sheets have ratios without verdicts, because two sheets of one build differ, too.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A side: a sheet, several with commas between, or a folder; NAME= names it. Every side is compared with the
    /// first. Give a comparison that `ab` wrote alone
    #[arg(value_name = "[NAME=]SHEET[,SHEET]", num_args = 1.., required_unless_present = "drift")]
    sides: Vec<String>,
    /// Fail if a ratio of medians is beyond a limit with 95 %, for instance 'clocks.read.now.later>1.2'; may be
    /// repeated
    #[arg(long, value_name = "ID>RATIO")]
    fail_if: Vec<String>,
    /// Fail if a limit cannot be decided
    #[arg(long, requires = "fail_if", conflicts_with = "lenient")]
    strict: bool,
    /// Pass if a limit cannot be decided, with a line that says so
    #[arg(long, requires = "fail_if")]
    lenient: bool,
    /// Only these rows: ids, beginnings of ids up to a dot, or beginnings with a * at the end; separated by commas
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    only: Vec<String>,
    /// Changes below this are the same
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = margin)]
    margin: f64,
    /// A folder of five or more sheets of one build on this machine, which say how much its sheets vary; or an archive
    #[arg(long, value_name = "DIR|FILE")]
    ledger: Option<PathBuf>,
    /// Show when the figures of the sheets in this folder changed for good, instead of comparing sides
    #[arg(long, value_name = "DIR", conflicts_with_all = ["sides", "fail_if", "ledger"])]
    drift: Option<PathBuf>,
    #[command(flatten)]
    to: Destination,
    /// In text, list every row
    #[arg(long)]
    verbose: bool,
}

/// A margin in percent, with or without the sign, as a fraction.
pub(crate) fn margin(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match percent {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent / 100.0),
        _ => Err("write a percentage above 0 and up to 100, such as 5%".to_owned()),
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let format = arguments.to.format()?;
    let only = patterns(&arguments.only)?;
    let gates = arguments.fail_if.iter().map(|text| ComparisonGate::parse(text)).collect::<Result<Vec<_>, _>>();
    let gates = gates.map_err(|error| Failure::bad_request(format!("--fail-if: {error}")))?;
    let file = arguments.to.file()?;
    let mut style = arguments.to.style(arguments.verbose);
    if let Some(folder) = &arguments.drift {
        output::finish(file, &drift::rendered(folder, &only, format, &style)?)?;
        return Ok(Exit::Success);
    }
    let (comparison, historic) = compared(arguments, only, &gates)?;
    // A historic sheet allows only ratios.
    style.verbose |= historic;
    output::finish(file, &rendered(&comparison, format, &style))?;
    Ok(checked(arguments, &gates, &comparison))
}

pub(crate) fn rendered(comparison: &Comparison, format: Format, style: &TextStyle) -> String {
    match format {
        Format::Text => render::comparison(comparison, style),
        Format::Md => render::comparison_markdown(comparison),
        Format::Html => render::comparison_html(comparison),
        Format::Json => render::comparison_json(comparison),
    }
}

/// The comparison, and whether one of its sheets is historic.
fn compared(
    arguments: &Arguments,
    only: Vec<RowPattern>,
    gates: &[ComparisonGate],
) -> Result<(Comparison, bool), Failure> {
    if let [alone] = arguments.sides.as_slice() {
        return match historic::document(alone)? {
            Document::Interleaved(mut measured) => {
                known(measured.rows.iter().map(|row| row.id.as_str()), &only, gates)?;
                measured.rows.retain(|row| only.is_empty() || only.iter().any(|pattern| pattern.covers(&row.id)));
                Ok((compare_interleaved(&measured, Some(arguments.margin)), false))
            }
            Document::Sheet(_) => Err(Failure::bad_request(format!(
                "{alone} is one sheet, and a comparison needs two; name the other sheet after it"
            ))),
        };
    }
    let mut sides = arguments.sides.iter().map(|side| self::side(side)).collect::<Result<Vec<_>, _>>()?;
    distinguish(&mut sides, &arguments.sides);
    let historic = historic_pairs::pair_with_historic(&mut sides);
    known(sides.iter().flat_map(|side| &side.sheets).flat_map(Sheet::rows).map(|row| row.id.as_str()), &only, gates)?;
    let ledger = arguments.ledger.as_deref().map(|folder| self::ledger(folder, &sides)).transpose()?;
    let terms = CompareTerms { same: Some(arguments.margin), ledger, only };
    Ok((compare(&sides, &terms), historic))
}

/// The rows that a user names.
pub(crate) fn patterns<T: AsRef<str>>(texts: &[T]) -> Result<Vec<RowPattern>, Failure> {
    let pattern = |text: &str| {
        RowPattern::parse(text).ok_or_else(|| {
            Failure::bad_request(format!(
                "--only {text:?} is not an id: write an id, its beginning up to a dot, or any beginning with a * at its end"
            ))
        })
    };
    texts.iter().map(|text| pattern(text.as_ref())).collect()
}

/// Refuses ids that no sheet has, before anything is compared.
fn known<'a>(ids: impl Iterator<Item = &'a str>, only: &[RowPattern], gates: &[ComparisonGate]) -> Result<(), Failure> {
    let ids: Vec<&str> = ids.collect();
    let gates = gates.iter().map(|gate| ("--fail-if", gate.to_string(), gate.pattern()));
    let only = only.iter().map(|pattern| ("--only", pattern.to_string(), pattern));
    for (option, written, pattern) in gates.chain(only) {
        if !ids.iter().any(|id| pattern.covers(id)) {
            let similar = hairspring_suite::similar_ids(&pattern.to_string(), &ids);
            let similar =
                if similar.is_empty() { String::new() } else { format!("; did you mean {}", similar.join(" or ")) };
            return Err(Failure::bad_request(format!(
                "{option} {written}: no row of these sheets has this id{similar}{} `hairspring probes` lists all ids",
                if similar.is_empty() { ";" } else { "?" }
            )));
        }
    }
    Ok(())
}

/// A side from the command line: an optional name before `=`, then sheets.
fn side(written: &str) -> Result<ComparedSheets, Failure> {
    let is_file = Path::new(written).exists();
    let (name, sheets) = match written.split_once('=') {
        Some((name, sheets)) if !is_file && !name.contains(['/', ',']) && !name.is_empty() => (Some(name), sheets),
        _ => (None, written),
    };
    let parts: Vec<&str> = if Path::new(sheets).exists() { vec![sheets] } else { sheets.split(',').collect() };
    let mut found = Vec::new();
    for part in &parts {
        found.extend(historic::sheets(part)?);
    }
    if (1..found.len()).any(|later| found[..later].contains(&found[later])) {
        return Err(Failure::bad_request(format!("{written} names a sheet twice: that is one value, not two")));
    }
    let file = parts[0].strip_suffix(".zst").unwrap_or(parts[0]);
    let stem = Path::new(file).file_stem().map_or(file.to_owned(), |stem| stem.to_string_lossy().into_owned());
    Ok(ComparedSheets { name: name.map_or(stem, str::to_owned), sheets: found })
}

/// Gives sides of one name names that differ: with the folder of their sheet, otherwise with the time at which it was
/// taken.
fn distinguish(sides: &mut [ComparedSheets], written: &[String]) {
    let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
    let differ = |names: &[String]| (1..names.len()).all(|place| !names[..place].contains(&names[place]));
    let with = |more: &dyn Fn(usize) -> Option<String>| -> Vec<String> {
        let name = |(place, name): (usize, &String)| match names.iter().filter(|other| *other == name).count() {
            1 => name.clone(),
            _ => more(place).unwrap_or_else(|| name.clone()),
        };
        names.iter().enumerate().map(name).collect()
    };
    let folder = |place: usize| {
        let sheets = written[place].rsplit('=').next()?.split(',').next()?;
        let folder = Path::new(sheets).parent()?.file_name()?.to_string_lossy().into_owned();
        Some(format!("{folder}/{}", names[place]))
    };
    let taken = |place: usize| Some(format!("{}, {}", names[place], sides[place].sheets.first()?.taken.when()));
    let found = [names.clone(), with(&folder), with(&taken)].into_iter().find(|names| differ(names));
    for (side, name) in sides.iter_mut().zip(found.into_iter().flatten()) {
        side.name = name;
    }
}

/// The ledger in a folder or an archive, which must suit every sheet.
fn ledger(place: &Path, sides: &[ComparedSheets]) -> Result<SheetLedger, Failure> {
    let named = place.display();
    let refused = |error| Failure::bad_request(format!("--ledger {named}: failed to {error}"));
    let ledger = if place.is_file() {
        let sheets: Vec<&Sheet> = sides.iter().flat_map(|side| &side.sheets).collect();
        Archive::open(place)?.ledger(&sheets)?.ok_or_else(|| {
            Failure::bad_request(format!(
                "--ledger {named}: the archive has no five sheets of this machine and effort under equal conditions; add more"
            ))
        })?
    } else {
        SheetLedger::new(&historic::sheets(&named.to_string())?).map_err(refused)?
    };
    for sheet in sides.iter().flat_map(|side| &side.sheets) {
        ledger.suits(sheet).map_err(refused)?;
    }
    Ok(ledger)
}

/// Prints the results of the gates on the standard error.
fn checked(arguments: &Arguments, gates: &[ComparisonGate], comparison: &Comparison) -> Exit {
    let mut worst = GateOutcome::Holds;
    for report in gates.iter().map(|gate| gate.check(comparison)) {
        worst = worst.max(report.outcome);
        for finding in &report.findings {
            let passes = finding.outcome == GateOutcome::Undecided && arguments.lenient;
            let outcome =
                if passes { "undecided, and passes by --lenient".to_owned() } else { finding.outcome.to_string() };
            let id = finding.id.as_ref().map_or(String::new(), |id| format!("{id}: "));
            output::complain(&format!("{} {outcome}: {id}{}", report.gate, finding.text));
        }
    }
    match worst {
        GateOutcome::Fails => Exit::GateFailed,
        GateOutcome::Undecided if arguments.strict => Exit::GateFailed,
        GateOutcome::Undecided if !arguments.lenient => Exit::GateUndecided,
        GateOutcome::Holds | GateOutcome::Undecided => Exit::Success,
    }
}
