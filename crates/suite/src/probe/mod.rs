//! A probe is one object: its rows and its run.
//!
//! A chapter is a list of probes ([`Probes`]). Declaring a row (id, label, unit, method, description) gives a [`Slot`];
//! a probe is its slots together with the run that fills them. A run enters values by slots, so an id is written once,
//! and unit and method are those of the row. A row that a run leaves empty, and a value for a row of another probe, are
//! shown in the sheet as defects.
//!
//! ```text
//! let read = probes.table("reaction.call", "Device calls", "at most 20,000 samples");
//! probes.one(Setting::Class(Class::Other), read, Row::new("read", "read", Unit::Ns, Method::Stamp, "read the input lines"),
//!     |context| calls(context, |board| board.read()));
//! ```

mod company;
mod context;
mod declaration;
mod list;
mod peaks;
mod reading;
mod registry;
mod samples;
mod setting;
mod slopes;
mod spin;
mod stamps;

pub(crate) use company::{CROWDED, company};
pub(crate) use context::{Class, Context, Rows, policy_refused};
pub use context::{Effort, SheetProgress};
pub(crate) use declaration::Slot;
pub use declaration::{ChapterDeclaration, RowDeclaration, TableDeclaration};
pub(crate) use list::{Probes, Row, TableSlot};
pub(crate) use peaks::{SAMPLES_LEAST as PEAK_SAMPLES_LEAST, named as peaks_named};
pub(crate) use reading::{Found, Numbers, Reading, Taken};
pub use registry::{UnknownProbe, is_under, registry, select, similar_ids};
pub(crate) use registry::{among, chapters};
pub(crate) use samples::{SAMPLES_MOST, Samples};
pub(crate) use setting::Setting;
pub(crate) use slopes::{Slopes, slope};
pub(crate) use spin::spin;
pub(crate) use stamps::StampCosts;
