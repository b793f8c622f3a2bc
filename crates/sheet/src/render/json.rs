//! The sheet as JSON, the contract for everything that reads sheets, and its JSON Schema.
//!
//! A written sheet can always be read again: numbers that are not finite have no JSON form and are left out, each with
//! a note. Within one version of the schema fields may be added, so unknown ones are accepted.

use std::fmt;

use crate::{
    Bucket, COMPARISON_SCHEMA, Comparison, Figure, Interleaved, Note, NoteKind, SCHEMA, Series, Sheet, VERDICTS_SCHEMA,
    Value,
};

/// Why a text is not a sheet.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The text is not JSON at all, or was cut short.
    NotJson(serde_json::Error),
    /// It is JSON, but does not state that it is a sheet.
    NotASheet,
    /// It is a sheet of another version.
    OtherVersion {
        /// The version that it states.
        found: String,
    },
    /// It states that it is a sheet of this version, but a part is missing or of the wrong type.
    Malformed(serde_json::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::NotJson(error) if error.is_eof() => {
                write!(f, "read JSON: it ends too early ({error}); was it cut short? take or copy the sheet again")
            }
            ReadError::NotJson(error) => {
                write!(f, "read JSON: {error}; give a sheet that was written with --format json")
            }
            ReadError::NotASheet => write!(
                f,
                "read a sheet: there is no \"schema\": \"{SCHEMA}\" at its top; give one written with --format json"
            ),
            ReadError::OtherVersion { found } => write!(
                f,
                "read a sheet of version {found:?}: this build reads {SCHEMA:?}; use the build of hairspring that wrote \
                 it, or take the sheet again with this one"
            ),
            ReadError::Malformed(error) => write!(
                f,
                "read a sheet: {error}; it was changed by hand or by another program, so take it again or compare it \
                 with the JSON Schema"
            ),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::NotJson(error) | ReadError::Malformed(error) => Some(error),
            ReadError::NotASheet | ReadError::OtherVersion { .. } => None,
        }
    }
}

/// Writes a sheet as indented JSON with a newline at its end.
pub fn to_json(sheet: &Sheet) -> String {
    let mut sheet = sheet.clone();
    keep_finite(&mut sheet);
    // Cannot fail: every key of the document is a string and every number is finite.
    let mut json = serde_json::to_string_pretty(&sheet).unwrap_or_default();
    json.push('\n');
    json
}

/// Reads a sheet.
///
/// # Errors
/// The text is not JSON, not a sheet, of another version, or incomplete; each error names the remedy.
pub fn from_json(json: &str) -> Result<Sheet, ReadError> {
    let document: serde_json::Value = serde_json::from_str(json).map_err(ReadError::NotJson)?;
    match document.get("schema").and_then(serde_json::Value::as_str) {
        Some(SCHEMA) => {}
        Some(found) => return Err(ReadError::OtherVersion { found: found.to_owned() }),
        None => return Err(ReadError::NotASheet),
    }
    // Parses the text again, so that an error names its line.
    let mut sheet: Sheet = serde_json::from_str(json).map_err(ReadError::Malformed)?;
    keep_finite(&mut sheet);
    Ok(sheet)
}

/// The JSON Schema of a sheet, indented, with a newline at its end.
pub fn schema() -> String {
    schema_of::<Sheet>(SCHEMA)
}

/// The schema of the pairs of two builds that were measured in turns ([`Interleaved`]).
pub fn pairs_schema() -> String {
    schema_of::<Interleaved>(COMPARISON_SCHEMA)
}

/// The schema of the verdicts of a [`Comparison`].
pub fn verdicts_schema() -> String {
    schema_of::<Comparison>(VERDICTS_SCHEMA)
}

fn schema_of<T: schemars::JsonSchema>(name: &str) -> String {
    let mut schema = schemars::schema_for!(T);
    // The only valid value of the field; without it a validator would accept every version.
    if let Some(field) = schema.pointer_mut("/properties/schema").and_then(serde_json::Value::as_object_mut) {
        field.insert("const".to_owned(), name.into());
    }
    let mut json = serde_json::to_string_pretty(&schema).unwrap_or_default();
    json.push('\n');
    json
}

/// Leaves out values that JSON cannot hold, and adds a note.
fn keep_finite(sheet: &mut Sheet) {
    if !sheet.taken.duration_s.is_finite() {
        sheet.taken.duration_s = 0.0;
        sheet.notes.push(warning("the duration of the sheet is unknown".to_owned()));
    }
    for chapter in &mut sheet.chapters {
        for row in chapter.tables.iter_mut().flat_map(|t| &mut t.rows) {
            if let Value::Figure(figure) = &mut row.value
                && keep_finite_statistics(figure)
            {
                figure.caveats.push("statistics that were not finite numbers are left out".to_owned());
            }
        }
        for series in &mut chapter.series {
            let left_out = keep_finite_points(series);
            if left_out > 0 {
                let text = format!("{left_out} values of {} were not finite numbers and are left out", series.id);
                chapter.notes.push(warning(text));
            }
        }
    }
}

/// Whether a value had to be left out.
fn keep_finite_statistics(figure: &mut Figure) -> bool {
    let mut left_out = false;
    let Figure { min, p1, q1, median, q3, p99, p999, max, mad, mean, overhead, .. } = figure;
    for statistic in [min, p1, q1, median, q3, p99, p999, max, mad, mean, overhead] {
        left_out |= statistic.take_if(|s| !s.is_finite()).is_some();
    }
    left_out |= figure.median_interval.take_if(|i| !i.iter().all(|limit| limit.is_finite())).is_some();
    let finite = |b: &Bucket| b.from.is_finite() && b.to.is_finite();
    left_out |= figure.histogram.take_if(|h| !h.buckets.iter().all(finite)).is_some();
    left_out
}

/// Removes points that are not finite, and returns their number.
fn keep_finite_points(series: &mut Series) -> usize {
    let mut left_out = 0;
    for line in &mut series.lines {
        let before = line.points.len();
        line.points.retain(|p| p.x.is_finite() && p.y.is_finite());
        left_out += before - line.points.len();
        for limit in line.points.iter_mut().flat_map(|p| [&mut p.low, &mut p.high]) {
            left_out += usize::from(limit.take_if(|l| !l.is_finite()).is_some());
        }
    }
    left_out
}

fn warning(text: String) -> Note {
    Note { kind: NoteKind::Warning, text, remedy: None }
}
