//! A selection of rows by their ids.

use std::fmt;

/// The ids that a gate or a selection of rows covers: one id, the beginning of several up to a dot (`delays.minimum`),
/// or any beginning with one `*` at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPattern(String);

impl RowPattern {
    /// Reads a pattern. `None` if it is empty, or has a `*` anywhere but at its end, or a character that no id has.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.strip_suffix('*').unwrap_or(text);
        let good = |c: char| c.is_alphanumeric() || "._→-".contains(c);
        (!text.is_empty() && id.chars().all(good)).then(|| Self(text.to_owned()))
    }

    /// Whether it covers the row with this id.
    pub fn covers(&self, id: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => id.starts_with(beginning),
            None => id.strip_prefix(self.0.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
        }
    }
}

impl fmt::Display for RowPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
