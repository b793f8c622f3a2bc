//! Declarations of a chapter: its tables and rows, and the slots for their values.

use hairspring_sheet::{Diagram, Method, Unit};
use serde::{Deserialize, Serialize};

/// A chapter's declaration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChapterDeclaration {
    /// First segment of the ids in it.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// The question that it answers.
    pub intro: String,
    /// Its tables.
    pub tables: Vec<TableDeclaration>,
}

/// A table's declaration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableDeclaration {
    /// Prefix of the ids of its rows.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// The limits of the number of samples and of the range of the figures.
    pub limits: String,
    /// Its rows.
    pub rows: Vec<RowDeclaration>,
    /// The diagram of its rows.
    pub diagram: Option<Diagram>,
}

/// A row's declaration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowDeclaration {
    /// Stable id.
    pub id: String,
    /// A short label, for people.
    pub label: String,
    /// The unit of its figure.
    pub unit: Unit,
    /// The method of its samples.
    pub method: Method,
    /// The exact description of the measured quantity.
    pub measures: String,
}

impl RowDeclaration {
    pub(crate) fn new(id: String, label: String, unit: Unit, method: Method, measures: impl Into<String>) -> Self {
        Self { id, label, unit, method, measures: measures.into() }
    }
}

/// Index of the value of one row. Only [`Probes::row`](super::Probes::row) makes one, so there is no slot without a
/// row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub(super) usize);
