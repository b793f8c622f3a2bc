//! Rows of sheets that the command takes for a proof.

use std::process::Command;

use hairspring_sheet::Value;
use hairspring_sheet::render::from_json;

use crate::sheet::formats::command;

/// The medians of these rows, from a sheet that is taken under these words of `hairspring`, with these more of `sheet`.
/// A row that is absent is an error with its reason.
pub(crate) fn medians(under: &[&str], sheet: &[&str], rows: &[&str]) -> Result<Vec<f64>, String> {
    let hairspring = command()?;
    let mut command = Command::new(&hairspring);
    if !under.is_empty() {
        command.args(under).arg(&hairspring);
    }
    command.args(["sheet", "--format", "json", "--only", &rows.join(",")]).args(sheet);
    let output = command.output().map_err(|error| format!("run hairspring sheet: {error}"))?;
    let failed = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let sheet = from_json(&String::from_utf8_lossy(&output.stdout)).map_err(|_| failed())?;
    let median = |id: &&str| {
        let row = sheet.rows().find(|row| row.id == *id).ok_or_else(failed)?;
        match &row.value {
            Value::Figure(figure) => figure.median.ok_or_else(|| format!("{id} has no median")),
            Value::Absent(absent) => Err(format!("{id}: {}", absent.reason)),
        }
    };
    rows.iter().map(median).collect()
}
