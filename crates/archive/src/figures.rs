//! The medians of many sheets as one table, for frames and other programs.

use std::collections::HashMap;

use hairspring_sheet::RowPattern;

use crate::{Archive, ArchiveError, ArchivedSheet, KnownMachine};

/// Selection of figures for a table.
#[derive(Clone, Debug, Default)]
pub struct FiguresOf {
    /// Machine of the figures; `None` selects all machines.
    pub machine: Option<KnownMachine>,
    /// Effort of the sheets; `None` selects every effort.
    pub effort: Option<String>,
    /// Patterns of rows; empty selects all rows.
    pub only: Vec<RowPattern>,
}

/// A quantity: a row's id with its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedQuantity {
    /// The id of the row.
    pub id: String,
    /// The name of its unit.
    pub unit: String,
    /// Label for people.
    pub label: String,
}

/// One figure. Its sheet and its quantity are places in the lists of an [`ArchivedFigures`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArchivedFigure {
    /// The place of its sheet.
    pub sheet: usize,
    /// The place of its quantity.
    pub quantity: usize,
    /// Number of samples.
    pub n: i64,
    /// Its median, in its unit.
    pub median: f64,
    /// Half of the interval that holds the median in 95 % of cases; none with too few samples.
    pub half_width: Option<f64>,
}

/// The figures of many sheets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArchivedFigures {
    /// The sheets, the oldest first; also those without such a figure.
    pub sheets: Vec<ArchivedSheet>,
    /// The quantities, in the order in which the archive met them.
    pub quantities: Vec<ArchivedQuantity>,
    /// The figures, those of the oldest sheet first.
    pub figures: Vec<ArchivedFigure>,
}

impl Archive {
    /// The figures of many sheets. It reads the tables alone, so it is quick; other statistics are in the documents.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn figures(&self, of: &FiguresOf) -> Result<ArchivedFigures, ArchiveError> {
        let _moment = self.reading()?;
        let mut sheets = match &of.machine {
            Some(machine) => self.sheets_of(machine)?,
            None => self.list()?,
        };
        sheets.retain(|sheet| of.effort.as_ref().is_none_or(|effort| sheet.effort == *effort));
        let mut known: Vec<_> = self.quantities()?.into_iter().collect();
        known.retain(|(_, (id, ..))| of.only.is_empty() || of.only.iter().any(|pattern| pattern.covers(id)));
        known.sort_unstable_by_key(|(number, _)| *number);
        let places: HashMap<i64, usize> =
            known.iter().enumerate().map(|(place, (number, _))| (*number, place)).collect();
        let mut figures = Vec::new();
        let columns = "SELECT quantity, n, median, half_width FROM figure WHERE sheet = ?1";
        let mut all = self.connection.prepare(&format!("{columns} ORDER BY quantity"))?;
        let mut one = self.connection.prepare(&format!("{columns} AND quantity = ?2"))?;
        // Few rows are found by their key; many by reading all of a sheet.
        let by_key = !of.only.is_empty() && known.len() <= 16;
        for (sheet, archived) in sheets.iter().enumerate() {
            let mut enter = |row: &rusqlite::Row<'_>| -> rusqlite::Result<()> {
                if let Some(quantity) = places.get(&row.get(0)?) {
                    let (n, median, half_width) = (row.get(1)?, row.get(2)?, row.get(3)?);
                    figures.push(ArchivedFigure { sheet, quantity: *quantity, n, median, half_width });
                }
                Ok(())
            };
            if by_key {
                for (number, _) in &known {
                    let mut rows = one.query([archived.number, *number])?;
                    while let Some(row) = rows.next()? {
                        enter(row)?;
                    }
                }
            } else {
                let mut rows = all.query([archived.number])?;
                while let Some(row) = rows.next()? {
                    enter(row)?;
                }
            }
        }
        let quantities = known.into_iter().map(|(_, (id, unit, label))| ArchivedQuantity { id, unit, label }).collect();
        Ok(ArchivedFigures { sheets, quantities, figures })
    }
}
