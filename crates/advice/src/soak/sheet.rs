//! A soak as a sheet: figures, worst cases, blocks over time, and the plot of extreme values with its limits.

use hairspring_culprit::CulpritKind;
use hairspring_describe::exact_span;
use hairspring_machine::{Heat, Nanos};
use hairspring_sheet::{
    Absent, Axis, Build, Chapter, FactValue, Figure, Method, Note, NoteKind, Point, Row, SCHEMA, Series, SeriesLine,
    Sheet, SheetFact, Table, Taken, Unit, Value,
};
use hairspring_suite::workload::Workload;

use super::conditions::{SOAK_CONDITIONS, conditions_mark};
use super::extremes::{Extremes, FURTHEST, MAXIMA_LEAST, UNEXPLAINED_MOST};
use super::tally::SoakTally;
use super::{Soak, SoakJob};

/// Prefix of the ids of the facts with the requirements, in their words.
pub const ASKED: &str = "soak.asked.";

/// The beginning of the ids of the rows of a job in the sheet of a soak: `soak.loop.1ms.fifo`.
pub fn soak_id(workload: Workload, ordinary: bool) -> String {
    let what = match workload {
        Workload::Loop(period) => format!("loop.{}", exact_span(period.count())),
        Workload::Reaction(source) => format!("react.{}", source.segment()),
        Workload::Delay(request) => format!("delay.{}", exact_span(request.count())),
        Workload::Gaps => "gaps".to_owned(),
    };
    format!("soak.{what}.{}", if ordinary { "other" } else { "fifo" })
}

/// The present state of a soak as a sheet. If the soak is not complete, the sheet is marked as interrupted.
pub fn soak_sheet(soak: &Soak, build: Build) -> Sheet {
    let mut conditions = soak.conditions.clone();
    let mark = conditions_mark(&conditions);
    let fact = |id: String, label: &str, value: String| SheetFact {
        id,
        label: label.to_owned(),
        value: FactValue::Value(value),
    };
    let facts = &mut conditions.facts;
    let asked = soak.request.jobs.iter().flat_map(|job| &job.asked);
    facts
        .extend(asked.enumerate().map(|(n, (text, _))| fact(format!("{ASKED}{}", n + 1), "Soak, asked", text.clone())));
    let loads: Vec<&str> = soak.loads.iter().map(|(name, _)| name.as_str()).collect();
    let loads = if loads.is_empty() { "none of its own".to_owned() } else { loads.join(", ") };
    facts.push(fact("soak.load".to_owned(), "Soak, load", loads));
    facts.push(fact("soak.span".to_owned(), "Soak, time asked for", soak.request.span.to_string()));
    facts.push(fact("soak.block".to_owned(), "Soak, block", soak.request.block.to_string()));
    facts.push(fact("soak.until".to_owned(), "Soak, last block ended", soak.now.clone()));
    facts.push(fact(SOAK_CONDITIONS.to_owned(), "Soak, mark of its conditions", mark));
    facts.push(fact("soak.process".to_owned(), "Soak, process", std::process::id().to_string()));
    facts.push(fact("soak.stolen".to_owned(), "Soak, time stolen from its CPU", soak.stolen.to_string()));
    let warning = |text: &String| Note { kind: NoteKind::Warning, text: text.clone(), remedy: None };
    Sheet {
        schema: SCHEMA.to_owned(),
        hairspring: build,
        taken: Taken {
            start: soak.began.clone(),
            duration_s: soak.elapsed.as_secs_f64(),
            effort: "soak".to_owned(),
            interrupted: !soak.complete,
            rounds: 0,
        },
        conditions,
        notes: soak.notes.iter().map(warning).collect(),
        summary: None,
        chapters: vec![chapter(soak)],
    }
}

fn chapter(soak: &Soak) -> Chapter {
    let mut chapter = Chapter {
        id: "soak".to_owned(),
        title: "Soak".to_owned(),
        intro: "The effect of the computer on a job that was watched for hours. Jobs of one soak take turns of a few seconds. Without a miss \
                in a time T there are at most 3/T misses, with 95 % confidence."
            .to_owned(),
        tables: Vec::new(),
        series: Vec::new(),
        incidents: Vec::new(),
        notes: soak.remarks.iter().map(|text| remark(text.clone())).collect(),
    };
    for (job, tally) in soak.request.jobs.iter().zip(&soak.tallies) {
        enter(&mut chapter, job, tally);
    }
    let (temperature, frequency) = (|heat: &Heat| heat.temperature_c, |heat: &Heat| heat.frequency_hz);
    chapter.series.extend(state(
        "temperature",
        "Temperature of the hottest zone",
        ("°C", Unit::Count),
        soak,
        temperature,
    ));
    chapter.series.extend(state("frequency", "Frequency of the CPU", ("frequency", Unit::Hz), soak, frequency));
    if !soak.loads.is_empty() {
        let rate = |(name, rates): &(String, Vec<f64>)| Row {
            id: format!("soak.load.{name}.rate"),
            label: name.clone(),
            value: match rates.is_empty() {
                false => Value::Figure(Figure::from_samples(Unit::BytesPerS, Method::Rate, &mut rates.clone())),
                true => Value::Absent(Absent::final_("the load ended in the first block")),
            },
        };
        let rows = soak.loads.iter().map(rate).collect();
        chapter.tables.push(Table {
            id: "soak.load".to_owned(),
            title: "Load, by block".to_owned(),
            rows,
            diagram: None,
        });
    }
    chapter
}

/// The tables and plots of one job.
fn enter(chapter: &mut Chapter, job: &SoakJob, tally: &SoakTally) {
    let id = soak_id(job.workload, job.ordinary);
    let title = title(job);
    let row = |quantity: &str, label: String, value: Value| Row { id: format!("{id}.{quantity}"), label, value };
    let late = match tally.figure() {
        Some(figure) => Value::Figure(figure),
        None => Value::Absent(Absent::final_("no event came so far")),
    };
    let single = |ns: f64| Value::Figure(Figure::single(Unit::Ns, Method::Derived, ns));
    let what = if job.workload == Workload::Gaps { "length" } else { "late" };
    let what = if matches!(job.workload, Workload::Reaction(_)) { "event to I/O" } else { what };
    let extremes = extremes(tally);
    let mut rows = vec![
        row("late", what.to_owned(), late),
        row("watched", "watched".to_owned(), single(tally.watched.count() as f64)),
    ];
    rows.push(expected(&extremes, "expected", "", row));
    let of_kinds: Vec<_> = tally.kinds().into_iter().map(|kind| (kind, extremes_of(tally, kind))).collect();
    for (kind, extremes) in &of_kinds {
        rows.push(expected(extremes, &format!("expected.{}", kind.name()), &format!(", {} alone", kind.people()), row));
    }
    chapter.tables.push(Table { id: id.clone(), title: title.clone(), rows, diagram: None });
    let worst = tally.worst.iter().enumerate().map(|(number, case)| {
        let who = case.culprit.as_ref().map_or("not attributed", |culprit| culprit.said.as_str());
        let label = format!("{}, {who}", clock(&case.when));
        row(&format!("worst.{:02}", number + 1), label, single(case.value.count() as f64))
    });
    let worst: Vec<Row> = worst.collect();
    if let Some(why) = tally.worst.iter().find_map(|case| case.culprit.as_ref().err()) {
        let text = format!("{title}: some cases have no culprit: {why}.");
        chapter.notes.push(remark(text));
    }
    if !worst.is_empty() {
        let title = format!("{title}: the worst cases, with time of day and culprit");
        chapter.tables.push(Table { id: format!("{id}.worst"), title, rows: worst, diagram: None });
    }
    chapter.series.extend(over_time(&id, &title, tally));
    chapter.series.extend(plot(&format!("{id}.extremes"), &format!("{title}: extreme values"), &extremes));
    for (kind, extremes) in of_kinds.iter().filter(|(_, extremes)| extremes.line.is_ok()) {
        let (id, title) =
            (format!("{id}.extremes.{}", kind.name()), format!("{title}: extreme values, {}", kind.people()));
        chapter.series.extend(plot(&id, &title, extremes));
    }
    let text = match &extremes.line {
        Ok(_) => format!(
            "{title}: the maxima of the blocks lie on a line of the Gumbel axis. The line continues up to {FURTHEST} times the observed \
             time. It shows what to expect, not the worst case: a cause that did not act during the soak is not on it."
        ),
        Err(why) => format!("{title}: nothing is extrapolated: {why}."),
    };
    chapter.notes.push(remark(text));
}

fn remark(text: String) -> Note {
    Note { kind: NoteKind::Remark, text, remedy: None }
}

fn title(job: &SoakJob) -> String {
    let policy = if job.ordinary { "SCHED_OTHER" } else { "SCHED_FIFO" };
    let what = match job.workload {
        Workload::Loop(period) => format!("Loop with a period of {period}"),
        Workload::Reaction(source) => format!("Reaction to {}", source.people()),
        Workload::Delay(request) => format!("Delay of {request}"),
        Workload::Gaps => "Gaps in a polling loop".to_owned(),
    };
    format!("{what}, {policy}")
}

/// The time of day of `2026-11-22T18:48:05Z`, with its date.
fn clock(when: &str) -> String {
    when.replace('T', " ").replace('Z', " UTC")
}

fn extremes(tally: &SoakTally) -> Extremes {
    let least = least_events(tally);
    let without = tally.worst.iter().filter(|case| case.culprit.is_err()).count();
    Extremes::of(&tally.maxima(), least, without as f64 / tally.worst.len().max(1) as f64)
}

/// The same of the events that one kind of culprit made: a line of its own, where nearly every block shows one. The
/// others would lie lower, so that a line without them would be too high.
fn extremes_of(tally: &SoakTally, kind: CulpritKind) -> Extremes {
    let all = tally.maxima_of(kind);
    let known: Vec<f64> = all.iter().copied().flatten().collect();
    let hidden = all.len() - known.len();
    let why = match known.len() {
        count if count < MAXIMA_LEAST => {
            format!("it is among the worst cases of {count} blocks, and {MAXIMA_LEAST} are needed")
        }
        count if hidden as f64 > UNEXPLAINED_MOST * all.len() as f64 => {
            format!(
                "it is among the worst cases of only {count} of {} blocks, and its effect in the others is unknown",
                all.len()
            )
        }
        _ => return Extremes::of(&known, least_events(tally), 0.0),
    };
    Extremes { line: Err(why), ..Extremes::of(&known, 0, 0.0) }
}

/// The least number of events in a block, of all kinds together; the last block may be cut short.
fn least_events(tally: &SoakTally) -> u64 {
    let events = tally.blocks.iter().map(|block| block.events);
    events.take(tally.maxima().len().max(2) - 1).min().unwrap_or(0)
}

/// The value to expect in a longer time, or the reason why there is none.
fn expected(extremes: &Extremes, quantity: &str, alone: &str, row: impl Fn(&str, String, Value) -> Row) -> Row {
    let maxima = extremes.points.len() as f64;
    let value = match &extremes.line {
        Ok(line) => {
            let (value, limits) = line.once_in(maxima * FURTHEST);
            Value::Figure(Figure::derived(Unit::Ns, maxima as u64, value, limits))
        }
        Err(why) => Value::Absent(Absent::new(
            format!("not extrapolated: {why}"),
            "use the worst case so far, or watch for longer, under the load of the job",
        )),
    };
    row(quantity, format!("exceeded once in {FURTHEST} times the watched time{alone}"), value)
}

fn ns(label: &str, log: bool) -> Axis {
    Axis { label: label.to_owned(), unit: Unit::Ns, log }
}

fn over_time(id: &str, title: &str, tally: &SoakTally) -> Option<Series> {
    let point = |at: Nanos, y: Nanos| Point { x: at.count() as f64, y: y.count() as f64, low: None, high: None };
    let points: Vec<Point> =
        tally.blocks.iter().filter(|block| block.events > 0).map(|block| point(block.at, block.greatest)).collect();
    (points.len() > 1).then(|| Series {
        id: format!("{id}.blocks"),
        title: format!("{title}: the greatest in each block"),
        x: ns("time since the begin", false),
        y: ns("greatest", true),
        lines: vec![SeriesLine { name: "greatest in a block".to_owned(), points, fitted: false }],
    })
}

/// Temperature or frequency, block by block; `None` if the machine does not show it.
fn state(
    quantity: &str,
    title: &str,
    (label, unit): (&str, Unit),
    soak: &Soak,
    of: impl Fn(&Heat) -> Option<f64>,
) -> Option<Series> {
    let points = soak
        .states
        .states
        .iter()
        .filter_map(|state| Some(Point { x: state.at.count() as f64, y: of(&state.heat)?, low: None, high: None }));
    let points: Vec<Point> = points.collect();
    (!points.is_empty()).then(|| Series {
        id: format!("soak.{quantity}"),
        title: title.to_owned(),
        x: ns("time since the begin", false),
        y: Axis { label: label.to_owned(), unit, log: false },
        lines: vec![SeriesLine { name: format!("{quantity} at the end of a block"), points, fitted: false }],
    })
}

fn plot(id: &str, title: &str, extremes: &Extremes) -> Option<Series> {
    let at = |x: f64, y: f64| Point { x, y, low: None, high: None };
    let points: Vec<Point> = extremes.points.iter().map(|(x, y)| at(*x, *y)).collect();
    let (first, last) = (points.first()?.x, points.len() as f64);
    let mut lines = vec![SeriesLine { name: "greatest in a block".to_owned(), points, fitted: false }];
    if let Ok(line) = &extremes.line {
        let furthest = -(-(1.0 - 1.0 / (last * FURTHEST)).ln()).ln();
        let points = [first, furthest].map(|y| at(y, line.place + line.scale * y)).to_vec();
        let name = format!("line, up to {FURTHEST} times the watched time");
        lines.push(SeriesLine { name, points, fitted: true });
    }
    (last > 1.0).then(|| Series {
        id: id.to_owned(),
        title: title.to_owned(),
        x: Axis { label: "−ln(−ln p) of the blocks, Gringorten's p".to_owned(), unit: Unit::Count, log: false },
        y: ns("greatest in a block", false),
        lines,
    })
}

#[cfg(test)]
mod tests {
    use hairspring_machine::{Cpu, Instant};
    use hairspring_sheet::{Conditions, render};
    use hairspring_suite::workload::Observed;

    use super::*;
    use crate::job::{AnswerKind, Evidence, JobAnswer, Requirement};
    use crate::soak::{CaseCulprit, SoakRequest, SoakStates, WorstCase};

    /// A soak of `blocks` blocks, with or without known culprits.
    fn soak(blocks: u32, culprit: &Result<CaseCulprit, String>) -> Soak {
        let asked = ["loop 1kHz jitter 80us misses 4/h", "loop 1kHz jitter 20us p50"];
        let asked = asked.map(|text| (text.to_owned(), text.parse::<Requirement>().expect("a requirement")));
        let jobs = SoakJob::of(asked);
        let mut tally = SoakTally::new(jobs[0].asked.iter().map(|(_, requirement)| requirement.limit));
        let mut rng = fastrand::Rng::with_seed(5);
        for block in 0..blocks {
            // Exponential lateness has Gumbel maxima.
            let values: Vec<f64> = (0..1000).map(|_| (10_000.0 - 5_000.0 * (1.0 - rng.f64()).ln()).round()).collect();
            let greatest = values.iter().copied().fold(0.0, f64::max);
            let case = WorstCase {
                value: Nanos::new(greatest as i64),
                ended: Instant::from_monotonic(Nanos::ZERO),
                when: "2026-11-22T18:48:05Z".to_owned(),
                culprit: culprit.clone(),
            };
            let observed = Observed { values, watched: Nanos::from_secs(60), ..Observed::default() };
            tally.enter(Nanos::from_secs(60) * i64::from(block), &observed, vec![case], Nanos::ZERO);
        }
        let second = Nanos::from_secs(1);
        Soak {
            request: SoakRequest { jobs, span: second, block: second, cpu: Cpu(0), priority: 80, until_no: false },
            began: "2026-11-22T18:48:05Z".to_owned(),
            now: "2026-11-22T20:48:05Z".to_owned(),
            elapsed: Nanos::from_secs(60) * i64::from(blocks),
            tallies: vec![tally],
            loads: vec![("cpu".to_owned(), vec![1e6, 2e6])],
            notes: Vec::new(),
            remarks: vec!["The records were on.".to_owned()],
            conditions: Conditions::default(),
            states: SoakStates::default(),
            stolen: Nanos::ZERO,
            complete: true,
        }
    }

    fn timer() -> CaseCulprit {
        CaseCulprit { kind: CulpritKind::Timer, said: "timer tick".to_owned() }
    }

    fn sheet(soak: &Soak) -> Sheet {
        let build = Build { version: "0".into(), commit: None, compiler: "rustc".into(), flags: "debug".into() };
        soak_sheet(soak, build)
    }

    #[test]
    fn the_sheet_of_a_soak_answers_as_the_soak_does() {
        let soak = soak(120, &Err("nobody looked".to_owned()));
        let read = render::from_json(&render::to_json(&sheet(&soak))).expect("a sheet");
        let asked = soak.request.jobs.iter().flat_map(|job| &job.asked);
        for ((_, requirement), answer) in asked.zip(soak.answers()) {
            let evidence = Evidence::of_sheet(requirement, &read).expect("evidence");
            assert_eq!(evidence.misses, evidence.misses_at_most);
            assert_eq!(evidence.watched, Some(Nanos::from_secs(7200)));
            assert_eq!(JobAnswer::of(requirement, &evidence), answer);
            assert_ne!(answer.outcome, AnswerKind::NotShown);
        }
        // A limit that was not a requirement of the soak is answered within a bucket.
        let other: Requirement = "loop 1kHz jitter 31us misses 4/h".parse().expect("a requirement");
        let evidence = Evidence::of_sheet(&other, &read).expect("evidence");
        assert!(evidence.misses < evidence.misses_at_most, "{evidence:?}");
    }

    #[test]
    fn a_line_needs_names_for_the_worst_and_says_how_far_it_goes() {
        let named = sheet(&soak(120, &Ok(timer())));
        let row = named.row("soak.loop.1ms.fifo.expected").and_then(Row::figure).expect("a figure");
        let [low, high] = row.median_interval.expect("limits");
        let worst =
            named.row("soak.loop.1ms.fifo.late").and_then(Row::figure).and_then(|late| late.max).expect("a figure");
        assert!(low < high && (0.5 * worst..2.0 * worst).contains(&row.median.expect("a value")));
        let html = render::html(&named);
        assert!(html.contains("extreme values") && html.contains("up to 3 times the watched time"));
        let text = render::text(&named, &hairspring_sheet::TextStyle { width: 100, colour: false, verbose: true });
        assert!(text.contains("2026-11-22 18:48:05 UTC, timer tick"), "{text}");
        let unnamed = sheet(&soak(120, &Err("nobody looked".to_owned())));
        let Some(Value::Absent(absent)) = unnamed.row("soak.loop.1ms.fifo.expected").map(|row| &row.value) else {
            panic!("a value that nobody can know");
        };
        assert!(absent.reason.contains("no culprit"), "{}", absent.reason);
        let lines =
            |sheet: &Sheet| sheet.chapters[0].series.iter().map(|series| series.lines.len()).collect::<Vec<_>>();
        assert_eq!((lines(&named), lines(&unnamed)), (vec![1, 2, 2], vec![1, 1]));
        // The cost of the kernel's records is a remark of the chapter, not a warning of the sheet.
        assert!(named.notes.is_empty() && named.chapters[0].notes[0].text == "The records were on.");
    }

    /// The value expected of one kind, or the reason why there is none.
    fn alone(sheet: &Sheet, kind: CulpritKind) -> Result<f64, String> {
        let row = sheet.row(&format!("soak.loop.1ms.fifo.expected.{}", kind.name())).expect("a row");
        match &row.value {
            Value::Figure(figure) => Ok(figure.median.expect("a value")),
            Value::Absent(absent) => Err(absent.reason.clone()),
        }
    }

    #[test]
    fn each_cause_has_a_line_of_its_own_where_nearly_every_block_shows_it() {
        let mut soak = soak(0, &Err(String::new()));
        let tally = &mut soak.tallies[0];
        let mut rng = fastrand::Rng::with_seed(11);
        let mut gumbel = |place: f64, scale: f64| place - scale * (-rng.f64().max(1e-12).ln()).ln();
        for block in 0..200_i64 {
            let case = |value: f64, kind: CulpritKind| WorstCase {
                value: Nanos::new(value as i64),
                ended: Instant::from_monotonic(Nanos::ZERO),
                when: String::new(),
                culprit: Ok(CaseCulprit { kind, said: kind.name().to_owned() }),
            };
            let mut cases = vec![case(gumbel(30_000.0, 2_000.0), CulpritKind::Timer)];
            // A hypervisor that comes in every fourth block makes a mixture, which has no line.
            if block % 4 == 0 {
                cases.push(case(gumbel(400_000.0, 50_000.0), CulpritKind::Hypervisor));
            }
            let values = cases.iter().map(|case| case.value.count() as f64).chain((0..1000).map(|_| 9_000.0)).collect();
            let observed = Observed { values, watched: Nanos::from_secs(60), ..Observed::default() };
            tally.enter(Nanos::from_secs(60) * block, &observed, cases, Nanos::ZERO);
        }
        let sheet = sheet(&soak);
        let all = sheet.row("soak.loop.1ms.fifo.expected").expect("a row");
        assert!(all.figure().is_none(), "a mixture has no line");
        let timer = alone(&sheet, CulpritKind::Timer).expect("a line");
        // The mean of the value exceeded once in 600 blocks: 30 µs + 2 µs × ln 600.
        assert!((40_000.0..46_000.0).contains(&timer), "{timer}");
        let why = alone(&sheet, CulpritKind::Hypervisor).expect_err("too rare");
        assert!(why.contains("only 50 of 200 blocks"), "{why}");
    }

    #[test]
    fn a_cause_that_hides_behind_others_has_no_line() {
        let mut soak = soak(0, &Err(String::new()));
        let mut rng = fastrand::Rng::with_seed(12);
        for block in 0..100_i64 {
            let value = 30_000.0 - 2_000.0 * (-rng.f64().max(1e-12).ln()).ln();
            let case = WorstCase {
                value: Nanos::new(value as i64),
                ended: Instant::from_monotonic(Nanos::ZERO),
                when: String::new(),
                culprit: Ok(timer()),
            };
            let observed = Observed { values: vec![value; 1000], watched: Nanos::from_secs(60), ..Observed::default() };
            // In another turn of every third block eight greater events left no room for it.
            let asked_from = if block % 3 == 0 { Nanos::from_millis(1) } else { Nanos::ZERO };
            soak.tallies[0].enter(Nanos::from_secs(60) * block, &observed, vec![case], asked_from);
        }
        let why = alone(&sheet(&soak), CulpritKind::Timer).expect_err("hidden");
        assert!(why.contains("only 66 of 100 blocks"), "{why}");
    }

    #[test]
    fn temperature_and_frequency_are_drawn_where_the_machine_shows_them() {
        let mut soak = soak(2, &Err(String::new()));
        let has = |soak: &Soak, id: &str| sheet(soak).chapters[0].series.iter().any(|series| series.id == id);
        assert!(!has(&soak, "soak.temperature") && !has(&soak, "soak.frequency"));
        soak.states.enter(Nanos::ZERO, Heat { temperature_c: Some(61.5), frequency_hz: None });
        assert!(has(&soak, "soak.temperature") && !has(&soak, "soak.frequency"));
        let html = render::html(&sheet(&soak));
        assert!(html.contains("Temperature of the hottest zone"));
    }
}
