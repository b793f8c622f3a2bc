//! The timing data sheet of the virtual machine, which the first program (`lab/init`) takes with the command before it
//! loads any driver.

use std::fs::read_to_string;

use serde_json::Value;

use crate::Lab;
use crate::findings::{Findings, check, text};

const SHEET: &str = "/tmp/sheet.json";
const SAID: &str = "/tmp/sheet.said";
const STATUS: &str = "/tmp/sheet.status";

/// The sheet exists and is JSON. The host checks its contents.
pub(crate) fn quick(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let read = |path: &str| read_to_string(path).map_err(|error| format!("failed to read {path}: {error}"));
    let (status, said) = (read(STATUS)?, read(SAID)?);
    check(status.trim() == "0", || format!("the command ended with {}: {}", status.trim(), said.trim()))?;
    findings.sheet(serde_json::from_str::<Value>(&read(SHEET)?).map_err(text)?);
    Ok(())
}
