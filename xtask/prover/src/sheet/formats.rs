//! Proof: the command writes a whole sheet in every format.
//!
//! Each format must succeed and end with the mark of a complete document. The JSON document must parse and name the
//! version of its schema.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::Verdict;

/// The name of a sheet's schema in its JSON.
const SCHEMA: &str = "hairspring.sheet/1";
const FORMATS: &[&str] = &["text", "md", "html", "json"];

pub(crate) fn prove() -> Verdict {
    let mut figures = Map::new();
    let mut passed = true;
    for format in FORMATS {
        match sheet(format).and_then(|text| whole(format, &text)) {
            Ok(bytes) => {
                figures.insert(format!("{format}_bytes"), json!(bytes));
            }
            Err(why) => {
                passed = false;
                figures.insert(format!("{format}_defect"), json!(why));
            }
        }
    }
    Verdict { passed, figures }
}

/// The command in the folder of this program, built together with it.
pub(crate) fn command() -> Result<PathBuf, String> {
    let own = env::current_exe().map_err(|error| format!("find this program: {error}"))?;
    Ok(own.with_file_name("hairspring"))
}

fn sheet(format: &str) -> Result<String, String> {
    let output = Command::new(command()?)
        .args(["sheet", "--quick", "--format", format])
        .output()
        .map_err(|error| format!("run hairspring: {error}"))?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("not UTF-8: {error}"))
}

/// The document's length in bytes, or its fault.
fn whole(format: &str, text: &str) -> Result<usize, String> {
    let sound = match format {
        "json" => {
            let document: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
            document["schema"] == SCHEMA
        }
        "html" => text.trim_end().ends_with("</html>") && text.contains("<svg"),
        "md" => text.starts_with("# ") && text.contains("|--"),
        _ => text.lines().count() > 20,
    };
    if sound { Ok(text.len()) } else { Err(format!("{} bytes that are not a whole {format} sheet", text.len())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_were_cut_off_are_not_whole() {
        let html = "<!doctype html><html><svg></svg></html>\n";
        assert_eq!(whole("html", html), Ok(html.len()));
        assert!(whole("html", &html[..html.len() - 4]).is_err());
        assert!(whole("json", r#"{"schema":"hairspring.sheet/1"}"#).is_ok());
        assert!(whole("json", r#"{"schema":"hairspring.sheet/1""#).is_err());
        assert!(whole("json", r#"{"schema":"other/1"}"#).is_err());
        assert!(whole("md", "# Sheet\n\n| a |\n|---|\n").is_ok() && whole("md", "text").is_err());
        assert!(whole("text", "one line").is_err());
    }
}
