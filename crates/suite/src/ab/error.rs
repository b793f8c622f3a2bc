//! [`AbError`].

use crate::probe::UnknownProbe;
use crate::request::SheetError;

/// Why there is no comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AbError {
    /// A program cannot be measured, and why.
    Build(String),
    /// The builds have different rows: those that only the baseline has, and those that only the other has.
    Rows(Vec<String>, Vec<String>),
    /// No row of both builds has this id.
    NoSuchRow(UnknownProbe),
    /// Rounds, CPU or priority are invalid, or there is no time base.
    Sheet(SheetError),
}

impl std::fmt::Display for AbError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Build(why) => f.write_str(why),
            Self::Rows(baseline, other) => {
                let some = |ids: &[String]| ids.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
                let side = |whose: &str, ids: &[String]| match ids.len() {
                    0 => String::new(),
                    n => format!("; {n} only in the {whose}: {}", some(ids)),
                };
                let (baseline, other) = (side("baseline", baseline), side("other build", other));
                write!(f, "the builds have different rows{baseline}{other}; --common compares the rows of both")
            }
            Self::NoSuchRow(unknown) => unknown.fmt(f),
            Self::Sheet(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AbError {}

impl From<SheetError> for AbError {
    fn from(error: SheetError) -> Self {
        Self::Sheet(error)
    }
}
