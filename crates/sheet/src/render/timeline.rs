//! The layout of a timing diagram, for every form that draws one.
//!
//! Problem: labels must not collide with each other or with the lines between lanes, for any texts, and the drawing
//! must be narrow. Solution: every pair of events with a label between them needs a least distance; each event stands
//! as far left as those distances allow. The remaining width is distributed in proportion to the abstract times.
//! Conditions: the diagram has passed its check. A label stands above its run, flush with the event at its right end.
//! No line passes there, because lines leave a run at its end and reach it at its beginning. A line can cross a label
//! only if two lanes run at the same time; drawings then put the label on top.

use super::clean::clean;
use crate::{Diagram, DiagramRun, DiagramSpan, Figure, Row, Table};

/// The measures of a form, in columns or pixels.
pub(crate) struct Metrics {
    /// The width of a label.
    pub(crate) width: fn(&str) -> usize,
    /// The least distance of two events.
    pub(crate) event: usize,
    /// The space beside a label.
    pub(crate) gap: usize,
    /// The width of a span beyond its name.
    pub(crate) bracket: usize,
}

/// The texts in the drawing itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manner {
    /// Calls are numbers, their texts stand below the drawing.
    pub(crate) numbered: bool,
    /// Names of spans stand beside them, each in its own row.
    pub(crate) beside: bool,
}

/// A label in its place.
#[derive(Debug)]
pub(crate) struct Label {
    pub(crate) lane: usize,
    /// The place of its event.
    pub(crate) at: usize,
    /// Whether the text ends at its event; else it begins there.
    pub(crate) before: bool,
    pub(crate) text: String,
}

/// A diagram with all positions.
pub(crate) struct Layout<'a> {
    times: Vec<u32>,
    places: Vec<usize>,
    pub(crate) labels: Vec<Label>,
    /// The texts of numbered labels, in the order of their numbers.
    pub(crate) legend: Vec<String>,
    /// The spans, each with the row it stands in.
    pub(crate) spans: Vec<(usize, &'a DiagramSpan)>,
    /// The total width.
    pub(crate) width: usize,
}

/// Computes the layout, between the least width and `width`, if that is more.
pub(crate) fn layout<'a>(diagram: &'a Diagram, metrics: &Metrics, manner: Manner, width: usize) -> Layout<'a> {
    let times = times(diagram);
    let index = |time: u32| times.binary_search(&time).unwrap_or(0);
    let (labels, legend) = labels(diagram, manner);
    let mut distances: Vec<(usize, usize, usize)> = (1..times.len()).map(|i| (i - 1, i, metrics.event)).collect();
    // The width of a label that begins at the last event.
    let mut beyond = 0;
    for (i, (lane, at, text)) in labels.iter().enumerate() {
        let own = (metrics.width)(text) + metrics.gap;
        let earlier = labels[..i].iter().rev().find(|(other, ..)| other == lane);
        if let Some(run) = run_before(diagram, *lane, *at) {
            match earlier.filter(|(_, time, _)| *time >= run.from) {
                // A label that begins at the beginning of the run stands in the same stretch.
                Some((_, time, other)) if run_before(diagram, *lane, *time).is_none_or(|r| r != run) => {
                    let other = (metrics.width)(other) + metrics.gap;
                    distances.push((index(*time), index(*at), other + own));
                }
                Some((_, time, _)) => distances.push((index(*time), index(*at), own)),
                None => distances.push((index(run.from), index(*at), own)),
            }
        } else {
            let end = run_from(diagram, *lane, *at).map(|run| run.to);
            let next = times.get(index(*at) + 1).copied();
            // In its run it ends before the run does; elsewhere before anything else happens, and lines may be drawn.
            match end.or(next) {
                Some(time) => distances.push((index(*at), index(time), own + metrics.gap)),
                None => beyond = beyond.max(own),
            }
        }
    }
    for span in diagram.spans.iter().filter(|_| !manner.beside) {
        distances.push((index(span.from), index(span.to), (metrics.width)(&span.name) + metrics.bracket));
    }
    let mut places = vec![0; times.len()];
    for at in 1..times.len() {
        let least = distances.iter().filter(|(_, to, _)| *to == at).map(|(from, _, least)| places[*from] + least);
        places[at] = least.max().unwrap_or(0);
    }
    let last = |places: &[usize]| places.last().copied().unwrap_or(0) + beyond;
    let (first, end) = (times.first().copied().unwrap_or(0), times.last().copied().unwrap_or(0));
    let spare = width.saturating_sub(last(&places) + 1) as u64;
    for (place, time) in places.iter_mut().zip(&times) {
        let share = spare * u64::from(time - first) / u64::from(end - first).max(1);
        *place += usize::try_from(share).unwrap_or(0);
    }
    let placed = labels.into_iter().map(|(lane, at, text)| Label {
        lane: lane as usize,
        at: places[index(at)],
        before: run_before(diagram, lane, at).is_some(),
        text,
    });
    let labels = placed.collect();
    let spans = rows(&diagram.spans, manner.beside);
    Layout { width: last(&places) + 1, labels, legend, spans, places, times }
}

impl Layout<'_> {
    /// The place of an event at this time.
    pub(crate) fn place(&self, time: u32) -> usize {
        self.times.binary_search(&time).ok().and_then(|i| self.places.get(i)).copied().unwrap_or(0)
    }

    /// The number of rows of the spans.
    pub(crate) fn span_rows(&self) -> usize {
        self.spans.iter().map(|(row, _)| row + 1).max().unwrap_or(0)
    }
}

/// The runs in the order of time.
pub(crate) fn in_order(diagram: &Diagram) -> Vec<DiagramRun> {
    let mut runs = diagram.runs.clone();
    runs.sort_by_key(|run| (run.from, run.to));
    runs
}

/// The switches from one run to the next; none if the next begins before the first ends.
pub(crate) fn ways(diagram: &Diagram) -> Vec<(DiagramRun, DiagramRun)> {
    let runs = in_order(diagram);
    runs.windows(2).filter(|pair| pair[0].to <= pair[1].from).map(|pair| (pair[0], pair[1])).collect()
}

/// The meaning of each span, and its measured value if a row of the table has the span in its id.
pub(crate) fn meanings<'a>(diagram: &'a Diagram, table: &Table) -> Vec<(&'a DiagramSpan, Option<String>)> {
    diagram.spans.iter().map(|span| (span, measured(span, &table.rows))).collect()
}

/// A description of the drawing in words, for screen readers.
pub(crate) fn in_words(diagram: &Diagram) -> String {
    let (labels, _) = labels(diagram, Manner { numbered: false, beside: false });
    let mut events: Vec<(u32, String)> = labels
        .iter()
        .map(|(lane, at, text)| (*at, format!("{}: {text}", diagram.lanes.get(*lane as usize).map_or("", |l| l))))
        .collect();
    for run in &diagram.runs {
        let lane = diagram.lanes.get(run.lane as usize).map_or("", |l| l);
        events.push((run.from, format!("{lane} runs")));
    }
    events.sort_by_key(|(at, _)| *at);
    let events: Vec<String> = events.into_iter().map(|(_, event)| event).collect();
    format!("In order of time: {}.", events.join("; "))
}

/// The median, or another statistic, of the rows that measure a span; from the least to the greatest of several.
fn measured(span: &DiagramSpan, rows: &[Row]) -> Option<String> {
    let segment = span.name.to_lowercase();
    let rows = rows.iter().filter(|row| row.id.split('.').any(|part| part == segment));
    let figures: Vec<&Figure> = rows.filter_map(Row::figure).collect();
    let (name, _) = figures.first()?.centre()?;
    let unit = figures.first()?.unit;
    let alike = |figure: &&Figure| figure.unit == unit && figure.centre().is_some_and(|(other, _)| other == name);
    let centres = figures.iter().copied().filter(alike).filter_map(|f| f.centre().map(|(_, value)| (value, f)));
    let centres: Vec<(f64, &Figure)> = centres.collect();
    let least = centres.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let greatest = centres.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let written = |(value, figure): &(f64, &Figure)| super::quantity::statistic(figure, Some(*value));
    let (least, greatest) = (written(least)?, written(greatest)?);
    Some(if centres.len() > 1 && least != greatest {
        format!("{} {least} … {greatest}", name.plural())
    } else {
        format!("{} {least}", name.name())
    })
}

/// The times of all events, ascending, each once.
fn times(diagram: &Diagram) -> Vec<u32> {
    let runs = diagram.runs.iter().flat_map(|run| [run.from, run.to]);
    let spans = diagram.spans.iter().flat_map(|span| [span.from, span.to]);
    let mut times: Vec<u32> = runs.chain(spans).chain(diagram.calls.iter().map(|call| call.at)).collect();
    times.sort_unstable();
    times.dedup();
    times
}

/// The texts on each lane in the order of time, those of one moment joined; and the meaning of the numbers, if they are
/// numbers.
fn labels(diagram: &Diagram, manner: Manner) -> (Vec<(u32, u32, String)>, Vec<String>) {
    let mut calls: Vec<_> = diagram.calls.iter().collect();
    calls.sort_by_key(|call| (call.at, call.lane));
    let mut labels: Vec<(u32, u32, String)> = Vec::new();
    for call in calls {
        match labels.last_mut().filter(|(lane, at, _)| (*lane, *at) == (call.lane, call.at)) {
            Some((_, _, text)) => text.extend([", ", &clean(&call.text)]),
            None => labels.push((call.lane, call.at, clean(&call.text))),
        }
    }
    if !manner.numbered {
        return (labels, Vec::new());
    }
    let mut legend = Vec::new();
    for (i, (_, _, text)) in labels.iter_mut().enumerate() {
        let number = (i + 1).to_string();
        legend.push(format!("{number} {text}"));
        *text = number;
    }
    (labels, legend)
}

/// The run that lasts until this moment or longer.
fn run_before(diagram: &Diagram, lane: u32, at: u32) -> Option<&DiagramRun> {
    diagram.runs.iter().find(|run| run.lane == lane && run.from < at && at <= run.to)
}

/// The run that begins at this moment.
fn run_from(diagram: &Diagram, lane: u32, at: u32) -> Option<&DiagramRun> {
    diagram.runs.iter().find(|run| run.lane == lane && run.from == at)
}

/// Puts spans that do not overlap into one row.
fn rows(spans: &[DiagramSpan], each_its_own: bool) -> Vec<(usize, &DiagramSpan)> {
    let mut ordered: Vec<&DiagramSpan> = spans.iter().collect();
    ordered.sort_by_key(|span| (span.from, span.to));
    let mut ends: Vec<u32> = Vec::new();
    let mut placed = Vec::new();
    for span in ordered {
        match ends.iter().position(|end| *end < span.from).filter(|_| !each_its_own) {
            Some(row) => {
                ends[row] = span.to;
                placed.push((row, span));
            }
            None => {
                placed.push((ends.len(), span));
                ends.push(span.to);
            }
        }
    }
    placed
}
