//! Meaning of the system's error numbers for a user of a device or a source: one table of numbers and remedies.

use std::io;

use crate::device::DeviceError;

/// A refusal with advice; `usual` is the remedy if the table has none for the error number.
pub fn refusal(attempted: impl Into<String>, error: &io::Error, usual: &'static str) -> DeviceError {
    let remedy = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => "join the group of the device's file, or run as root",
        Some(libc::EBUSY | libc::EADDRINUSE) => "another program uses it: end that program, or choose another one",
        Some(libc::ENODEV | libc::EIO | libc::ENXIO) => "the device is gone or unplugged: connect it and open it again",
        Some(libc::EMFILE | libc::ENFILE) => "allow more open files (ulimit -n)",
        _ => usual,
    };
    DeviceError { attempted: attempted.into(), said: error.to_string(), remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_remedy_and_others_have_the_usual_one() {
        for (number, hint) in [
            (libc::EACCES, "group"),
            (libc::EBUSY, "program uses it"),
            (libc::EADDRINUSE, "program uses it"),
            (libc::ENODEV, "unplugged"),
            (libc::EMFILE, "open files"),
            (libc::ENOTTY, "look elsewhere"),
        ] {
            let refused = refusal("open it", &io::Error::from_raw_os_error(number), "look elsewhere");
            assert!(refused.remedy.contains(hint), "{number}: {refused}");
        }
    }
}
