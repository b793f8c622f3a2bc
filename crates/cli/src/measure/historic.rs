//! Sheets from files, and the historic sheets that are built in.

use std::path::Path;

use hairspring_sheet::{Sheet, render};

use crate::exit::Failure;

/// The historic sheets by name.
const HISTORIC: [(&str, &str); 12] = [
    ("fermilab-2007", include_str!("../../../../sheets/historic/fermilab-2007.json")),
    ("amx86-486sx", include_str!("../../../../sheets/historic/amx86-486sx.json")),
    ("amx86-net186", include_str!("../../../../sheets/historic/amx86-net186.json")),
    ("amx86-turbo186", include_str!("../../../../sheets/historic/amx86-turbo186.json")),
    ("freertos-threadx-linux", include_str!("../../../../sheets/historic/freertos-threadx-linux.json")),
    ("an006-bus", include_str!("../../../../sheets/historic/an006-bus.json")),
    ("an006-continuous", include_str!("../../../../sheets/historic/an006-continuous.json")),
    ("an006-reference-1", include_str!("../../../../sheets/historic/an006-reference-1.json")),
    ("an006-reference-2", include_str!("../../../../sheets/historic/an006-reference-2.json")),
    ("an006-reference-3", include_str!("../../../../sheets/historic/an006-reference-3.json")),
    ("fesa-2007", include_str!("../../../../sheets/historic/fesa-2007.json")),
    ("fermilab-bit3", include_str!("../../../../sheets/historic/fermilab-bit3.json")),
];

/// A historic sheet by its name, or a sheet from a file.
pub(crate) fn find(name_or_file: &str) -> Result<Sheet, Failure> {
    match HISTORIC.iter().find(|(name, _)| *name == name_or_file) {
        Some((name, json)) => parsed(name, json),
        None if !Path::new(name_or_file).exists() => {
            let names: Vec<&str> = HISTORIC.iter().map(|(name, _)| *name).collect();
            Err(Failure::bad_request(format!(
                "there is no file {name_or_file} and no historic sheet of that name; the historic sheets are {}",
                names.join(", ")
            )))
        }
        None => read(Path::new(name_or_file)),
    }
}

/// A sheet from a file.
fn read(file: &Path) -> Result<Sheet, Failure> {
    let json = std::fs::read_to_string(file)
        .map_err(|error| Failure::bad_request(format!("cannot read {}: {error}", file.display())))?;
    parsed(&file.display().to_string(), &json)
}

fn parsed(name: &str, json: &str) -> Result<Sheet, Failure> {
    render::from_json(json).map_err(|error| Failure::bad_request(format!("{name}: failed to {error}")))
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

    /// What KADAK's three data sheets print, in microseconds: switch, wait/wake, mailbox, timers, delay, handlers, latency.
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
