//! [`Address`]: where an instrument is, as written on a command line.
//!
//! ```text
//! tcp:192.168.0.7:5025                a socket; 5025 is the usual port of SCPI
//! tcp:[fe80::1]:5025                  the same with an address of the newer kind
//! serial:/dev/ttyUSB0,baud=115200     a serial line, 8 data bits, no parity, one stop bit; 9600 baud unless written
//! usbtmc:/dev/usbtmc0                 the kernel's driver of the USB test and measurement class; not exercised
//! ```
//!
//! GPIB has no entry: the kernel's driver of it is no stream of bytes. Use a converter to a socket or a serial line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Symbols per second of a serial line unless written.
pub const BAUD_USUAL: u32 = 9600;
/// The fastest serial line that is not taken for a mistake.
const BAUD_MOST: u32 = 12_000_000;

/// Where an instrument is.
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

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError {
    part: String,
    why: &'static str,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}': {}", self.part, self.why)
    }
}

impl std::error::Error for AddressError {}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = |part: &str, why| AddressError { part: part.to_owned(), why };
        match text.split_once(':') {
            Some(("tcp", rest)) => {
                tcp(rest).ok_or_else(|| error(text, "write a host and a port, as in tcp:meter:5025"))
            }
            Some(("serial", rest)) => {
                let mut parts = rest.split(',');
                let path = parts.next().filter(|path| !path.is_empty());
                let path = path.ok_or_else(|| error(text, "write a device, as in serial:/dev/ttyUSB0"))?.into();
                let mut baud = BAUD_USUAL;
                for part in parts {
                    let number = part.strip_prefix("baud=").and_then(|digits| digits.parse().ok());
                    let number = number.filter(|number| (1..=BAUD_MOST).contains(number));
                    baud = number.ok_or_else(|| error(part, "write the speed, as in baud=115200"))?;
                }
                Ok(Self::Serial { path, baud })
            }
            Some(("usbtmc", path)) if !path.is_empty() => Ok(Self::Usbtmc { path: path.into() }),
            Some(("usbtmc", _)) => Err(error(text, "write a device, as in usbtmc:/dev/usbtmc0")),
            Some(("gpib", _)) => Err(error(text, "GPIB is reached through a converter: write tcp: or serial:")),
            _ => Err(error(text, "write tcp:HOST:PORT, serial:DEVICE,baud=N or usbtmc:DEVICE")),
        }
    }
}

fn tcp(rest: &str) -> Option<Address> {
    let (host, port) = rest.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    // Colons within a host need brackets, or nobody knows where the port begins.
    let (host, bare) = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inner) => (inner, false),
        None => (host, true),
    };
    let strange = |c: char| c.is_whitespace() || matches!(c, '[' | ']' | '/' | ',') || (bare && c == ':');
    let fits = !host.is_empty() && !host.contains(strange);
    fits.then(|| Address::Tcp { host: host.to_owned(), port })
}

impl fmt::Display for Address {
    /// As it is read, with everything in force.
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
            ("meter", "meter", "tcp:HOST:PORT"),
            ("udp:meter:1", "udp:meter:1", "tcp:HOST:PORT"),
            ("tcp:meter", "tcp:meter", "tcp:meter:5025"),
            ("tcp:meter:0", "tcp:meter:0", "tcp:meter:5025"),
            ("tcp:meter:65536", "tcp:meter:65536", "tcp:meter:5025"),
            ("tcp::5025", "tcp::5025", "tcp:meter:5025"),
            ("tcp:fe80::1:5025", "tcp:fe80::1:5025", "tcp:meter:5025"),
            ("serial:", "serial:", "serial:/dev/ttyUSB0"),
            ("serial:/dev/ttyS0,9600", "9600", "baud=115200"),
            ("serial:/dev/ttyS0,baud=0", "baud=0", "baud=115200"),
            ("serial:/dev/ttyS0,baud=-1", "baud=-1", "baud=115200"),
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
