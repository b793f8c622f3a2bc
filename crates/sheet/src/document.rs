//! The sheet itself: head, conditions, chapters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Absent, Conditions, Diagram, Figure, Incident, Series, SheetSummary};

/// The version of the JSON form.
pub const SCHEMA: &str = "hairspring.sheet/1";

/// A timing data sheet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sheet {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Which build of Hairspring took the sheet.
    pub hairspring: Build,
    /// When and how it was taken.
    pub taken: Taken,
    /// The state of the machine.
    pub conditions: Conditions,
    /// Notes to read before the figures: missing permissions, an untrusted counter, an interruption.
    pub notes: Vec<Note>,
    /// The first page: a summary of the figures. Missing in sheets of other programs and of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SheetSummary>,
    /// The chapters, in reading order.
    pub chapters: Vec<Chapter>,
}

/// Which build of Hairspring took the sheet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Build {
    /// The version of the crates.
    pub version: String,
    /// The commit it was built from; null when built outside a checkout.
    pub commit: Option<String>,
    /// The compiler, as it names itself.
    pub compiler: String,
    /// The flags that affect speed: profile, optimisation, target features.
    pub flags: String,
}

/// When and how a sheet was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Taken {
    /// Start, RFC 3339 in UTC.
    pub start: String,
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// `quick`, `normal` or `thorough`.
    pub effort: String,
    /// Whether it was interrupted before its end; the figures that are missing say so themselves.
    pub interrupted: bool,
    /// How many rounds were completed, each of which measured every row; 0 where the sheet was taken in one go.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rounds: u32,
}

/// Whether a count is left out of the JSON.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// One chapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chapter {
    /// The first segment of the ids in it, for instance `clocks`.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// The question that it answers, in a sentence or two.
    pub intro: String,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Its plots.
    pub series: Vec<Series>,
    /// The worst gaps and late wake-ups, with who had the CPU from moment to moment; missing where there are none, as
    /// in sheets of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incidents: Vec<Incident>,
    /// Remarks below the tables.
    pub notes: Vec<Note>,
}

/// One table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// Id of the table, a prefix of the ids of its rows.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// Its rows, in reading order.
    pub rows: Vec<Row>,
    /// A timing diagram of its rows; missing if none is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagram: Option<Diagram>,
}

/// One row: a figure or the reason for its absence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Stable id.
    pub id: String,
    /// Its label, for people.
    pub label: String,
    /// The figure, or the reason for its absence.
    #[serde(flatten)]
    pub value: Value,
}

/// The content of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "rows are few and almost all are figures; a box would only add a pointer"
)]
pub enum Value {
    /// It was measured.
    Figure(Figure),
    /// It was not, and this is why.
    Absent(Absent),
}

/// A remark with its weight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// Its weight.
    pub kind: NoteKind,
    /// The remark, one or two sentences.
    pub text: String,
    /// The remedy; the exact command if there is one.
    pub remedy: Option<String>,
}

/// How much a note weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// Good to know.
    Remark,
    /// Limits the meaning of the figures.
    Warning,
}

impl Taken {
    /// The effort, with the rounds if there were any.
    pub(crate) fn how(&self) -> String {
        match self.rounds {
            0 => self.effort.clone(),
            1 => format!("{}, 1 round", self.effort),
            rounds => format!("{}, {rounds} rounds", self.effort),
        }
    }

    /// The start formatted for people; unchanged if it is not RFC 3339 in UTC.
    pub fn when(&self) -> String {
        let utc = self.start.strip_suffix('Z').and_then(|start| start.split_once('T'));
        utc.map_or(self.start.clone(), |(date, time)| format!("{date} {time} UTC"))
    }
}

impl Sheet {
    /// The title. A sheet made under Wine begins with that fact, because it does not describe Windows.
    pub fn title(&self) -> String {
        let wine = self.conditions.value("host.wine").map(|wine| format!(", made under {wine}"));
        format!("Timing data sheet{}", wine.unwrap_or_default())
    }

    /// Every row of the sheet, in reading order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.chapters.iter().flat_map(|c| &c.tables).flat_map(|t| &t.rows)
    }

    /// The row with this id.
    pub fn row(&self, id: &str) -> Option<&Row> {
        self.rows().find(|r| r.id == id)
    }
}

impl Row {
    /// The figure, if there is one.
    pub fn figure(&self) -> Option<&Figure> {
        match &self.value {
            Value::Figure(figure) => Some(figure),
            Value::Absent(_) => None,
        }
    }
}
