//! Variation between the sheets of one machine, from sheets of one build.

use std::collections::HashMap;
use std::fmt;

use crate::Sheet;
use crate::statistics::{Difference, Units};

/// The least number of sheets that show how much sheets vary.
pub const LEDGER_MIN: usize = 5;

/// The medians of sheets of one build on one machine, row by row. It replaces the sheets that a comparison of single
/// sheets lacks.
#[derive(Clone, Debug, PartialEq)]
pub struct SheetLedger {
    machine: String,
    effort: String,
    sheets: usize,
    medians: HashMap<String, Vec<f64>>,
}

/// Why sheets do not make a ledger, or why a ledger does not apply to a sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerError {
    /// There are fewer than [`LEDGER_MIN`] sheets.
    TooFew(usize),
    /// The sheets are not of one build, one processor and one effort; names two of them and the difference.
    Unlike(&'static str, [String; 2]),
    /// The ledger is of another processor or effort than the sheets compared.
    Other(&'static str, [String; 2]),
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LedgerError::TooFew(found) => write!(
                f,
                "use the ledger: it has {found} sheets, and at least {LEDGER_MIN} of one build are needed to know how much they vary"
            ),
            LedgerError::Unlike(what, [a, b]) => {
                write!(
                    f,
                    "use the ledger: its sheets have more than one {what}: {a}, and {b}; keep those of one {what}"
                )
            }
            LedgerError::Other(what, [ledger, sheet]) => write!(
                f,
                "use the ledger: its {what} is {ledger}, and that of the sheets is {sheet}; give a ledger of this {what}"
            ),
        }
    }
}

impl std::error::Error for LedgerError {}

fn machine(sheet: &Sheet) -> String {
    sheet.conditions.value("cpu.model").unwrap_or("unknown").to_owned()
}

impl SheetLedger {
    /// A ledger of these sheets.
    ///
    /// # Errors
    /// Below five sheets, and if they are not of one build, one processor and one effort.
    pub fn new(sheets: &[Sheet]) -> Result<Self, LedgerError> {
        let Some(first) = sheets.first().filter(|_| sheets.len() >= LEDGER_MIN) else {
            return Err(LedgerError::TooFew(sheets.len()));
        };
        let build = |sheet: &Sheet| format!("{:?}", sheet.hairspring);
        let effort = |sheet: &Sheet| sheet.taken.effort.clone();
        for other in sheets {
            let one = |what, of: &dyn Fn(&Sheet) -> String| {
                let both = [of(first), of(other)];
                if both[0] == both[1] { Ok(()) } else { Err(LedgerError::Unlike(what, both)) }
            };
            one("build", &build)?;
            one("processor", &machine)?;
            one("effort", &effort)?;
        }
        let mut medians: HashMap<String, Vec<f64>> = HashMap::new();
        for row in sheets.iter().flat_map(Sheet::rows) {
            if let Some(median) = row.figure().and_then(|figure| figure.median) {
                medians.entry(row.id.clone()).or_default().push(median);
            }
        }
        Ok(Self { machine: machine(first), effort: effort(first), sheets: sheets.len(), medians })
    }

    /// A ledger of medians by row id, from `sheets` sheets with the machine, effort and build of `like`.
    pub fn of_medians(like: &Sheet, sheets: usize, medians: HashMap<String, Vec<f64>>) -> Self {
        Self { machine: machine(like), effort: like.taken.effort.clone(), sheets, medians }
    }

    /// Number of its sheets.
    pub(super) fn sheets(&self) -> usize {
        self.sheets
    }

    /// Checks that it applies to this sheet.
    ///
    /// # Errors
    /// If the sheet is of another processor or effort.
    pub fn suits(&self, sheet: &Sheet) -> Result<(), LedgerError> {
        let own = machine(sheet);
        if own != self.machine {
            return Err(LedgerError::Other("processor", [self.machine.clone(), own]));
        }
        if sheet.taken.effort != self.effort {
            return Err(LedgerError::Other("effort", [self.effort.clone(), sheet.taken.effort.clone()]));
        }
        Ok(())
    }

    /// A difference with the variance of the ledger; `None` for a row that too few of its sheets have.
    pub(super) fn difference(&self, id: &str, a: &Units, b: &Units, quantum: Option<f64>) -> Option<Difference> {
        let medians = self.medians.get(id).filter(|medians| medians.len() >= LEDGER_MIN)?;
        let varies = Units::new(medians, a.scale, quantum)?;
        Difference::with_variance(a, b, varies.variance?, (varies.count - 1) as f64)
    }
}
