//! [`ExternalClock`]: a clock outside the kernel, with which a recording compares `CLOCK_MONOTONIC`: the clock of a
//! network card, or the pulses of a receiver.

use std::fmt;

use hairspring_machine::Nanos;

/// Kinds of external clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExternalKind {
    /// A PTP hardware clock: it can be read at any time, and counts nanoseconds.
    Ptp,
    /// Pulses, one each second: they mark where seconds begin, but do not number them.
    Pps,
}

impl ExternalKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Ptp, Self::Pps];

    /// Its stable name in files, JSON and descriptions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ptp => "ptp",
            Self::Pps => "pps",
        }
    }

    /// Ticks per second of the clock itself: nanoseconds, or pulses.
    pub fn ticks_per_s(self) -> u32 {
        match self {
            Self::Ptp => 1_000_000_000,
            Self::Pps => 1,
        }
    }
}

/// Facts about an external clock, for the metadata of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalFacts {
    /// Kind of the clock.
    pub kind: ExternalKind,
    /// Its file.
    pub id: String,
    /// The name that its driver gives it; empty if there is none.
    pub name: String,
    /// Assumed greatest lateness of its stamps, already included in the intervals.
    pub late: Nanos,
}

impl fmt::Display for ExternalFacts {
    /// `ptp:/dev/ptp0 (igb)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.id)?;
        if self.name.is_empty() { Ok(()) } else { write!(f, " ({})", self.name) }
    }
}

/// How a reading of an external clock was bracketed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExternalBracket {
    /// The hardware stamped both clocks at once.
    CrossStamp = 1,
    /// The driver bracketed the read of the register.
    Extended = 2,
    /// The kernel bracketed the call of the driver.
    Plain = 3,
    /// The kernel stamped a pulse in its interrupt.
    Pulse = 4,
}

impl ExternalBracket {
    /// All methods.
    pub const ALL: [Self; 4] = [Self::CrossStamp, Self::Extended, Self::Plain, Self::Pulse];

    /// Its stable name in files and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::CrossStamp => "cross_stamp",
            Self::Extended => "extended",
            Self::Plain => "plain",
            Self::Pulse => "pulse",
        }
    }
}

/// A reading as the kernel returns it, against the time of day: between `earliest` and `latest` the clock had counted
/// `ticks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalStamp {
    /// Nanoseconds of the clock's own scale, or pulses since it was opened.
    pub ticks: i64,
    /// `CLOCK_REALTIME` at that moment, at least.
    pub earliest: Nanos,
    /// At most.
    pub latest: Nanos,
    /// How it was got.
    pub how: ExternalBracket,
}

/// A clock outside the kernel.
pub trait ExternalClock: Send + fmt::Debug {
    /// Which one it is.
    fn facts(&self) -> ExternalFacts;

    /// Reads the clock, or waits for its next pulse, at most `most`, which is less than a second. `None` if no pulse
    /// came. Blocks: not for real-time threads.
    ///
    /// # Errors
    /// The clock is gone or refuses; the error has the reason and a remedy.
    fn read(&mut self, most: Nanos) -> Result<Option<ExternalStamp>, String>;
}

impl<C: ExternalClock + ?Sized> ExternalClock for Box<C> {
    fn facts(&self) -> ExternalFacts {
        (**self).facts()
    }

    fn read(&mut self, most: Nanos) -> Result<Option<ExternalStamp>, String> {
        (**self).read(most)
    }
}
