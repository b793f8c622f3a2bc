//! [`ReferenceDescription`]: an external clock on a command line, with which the kernel's clock is compared.
//!
//! ```text
//! ptp:/dev/ptp0                 the clock of a network card or a hypervisor
//! pps:/dev/pps0                 pulses, one each second, whose stamps are at most 100 µs late
//! pps:/dev/pps0,late=20us       stamps that are at most this late
//! ```
//!
//! **How late a stamp of a pulse is.** The kernel stamps a pulse in its interrupt, which is later than the pulse by the
//! computer's latency. That delay is not measured, so it is an assumption. A delay common to all stamps cancels out in
//! a rate: only their differences must be within `late`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use hairspring_describe::{Catalogue, DescriptionError, PlaceForm, Syntax, exact_span};
use hairspring_machine::Nanos;
use hairspring_source::external::{ExternalBracket, ExternalClock, ExternalFacts, ExternalKind, ExternalStamp};

use crate::device::DeviceError;
use crate::driver::pps::PpsDevice;
use crate::driver::ptp::{PtpBracket, PtpClock};

const PTP: &str = "ptp:/dev/ptp0";
const PPS: &str = "pps:/dev/pps0,late=20us";
const REFERENCES: Catalogue = Catalogue {
    noun: "reference clock",
    syntaxes: &[
        Syntax { kind: "ptp", place: PlaceForm::UpToComma, example: PTP },
        Syntax { kind: "pps", place: PlaceForm::UpToComma, example: PPS },
    ],
};
/// Default assumption for the lateness of a pulse's stamp: the interrupt of a loaded computer with a stock kernel.
const LATE: Nanos = Nanos::from_micros(100);
/// Most lateness that a description may state: a later stamp does not determine its second.
const LATE_MOST: Nanos = Nanos::from_millis(100);
/// A stamp is a whole number of nanoseconds.
const STEP: Nanos = Nanos::new(1);

/// A described external clock, not open yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceDescription {
    kind: ExternalKind,
    path: PathBuf,
    late: Nanos,
}

impl ReferenceDescription {
    /// Opens the clock.
    ///
    /// # Errors
    /// As [`PtpClock::open`] and [`PpsDevice::open`].
    pub fn open(&self) -> Result<Box<dyn ExternalClock>, DeviceError> {
        Ok(match self.kind {
            ExternalKind::Ptp => Box::new(PtpClock::open(&self.path)?),
            ExternalKind::Pps => Box::new(Pulses { device: PpsDevice::open(&self.path)?, counted: 0, late: self.late }),
        })
    }
}

impl FromStr for ReferenceDescription {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        let read = REFERENCES.read(text)?;
        let path = PathBuf::from(read.place()?.text());
        if read.kind() == "ptp" {
            read.no_parts()?;
            return Ok(Self { kind: ExternalKind::Ptp, path, late: Nanos::ZERO });
        }
        let mut late = LATE;
        for part in read.parts() {
            if part.key() != Some("late") {
                return Err(part.unknown(format!("write it as in {PPS}")));
            }
            let why = "write how late a stamp can be, up to 100ms, like late=20us";
            late = part.value().parse_or(why)?;
            if !(Nanos::ZERO..=LATE_MOST).contains(&late) {
                return Err(part.value().wrong(why));
            }
        }
        Ok(Self { kind: ExternalKind::Pps, path, late })
    }
}

impl fmt::Display for ReferenceDescription {
    /// In the form that `from_str` parses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.path.display())?;
        match self.kind {
            ExternalKind::Ptp => Ok(()),
            ExternalKind::Pps => write!(f, ",late={}", exact_span(self.late.count())),
        }
    }
}

impl ExternalClock for PtpClock {
    fn facts(&self) -> ExternalFacts {
        let (id, name) = (self.path().display().to_string(), self.name().to_owned());
        ExternalFacts { kind: ExternalKind::Ptp, id, name, late: Nanos::ZERO }
    }

    /// Does not wait: the clock can be read at any time.
    fn read(&mut self, _most: Nanos) -> Result<Option<ExternalStamp>, String> {
        let reading = Self::read(self).map_err(|error| error.to_string())?;
        let how = match reading.bracket {
            PtpBracket::CrossStamp => ExternalBracket::CrossStamp,
            PtpBracket::Extended => ExternalBracket::Extended,
            PtpBracket::Plain => ExternalBracket::Plain,
        };
        let (ticks, earliest, latest) = (reading.time.count(), reading.earliest, reading.latest);
        Ok(Some(ExternalStamp { ticks, earliest, latest, how }))
    }
}

/// The pulses of a device, counted.
#[derive(Debug)]
struct Pulses {
    device: PpsDevice,
    counted: i64,
    late: Nanos,
}

impl ExternalClock for Pulses {
    fn facts(&self) -> ExternalFacts {
        let id = self.device.path().display().to_string();
        ExternalFacts { kind: ExternalKind::Pps, id, name: String::new(), late: self.late }
    }

    fn read(&mut self, most: Nanos) -> Result<Option<ExternalStamp>, String> {
        let pulse = self.device.next(most).map_err(|error| error.to_string())?;
        Ok(pulse.map(|pulse| {
            self.counted = self.counted.saturating_add_unsigned(pulse.count);
            let (earliest, latest) = (pulse.realtime - self.late - STEP, pulse.realtime + STEP);
            ExternalStamp { ticks: self.counted, earliest, latest, how: ExternalBracket::Pulse }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let read: Result<ReferenceDescription, _> = text.parse();
        assert_eq!(read.map(|read| read.to_string()).map_err(|error| error.to_string()), Ok(expected.to_owned()));
    }

    #[test]
    fn a_reference_is_read_and_written_alike() {
        check("ptp:/dev/ptp0", "ptp:/dev/ptp0");
        check("pps:/dev/pps1", "pps:/dev/pps1,late=100us");
        check("pps:/dev/pps0, late = 2ms", "pps:/dev/pps0,late=2ms");
    }

    #[test]
    fn what_is_no_reference_is_refused_with_an_example() {
        for (text, said) in [
            ("ntp:/dev/ptp0", "there is no such reference clock"),
            ("ptp:/dev/ptp0,late=1us", "ptp"),
            ("pps:", "pps:/dev/pps0"),
            ("pps:/dev/pps0,early=1us", "write it as in pps:/dev/pps0,late=20us"),
            ("pps:/dev/pps0,late=1s", "up to 100ms"),
            ("pps:/dev/pps0,late=-1us", "up to 100ms"),
        ] {
            let error = text.parse::<ReferenceDescription>().expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_clock_that_is_not_there_is_refused_by_its_driver() {
        for (text, hint) in [("ptp:/dev/ptp/none", "ptp_kvm"), ("pps:/dev/pps/none", "pps_parport")] {
            let described: ReferenceDescription = text.parse().expect("a description");
            let error = described.open().expect_err("none").to_string();
            assert!(error.contains("No such file") && error.contains(hint), "{error}");
        }
    }
}
