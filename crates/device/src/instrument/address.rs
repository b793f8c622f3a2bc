//! [`Address`]: the address of an instrument on a command line.
//!
//! ```text
//! tcp:192.168.0.7:5025                a socket; 5025 is the usual port of SCPI
//! tcp:[fe80::1]:5025                  the same with an IPv6 address
//! serial:/dev/ttyUSB0,baud=115200     a serial line, 8 data bits, no parity, one stop bit; 9600 baud by default
//! usbtmc:/dev/usbtmc0                 the kernel's driver of the USB test and measurement class; not tested
//! ```
//!
//! GPIB has no entry: its kernel driver is not a stream of bytes. Use a converter to a socket or a serial line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use hairspring_describe::{Catalogue, DescriptionError, PlaceForm, Snippet, Syntax};

/// Default speed of a serial line, in symbols per second.
pub(crate) const BAUD_USUAL: u32 = 9600;
/// The fastest serial line; a higher speed is likely a mistake.
const BAUD_MOST: u32 = 12_000_000;

/// Address of an instrument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket.
    Tcp {
        /// A name or a number; without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A serial line with 8 data bits, no parity, one stop bit and no flow control.
    Serial {
        /// Its device.
        path: PathBuf,
        /// Symbols per second.
        baud: u32,
    },
    /// The character device of the kernel's usbtmc driver.
    Usbtmc {
        /// Its device.
        path: PathBuf,
    },
}

/// Ways to reach an instrument.
const INSTRUMENTS: Catalogue = Catalogue {
    noun: "way to an instrument",
    syntaxes: &[
        Syntax { kind: "tcp", place: PlaceForm::UpToComma, example: "tcp:meter:5025" },
        Syntax { kind: "serial", place: PlaceForm::UpToComma, example: "serial:/dev/ttyUSB0,baud=115200" },
        Syntax { kind: "usbtmc", place: PlaceForm::Rest, example: "usbtmc:/dev/usbtmc0" },
        // Refused with a reason.
        Syntax { kind: "gpib", place: PlaceForm::Rest, example: "" },
    ],
};

impl FromStr for Address {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        let read = INSTRUMENTS.read(text)?;
        if read.kind() == "gpib" {
            return Err(read.whole().wrong("GPIB is reached through a converter: write tcp: or serial:"));
        }
        let place = read.place()?;
        if read.kind() == "serial" {
            let mut baud = BAUD_USUAL;
            for part in read.parts() {
                let why = "write the speed, as in baud=115200";
                baud = match part.key() {
                    Some("baud") => part.value().parse_or(why)?,
                    _ => return Err(part.unknown(why)),
                };
                if !(1..=BAUD_MOST).contains(&baud) {
                    return Err(part.value().wrong(why));
                }
            }
            return Ok(Self::Serial { path: place.text().into(), baud });
        }
        read.no_parts()?;
        match read.kind() {
            "tcp" => tcp(place),
            _ => Ok(Self::Usbtmc { path: place.text().into() }),
        }
    }
}

fn tcp(place: Snippet<'_>) -> Result<Address, DescriptionError> {
    let why = "write a host and a port, as in tcp:meter:5025";
    let (host, port) = place.split_last(':').ok_or_else(|| place.wrong(why))?;
    let number = port.parse_or::<u16>(why)?;
    if number == 0 {
        return Err(port.wrong(why));
    }
    // Colons within a host need brackets, or the port would be ambiguous.
    let (name, bare) = match host.text().strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(inner) => (inner, false),
        None => (host.text(), true),
    };
    let strange = |c: char| c.is_whitespace() || matches!(c, '[' | ']' | '/') || (bare && c == ':');
    if name.is_empty() || name.contains(strange) {
        return Err(host.wrong(why));
    }
    Ok(Address::Tcp { host: name.to_owned(), port: number })
}

impl fmt::Display for Address {
    /// In the form that is parsed, with all settings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp:{host}:{port}"),
            Self::Serial { path, baud } => write!(f, "serial:{},baud={baud}", path.display()),
            Self::Usbtmc { path } => write!(f, "usbtmc:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_what_to_write() {
        for (text, part, hint) in [
            ("meter", "meter", "choose tcp, serial, usbtmc"),
            ("udp:meter:1", "udp", "as in tcp:meter:5025"),
            ("tcp:meter", "meter", "tcp:meter:5025"),
            ("tcp:meter:0", "meter:0", "tcp:meter:5025"),
            ("tcp:meter:65536", "meter:65536", "tcp:meter:5025"),
            ("tcp::5025", ":5025", "tcp:meter:5025"),
            ("tcp:fe80::1:5025", "fe80::1:5025", "tcp:meter:5025"),
            ("serial:", "serial:", "serial:/dev/ttyUSB0"),
            ("serial:/dev/ttyS0,9600", "9600", "baud=115200"),
            ("serial:/dev/ttyS0,baud=0", "baud=0", "baud=115200"),
            ("serial:/dev/ttyS0,baud=-1", "baud=-1", "baud=115200"),
            ("tcp:meter:5025,5", "5", "nothing follows"),
            ("usbtmc:", "usbtmc:", "usbtmc:/dev/usbtmc0"),
            ("gpib:/dev/gpib0", "gpib:/dev/gpib0", "converter"),
        ] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.starts_with(&format!("'{part}'")) && error.contains(hint), "{text}: {error}");
        }
    }

    #[test]
    fn addresses_are_read() {
        let serial = |path: &str, baud| Address::Serial { path: path.into(), baud };
        let tcp = |host: &str, port| Address::Tcp { host: host.to_owned(), port };
        for (text, address) in [
            ("tcp:meter.lab:5025", tcp("meter.lab", 5025)),
            ("tcp:[fe80::1]:5025", tcp("fe80::1", 5025)),
            ("serial:/dev/ttyS0", serial("/dev/ttyS0", BAUD_USUAL)),
            ("serial:/dev/ttyUSB0,baud=115200", serial("/dev/ttyUSB0", 115_200)),
            ("usbtmc:/dev/usbtmc0", Address::Usbtmc { path: "/dev/usbtmc0".into() }),
        ] {
            assert_eq!(text.parse(), Ok(address), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(
            host in "[a-z0-9.-]{1,20}|[0-9a-f]{1,4}::[0-9a-f]{1,4}", port in 1..=u16::MAX, baud in 1..=BAUD_MOST, kind in 0..3,
        ) {
            let address = match kind {
                0 => Address::Tcp { host, port },
                1 => Address::Serial { path: "/dev/a line".into(), baud },
                _ => Address::Usbtmc { path: "/dev/usbtmc0".into() },
            };
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }

        #[test]
        fn no_text_makes_it_panic(text in "(tcp:|serial:|usbtmc:)?[a-z\\[\\]/:,=0-9.µ -]{0,40}") {
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string().parse(), Ok(address));
            }
        }
    }
}
