//! Sheets to set beside one's own: files, and the historic ones that are built in.

use std::path::Path;

use hairspring_sheet::{Sheet, render};

use crate::exit::Failure;

/// The historic sheets by name.
const HISTORIC: [(&str, &str); 5] = [
    ("fermilab-2007", include_str!("../../../sheets/historic/fermilab-2007.json")),
    ("amx86-486sx", include_str!("../../../sheets/historic/amx86-486sx.json")),
    ("amx86-net186", include_str!("../../../sheets/historic/amx86-net186.json")),
    ("amx86-turbo186", include_str!("../../../sheets/historic/amx86-turbo186.json")),
    ("freertos-threadx-linux", include_str!("../../../sheets/historic/freertos-threadx-linux.json")),
];

/// A historic sheet by its name, or a sheet from a file.
pub(crate) fn find(name_or_file: &str) -> Result<Sheet, Failure> {
    match HISTORIC.iter().find(|(name, _)| *name == name_or_file) {
        Some((name, json)) => parsed(name, json),
        None if !Path::new(name_or_file).exists() => {
            let names: Vec<&str> = HISTORIC.iter().map(|(name, _)| *name).collect();
            Err(Failure::bad_request(format!(
                "there is no file {name_or_file}, and no historic sheet of that name; those are: {}",
                names.join(", ")
            )))
        }
        None => read(Path::new(name_or_file)),
    }
}

/// A sheet from a file.
pub(crate) fn read(file: &Path) -> Result<Sheet, Failure> {
    let json = std::fs::read_to_string(file)
        .map_err(|error| Failure::bad_request(format!("cannot read {}: {error}", file.display())))?;
    parsed(&file.display().to_string(), &json)
}

fn parsed(name: &str, json: &str) -> Result<Sheet, Failure> {
    render::from_json(json).map_err(|error| Failure::bad_request(format!("cannot read {name}: {error}")))
}

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
