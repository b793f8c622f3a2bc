//! From rounds to a sheet: merges the findings of several rounds for the rows of a chapter into the chapter of the
//! document.
//!
//! The median and its interval are computed across rounds: the median of their medians, and its interval. Percentiles,
//! extremes and the histogram are those of all samples together. Counts and watched times are added up.

use std::collections::BTreeMap;

use hairspring_machine::Nanos;
use hairspring_sheet::statistics::{Scale, n_effective};
use hairspring_sheet::{
    Absent, Chapter, Diagram, Figure, FigureRound, Method, Note, NoteKind, Point, Row, Series, SeriesLine, Stamps,
    Table, Unit, Value,
};

use crate::interleaving::median;
use crate::probe::{
    CROWDED, ChapterDeclaration, Found, Numbers, Reading, RowDeclaration, TableDeclaration, peaks_named,
};
use crate::round::RoundPart;

/// When and for how long a sheet was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taking {
    /// When it began, on `CLOCK_MONOTONIC`.
    pub(crate) began: Nanos,
    /// Whether the user interrupted it.
    pub(crate) interrupted: bool,
    /// [`alone_ns`] of all its parts.
    pub(crate) alone_ns: Option<f64>,
}

/// Fewer rounds do not show how much a figure varies.
const ALONE_LEAST: usize = 3;

/// Time of the loop on a core without a neighbour: the least of a whole sheet.
pub(crate) fn alone_ns<'p>(parts: impl IntoIterator<Item = &'p RoundPart>) -> Option<f64> {
    let found = parts.into_iter().flat_map(|part| &part.rows);
    let looks = found.filter_map(|(_, found)| match found {
        Found::Reading(reading) => reading.company,
        Found::Absent(_) | Found::Elsewhere => None,
    });
    looks.min_by(f64::total_cmp)
}

/// The readings of a row whose medians count: those of a core without a neighbour, if there are enough, and all
/// otherwise.
fn counted<'r>(readings: &[(&'r RoundPart, &'r Reading)], alone_ns: Option<f64>) -> Vec<(&'r RoundPart, &'r Reading)> {
    let alone = |reading: &Reading| reading.company.zip(alone_ns).is_some_and(|(ns, alone)| ns <= alone * CROWDED);
    let alone: Vec<_> = readings.iter().copied().filter(|(_, reading)| alone(reading)).collect();
    if alone.len() < ALONE_LEAST { readings.to_vec() } else { alone }
}

/// The chapter of the document. `parts` are those of this chapter, in the order in which they were taken.
pub(crate) fn chapter(declared: &ChapterDeclaration, parts: &[&RoundPart], taking: Taking) -> Chapter {
    let mut found: BTreeMap<&str, Vec<(&RoundPart, &Found)>> = BTreeMap::new();
    for part in parts {
        for (id, value) in &part.rows {
            found.entry(id).or_default().push((part, value));
        }
    }
    let mut drawn: Vec<Diagram> = Vec::new();
    let mut table = |table: &TableDeclaration| Table {
        id: table.id.clone(),
        title: table.title.clone(),
        rows: table
            .rows
            .iter()
            .map(|row| Row {
                value: value(row, found.get(row.id.as_str()).map_or(&[], Vec::as_slice), taking),
                id: row.id.clone(),
                label: row.label.clone(),
            })
            .collect(),
        // Tables of one scenario share a drawing; the first has it.
        diagram: table.diagram.clone().filter(|diagram| {
            let new = !drawn.contains(diagram);
            drawn.extend(new.then(|| diagram.clone()));
            new
        }),
    };
    let mut notes = notes(&parts.iter().map(|part| part.notes.as_slice()).collect::<Vec<_>>());
    notes.extend(crowded_note(&found.values().map(|found| readings(found)).collect::<Vec<_>>(), taking.alone_ns));
    Chapter {
        id: declared.id.to_string(),
        title: declared.title.to_string(),
        intro: declared.intro.to_string(),
        tables: declared.tables.iter().map(&mut table).collect(),
        series: series(parts),
        incidents: parts.iter().flat_map(|part| part.incidents.clone()).collect(),
        notes,
    }
}

/// The readings among the findings of a row; absences are dropped.
fn readings<'r>(found: &[(&'r RoundPart, &'r Found)]) -> Vec<(&'r RoundPart, &'r Reading)> {
    let reading = |(part, found): &(&'r RoundPart, &'r Found)| match found {
        Found::Reading(reading) => Some((*part, reading)),
        Found::Absent(_) | Found::Elsewhere => None,
    };
    found.iter().filter_map(reading).collect()
}

/// Notes in how many rows not all rounds count.
fn crowded_note(rows: &[Vec<(&RoundPart, &Reading)>], alone_ns: Option<f64>) -> Option<Note> {
    let (mut rows_void, mut void, mut all) = (0, 0, 0);
    for readings in rows {
        let left_out = readings.len() - counted(readings, alone_ns).len();
        rows_void += usize::from(left_out > 0);
        (void, all) = (void + left_out, all + readings.len());
    }
    let rows = if rows_void == 1 { "row" } else { "rows" };
    let text = format!(
        "In {rows_void} {rows} not every round counts for the median: a neighbour used the core during {void} of {all} readings, as \
         a loop before and after each shows. Their samples count for everything else."
    );
    (rows_void > 0).then_some(Note { kind: NoteKind::Remark, text, remedy: None })
}

/// Merges the findings of all rounds for a row.
fn value(row: &RowDeclaration, found: &[(&RoundPart, &Found)], taking: Taking) -> Value {
    let readings = readings(found);
    let absences: Vec<&Absent> = found.iter().filter_map(|(_, found)| found.absent()).collect();
    let rounds = readings.len() + absences.len();
    match absences.first() {
        Some(absent) if readings.is_empty() => Value::Absent((*absent).clone()),
        Some(absent) if absences.len() > readings.len() => {
            let reason = format!("{} (in {} of {rounds} rounds)", absent.reason, absences.len());
            Value::Absent(Absent { reason, remedy: absent.remedy.clone() })
        }
        None if readings.is_empty() => Value::Absent(if taking.interrupted {
            Absent::new("interrupted before it was measured", "run it again to the end")
        } else {
            Absent::new("the rounds that measure it did not come to their end", "take the sheet again")
        }),
        partly => {
            let mut caveats = Vec::new();
            if let Some(absent) = partly {
                caveats.push(format!("in {} of {rounds} rounds there is no figure: {}", absences.len(), absent.reason));
            }
            merged((row.unit, row.method), &readings, taking, caveats)
        }
    }
}

/// The figure of some readings; absent if nothing happened while it was watched for.
fn merged(
    (unit, method): (Unit, Method),
    readings: &[(&RoundPart, &Reading)],
    taking: Taking,
    mut caveats: Vec<String>,
) -> Value {
    let watched: Option<i64> = readings.iter().map(|(_, reading)| reading.watched_ns).sum();
    let n: u64 = readings.iter().map(|(_, reading)| reading.n()).sum();
    if let Some(watched) = watched.filter(|_| n == 0) {
        return Value::Absent(Absent::final_(format!("no such event in {}", Nanos::new(watched))));
    }
    let (mut samples, mut singles, mut limits) = (Vec::new(), Vec::new(), None);
    for (_, reading) in readings {
        match &reading.numbers {
            Numbers::Samples(values) => samples.extend_from_slice(values),
            Numbers::Single([value]) => singles.push(*value),
            Numbers::Estimate(_, [value, low, high]) => (samples, limits) = (vec![*value], Some([*low, *high])),
        }
    }
    let peaks = readings.iter().any(|(_, reading)| reading.peaks).then(|| peaks_named(&samples)).flatten();
    let is_count = method == Method::Count && !singles.is_empty();
    let mut figure = match limits {
        _ if is_count => Figure::single(unit, method, singles.iter().sum()),
        _ if !singles.is_empty() => Figure::single(unit, method, median(&singles)),
        Some(limits) => Figure { method, ..Figure::derived(unit, n, samples[0], limits) },
        None => match of_samples(unit, method, &mut samples, readings) {
            Ok(figure) => Figure { median_interval: None, ..figure },
            Err(absent) => return Value::Absent(absent),
        },
    };
    if !is_count && figure.at_most.is_none() {
        let round = |(part, reading): &(&RoundPart, &Reading)| {
            let at_s = (Nanos::new(part.began_ns) - taking.began).as_secs_f64();
            Some(FigureRound { median: reading.centre()?, n: reading.n(), at_s, process: part.process })
        };
        let counted = counted(readings, taking.alone_ns);
        figure = Figure { within: within(&counted), ..figure }.with_rounds(counted.iter().filter_map(round).collect());
        // A single round has only its own computed limits.
        figure.median_interval = figure.median_interval.or(limits);
        if figure.is_single() {
            (figure.min, figure.max, figure.mean) = (figure.median, figure.median, figure.median);
        }
    }
    let overheads: Vec<f64> = readings.iter().filter_map(|(_, reading)| reading.overhead).collect();
    if !overheads.is_empty() {
        figure = figure.with_overhead(median(&overheads));
    }
    let of_rounds: Vec<&[String]> = readings.iter().map(|(_, reading)| reading.caveats.as_slice()).collect();
    let said = texts(&of_rounds, |caveat| caveat.as_str());
    caveats.extend(said.into_iter().map(|said| said.told(String::clone, readings.len())));
    caveats.extend(watched.map(|watched| format!("watched for {}", Nanos::new(watched))));
    caveats.extend(peaks);
    let figure = caveats.into_iter().fold(figure, Figure::with_caveat);
    let mut verdicts: BTreeMap<String, u64> = BTreeMap::new();
    for (name, count) in readings.iter().flat_map(|(_, reading)| &reading.verdicts) {
        *verdicts.entry(name.clone()).or_default() += count;
    }
    Value::Figure(Figure { verdicts, ..figure })
}

/// The standard error that the samples inside a round give its median: the mean over the rounds. `None` where one has
/// too few.
fn within(readings: &[(&RoundPart, &Reading)]) -> Option<f64> {
    let centres: Option<Vec<f64>> = readings.iter().map(|(_, reading)| reading.centre()).collect();
    let scale = Scale::of(&centres?);
    let error = |(_, reading): &(&RoundPart, &Reading)| match &reading.numbers {
        Numbers::Samples(samples) => standard_error(samples, n_effective(samples), scale),
        Numbers::Single(_) | Numbers::Estimate(..) => None,
    };
    let errors: Option<Vec<f64>> = readings.iter().map(error).collect();
    errors.map(|errors| errors.iter().sum::<f64>() / errors.len() as f64)
}

/// The standard error of the median of samples that are worth `n` independent ones: half the distance between the order
/// statistics one standard deviation of the rank below and above it. `None` below 6.
fn standard_error(samples: &[f64], n: f64, scale: Scale) -> Option<f64> {
    if n < 6.0 {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64).round() as usize];
    let aside = 0.5 / n.sqrt();
    let error = (scale.place(at(0.5 + aside)) - scale.place(at(0.5 - aside))) / 2.0;
    error.is_finite().then_some(error)
}

/// The figure of all samples, by the way they were taken.
fn of_samples(
    unit: Unit,
    method: Method,
    samples: &mut [f64],
    readings: &[(&RoundPart, &Reading)],
) -> Result<Figure, Absent> {
    let quantum = largest(readings.iter().filter_map(|(_, reading)| reading.quantum));
    let all = readings.iter().filter_map(|(_, reading)| reading.stamps);
    // The rounds agree but for the resolution of the counter that each saw; only the coarsest may be claimed.
    let stamps = all.reduce(|a, b| Stamps {
        step: largest(a.step.into_iter().chain(b.step)),
        overhead: a.overhead.max(b.overhead),
        beside: a.beside.min(b.beside),
    });
    let events = readings.iter().find_map(|(_, reading)| reading.events);
    Ok(match (method, stamps) {
        (Method::Stamp, Some(stamps)) => Figure::stamped(unit, samples, &stamps)?,
        (Method::Mean, Some(stamps)) => Figure::batched(unit, samples, &stamps, events.unwrap_or(1.0))?,
        (Method::Diff, _) => Figure::difference(unit, samples, quantum),
        _ => Figure { quantum, ..Figure::from_samples(unit, method, samples) },
    })
}

fn largest(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.max_by(f64::total_cmp)
}

/// A text of several rounds that differs in its numbers at most.
struct Said<'s, T> {
    first: &'s T,
    rounds: usize,
    /// Whether the numbers were the same, too.
    equal: bool,
}

impl<T> Said<'_, T> {
    /// The text, with the number of its rounds unless it is from all.
    fn told(&self, text: impl Fn(&T) -> String, rounds: usize) -> String {
        let text = text(self.first);
        match (self.rounds == rounds, self.equal) {
            (true, true) => text,
            (true, false) => format!("{text} (first round; the numbers of the others differ)"),
            (false, _) => format!("{text} (in {} of {rounds} rounds)", self.rounds),
        }
    }
}

/// The texts of some rounds, each once: two that differ in their numbers only are one.
fn texts<'s, T>(rounds: &[&'s [T]], text: impl Fn(&T) -> &str) -> Vec<Said<'s, T>> {
    let mut said: Vec<(Vec<String>, usize, Said<'s, T>)> = Vec::new();
    for (round, of_round) in rounds.iter().enumerate() {
        for one in *of_round {
            let words = words(text(one));
            match said.iter_mut().find(|(known, ..)| *known == words) {
                Some((_, last, known)) => {
                    known.rounds += usize::from(*last != round);
                    known.equal &= text(known.first) == text(one);
                    *last = round;
                }
                None => said.push((words, round, Said { first: one, rounds: 1, equal: true })),
            }
        }
    }
    said.into_iter().map(|(_, _, said)| said).collect()
}

/// The words of a text without its numbers and their units.
fn words(text: &str) -> Vec<String> {
    const UNITS: [&str; 8] = ["ns", "µs", "ms", "s", "ppm", "Hz", "kHz", "MHz"];
    let bare = text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned());
    bare.filter(|word| {
        !word.is_empty() && !word.contains(|c: char| c.is_ascii_digit()) && !UNITS.contains(&word.as_str())
    })
    .collect()
}

/// The notes of some rounds, each once.
pub(crate) fn notes(rounds: &[&[Note]]) -> Vec<Note> {
    let said = texts(rounds, |note: &Note| note.text.as_str());
    said.into_iter()
        .map(|said| Note { text: said.told(|note| note.text.clone(), rounds.len()), ..said.first.clone() })
        .collect()
}

/// The plots of some rounds: each point the median of those of the rounds, with the whole range of theirs.
fn series(parts: &[&RoundPart]) -> Vec<Series> {
    let mut merged: Vec<Series> = Vec::new();
    for series in parts.iter().flat_map(|part| &part.series) {
        if merged.iter().all(|known| known.id != series.id) {
            merged.push(series.clone());
        }
    }
    for series in &mut merged {
        let same: Vec<&Series> =
            parts.iter().flat_map(|part| &part.series).filter(|other| other.id == series.id).collect();
        for other in &same {
            for line in &other.lines {
                if series.lines.iter().all(|known| known.name != line.name) {
                    series.lines.push(line.clone());
                }
            }
        }
        for line in &mut series.lines {
            let alike: Vec<&SeriesLine> =
                same.iter().flat_map(|other| &other.lines).filter(|other| other.name == line.name).collect();
            line.points = points(&alike);
        }
    }
    merged
}

/// The points of lines of one name, ascending.
fn points(lines: &[&SeriesLine]) -> Vec<Point> {
    let mut all: Vec<Point> = lines.iter().flat_map(|line| &line.points).copied().collect();
    all.sort_by(|a, b| a.x.total_cmp(&b.x));
    let same = all.chunk_by(|a, b| a.x == b.x);
    same.map(|same| {
        let y = median(&same.iter().map(|point| point.y).collect::<Vec<_>>());
        let low = same.iter().map(|point| point.low.unwrap_or(point.y)).min_by(f64::total_cmp);
        let high = same.iter().map(|point| point.high.unwrap_or(point.y)).max_by(f64::total_cmp);
        let range = same.iter().any(|point| point.low.is_some()) || low != high;
        Point { x: same[0].x, y, low: low.filter(|_| range), high: high.filter(|_| range) }
    })
    .collect()
}

#[cfg(test)]
impl Reading {
    /// The figure of this reading alone.
    pub(crate) fn figure(self, unit: Unit, method: Method) -> Figure {
        let part = tests::part(0, Vec::new());
        match merged((unit, method), &[(&part, &self)], tests::TAKING, Vec::new()) {
            Value::Figure(figure) => figure,
            Value::Absent(absent) => panic!("{}", absent.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interleaving::Random;

    pub(super) fn part(round: u32, rows: Vec<(String, Found)>) -> RoundPart {
        RoundPart {
            chapter: "chapter".to_owned(),
            round,
            process: round + 1,
            began_ns: i64::from(round) * 1_000_000_000,
            interrupted: false,
            rows,
            series: Vec::new(),
            incidents: Vec::new(),
            notes: Vec::new(),
            head: Vec::new(),
        }
    }

    pub(super) const TAKING: Taking = Taking { began: Nanos::ZERO, interrupted: false, alone_ns: None };

    /// The merged value of a row with these findings.
    fn of(method: Method, found: &[Found]) -> Value {
        let id = "chapter.row";
        let row = RowDeclaration::new(id.to_owned(), id.to_owned(), Unit::Ns, method, "");
        let parts: Vec<RoundPart> =
            (0..).zip(found).map(|(round, found)| part(round, vec![(id.to_owned(), found.clone())])).collect();
        value(&row, &parts.iter().map(|part| (part, &part.rows[0].1)).collect::<Vec<_>>(), TAKING)
    }

    #[track_caller]
    fn figure(method: Method, found: &[Found]) -> Figure {
        match of(method, found) {
            Value::Figure(figure) => figure,
            Value::Absent(absent) => panic!("{}", absent.reason),
        }
    }

    #[track_caller]
    fn absent(found: &[Found]) -> String {
        match of(Method::Stamp, found) {
            Value::Figure(figure) => panic!("{figure:?}"),
            Value::Absent(absent) => absent.reason,
        }
    }

    fn samples(samples: &[f64]) -> Found {
        Found::Reading(Reading::samples(samples.to_vec()))
    }

    fn none(reason: &str) -> Found {
        Found::Absent(Absent::final_(reason))
    }

    #[test]
    fn the_median_is_that_of_the_rounds_and_the_extremes_are_those_of_all_samples() {
        // One round has most samples; it counts as one all the same.
        let found = [samples(&[10.0, 11.0, 12.0]), samples(&[20.0; 90]), samples(&[13.0, 14.0, 99.0])];
        let figure = figure(Method::Stamp, &found);
        assert_eq!((figure.n, figure.median, figure.min, figure.max), (96, Some(14.0), Some(10.0), Some(99.0)));
        assert_eq!(figure.rounds.iter().map(|round| round.median).collect::<Vec<_>>(), [11.0, 20.0, 14.0]);
        assert_eq!(
            figure.rounds.iter().map(|round| (round.n, round.process, round.at_s)).collect::<Vec<_>>()[1],
            (90, 2, 1.0)
        );
        assert!(
            figure.median_interval.is_some_and(|[low, high]| low < 11.0 && high > 20.0),
            "{:?}",
            figure.median_interval
        );
        assert!(figure.between.is_some_and(|between| (between - 0.3).abs() < 0.05), "{:?}", figure.between);
    }

    #[test]
    fn rounds_with_a_neighbour_on_the_core_do_not_count_where_three_others_had_it_to_themselves() {
        let row = RowDeclaration::new("chapter.row".to_owned(), String::new(), Unit::Ns, Method::Derived, "");
        let merged = |loops: &[f64]| {
            let found = |ns: &f64| {
                // A neighbour makes the row slower, too.
                let mut reading = Reading::samples(vec![if *ns > 110.0 { 20.0 } else { 10.0 }; 3]);
                reading.company = Some(*ns);
                Found::Reading(reading)
            };
            let parts = (0..).zip(loops).map(|(round, ns)| part(round, vec![(row.id.clone(), found(ns))]));
            let parts: Vec<RoundPart> = parts.collect();
            let taking = Taking { alone_ns: alone_ns(&parts), ..TAKING };
            let found: Vec<_> = parts.iter().map(|part| (part, &part.rows[0].1)).collect();
            let note = crowded_note(&[readings(&found)], taking.alone_ns);
            match value(&row, &found, taking) {
                Value::Figure(figure) => (figure.rounds.len(), figure.between, figure.max, note.map(|note| note.text)),
                Value::Absent(absent) => panic!("{}", absent.reason),
            }
        };
        let (rounds, between, max, note) = merged(&[100.0, 150.0, 104.0, 130.0, 109.0]);
        assert_eq!((rounds, between, max), (3, Some(0.0), Some(20.0)), "what the others found counts for the extremes");
        assert!(note.is_some_and(|note| note.contains("1 row ") && note.contains("2 of 5")));
        let (rounds, between, _, note) = merged(&[100.0, 150.0, 150.0, 130.0, 109.0]);
        assert!(rounds == 5 && between > Some(0.2) && note.is_none(), "two are too few");
    }

    #[test]
    fn counts_and_watched_times_are_added_up() {
        let count = |n| Found::Reading(Reading::single(n));
        let figure = figure(Method::Count, &[count(2.0), count(0.0), count(5.0)]);
        assert_eq!((figure.n, figure.max, figure.rounds.len()), (1, Some(7.0), 0));
        let quiet = Found::Reading(Reading::watched(Vec::new(), Nanos::from_millis(20)));
        assert_eq!(absent(&[quiet.clone(), quiet.clone()]), "no such event in 40 ms");
        let event = Found::Reading(Reading::watched(vec![7.0], Nanos::from_millis(20)));
        let figure = super::tests::figure(Method::Stamp, &[quiet, event]);
        assert_eq!(
            (figure.n, figure.rounds.len(), figure.caveats.as_slice()),
            (1, 1, &["watched for 40 ms".to_owned()][..])
        );
    }

    #[test]
    fn single_values_and_estimates_get_the_spread_of_their_rounds() {
        let single = |value| Found::Reading(Reading::single(value));
        let figure = figure(Method::Derived, &[single(1.0), single(3.0), single(2.0)]);
        assert_eq!((figure.n, figure.median, figure.max, figure.rounds.len()), (1, Some(2.0), Some(2.0), 3));
        let estimate = |value: f64| Found::Reading(Reading::estimate(10, value, [value - 1.0, value + 1.0]));
        let several = super::tests::figure(Method::Derived, &[estimate(100.0), estimate(110.0), estimate(120.0)]);
        assert_eq!((several.n, several.median, several.min), (30, Some(110.0), None));
        assert!(
            several.median_interval.is_some_and(|[low, high]| low < 95.0 && high > 125.0),
            "{:?}",
            several.median_interval
        );
        assert_eq!(super::tests::figure(Method::Derived, &[estimate(100.0)]).median_interval, Some([99.0, 101.0]));
    }

    #[test]
    fn rounds_without_a_figure_are_told_and_most_of_them_make_the_row_absent() {
        let five = samples(&[5.0]);
        let partly = figure(Method::Stamp, &[five.clone(), none("no line fits"), five.clone()]);
        assert_eq!(partly.caveats, ["in 1 of 3 rounds there is no figure: no line fits"]);
        assert_eq!(
            absent(&[none("no line fits"), five.clone(), none("no line fits")]),
            "no line fits (in 2 of 3 rounds)"
        );
        assert_eq!(absent(&[none("one reason"), none("another")]), "one reason");
        // A round that leaves a long row to others is not an absence.
        let elsewhere = figure(Method::Stamp, &[Found::Elsewhere, five, Found::Elsewhere]);
        assert_eq!((elsewhere.rounds.len(), elsewhere.caveats.len()), (1, 0));
        assert!(absent(&[Found::Elsewhere]).contains("did not come to their end"));
    }

    #[test]
    fn texts_that_differ_in_numbers_only_are_told_once() {
        let note = |text: &str| Note { kind: NoteKind::Remark, text: text.to_owned(), remedy: None };
        let rounds = [
            vec![note("One tick is 0.4 ns."), note("The rate changed.")],
            vec![note("One tick is 0.4 ns."), note("It took 5 ms."), note("It took 6 ms.")],
        ];
        let told = notes(&[&rounds[0], &rounds[1]]);
        let told: Vec<&str> = told.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(
            told,
            ["One tick is 0.4 ns.", "The rate changed. (in 1 of 2 rounds)", "It took 5 ms. (in 1 of 2 rounds)"]
        );
        let differing = notes(&[&[note("It took 5 ms.")], &[note("It took 12 µs.")]]);
        assert_eq!(differing[0].text, "It took 5 ms. (first round; the numbers of the others differ)");
    }

    #[test]
    fn the_error_inside_a_round_is_that_of_a_median() {
        let mut random = Random::new();
        let mut normal = || (0..12).map(|_| random.below(1_000) as f64 / 1_000.0).sum::<f64>() - 6.0;
        let samples: Vec<f64> = (0..4000).map(|_| normal()).collect();
        // Normal samples: the error of a median is 1.25 standard deviations over the root of n.
        let error = standard_error(&samples, 4000.0, Scale::Linear).expect("enough samples");
        assert!((error / (1.2533 / 4000_f64.sqrt()) - 1.0).abs() < 0.3, "{error}");
        assert_eq!(standard_error(&samples[..5], 5.0, Scale::Linear), None);
    }

    #[test]
    fn points_of_several_rounds_become_one_with_the_whole_range() {
        let line = |y: f64, low: Option<f64>| SeriesLine {
            name: "line".to_owned(),
            points: vec![Point { x: 2.0, y, low, high: low.map(|low| low + 10.0) }],
            fitted: false,
        };
        let (a, b, c) = (line(5.0, Some(4.0)), line(7.0, None), line(6.0, None));
        assert_eq!(points(&[&a, &b, &c]), [Point { x: 2.0, y: 6.0, low: Some(4.0), high: Some(14.0) }]);
        assert_eq!(points(&[&b]), [Point { x: 2.0, y: 7.0, low: None, high: None }]);
    }
}
