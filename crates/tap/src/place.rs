//! [`TapPlace`]: location of a tap's socket.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The folder of taps that belong to no session.
const SYSTEM: &str = "/run/hairspring";
/// The folder of taps within the folder of a user's session.
const FOLDER: &str = "hairspring";
/// The ending of a socket.
const ENDING: &str = "tap";
/// The longest name: a socket's path has at most 107 bytes.
const MOST: usize = 48;

/// The place of a tap: a name, or the path of its socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TapPlace {
    /// A name of letters, digits, `.`, `_` and `-`. Its socket is `NAME.tap` in `$XDG_RUNTIME_DIR/hairspring`, or in
    /// `/run/hairspring` without that variable.
    Name(String),
    /// A path, written with a slash.
    Path(PathBuf),
}

impl TapPlace {
    /// The place of one of several cards: its number is appended.
    #[must_use]
    pub fn of_card(&self, number: usize) -> Self {
        match self {
            Self::Name(name) => Self::Name(format!("{name}-card{number}")),
            Self::Path(path) => {
                let mut path = path.clone().into_os_string();
                path.push(format!("-card{number}"));
                Self::Path(path.into())
            }
        }
    }

    /// Path at which a recorder makes the socket.
    pub fn to_offer(&self) -> PathBuf {
        match self {
            Self::Name(name) => session().unwrap_or_else(|| SYSTEM.into()).join(format!("{name}.{ENDING}")),
            Self::Path(path) => path.clone(),
        }
    }

    /// Path at which a reader looks for it: in the session's folder, then in the system's.
    pub fn to_read(&self) -> PathBuf {
        match self {
            Self::Name(name) => {
                let socket = format!("{name}.{ENDING}");
                let own = session().map(|folder| folder.join(&socket)).filter(|path| path.exists());
                own.unwrap_or_else(|| Path::new(SYSTEM).join(socket))
            }
            Self::Path(path) => path.clone(),
        }
    }
}

/// The folder of taps in this user's session.
fn session() -> Option<PathBuf> {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
    folder.map(|folder| folder.join(FOLDER))
}

impl FromStr for TapPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if text.contains('/') {
            Ok(Self::Path(text.into()))
        } else if !text.is_empty() && text.len() <= MOST && !text.starts_with(['.', '-']) && text.chars().all(is_plain)
        {
            Ok(Self::Name(text.to_owned()))
        } else {
            Err(format!("write a name of at most {MOST} letters, digits, '.', '_' and '-', or the path of a socket"))
        }
    }
}

impl fmt::Display for TapPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.pad(name),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain_and_a_path_has_a_slash() {
        for name in ["adc", "rig-2.left", "7"] {
            assert_eq!(name.parse(), Ok(TapPlace::Name(name.to_owned())));
        }
        assert_eq!("./adc".parse(), Ok(TapPlace::Path("./adc".into())));
        for wrong in ["", ".adc", "-x", "a b", "ä", &"x".repeat(49)] {
            assert!(wrong.parse::<TapPlace>().is_err(), "{wrong}");
        }
        assert_eq!(TapPlace::Name("adc".to_owned()).of_card(1).to_string(), "adc-card1");
        assert_eq!(TapPlace::Path("/tmp/adc".into()).of_card(0).to_string(), "/tmp/adc-card0");
    }
}
