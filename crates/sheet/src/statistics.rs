//! Statistics of figures that were measured in rounds: intervals, and differences with their tests.
//!
//! The unit of every computation here is one value for each round, or for each sheet: the highest level that varies
//! between two measurements of one machine. The samples inside a round depend on each other, so counting them as
//! independent makes every interval too narrow (Georges, Buytaert and Eeckhout, *Statistically Rigorous Java
//! Performance Evaluation*, OOPSLA 2007; Kalibera and Jones, *Rigorous Benchmarking in Reasonable Time*, ISMM 2013).
//!
//! All functions are pure. Random numbers come only from a seed that the caller gives.

mod change_points;
mod difference;
mod many;
mod margins;
mod rounds;
mod samples;
mod student;

pub(crate) use change_points::SEGMENT_MIN;
pub use change_points::{ChangePoint, change_points};
pub use difference::{Difference, PAIRS_MIN};
pub use many::{benjamini_hochberg, holm};
pub use margins::Margins;
pub(crate) use rounds::middle;
pub use rounds::{Scale, Units, t_interval};
pub use samples::{grouped_median, n_effective};
pub use student::{student_t_quantile, student_t_tail};
