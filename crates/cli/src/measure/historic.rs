//! Sheets and comparisons from files, and the built-in historic sheets. An error about another document names the kind
//! of that document.

use std::io::Read;
use std::path::{Path, PathBuf};

use hairspring_archive::open_sheet;
use hairspring_sheet::render::{self, ReadError};
use hairspring_sheet::{COMPARISON_SCHEMA, Interleaved, SCHEMA, Sheet};

use crate::exit::Failure;

/// The historic sheets by name.
const HISTORIC: [(&str, &str); 12] = [
    ("fermilab-2007", include_str!("../../historic/fermilab-2007.json")),
    ("amx86-486sx", include_str!("../../historic/amx86-486sx.json")),
    ("amx86-net186", include_str!("../../historic/amx86-net186.json")),
    ("amx86-turbo186", include_str!("../../historic/amx86-turbo186.json")),
    ("freertos-threadx-linux", include_str!("../../historic/freertos-threadx-linux.json")),
    ("an006-bus", include_str!("../../historic/an006-bus.json")),
    ("an006-continuous", include_str!("../../historic/an006-continuous.json")),
    ("an006-reference-1", include_str!("../../historic/an006-reference-1.json")),
    ("an006-reference-2", include_str!("../../historic/an006-reference-2.json")),
    ("an006-reference-3", include_str!("../../historic/an006-reference-3.json")),
    ("fesa-2007", include_str!("../../historic/fesa-2007.json")),
    ("fermilab-bit3", include_str!("../../historic/fermilab-bit3.json")),
];

/// A document that can be compared.
pub(crate) enum Document {
    Sheet(Box<Sheet>),
    Interleaved(Box<Interleaved>),
}

/// A historic sheet by its name, or a sheet from a file.
pub(crate) fn find(name_or_file: &str) -> Result<Sheet, Failure> {
    match document(name_or_file)? {
        Document::Sheet(sheet) => Ok(*sheet),
        Document::Interleaved(_) => {
            Err(refused(name_or_file, "a comparison that `ab` wrote; `hairspring compare` shows it, alone"))
        }
    }
}

/// The sheets in a folder, in the order of their names; or the one sheet in a file or of a name.
pub(crate) fn sheets(named: &str) -> Result<Vec<Sheet>, Failure> {
    let folder = Path::new(named);
    if !folder.is_dir() {
        return Ok(vec![find(named)?]);
    }
    in_folder(folder)?.iter().map(|file| find(&file.display().to_string())).collect()
}

/// The files in a folder that end in `.json` or `.json.zst`, in the order of their names.
pub(crate) fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let shown = folder.display();
    let unreadable = |error| Failure::bad_request(format!("cannot read the folder {shown}: {error}"));
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(unreadable)?;
    let mut files: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|file| {
        let name = file.as_os_str().as_encoded_bytes();
        name.ends_with(b".json") || name.ends_with(b".json.zst")
    });
    files.sort_unstable();
    if files.is_empty() {
        return Err(Failure::bad_request(format!("there is no .json or .json.zst file in the folder {shown}")));
    }
    Ok(files)
}

/// A historic sheet by its name, or the document in a file.
pub(crate) fn document(name_or_file: &str) -> Result<Document, Failure> {
    if let Some((name, json)) = HISTORIC.iter().find(|(name, _)| *name == name_or_file) {
        return parsed(name, json);
    }
    if !Path::new(name_or_file).exists() {
        let names: Vec<&str> = HISTORIC.iter().map(|(name, _)| *name).collect();
        return Err(Failure::bad_request(format!(
            "there is no file {name_or_file} and no historic sheet of that name; the historic sheets are {}",
            names.join(", ")
        )));
    }
    let mut bytes = Vec::new();
    open_sheet(name_or_file.as_ref())
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(|error| Failure::bad_request(format!("cannot read {name_or_file}: {error}")))?;
    String::from_utf8(bytes).map_err(|_| refused(name_or_file, "no text")).and_then(|text| parsed(name_or_file, &text))
}

fn refused(name: &str, what: &str) -> Failure {
    Failure::bad_request(format!("{name} is not a sheet: it is {what}"))
}

/// Descriptions of the other commands' documents, by the name in their `schema`.
const OTHERS: [(&str, &str); 6] = [
    ("hairspring.plan/", "a plan; give it to `hairspring record --plan`"),
    ("hairspring.verdicts/", "the result of a comparison; compare the sheets that it names"),
    ("hairspring.recording/", "the report of a recording"),
    ("hairspring.clock/", "a calibration of the clock"),
    ("hairspring.delay/", "a report on delays"),
    ("hairspring.probes/", "the list of all probes"),
];

fn parsed(name: &str, text: &str) -> Result<Document, Failure> {
    let again = "take or copy the sheet again";
    let start = text.trim_start();
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| {
        if start.get(..9).is_some_and(|start| start.eq_ignore_ascii_case("<!doctype")) {
            return refused(name, "HTML, for people; give the sheet that was written with --format json");
        }
        if start.is_empty() {
            return refused(name, "empty");
        }
        if start.starts_with('{') && error.is_eof() {
            return Failure::bad_request(format!("{name} is cut short: it ends in line {}; {again}", error.line()));
        }
        if start.starts_with('{') {
            let (line, column) = (error.line(), error.column());
            return Failure::bad_request(format!(
                "{name} is damaged: line {line}, column {column} is not valid JSON; {again}"
            ));
        }
        refused(name, "not JSON; give a file that was written with --format json")
    })?;
    let schema = value.get("schema").and_then(serde_json::Value::as_str);
    let damaged = |error: serde_json::Error| Failure::bad_request(format!("{name} is damaged: {error}; {again}"));
    match schema {
        Some(COMPARISON_SCHEMA) => serde_json::from_str(text).map(Box::new).map(Document::Interleaved).map_err(damaged),
        Some(SCHEMA) => match render::from_json(text) {
            Ok(sheet) => Ok(Document::Sheet(Box::new(sheet))),
            Err(ReadError::NotJson(error) | ReadError::Malformed(error)) => Err(damaged(error)),
            Err(other) => Err(Failure::bad_request(format!("{name}: failed to {other}"))),
        },
        Some(other) if other.starts_with("hairspring.sheet/") => Err(Failure::bad_request(format!(
            "{name} is a sheet of another version, {other}, and this build reads {SCHEMA}; compare it with the build that wrote it"
        ))),
        Some(other) => {
            let known = OTHERS.iter().find(|(beginning, _)| other.starts_with(beginning));
            Err(refused(name, &known.map_or(format!("a document of the kind {other}"), |(_, what)| (*what).to_owned())))
        }
        None if value.get("$schema").is_some() => Err(refused(name, "a JSON Schema")),
        None if value.get("global").is_some() => Err(refused(name, "the description of a recording")),
        None => Err(refused(name, &format!("JSON of another kind, without \"schema\": \"{SCHEMA}\""))),
    }
}

#[cfg(test)]
mod printed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_historic_sheet_can_be_read_and_says_what_it_is() {
        for (name, _) in HISTORIC {
            let sheet = find(name).expect("built in");
            assert!(sheet.rows().count() > 0 && !sheet.notes.is_empty(), "{name}");
            assert_eq!(sheet.taken.effort, "historic", "{name}");
            let ids: std::collections::HashSet<&str> = sheet.rows().map(|row| row.id.as_str()).collect();
            assert_eq!(ids.len(), sheet.rows().count(), "{name} has an id twice");
        }
    }

    #[test]
    fn every_sheet_of_the_folder_is_built_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sheets/historic");
        let files = std::fs::read_dir(folder).expect("the folder").map(|file| file.expect("a file").path());
        let mut files: Vec<String> = files.map(|f| f.file_stem().expect("a name").display().to_string()).collect();
        files.sort();
        let mut names = HISTORIC.map(|(name, _)| name);
        names.sort_unstable();
        assert_eq!(files, names);
    }

    #[test]
    fn every_historic_sheet_fits_the_schema() {
        let json = |text: &str| serde_json::from_str(text).expect("JSON");
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.add_resource("sheet.json", json(&render::schema())).expect("the schema is one");
        let index = compiler.compile("sheet.json", &mut schemas).expect("the schema is one");
        for (name, text) in HISTORIC {
            let fault = schemas.validate(&json(text), index).err().map(|error| error.to_string());
            assert_eq!(fault, None, "{name}");
        }
    }

    #[test]
    fn every_historic_sheet_can_be_shown() {
        for (name, _) in HISTORIC {
            let sheet = find(name).expect("built in");
            for width in [60, 80, 120, 160] {
                let style = render::TextStyle { width, verbose: true, ..Default::default() };
                assert!(render::text(&sheet, &style).lines().all(|line| line.chars().count() <= width), "{name}");
            }
            let (html, markdown) = (render::html(&sheet), render::markdown(&sheet));
            for row in sheet.rows() {
                assert!(html.contains(&row.id) && markdown.contains(&row.id), "{name}: {}", row.id);
            }
        }
    }

    /// The figures in KADAK's three data sheets, in microseconds: switch, wait/wake, mailbox, timers, delay, handlers,
    /// latency.
    #[test]
    fn the_sheets_of_amx_have_every_figure_that_was_printed() {
        let printed: [(&str, [f64; 17]); 3] = [
            (
                "amx86-486sx",
                [4.2, 15.7, 10.8, 13.5, 9.6, 31.7, 11.0, 10.1, 21.3, 12.2, 14.2, 31.7, 7.6, 3.4, 8.9, 4.5, 11.0],
            ),
            (
                "amx86-net186",
                [14.6, 39.6, 27.9, 33.3, 26.4, 73.5, 28.9, 11.8, 46.2, 33.9, 40.4, 74.2, 10.2, 8.5, 11.2, 9.3, 18.7],
            ),
            (
                "amx86-turbo186",
                [4.4, 12.4, 10.0, 11.5, 9.1, 23.7, 10.3, 4.4, 14.6, 11.9, 13.1, 24.0, 3.3, 3.5, 3.8, 4.1, 5.4],
            ),
        ];
        for (name, printed) in printed {
            let sheet = find(name).expect("built in");
            let centres = sheet.rows().filter_map(|row| row.figure()?.centre());
            let centres: Vec<f64> = centres.map(|(_, value)| (value / 100.0).round() / 10.0).collect();
            assert_eq!(centres, printed, "{name}");
            assert!(sheet.rows().filter_map(|row| row.figure()).all(|f| f.median.is_none() && f.min.is_none()));
        }
    }
}
