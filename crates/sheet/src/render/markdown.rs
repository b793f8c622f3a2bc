//! The whole sheet as Markdown with GitHub's tables: every fact, every statistic, every reason for an absence, every
//! id. Plots become tables of their points; distributions stay in the HTML and JSON forms.

use std::fmt::Write;

use super::absences::{absences, has_figures};
use super::incident;
use super::quantity;
use super::quantity::{binary, centre, count, statistic};
use super::timeline;
use crate::{Chapter, Conditions, FactValue, Figure, Note, NoteKind, Row, Series, Sheet, SheetSummary, Table, Unit};

/// Renders a sheet as Markdown. Ends with a newline.
pub fn markdown(sheet: &Sheet) -> String {
    let mut out = format!("# {}\n\n", escaped(&sheet.title()));
    head(&mut out, sheet);
    notes(&mut out, &sheet.notes);
    if let Some(summary) = &sheet.summary {
        first_page(&mut out, summary);
    }
    for chapter in &sheet.chapters {
        self::chapter(&mut out, chapter);
    }
    conditions(&mut out, &sheet.conditions);
    out
}

fn head(out: &mut String, sheet: &Sheet) {
    let (taken, build) = (&sheet.taken, &sheet.hairspring);
    let commit = build.commit.as_deref().map_or(String::new(), |c| format!(" ({c})"));
    let duration = quantity(taken.duration_s * 1e9, Unit::Ns);
    let read = |id| sheet.conditions.value(id).unwrap_or("unknown").to_owned();
    let rows = [
        ("Machine", read("cpu.model")),
        ("Kernel", read("kernel.release")),
        ("Clock source", sheet.conditions.clock_source().unwrap_or("unknown").to_owned()),
        ("Taken", format!("{}, in {duration}", taken.when())),
        ("Effort", if taken.interrupted { format!("{}, interrupted", taken.how()) } else { taken.how() }),
        ("Taken by", format!("hairspring {}{commit}, {}, {}", build.version, build.compiler, build.flags)),
        ("Form", sheet.schema.clone()),
    ];
    line(out, &["", ""].map(str::to_owned));
    out.push_str("|:--|:--|\n");
    for (label, value) in rows {
        line(out, &[format!("**{label}**"), escaped(&value)]);
    }
    out.push('\n');
}

fn notes(out: &mut String, notes: &[Note]) {
    let mut ordered: Vec<&Note> = notes.iter().collect();
    ordered.sort_by_key(|n| n.kind == NoteKind::Remark);
    for note in ordered {
        let kind = match note.kind {
            NoteKind::Warning => "WARNING",
            NoteKind::Remark => "NOTE",
        };
        write(out, format_args!("> [!{kind}]\n> {}\n", escaped(&note.text)));
        if let Some(remedy) = &note.remedy {
            write(out, format_args!(">\n> → {}\n", escaped(remedy)));
        }
        out.push('\n');
    }
}

/// The summary: characteristics as a table, findings and missing measurements as lists.
fn first_page(out: &mut String, summary: &SheetSummary) {
    out.push_str("| what it does | typical | 99 % | worst | watched | conditions |\n|:--|--:|--:|--:|--:|:--|\n");
    for one in &summary.characteristics {
        let number =
            |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| quantity(value, one.unit).to_string());
        let watched = quantity(one.watched as f64, Unit::Count).to_string();
        let numbers = [one.typical, one.p99, one.worst].map(number);
        let [typical, p99, worst] = numbers;
        line(out, &[escaped(&one.label), typical, p99, worst, watched, escaped(&one.conditions)]);
    }
    if !summary.findings.is_empty() {
        out.push_str("\n## What limits it\n\n");
    }
    for finding in &summary.findings {
        let (text, remedy, effect) = (escaped(&finding.text), escaped(&finding.remedy), escaped(&finding.effect));
        write(out, format_args!("1. {text} → {remedy}: **{effect}**\n"));
    }
    if !summary.not_measured.is_empty() {
        out.push_str("\n## Not measured\n\n");
    }
    for one in &summary.not_measured {
        let remedy = one.remedy.as_deref().map_or(String::new(), |remedy| format!(" → {}", escaped(remedy)));
        write(out, format_args!("- {} ({} rows): {}{remedy}\n", escaped(&one.what), one.rows, escaped(&one.reason)));
    }
    out.push('\n');
}

fn chapter(out: &mut String, chapter: &Chapter) {
    write(out, format_args!("## {} · `{}`\n\n{}\n\n", escaped(&chapter.title), chapter.id, escaped(&chapter.intro)));
    for table in chapter.tables.iter().filter(|table| has_figures(table)) {
        self::table(out, table);
    }
    for series in &chapter.series {
        self::series(out, series);
    }
    incidents(out, chapter);
    absent(out, chapter);
    notes(out, &chapter.notes);
}

/// The worst gaps and late wake-ups, a line for each.
fn incidents(out: &mut String, chapter: &Chapter) {
    for (heading, incidents) in incident::groups(chapter) {
        write(out, format_args!("### {heading}\n\n"));
        for one in incidents {
            let [length, place, story] = [incident::length(one), incident::place(one), incident::story(one)];
            write(out, format_args!("- **{length}** on {}: {}\n", escaped(&place), escaped(&story)));
        }
        out.push('\n');
    }
}

/// The absent rows, one line for each reason, with their ids.
fn absent(out: &mut String, chapter: &Chapter) {
    let absences = absences(chapter);
    if absences.is_empty() {
        return;
    }
    line(out, &["absent", "why", "what would bring it", "ids"].map(str::to_owned));
    out.push_str("|:--|:--|:--|:--|\n");
    for of in absences {
        let groups: Vec<String> = of.groups.iter().map(|group| escaped(&group.named())).collect();
        let ids = of.groups.iter().flat_map(|group| &group.rows).map(|row| format!("`{}`", row.id));
        let remedy = of.absent.remedy.as_deref().map_or("–".to_owned(), escaped);
        let ids = ids.collect::<Vec<_>>().join(" ");
        line(out, &[format!("{}: {}", of.count(), groups.join("; ")), escaped(&of.absent.reason), remedy, ids]);
    }
    out.push('\n');
}

/// A column of numbers: its head and its statistic.
type Statistic = (&'static str, fn(&Figure) -> Option<f64>);

const STATISTICS: &[Statistic] = &[
    ("min", |f| f.min),
    ("1 %", |f| f.p1),
    ("25 %", |f| f.q1),
    ("median", |f| f.median),
    ("75 %", |f| f.q3),
    ("99 %", |f| f.p99),
    ("99.9 %", |f| f.p999),
    ("max", |f| f.max),
    ("mean", |f| f.mean),
];

/// The columns of spread and cost, whose size is independent of the figure's.
const SIZES: &[Statistic] = &[("MAD", |f| f.mad), ("overhead", |f| f.overhead)];

/// Width of a diagram, so that a page shows it without scrolling.
const DIAGRAM_WIDTH: usize = 80;

fn table(out: &mut String, table: &Table) {
    write(out, format_args!("### {} · `{}`\n\n", escaped(&table.title), table.id));
    diagram(out, table);
    let names = STATISTICS.iter().chain(SIZES).map(|(name, _)| (*name).to_owned());
    let fixed = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let header: Vec<String> =
        fixed(&["id", "what", "n"]).into_iter().chain(names).chain(fixed(&["median, 95 %", "method"])).collect();
    line(out, &header);
    write(out, format_args!("|:--|:--|--:|{}--:|:--|\n", "--:|".repeat(STATISTICS.len() + SIZES.len())));
    for (row, figure) in table.rows.iter().filter_map(|row| Some((row, row.figure()?))) {
        line(out, &cells(row, figure));
    }
    out.push('\n');
}

/// The diagram of a table in a block of fixed-width text, with the meaning of its spans below.
fn diagram(out: &mut String, table: &Table) {
    let Some(diagram) = &table.diagram else { return };
    write(out, format_args!("{} {}\n\n", escaped(&diagram.caption), diagram.origin.sentence()));
    match super::text::drawing(diagram, DIAGRAM_WIDTH) {
        Ok(lines) => {
            let drawing = lines.join("\n");
            // Longer than any run of backticks in the drawing, so that the drawing cannot end the block.
            let longest = drawing.split(|c| c != '`').map(str::len).max().unwrap_or(0);
            let fence = "`".repeat((longest + 1).max(3));
            write(out, format_args!("{fence}text\n{drawing}\n{fence}\n\n"));
        }
        Err(why) => write(out, format_args!("**absent:** {}\n\n", escaped(&why))),
    }
    for (span, measured) in timeline::meanings(diagram, table) {
        let measured = measured.map_or(String::new(), |measured| format!(": {measured}"));
        write(out, format_args!("- **{}** {}{measured}\n", escaped(&span.name), escaped(&span.meaning)));
    }
    out.push('\n');
}

fn cells(row: &Row, figure: &Figure) -> Vec<String> {
    let mut cells = vec![format!("`{}`", row.id)];
    let middle = |figure: &Figure| centre(figure).map_or("–".to_owned(), |q| q.to_string());
    let caveats: String = figure.caveats.iter().map(|c| format!("<br>**!** {}", escaped(c))).collect();
    let verdicts = figure.verdict_line().map_or(String::new(), |line| format!("<br>{}", escaped(&line)));
    cells.push(format!("{}{verdicts}{caveats}", escaped(&row.label)));
    cells.push(count(figure));
    let written = |value| statistic(figure, value).map_or("–".to_owned(), |q| q.to_string());
    cells.extend(STATISTICS.iter().map(|(name, of)| {
        let binary = binary(figure, of(figure)).filter(|_| *name == "median");
        let written = if *name == "median" { middle(figure) } else { written(of(figure)) };
        written + &binary.map_or(String::new(), |q| format!(" ({q})"))
    }));
    let size = |value: Option<f64>| value.map_or("–".to_owned(), |v| quantity(v, figure.unit).to_string());
    cells.extend(SIZES.iter().map(|(_, of)| size(of(figure))));
    let interval =
        figure.median_interval.map(|[low, high]| format!("{} … {}", written(Some(low)), written(Some(high))));
    cells.push(interval.unwrap_or_else(|| "–".to_owned()));
    cells.push(figure.method.name().to_owned());
    cells
}

fn series(out: &mut String, series: &Series) {
    write(out, format_args!("### {} · `{}`\n\n", escaped(&series.title), series.id));
    let (x, y) = (escaped(&series.x.label), escaped(&series.y.label));
    line(out, &["line".to_owned(), x, y, "least".to_owned(), "greatest".to_owned()]);
    out.push_str("|:--|--:|--:|--:|--:|\n");
    for of in &series.lines {
        for point in &of.points {
            let y = |value: Option<f64>| value.map_or("–".to_owned(), |v| quantity(v, series.y.unit).to_string());
            let x = quantity(point.x, series.x.unit).trimmed().to_string();
            line(out, &[escaped(&of.name), x, y(Some(point.y)), y(point.low), y(point.high)]);
        }
    }
    out.push('\n');
}

fn conditions(out: &mut String, conditions: &Conditions) {
    out.push_str("## Conditions\n\n| id | what | value |\n|:--|:--|:--|\n");
    for fact in &conditions.facts {
        let value = match &fact.value {
            FactValue::Value(value) => escaped(value),
            FactValue::Absent(absent) => {
                let remedy = absent.remedy.as_ref().map_or(String::new(), |r| format!("<br>→ {}", escaped(r)));
                format!("**absent:** {}{remedy}", escaped(&absent.reason))
            }
        };
        line(out, &[format!("`{}`", fact.id), escaped(&fact.label), value]);
    }
    out.push_str("\n### Threads\n\n");
    if let Some(absent) = &conditions.threads_absent {
        let remedy = absent.remedy.as_ref().map_or(String::new(), |r| format!(" → {}", escaped(r)));
        let what = if conditions.threads.is_empty() { "absent" } else { "not whole" };
        write(out, format_args!("**{what}:** {}{remedy}\n\n", escaped(&absent.reason)));
    }
    if !conditions.threads.is_empty() {
        out.push_str("| pid | tid | name | policy | priority | CPU time |\n|--:|--:|:--|:--|--:|--:|\n");
    }
    for thread in &conditions.threads {
        let name = thread.name.as_deref().map_or("–".to_owned(), escaped);
        let used = quantity(thread.cpu_ms as f64 * 1e6, Unit::Ns).to_string();
        let (pid, tid, priority) = (thread.pid.to_string(), thread.tid.to_string(), thread.rt_priority.to_string());
        line(out, &[pid, tid, name, escaped(&thread.policy), priority, used]);
    }
}

fn line(out: &mut String, cells: &[String]) {
    write(out, format_args!("| {} |\n", cells.join(" | ")));
}

/// Escaped text, which cannot begin a tag, a link, a table cell or emphasis.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in super::clean::clean(text).chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' => escaped.extend(['\\', character]),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Writing to a string cannot fail.
fn write(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}
