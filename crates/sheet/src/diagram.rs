//! A timing diagram: the thread of execution moving between lanes, and the spans that the rows of a table measure.
//!
//! It is plain data in abstract time: only the order of events counts, not the scale. [`Diagram::checked`] checks it
//! against its limits. Renderers check it, too, and report an error instead of drawing it, because a document may come
//! from any source.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_width::UnicodeWidthStr;

/// A timing diagram. Times are abstract units from 0: their order is drawn, and roughly their distances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagram {
    /// A sentence that describes the events.
    pub caption: String,
    /// The origin of the spans.
    pub origin: Origin,
    /// The names of the lanes, 1 to 4, the most urgent first.
    pub lanes: Vec<String>,
    /// The runs of the lanes, 1 to 12. Between the end of one and the beginning of the next the executive works.
    pub runs: Vec<DiagramRun>,
    /// The calls and events on the lanes; 0 to 12.
    pub calls: Vec<DiagramCall>,
    /// The spans that the rows of the table measure, 1 to 6.
    pub spans: Vec<DiagramSpan>,
}

/// The origin of a diagram's spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// KADAK's AMX timing guide.
    Guide,
    /// This project, for spans that the guide does not define.
    Ours,
}

/// A stretch of time in which a lane runs its own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Run")]
pub struct DiagramRun {
    /// Index of the lane, from 0 for the first.
    pub lane: u32,
    /// Its beginning.
    pub from: u32,
    /// Its end, after its beginning.
    pub to: u32,
}

/// A call or an event on a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Call")]
pub struct DiagramCall {
    /// Index of the lane, from 0 for the first.
    pub lane: u32,
    /// When; usually the end of a run.
    pub at: u32,
    /// Its text, for instance `wake(A)`: at most 24 columns.
    pub text: String,
}

/// The span that a row measures: from one event to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Span")]
pub struct DiagramSpan {
    /// Its name, at most 8 columns. In lower case it is a segment of the ids of the rows that measure it: `T1`, `.t1.`.
    pub name: String,
    /// Its beginning.
    pub from: u32,
    /// Its end, after its beginning.
    pub to: u32,
    /// A description from event to event, for instance `B calls trigger(A) until the first instruction of A`.
    pub meaning: String,
}

/// The most lanes, for a glance and for a terminal of 60 columns.
pub(crate) const LANES_MAX: usize = 4;
/// The most runs of a diagram.
pub(crate) const RUNS_MAX: usize = 12;
/// The most calls of a diagram.
pub(crate) const CALLS_MAX: usize = 12;
/// The most spans of a diagram.
pub(crate) const SPANS_MAX: usize = 6;
/// The widest text of a lane or a call, in columns.
const LABEL_MAX: usize = 24;
/// The widest name of a span, in columns.
const NAME_MAX: usize = 8;

/// Why a diagram cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiagramError {
    /// There are none, or more than the limit.
    Number {
        /// Lanes, runs, calls or spans.
        of: &'static str,
        /// Number found.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// A run or a call is on a lane that does not exist.
    NoSuchLane {
        /// The index of the lane.
        lane: u32,
        /// Number of lanes.
        lanes: usize,
    },
    /// A run or a span does not end after it begins.
    Backwards {
        /// Its beginning.
        from: u32,
        /// Its end.
        to: u32,
    },
    /// A label is empty or wider than the limit.
    Label {
        /// The label.
        text: String,
        /// The limit, in columns.
        most: usize,
    },
}

impl fmt::Display for DiagramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiagramError::Number { of, found, most } => {
                write!(f, "draw a diagram with {found} {of}: there must be some, and at most {most}")
            }
            DiagramError::NoSuchLane { lane, lanes } => {
                write!(f, "draw lane {lane} of a diagram with {lanes} lanes: they count from 0")
            }
            DiagramError::Backwards { from, to } => {
                write!(f, "draw something from {from} to {to}: its end must be after its beginning")
            }
            DiagramError::Label { text, most } => {
                write!(f, "label a diagram with {text:?}: there must be a text, of at most {most} columns")
            }
        }
    }
}

impl std::error::Error for DiagramError {}

impl Diagram {
    /// A diagram with its lanes, the most urgent first, without runs and calls.
    ///
    /// ```
    /// use hairspring_sheet::{Diagram, Origin};
    ///
    /// let diagram = Diagram::new("B wakes A, which is more urgent.", Origin::Ours, &["A", "B"])
    ///     .run(1, 0, 2)
    ///     .call(1, 2, "wake(A)")
    ///     .run(0, 3, 5)
    ///     .span("T1", 2, 3, "B calls wake(A) until A continues")
    ///     .checked()?;
    /// assert_eq!(diagram.runs.len(), 2);
    /// # Ok::<(), hairspring_sheet::DiagramError>(())
    /// ```
    pub fn new(caption: &str, origin: Origin, lanes: &[&str]) -> Self {
        let lanes = lanes.iter().map(|lane| (*lane).to_owned()).collect();
        Self { caption: caption.to_owned(), origin, lanes, runs: Vec::new(), calls: Vec::new(), spans: Vec::new() }
    }

    /// Adds a run of a lane.
    #[must_use]
    pub fn run(mut self, lane: u32, from: u32, to: u32) -> Self {
        self.runs.push(DiagramRun { lane, from, to });
        self
    }

    /// Adds a call or an event.
    #[must_use]
    pub fn call(mut self, lane: u32, at: u32, text: &str) -> Self {
        self.calls.push(DiagramCall { lane, at, text: text.to_owned() });
        self
    }

    /// Adds a span.
    #[must_use]
    pub fn span(mut self, name: &str, from: u32, to: u32, meaning: &str) -> Self {
        self.spans.push(DiagramSpan { name: name.to_owned(), from, to, meaning: meaning.to_owned() });
        self
    }

    /// The diagram, if it is valid.
    ///
    /// # Errors
    /// When a number is beyond its limit, a lane does not exist, something ends before it begins, or a label is missing
    /// or too wide.
    pub fn checked(self) -> Result<Self, DiagramError> {
        self.check().map(|()| self)
    }

    /// Whether the diagram is valid.
    ///
    /// # Errors
    /// As [`Diagram::checked`].
    pub fn check(&self) -> Result<(), DiagramError> {
        let number = |of, found, least: usize, most| {
            if (least..=most).contains(&found) { Ok(()) } else { Err(DiagramError::Number { of, found, most }) }
        };
        number("lanes", self.lanes.len(), 1, LANES_MAX)?;
        number("runs", self.runs.len(), 1, RUNS_MAX)?;
        number("calls", self.calls.len(), 0, CALLS_MAX)?;
        number("spans", self.spans.len(), 1, SPANS_MAX)?;
        let lanes = self.lanes.len();
        let mut used = self.runs.iter().map(|r| r.lane).chain(self.calls.iter().map(|c| c.lane));
        if let Some(lane) = used.find(|lane| *lane as usize >= lanes) {
            return Err(DiagramError::NoSuchLane { lane, lanes });
        }
        let mut stretches = self.runs.iter().map(|r| (r.from, r.to)).chain(self.spans.iter().map(|s| (s.from, s.to)));
        if let Some((from, to)) = stretches.find(|(from, to)| from >= to) {
            return Err(DiagramError::Backwards { from, to });
        }
        let labels = self.lanes.iter().chain(self.calls.iter().map(|c| &c.text)).map(|text| (text, LABEL_MAX));
        let mut labels = labels.chain(self.spans.iter().map(|s| (&s.name, NAME_MAX)));
        match labels.find(|(text, most)| !(1..=*most).contains(&text.width())) {
            Some((text, most)) => Err(DiagramError::Label { text: text.clone(), most }),
            None => Ok(()),
        }
    }
}

impl Origin {
    /// The origin of the spans, as a sentence.
    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Origin::Guide => "The spans are those of KADAK's AMX timing guide.",
            Origin::Ours => "The spans are our own definition; the AMX timing guide leaves them open.",
        }
    }
}
