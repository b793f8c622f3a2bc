//! The history of a machine: the medians of its sheets, with where its conditions changed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use hairspring_sheet::{History, HistoryRow, RowPattern, Unit};
use rusqlite::{OptionalExtension, params};

use crate::{Archive, ArchiveError, ArchivedSheet, KnownMachine};

impl Archive {
    /// The sheets of a machine that its history has, the oldest first: the complete ones with this effort. Without an
    /// effort it is that of most of its sheets.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn sheets_of_history(
        &self,
        machine: &KnownMachine,
        effort: Option<&str>,
    ) -> Result<Vec<ArchivedSheet>, ArchiveError> {
        let mut sheets = self.sheets_of(machine)?;
        sheets.retain(|sheet| !sheet.interrupted);
        let mut counts: HashMap<&str, usize> = HashMap::new();
        sheets.iter().for_each(|sheet| *counts.entry(&sheet.effort).or_default() += 1);
        let usual = counts.into_iter().max_by_key(|(name, count)| (*count, *name)).map(|(name, _)| name.to_owned());
        let effort = effort.map(str::to_owned).or(usual).unwrap_or_default();
        sheets.retain(|sheet| sheet.effort == effort);
        Ok(sheets)
    }

    /// The history of the rows that one of `only` covers, of the sheets that [`Self::sheets_of_history`] has; of all
    /// rows without any.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn history(
        &self,
        machine: &KnownMachine,
        effort: Option<&str>,
        only: &[RowPattern],
    ) -> Result<History, ArchiveError> {
        let _moment = self.reading()?;
        let sheets = self.sheets_of_history(machine, effort)?;
        let mut rows = Vec::new();
        let mut quantities: Vec<_> = self.quantities()?.into_iter().collect();
        quantities.sort_unstable_by_key(|(number, _)| *number);
        let mut query = self.connection.prepare("SELECT median FROM figure WHERE sheet = ?1 AND quantity = ?2")?;
        for (number, (id, unit, label)) in quantities {
            let Some(unit) = Unit::named(&unit) else { continue };
            if !only.is_empty() && !only.iter().any(|pattern| pattern.covers(&id)) {
                continue;
            }
            let mut median = |sheet: i64| query.query_row(params![sheet, number], |row| row.get(0)).optional();
            let medians: Vec<Option<f64>> =
                sheets.iter().map(|sheet| median(sheet.number)).collect::<Result<_, _>>()?;
            if medians.iter().any(Option::is_some) {
                rows.push(HistoryRow { id, label, unit, medians });
            }
        }
        let mut facts: HashMap<i64, Vec<(String, String)>> = HashMap::new();
        let mut query =
            self.connection.prepare("SELECT label, value FROM fact WHERE conditions = ?1 ORDER BY place")?;
        for sheet in &sheets {
            if let Entry::Vacant(vacant) = facts.entry(sheet.conditions) {
                let found = query.query_map([sheet.conditions], |row| Ok((row.get(0)?, row.get(1)?)))?;
                vacant.insert(found.collect::<Result<_, _>>()?);
            }
        }
        Ok(History {
            taken: sheets.iter().map(|sheet| sheet.taken.clone()).collect(),
            taken_s: sheets.iter().map(|sheet| sheet.taken_ns as f64 / 1e9).collect(),
            conditions: sheets.iter().map(|sheet| sheet.conditions).collect(),
            facts,
            rows,
        })
    }
}
