//! The archive as the ledger of the variation between the sheets of a machine.

use std::collections::HashMap;

use hairspring_sheet::{LEDGER_MIN, Sheet, SheetLedger};
use rusqlite::params;

use crate::identity::conditions_of;
use crate::query::column;
use crate::{Archive, ArchiveError, machine_id};

/// Most sheets in a ledger, the latest ones. More sheets take time and hardly improve the estimate of a variance.
const SHEETS_MAX: i64 = 50;

impl Archive {
    /// A ledger for sheets that are to be compared: of the latest sheets of their machine and effort that were taken
    /// under equal conditions, by one build. It prefers the conditions of a sheet that is compared, then those with the
    /// most sheets. `None` if no conditions have five sheets.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn ledger(&self, compared: &[&Sheet]) -> Result<Option<SheetLedger>, ArchiveError> {
        let Some(first) = compared.first() else { return Ok(None) };
        let _moment = self.reading()?;
        let own: Vec<String> = compared.iter().map(|sheet| conditions_of(sheet).0).collect();
        let query = "SELECT conditions.number, conditions.id, count(*) FROM sheet
             JOIN machine ON machine.number = sheet.machine JOIN conditions ON conditions.number = sheet.conditions
             WHERE machine.id = ?1 AND effort = ?2 AND NOT interrupted GROUP BY conditions.number HAVING count(*) >= ?3";
        let mut query = self.connection.prepare(query)?;
        let machine = machine_id(&first.conditions);
        let groups = query.query_map(params![machine, first.taken.effort, LEDGER_MIN as i64], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
        let groups: Vec<(i64, String, i64)> = groups.collect::<Result<_, _>>()?;
        let Some((conditions, ..)) = groups.into_iter().max_by_key(|(_, id, count)| (own.contains(id), *count)) else {
            return Ok(None);
        };
        let query = "SELECT sheet.number FROM sheet JOIN machine ON machine.number = sheet.machine
             WHERE machine.id = ?1 AND conditions = ?2 AND NOT interrupted ORDER BY taken_ns DESC LIMIT ?3";
        let sheets = column(&self.connection, query, params![machine, conditions, SHEETS_MAX])?;
        let names = self.quantities()?;
        let mut medians: HashMap<String, Vec<f64>> = HashMap::new();
        let mut query = self.connection.prepare("SELECT quantity, median FROM figure WHERE sheet = ?1")?;
        let mut by_number: HashMap<i64, Vec<f64>> = HashMap::new();
        for sheet in &sheets {
            for figure in query.query_map([sheet], |row| Ok((row.get(0)?, row.get(1)?)))? {
                let (quantity, median): (i64, f64) = figure?;
                by_number.entry(quantity).or_default().push(median);
            }
        }
        for (quantity, values) in by_number {
            if let Some((id, ..)) = names.get(&quantity) {
                medians.insert(id.clone(), values);
            }
        }
        Ok(Some(SheetLedger::of_medians(first, sheets.len(), medians)))
    }

    /// The ids of all rows that a sheet has a figure for.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn rows(&self) -> Result<Vec<String>, ArchiveError> {
        let mut ids: Vec<String> = self.quantities()?.into_values().map(|(id, ..)| id).collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Every quantity: its id, unit and label by its number.
    pub(crate) fn quantities(&self) -> Result<HashMap<i64, (String, String, String)>, ArchiveError> {
        let mut query = self.connection.prepare("SELECT number, id, unit, label FROM quantity")?;
        let found = query.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?, row.get(3)?))))?;
        Ok(found.collect::<Result<_, _>>()?)
    }
}
