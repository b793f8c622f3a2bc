//! The renderings of a sheet: text for a terminal, Markdown, one HTML file, JSON; and of pulses, as SVG.
//!
//! Each takes the document and returns a string; none of them measures, prints or reads.

mod absences;
mod axes;
mod bins;
mod clean;
mod comparison;
mod drift;
mod html;
mod incident;
mod json;
mod markdown;
mod multiples;
mod quantity;
mod svg;
mod text;
mod timeline;
mod trend;

pub use comparison::{comparison, comparison_html, comparison_json, comparison_markdown};
pub use drift::{drift_html, drift_json, drift_text};
pub use html::{html, html_unfolded};
pub use json::{ReadError, from_json, pairs_schema, schema, to_json, verdicts_schema};
pub use markdown::markdown;
pub use multiples::{MULTIPLES_GENERATOR, MultiplesCell, MultiplesColumn, MultiplesRow, multiples_html};
pub use quantity::{Quantity, quantity, quantity_with_digits};
pub use svg::overlays;
pub use text::{TextStyle, first_page, text};
pub use trend::{trend_html, trend_json, trend_text};
