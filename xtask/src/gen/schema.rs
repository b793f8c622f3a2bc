//! `docs/sheet-json.md` and `docs/comparison-json.md`: JSON Schemas as readable pages: one section per type, one line
//! per key.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

const SHEET: &str = "# The JSON of a sheet

The form `hairspring.sheet/1`. It may gain keys and never loses one, so a program that passes over what it does not know goes on working.
For validators there is the [JSON Schema](sheet.schema.json), which `hairspring schema` prints. All numbers of a figure are in its unit.
";

const COMPARISON: &str = "# The JSON of a comparison

Two forms: `hairspring.comparison/1` has the pairs of two builds that `hairspring ab` measured in turns, and `hairspring.verdicts/1` what
`hairspring compare` says of pairs or of sheets. They may gain keys and never lose one. For validators there are the JSON Schemas
[of the pairs](comparison.schema.json) and [of the verdicts](verdicts.schema.json), which `hairspring schema pairs` and `hairspring schema
verdicts` print.
";

/// The page of these documents; a type that several of them share appears once.
pub(super) fn page(root: &Path, documents: &[&str]) -> Result<String, String> {
    let mut page = if documents == ["sheet"] { SHEET } else { COMPARISON }.to_owned();
    let mut types = BTreeMap::new();
    for document in documents {
        let source = format!("docs/{document}.schema.json");
        let text = fs::read_to_string(root.join(&source)).map_err(|error| format!("read {source}: {error}"))?;
        let schema: Value = serde_json::from_str(&text).map_err(|error| format!("read {source}: {error}"))?;
        section(&mut page, schema["title"].as_str().unwrap_or_default(), &schema);
        let own = schema["$defs"].as_object().ok_or_else(|| format!("find the types in {source}"))?;
        types.extend(own.clone());
    }
    types.iter().for_each(|(name, described)| section(&mut page, name, described));
    Ok(page)
}

fn section(page: &mut String, name: &str, described: &Value) {
    let _ = writeln!(page, "\n## {name}\n\n{}", told(described));
    let variants = described["oneOf"].as_array().map(Vec::as_slice).unwrap_or_default();
    let words: Vec<&Value> = variants.iter().filter(|variant| variant["const"].is_string()).collect();
    if !words.is_empty() {
        page.push_str("\n| value | meaning |\n|---|---|\n");
        for word in words {
            let _ = writeln!(page, "| `{}` | {} |", word["const"].as_str().unwrap_or_default(), told(word));
        }
    }
    // The keys of all variants belong to the type, like its own.
    let own = [described].into_iter().chain(variants);
    let keys: Vec<(&String, &Value, String)> = own
        .flat_map(|part| {
            let required = part["required"].as_array().cloned().unwrap_or_default();
            let several = !std::ptr::eq(part, described);
            part["properties"].as_object().into_iter().flatten().map(move |(key, value)| {
                let must = required.iter().any(|name| name == key);
                let there = match (must, several) {
                    (true, false) => "always",
                    (true, true) => "one of these",
                    (false, _) => "may be missing",
                };
                (key, value, there.to_owned())
            })
        })
        .collect();
    if keys.is_empty() {
        return;
    }
    page.push_str("\n| key | type | there | what |\n|---|---|---|---|\n");
    for (key, value, there) in keys {
        let _ = writeln!(page, "| `{key}` | {} | {there} | {} |", kind(value), told(value));
    }
}

/// Its description, without the markup of Rust's documentation.
fn told(described: &Value) -> String {
    let text = described["description"].as_str().unwrap_or_default();
    text.replace("[`", "`").replace("`]", "`").replace('\n', " ").replace('|', "\\|")
}

/// The type of a value, with a link to its section if it has one.
fn kind(value: &Value) -> String {
    if let Some(name) = value["$ref"].as_str().and_then(|link| link.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(choices) = value["anyOf"].as_array() {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    let name = |kind: &Value| match kind.as_str() {
        Some("array") => format!("list of {}", self::kind(&value["items"])),
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    };
    match &value["type"] {
        Value::Array(kinds) => kinds.iter().map(name).collect::<Vec<_>>().join(" or "),
        kind => name(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_types_with_links_and_say_whether_they_are_always_there() {
        let described = serde_json::json!({
            "description": "One [`Row`].", "required": ["id"],
            "properties": { "id": { "type": "string", "description": "Stable." }, "n": { "type": ["number", "null"] } },
            "oneOf": [{ "properties": { "figures": { "type": "array", "items": { "$ref": "#/$defs/Figure" } } }, "required": ["figures"] }],
        });
        let mut page = String::new();
        section(&mut page, "Row", &described);
        for line in [
            "One `Row`.",
            "| `id` | string | always | Stable. |",
            "| `n` | number or null | may be missing |  |",
            "| `figures` | list of [Figure](#figure) | one of these |  |",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }

    #[test]
    fn words_come_with_their_meanings() {
        let described = serde_json::json!({ "oneOf": [{ "const": "ns", "description": "Nanoseconds." }] });
        let mut page = String::new();
        section(&mut page, "Unit", &described);
        assert!(page.contains("| `ns` | Nanoseconds. |"), "{page}");
    }
}
