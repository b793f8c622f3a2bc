//! `hairspring compare --drift`: the figures of one machine over time.

use std::path::Path;

use hairspring_sheet::{RowPattern, TextStyle, drift, render};

use crate::exit::Failure;
use crate::measure::destination::Format;
use crate::measure::historic;

/// Renders the figures of the sheets in a folder over time.
pub(crate) fn rendered(
    folder: &Path,
    only: &[RowPattern],
    format: Format,
    style: &TextStyle,
) -> Result<String, Failure> {
    let refused = |why: String| Failure::bad_request(format!("--drift {}: {why}", folder.display()));
    if !folder.is_dir() {
        return Err(refused("it is not a folder; name the folder with the sheets of this machine".to_owned()));
    }
    if format == Format::Md {
        return Err(refused("there is no Markdown of figures over time; choose text, html or json".to_owned()));
    }
    let found =
        drift(&historic::sheets(&folder.display().to_string())?, only).map_err(|error| refused(error.to_string()))?;
    if found.rows.is_empty() {
        return Err(refused("no row with such an id has a median in enough of these sheets".to_owned()));
    }
    Ok(match format {
        Format::Html => render::drift_html(&found),
        Format::Json => render::drift_json(&found),
        Format::Text | Format::Md => render::drift_text(&found, style),
    })
}
