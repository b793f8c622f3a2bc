//! Settings that affect a machine's timing: lists, applies and undoes them.
//!
//! | noun | meaning |
//! |---|---|
//! | [`Tunable`] | one row of the catalogue: its effect, its [`SettingScope`], its cost, its pitfalls |
//! | [`Choice`] | a tunable and a value for it, parsed from `id=value` |
//! | [`Launch`] | a program that starts under choices |
//! | [`Changes`] | files of the kernel that were changed, with their old values in an undo journal |
//!
//! [`SettingScope`] determines the lifetime of a setting. Settings of a thread, a process or a descriptor end with
//! their program, also after SIGKILL. Settings of the machine stay, so [`Changes`] writes the old value to a journal
//! first and synchronizes it. The next command that finds the journal without its owner restores the old values.
//!
//! Linux only. No call is real-time safe: each makes system calls and allocates.
//!
//! ```
//! use hairspring_settings::{Choice, SettingScope};
//! let choice: Choice = "slack=1us".parse()?;
//! assert_eq!(choice.tunable().id, "slack");
//! assert_eq!(choice.tunable().scope, SettingScope::Thread);
//! # Ok::<(), hairspring_settings::ChoiceError>(())
//! ```

mod catalogue;
mod choice;
mod current;
mod files;
mod idle;
mod journal;
mod launch;

pub use catalogue::{Interface, SettingScope, Tunable};
pub use choice::{Choice, ChoiceError};
pub use current::{current, files_of};
pub use idle::{IDLE_DEVICE, IdleLatency};
pub use journal::{Changes, ChangesError, JOURNAL, RestoreOutcome, Restored};
pub use launch::{Launch, LaunchError, Launched};
