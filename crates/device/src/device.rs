//! [`Device`]: digital lines with a safe state for the connected equipment.

use std::fmt;

use hairspring_machine::Nanos;

/// The greatest undisturbed difference between two writes of a device. Part of the 10 µs within which an undisturbed
/// action is exact.
pub const WRITE_SPREAD: Nanos = Nanos::from_micros(10);

/// Up to 32 lines, line 0 in the lowest bit; 1 is high.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lines(pub u32);

impl Lines {
    /// A single line.
    ///
    /// # Panics
    /// If the line does not exist: 32 and above.
    pub fn one(line: u32) -> Self {
        assert!(line < u32::BITS, "lines are numbered 0 to 31");
        Self(1 << line)
    }

    /// The first `count` lines; 32 at most.
    pub fn first(count: usize) -> Self {
        Self(u32::try_from((1_u64 << count.min(32)) - 1).unwrap_or(u32::MAX))
    }

    /// Whether a line is high.
    pub fn is_high(self, line: u32) -> bool {
        line < u32::BITS && self.0 >> line & 1 == 1
    }
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

/// Line numbers for people: `line 3`, `lines 0 to 7, 12`.
struct Listed(Lines);

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(lines) = *self;
        f.write_str(if lines.0.count_ones() == 1 { "line " } else { "lines " })?;
        let begins = (0..u32::BITS).filter(|line| lines.is_high(*line) && (*line == 0 || !lines.is_high(line - 1)));
        for (number, first) in begins.enumerate() {
            let last = first + (lines.0 >> first).trailing_ones() - 1;
            f.write_str(if number == 0 { "" } else { ", " })?;
            if first == last { write!(f, "{first}")? } else { write!(f, "{first} to {last}")? }
        }
        Ok(())
    }
}

/// Why a device failed: the attempted operation, the system's error, and advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceError {
    /// The attempted operation, to follow "failed to".
    pub attempted: String,
    /// The system's error.
    pub said: String,
    /// Advice for the user.
    pub remedy: &'static str,
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to {}: {}; {}", self.attempted, self.said, self.remedy)
    }
}

impl std::error::Error for DeviceError {}

/// Digital lines that are written and read.
///
/// **Real-time behaviour.** `write` and `read` take the time of one access and do not allocate; each driver documents
/// the rest.
pub trait Device: Send {
    /// Its name, for people.
    fn name(&self) -> String;

    /// Brings the device into the state after power-on, with its outputs in the safe state.
    ///
    /// # Errors
    /// The device does not answer.
    fn init(&mut self) -> Result<(), DeviceError>;

    /// The lines that are outputs.
    fn output_lines(&self) -> Lines;

    /// Sets those output lines that are in `mask`.
    ///
    /// # Errors
    /// The device does not answer, or is not initialised; or the mask has lines that are not outputs: then no line is
    /// set.
    fn write(&mut self, mask: Lines, value: Lines) -> Result<(), DeviceError>;

    /// The input lines.
    ///
    /// # Errors
    /// The device does not answer, or is not initialised.
    fn read(&mut self) -> Result<Lines, DeviceError>;

    /// The safe state of the outputs, for times when no program controls them.
    fn safe_state(&self) -> Lines;

    /// Sets all outputs to the safe state.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn make_safe(&mut self) -> Result<(), DeviceError> {
        self.write(self.output_lines(), self.safe_state())
    }

    /// Refuses lines that are not outputs of the device; the error lists its outputs.
    ///
    /// # Errors
    /// Some of the lines are not outputs.
    fn check_outputs(&self, lines: Lines) -> Result<(), DeviceError> {
        check_outputs(self.output_lines(), lines, || self.name())
    }
}

/// Refuses lines that are not among the outputs of the named device.
pub(crate) fn check_outputs(outputs: Lines, lines: Lines, name: impl FnOnce() -> String) -> Result<(), DeviceError> {
    let missing = Lines(lines.0 & !outputs.0);
    if missing == Lines(0) {
        return Ok(());
    }
    Err(DeviceError {
        attempted: format!("write to {} of {}", Listed(missing), name()),
        said: match outputs.0.count_ones() {
            0 => "it has no outputs".to_owned(),
            1 => format!("its output is {}", Listed(outputs)),
            _ => format!("its outputs are {}", Listed(outputs)),
        },
        remedy: "name outputs that it has; a device's lines are numbered from 0, whatever names the hardware has",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bits() {
        assert_eq!(Lines::one(31), Lines(0x8000_0000));
        assert!(Lines(0b100).is_high(2) && !Lines(0b100).is_high(1) && !Lines(u32::MAX).is_high(32));
        assert_eq!(Lines(0b100).to_string(), "0x00000004");
        assert_eq!([0, 1, 12, 32, 40].map(Lines::first), [0, 1, 0xfff, u32::MAX, u32::MAX].map(Lines));
    }

    #[test]
    fn lines_that_are_no_outputs_are_refused_with_those_that_are() {
        let refused = |outputs, lines| {
            check_outputs(Lines(outputs), Lines(lines), || "it".to_owned()).map_err(|error| error.to_string())
        };
        assert_eq!([refused(u32::MAX, u32::MAX), refused(0, 0), refused(0b101, 0b100)], [Ok(()), Ok(()), Ok(())]);
        for (outputs, lines, said) in [
            (1, 0b1000, "failed to write to line 3 of it: its output is line 0; "),
            (
                0b1101_1111,
                u32::MAX,
                "failed to write to lines 5, 8 to 31 of it: its outputs are lines 0 to 4, 6 to 7; ",
            ),
            (0, 1 << 31, "failed to write to line 31 of it: it has no outputs; "),
        ] {
            assert!(refused(outputs, lines).is_err_and(|error| error.starts_with(said)), "{said}");
        }
    }

    #[test]
    #[should_panic(expected = "lines are numbered 0 to 31")]
    fn there_are_32_lines() {
        Lines::one(32);
    }
}
