//! The timing data sheet as a document: plain data, its statistics, its renderings, its comparison.
//!
//! A [`Sheet`] has [`Conditions`] and [`Chapter`]s; a chapter has [`Table`]s of rows and [`Series`] to draw. Every row
//! holds a [`Figure`] with unit, count and spread, or an [`Absent`] with its reason and the remedy: never a zero or an
//! empty cell in place of a missing measurement.
//!
//! This crate does not know how figures are measured. It neither measures nor prints; renderers return text.
//!
//! The JSON form (`"schema": "hairspring.sheet/1"`) is the contract for everything that reads sheets. Within `/1`
//! fields may be added; none is removed or changes its meaning.
#![forbid(unsafe_code)]

mod compare;
mod conditions;
mod diagram;
mod document;
mod drift;
mod figure;
mod gate;
mod histogram;
mod incident;
mod overlay;
pub mod render;
mod row_pattern;
mod series;
mod stamps;
pub mod statistics;
mod summary;
mod trend;

pub use compare::{
    Against, COMPARISON_SCHEMA, ChapterShift, CompareTerms, ComparedBuild, ComparedRow, ComparedSheets, ComparedSide,
    Comparison, DifferingFact, Doubt, Grounds, Interleaved, InterleavedRow, LEDGER_MIN, LedgerError, RoundPair,
    RowVerdict, SheetLedger, SideSummary, Unmatched, VERDICTS_SCHEMA, compare, compare_interleaved,
};
pub use conditions::{Conditions, FactValue, SheetFact, ThreadRow};
pub use diagram::{Diagram, DiagramCall, DiagramError, DiagramRun, DiagramSpan, Origin};
pub use document::{Build, Chapter, Note, NoteKind, Row, SCHEMA, Sheet, Table, Taken, Value};
pub use drift::{Drift, DriftChange, DriftError, DriftMoment, DriftRow, drift};
pub use figure::{Absent, Centre, Figure, FigureRound, LARGEST, Method, Unit};
pub use gate::{ComparisonGate, GateError, GateFinding, GateOutcome, GateReport};
pub use histogram::{Bucket, Histogram};
pub use incident::{INCIDENT_THREAD, Incident, IncidentKind, IncidentSpan};
pub use overlay::{MARKERS_MAX, Overlaid, Overlay, OverlayError};
pub use render::TextStyle;
pub use row_pattern::RowPattern;
pub use series::{Axis, Point, Series, SeriesLine};
pub use stamps::{STEPS_EXACT, Stamps};
pub use summary::{Characteristic, Finding, NotMeasured, SheetSummary};
pub use trend::{CutVerdict, History, HistoryRow, Trend, TrendChange, TrendCut, trends};
