//! Status of a running executive for other processes: the state of its tasks, in a file that they read.
//!
//! **Problem.** An engineer wants to see what the tasks of a running program do, from outside and at any time. The
//! program must not notice.
//!
//! **Solution.** A thread of ordinary priority, the publisher, asks the executive [`SAMPLE_PERIOD`] after
//! [`SAMPLE_PERIOD`] what its tasks do, and a few times a second replaces a small file in memory. A reader gets a whole
//! state, because a file is replaced by renaming. Readers share nothing with the executive, so they cannot slow it.
//!
//! **How the executive answers.** With threads, the publisher takes the executive's lock for the time of a copy; the
//! lock inherits priority. On fibers it sets a bit of the attention word, and the carrier copies the states at its next
//! call. So an executive that is not published pays nothing. One answer copies at most 64 tasks; of more, each answer
//! copies the next. A carrier that sleeps is woken five times a second.
//!
//! **CPU time.** With threads it is the kernel's count. On fibers it is sampled: the task whose call answers a question
//! has had the CPU since the question was asked, because tasks switch in calls only, and each call answers first. If a
//! question comes late, the samples since the last answer all belong to that task.
//!
//! **Conditions.** States, not events: what happens between two samples does not show. Virtual time has no publisher.

mod document;
mod error;
mod file;
mod publisher;
mod sample;

pub use document::{ExecStatus, IdleSamples, TaskStatus};
pub use error::StatusError;
pub use file::{PublishedStatus, published};
pub(crate) use publisher::Publication;
pub use publisher::{SAMPLE_PERIOD, WRITE_PERIOD};
pub(crate) use sample::{Answers, MOST_COPIES, Sample, Sampled};
