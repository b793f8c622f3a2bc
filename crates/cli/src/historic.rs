//! Sheets to set beside one's own: files, and the historic ones that are built in.

use std::path::Path;

use hairspring_sheet::{Sheet, render};

use crate::exit::Failure;

/// The historic sheets by name.
const HISTORIC: [(&str, &str); 1] = [("fermilab-2007", include_str!("../../../sheets/historic/fermilab-2007.json"))];

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
        }
    }
}
