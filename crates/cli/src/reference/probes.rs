//! `hairspring probes`: lists every row that a sheet can have.

use clap::{Args, ValueEnum};
use hairspring_suite::{ChapterDeclaration, RowDeclaration, registry, select};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::output;
use crate::page::{Example, Page};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page::new(
    "probes",
    &[
        Example { does: "List all ids", line: "hairspring probes" },
        Example {
            does: "Print what the rows about reading clocks measure",
            line: "hairspring probes --only clocks.read --format md",
        },
    ],
);

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// List only rows whose ids begin with this, for instance clocks.read,delays.minimum.fifo
    #[arg(long, value_name = "ID-PREFIX", value_delimiter = ',')]
    only: Vec<String>,
    /// Format of the list
    #[arg(long, value_enum, default_value_t = ProbesFormat::Text)]
    format: ProbesFormat,
}

/// The formats of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProbesFormat {
    /// Ids with units and methods
    Text,
    /// Markdown tables that say what each row measures
    Md,
    /// JSON
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let ids = select(&arguments.only).map_err(|error| Failure::bad_request(error.to_string()))?;
    let mut chapters = registry();
    for chapter in &mut chapters {
        chapter.tables.iter_mut().for_each(|table| table.rows.retain(|row| ids.contains(&row.id)));
        chapter.tables.retain(|table| !table.rows.is_empty());
    }
    chapters.retain(|chapter| !chapter.tables.is_empty());
    output::print(&match arguments.format {
        ProbesFormat::Text => text(&chapters),
        ProbesFormat::Md => markdown(&chapters),
        ProbesFormat::Json => json_list(chapters),
    })
}

fn text(chapters: &[ChapterDeclaration]) -> String {
    let mut text = String::new();
    for chapter in chapters {
        text.push_str(&format!("{}: {}\n", chapter.title, chapter.id));
        for table in &chapter.tables {
            text.push_str(&format!("\n  {} ({})\n", table.title, table.id));
            let width = table.rows.iter().map(|row| row.id.len()).max().unwrap_or(0);
            for row in &table.rows {
                text.push_str(&format!("    {:width$}  {}, {}\n", row.id, unit(row), method(row)));
            }
        }
        text.push('\n');
    }
    text.push_str("`hairspring probes --format md` says what each row measures.\n");
    text
}

fn markdown(chapters: &[ChapterDeclaration]) -> String {
    let mut text =
        "# Probes\n\nEvery row that a sheet can have. The method says how its samples are taken: `stamp` is a pair of time stamps around one event, \
                    and contains the cost of a stamp; `diff` is the time of loops with the event less that of loops without it; `rate` is \
                    a count over a time; `count` is a number of events; `derived` is computed from other figures.\n"
            .to_owned();
    for chapter in chapters {
        text.push_str(&format!("\n## {}\n\n{}\n", chapter.title, chapter.intro));
        for table in &chapter.tables {
            text.push_str(&format!("\n### {}\n\nLimits: {}.\n\n", table.title, table.limits));
            text.push_str("| id | unit | method | measures |\n| --- | --- | --- | --- |\n");
            for row in &table.rows {
                text.push_str(&format!("| `{}` | {} | {} | {} |\n", row.id, unit(row), method(row), row.measures));
            }
        }
    }
    text
}

fn json_list(chapters: Vec<ChapterDeclaration>) -> String {
    let rows: Vec<_> = chapters
        .into_iter()
        .flat_map(|chapter| chapter.tables)
        .flat_map(|table| table.rows)
        .map(|row| {
            json!({
                "id": row.id, "label": row.label, "unit": row.unit, "method": row.method, "measures": row.measures,
            })
        })
        .collect();
    format!("{:#}\n", json!({ "schema": "hairspring.probes/1", "probes": rows }))
}

fn unit(row: &RowDeclaration) -> String {
    word(&json!(row.unit))
}

fn method(row: &RowDeclaration) -> String {
    word(&json!(row.method))
}

/// The name of a unit or method in JSON.
fn word(value: &serde_json::Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
