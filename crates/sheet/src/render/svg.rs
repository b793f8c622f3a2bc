//! Drawings for the HTML form: plots of series, distributions large and small. Plain SVG whose colours come from the
//! page's CSS, so that they follow its light and dark schemes and its print form; pulses are a separate file with its
//! own CSS.

mod histogram;
mod incident;
mod markup;
mod overlay;
mod plot;
mod timeline;

pub(crate) use histogram::{distribution, marks, small};
pub(crate) use incident::{incident, names_width as incident_names_width};
pub(crate) use markup::{coordinate, escaped, marker};
pub use overlay::overlays;
pub(crate) use plot::{plot, styles};
pub(crate) use timeline::timeline;

/// Number of colours and markers; further lines begin again from the first.
pub(crate) const STYLES: usize = 8;
