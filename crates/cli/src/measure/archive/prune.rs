//! `hairspring archive prune`: removes sheets.

use std::collections::HashMap;

use clap::Args;
use hairspring_archive::{Archive, ArchivedSheet};

use super::list;
use crate::exit::{Exit, Failure};
use crate::output;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Ids of sheets, or their beginnings
    #[arg(value_name = "ID", required_unless_present_any = ["before", "keep"])]
    sheets: Vec<String>,
    /// Sheets that were taken before this day, for instance 2025-01-31
    #[arg(long, value_name = "DATE", value_parser = date)]
    before: Option<String>,
    /// All but the last N sheets of each machine
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Remove them
    #[arg(long)]
    yes: bool,
}

/// A day as sheets write it.
fn date(text: &str) -> Result<String, String> {
    let is_digit =
        |(place, byte): (usize, u8)| if place == 4 || place == 7 { byte == b'-' } else { byte.is_ascii_digit() };
    match text.len() == 10 && text.bytes().enumerate().all(is_digit) {
        true => Ok(text.to_owned()),
        false => Err("write a day such as 2025-01-31".to_owned()),
    }
}

pub(super) fn run(archive: &mut Archive, arguments: &Arguments) -> Result<Exit, Failure> {
    let named = arguments.sheets.iter().map(|id| archive.find(id)).collect::<Result<Vec<_>, _>>()?;
    let mut later: HashMap<String, usize> = HashMap::new();
    let mut goes = |sheet: &ArchivedSheet| {
        let after = later.entry(sheet.machine.clone()).or_default();
        *after += 1;
        named.contains(sheet)
            || arguments.before.as_deref().is_some_and(|day| sheet.taken.as_str() < day)
            || arguments.keep.is_some_and(|keep| *after > keep)
    };
    let mut going: Vec<ArchivedSheet> = archive.list()?.into_iter().rev().filter(|sheet| goes(sheet)).collect();
    going.reverse();
    if going.is_empty() {
        return output::print("no sheet would go\n");
    }
    if !arguments.yes {
        return output::print(&format!(
            "{}{} of these would go; add --yes to remove them\n",
            list::text(&going),
            going.len()
        ));
    }
    let ids: Vec<String> = going.into_iter().map(|sheet| sheet.id).collect();
    let removed = archive.remove(&ids)?;
    let size = removed.not_smaller.map_or(String::new(), |why| {
        format!("; the file is as large as before, and later sheets use the space, because it failed to {why}")
    });
    output::print(&format!("{} removed{size}\n", removed.sheets))
}
