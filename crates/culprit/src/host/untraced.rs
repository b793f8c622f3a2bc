//! [`Untraced`]: why there are no records, and how to get them.

use std::{fmt, io};

use rustix::io::Errno;

/// Why the kernel's records cannot be read, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untraced {
    /// The attempted operation and the system's error.
    pub reason: String,
    /// The remedy, if there is one.
    pub remedy: Option<String>,
}

impl Untraced {
    pub(crate) fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: Some(remedy.into()) }
    }

    /// The kernel has no tracepoints, or hides them.
    pub(crate) fn tracefs(error: io::Error) -> Self {
        let reason = format!("failed to read the kernel's tracepoints from tracefs: {error}");
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                Self::new(reason, "run it with CAP_SYS_ADMIN (as root), which mounting tracefs needs")
            }
            _ => Self { reason, remedy: None },
        }
    }

    /// The kernel refused to open an event.
    pub(crate) fn perf(path: &str, error: &io::Error) -> Self {
        let reason = format!("failed to open the tracepoint {path} with perf_event_open: {error}");
        match Errno::from_io_error(error) {
            Some(Errno::ACCESS | Errno::PERM) => Self::new(
                reason,
                "run it with CAP_PERFMON (as root); in a container allow perf_event_open, too. \
                 Without the capability `sysctl kernel.perf_event_paranoid=-1` does it",
            ),
            Some(Errno::MFILE) => Self::new(reason, "`ulimit -n` allows too few files: each CPU needs 40"),
            _ => Self { reason, remedy: None },
        }
    }
}

impl fmt::Display for Untraced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Untraced {}
