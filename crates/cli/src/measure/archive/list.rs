//! `hairspring archive list`.

use clap::Args;
use hairspring_archive::{Archive, ArchivedSheet};
use serde_json::json;

use crate::arguments::Plain;
use crate::exit::{Exit, Failure};
use crate::output;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Only sheets of this machine: its name, or the beginning of its id
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Format
    #[arg(long, value_enum, default_value = "text")]
    format: Plain,
}

pub(super) fn run(archive: &Archive, arguments: &Arguments) -> Result<Exit, Failure> {
    let sheets = match &arguments.machine {
        Some(named) => archive.sheets_of(&archive.machine(Some(named))?)?,
        None => archive.list()?,
    };
    output::print(&match arguments.format {
        Plain::Text => text(&sheets),
        Plain::Json => {
            let sheets: Vec<_> = sheets.iter().map(object).collect();
            format!("{:#}\n", json!({ "schema": "hairspring.archive-list/1", "sheets": sheets }))
        }
    })
}

fn object(sheet: &ArchivedSheet) -> serde_json::Value {
    json!({
        "id": sheet.id, "taken": sheet.taken, "taken_ns": sheet.taken_ns, "machine": sheet.machine, "host": sheet.host, "cpu": sheet.cpu,
        "conditions": sheet.conditions, "version": sheet.version, "effort": sheet.effort, "interrupted": sheet.interrupted,
        "figures": sheet.figures, "absent": sheet.absent,
    })
}

/// One line for each sheet. Equal numbers of conditions are equal conditions.
pub(super) fn text(sheets: &[ArchivedSheet]) -> String {
    let mut text = format!(
        "{:<8}  {:<23}  {:<24}  {:<8}  {:>10}  {:>7}\n",
        "id", "taken", "machine", "effort", "conditions", "figures"
    );
    for sheet in sheets {
        let machine = sheet.host.as_deref().or(sheet.cpu.as_deref()).unwrap_or("unknown");
        let machine: String = machine.chars().take(24).collect();
        let interrupted = if sheet.interrupted { "  interrupted" } else { "" };
        text.push_str(&format!(
            "{:<8}  {:<23}  {machine:<24}  {:<8}  {:>10}  {:>7}{interrupted}\n",
            sheet.short_id(),
            sheet.taken,
            sheet.effort,
            sheet.conditions,
            sheet.figures
        ));
    }
    text
}
