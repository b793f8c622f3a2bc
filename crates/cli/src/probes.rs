//! `hairspring probes`: the registry.

use hairspring_suite::{RowDeclaration, registry};
use serde_json::json;

use crate::arguments::{ProbesArguments, ProbesFormat};
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn run(arguments: &ProbesArguments) -> Result<Exit, Failure> {
    output::print(&match arguments.format {
        ProbesFormat::Text => text(),
        ProbesFormat::Md => markdown(),
        ProbesFormat::Json => json_list(),
    })
}

fn text() -> String {
    let mut text = String::new();
    for chapter in registry() {
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
    text.push_str("`hairspring probes --format md` says what each of them measures.\n");
    text
}

fn markdown() -> String {
    let mut text =
        "# Probes\n\nEvery row that a sheet can have. The method is how its samples are taken: `stamp`, a pair \
                    of time stamps around one event, whose cost is contained; `diff`, loops with the event less loops \
                    without it; `rate`, a count over a time; `count`, events counted; `derived`, computed.\n"
            .to_owned();
    for chapter in registry() {
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

fn json_list() -> String {
    let rows: Vec<_> = registry()
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

/// A unit or method as it stands in JSON.
fn word(value: &serde_json::Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
