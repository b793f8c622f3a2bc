//! [`StatusError`]: why a status could not be read.

use std::fmt;

/// Why a status could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum StatusError {
    /// No executive is published under this name or process number.
    NotPublished(String),
    /// Several executives are: their names and processes. Ask for one of the processes, or by the path of the file.
    Several(String),
    /// The file could not be read.
    System(std::io::Error),
    /// The file is no status of this format: what is missing, or has another type or number.
    Format(String),
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPublished(which) => write!(
                f,
                "find a published executive {which}: the program must run as this user and call Executive::publish"
            ),
            Self::Several(which) => write!(f, "choose an executive: there are {which}; name a process"),
            Self::System(error) => write!(f, "read the status of an executive: {error}"),
            Self::Format(what) => write!(f, "read the status of an executive: {what}"),
        }
    }
}

impl std::error::Error for StatusError {}
