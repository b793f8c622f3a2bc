//! [`Description`]: a device as written on a command line.
//!
//! ```text
//! virtual:/dev/shm/board                                        no access times, safe state all low, lock with inheritance
//! virtual:/dev/shm/board,read=1.25us,write=1.25us,init=3.75us   the board of FESA's latency note
//! virtual:/dev/shm/board,safe=0x00000004,lock=fifo
//! ```
//!
//! What stands behind the path is for who makes the board, that is for the first who opens it; the others get it as it is.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use hairspring_machine::{Machine, Nanos};
use hairspring_time::{POLL_MOST, Timebase};

use crate::device::{DeviceError, Lines};
use crate::lock::Protocol;
use crate::virtual_board::{AccessTimes, VirtualBoard};

/// A device that was described and not yet opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The file of the board.
    pub path: PathBuf,
    /// How long accesses take.
    pub times: AccessTimes,
    /// What the outputs are when nobody is in command.
    pub safe: Lines,
    /// The lock between processes.
    pub lock: Protocol,
}

/// Why a text describes no device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionError {
    part: String,
    why: String,
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}': {}", self.part, self.why)
    }
}

impl std::error::Error for DescriptionError {}

impl Description {
    /// Opens the board, as [`VirtualBoard::open`].
    ///
    /// # Errors
    /// As there.
    pub fn open<'t, M: Machine>(&self, timebase: &'t Timebase<M>) -> Result<VirtualBoard<'t, M>, DeviceError> {
        VirtualBoard::open(&self.path, self.times, self.safe, self.lock, timebase)
    }
}

impl FromStr for Description {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        let error = |part: &str, why: &str| DescriptionError { part: part.to_owned(), why: why.to_owned() };
        let Some(rest) = text.strip_prefix("virtual:") else {
            return Err(error(
                text,
                "there is no such driver: write virtual:PATH, for instance virtual:/dev/shm/board",
            ));
        };
        let mut parts = rest.split(',');
        let path = parts.next().filter(|path| !path.is_empty());
        let path =
            path.ok_or_else(|| error(text, "write the board's file behind the colon, as in virtual:/dev/shm/board"))?;
        let mut described =
            Self { path: path.into(), times: AccessTimes::ZERO, safe: Lines(0), lock: Protocol::Inherit };
        for part in parts {
            let Some((name, value)) = part.split_once('=') else {
                return Err(error(part, "write read=, write= or init= and a time, safe= and a number, or lock="));
            };
            let span = || {
                let span = value.parse::<Nanos>().ok().filter(|span| (Nanos::ZERO..=POLL_MOST).contains(span));
                span.ok_or_else(|| error(part, "write a time of at most 100 ms, for instance 1.25us"))
            };
            match name {
                "read" => described.times.read = span()?,
                "write" => described.times.write = span()?,
                "init" => described.times.init = span()?,
                "safe" => {
                    let digits = value.strip_prefix("0x");
                    let number = digits.map_or_else(|| value.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok());
                    described.safe =
                        Lines(number.ok_or_else(|| error(part, "write 32 lines as a number, like 0x00000004"))?);
                }
                "lock" => described.lock = value.parse().map_err(|why: String| error(part, &why))?,
                _ => return Err(error(part, "there are read, write, init, safe and lock")),
            }
        }
        Ok(described)
    }
}

impl fmt::Display for Description {
    /// As it is read, with everything that is not the usual.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "virtual:{}", self.path.display())?;
        for (name, span) in [("read", self.times.read), ("write", self.times.write), ("init", self.times.init)] {
            if span > Nanos::ZERO {
                write!(f, ",{name}={}ns", span.count())?;
            }
        }
        if self.safe != Lines(0) {
            write!(f, ",safe={}", self.safe)?;
        }
        if self.lock != Protocol::Inherit {
            write!(f, ",lock={}", self.lock)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_what_to_write() {
        for (text, part, hint) in [
            ("parallel:0", "parallel:0", "virtual:/dev/shm/board"),
            ("virtual:", "virtual:", "behind the colon"),
            ("virtual:/x,fast", "fast", "read=, write= or init="),
            ("virtual:/x,read=1", "read=1", "1.25us"),
            ("virtual:/x,read=2s", "read=2s", "100 ms"),
            ("virtual:/x,init=-1us", "init=-1us", "100 ms"),
            ("virtual:/x,safe=all", "safe=all", "0x00000004"),
            ("virtual:/x,lock=ceiling", "lock=ceiling", "none, fifo or inherit"),
            ("virtual:/x,speed=3", "speed=3", "read, write, init"),
        ] {
            let error = text.parse::<Description>().expect_err(text).to_string();
            assert!(error.starts_with(&format!("'{part}'")) && error.contains(hint), "{text}: {error}");
        }
        let fesa: Description = "virtual:/x,read=1.25us,write=1.25us,init=3.75us".parse().expect("a board");
        assert_eq!((fesa.times, fesa.safe, fesa.lock), (AccessTimes::FESA, Lines(0), Protocol::Inherit));
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(times in any::<[u32; 3]>(), safe in any::<u32>(), lock in 0..3_usize) {
            let [read, write, init] = times.map(|nanos| Nanos::new((nanos % 100_000_001).into()));
            let described = Description {
                path: "/dev/shm/a board".into(),
                times: AccessTimes { read, write, init },
                safe: Lines(safe),
                lock: Protocol::ALL[lock],
            };
            prop_assert_eq!(described.to_string().parse(), Ok(described));
        }

        #[test]
        fn no_text_makes_it_panic(text in "(virtual:)?[a-z/,=0-9.xµ -]{0,40}") {
            if let Ok(described) = text.parse::<Description>() {
                prop_assert_eq!(described.to_string().parse(), Ok(described));
            }
        }
    }
}
