//! [`Device`]: digital lines, and what is safe for what is connected to them.

use std::fmt;

/// Up to 32 lines, line 0 in the lowest bit; 1 is high.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lines(pub u32);

impl Lines {
    /// One line alone.
    ///
    /// # Panics
    /// If there is no such line: 32 and above.
    pub fn one(line: u32) -> Self {
        assert!(line < u32::BITS, "lines are numbered 0 to 31");
        Self(1 << line)
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

/// What a device did not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceError {
    /// What was attempted, to follow "failed to".
    pub attempted: String,
    /// What was said to it.
    pub said: String,
    /// What to do about it.
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
/// **Real-time behaviour.** `write` and `read` take the time of one access and do not allocate; what else they do, each driver
/// says.
pub trait Device: Send {
    /// What it is, for people.
    fn name(&self) -> String;

    /// Brings the device into the state after power-on, with its outputs in the safe state.
    ///
    /// # Errors
    /// The device does not answer.
    fn init(&mut self) -> Result<(), DeviceError>;

    /// Sets those output lines that are in `mask`.
    ///
    /// # Errors
    /// The device does not answer, or is not initialised.
    fn write(&mut self, mask: Lines, value: Lines) -> Result<(), DeviceError>;

    /// The input lines.
    ///
    /// # Errors
    /// The device does not answer, or is not initialised.
    fn read(&mut self) -> Result<Lines, DeviceError>;

    /// What the outputs are to be when nobody is in command.
    fn safe_state(&self) -> Lines;

    /// Sets all outputs to the safe state.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn make_safe(&mut self) -> Result<(), DeviceError> {
        self.write(Lines(u32::MAX), self.safe_state())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bits() {
        assert_eq!(Lines::one(31), Lines(0x8000_0000));
        assert!(Lines(0b100).is_high(2) && !Lines(0b100).is_high(1) && !Lines(u32::MAX).is_high(32));
        assert_eq!(Lines(0b100).to_string(), "0x00000004");
    }

    #[test]
    #[should_panic(expected = "lines are numbered 0 to 31")]
    fn there_are_32_lines() {
        Lines::one(32);
    }
}
