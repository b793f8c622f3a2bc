//! [`Ticks`]: a reading of the machine's counter.

/// A reading of the counter, in its own unit; wraps at 2⁶⁴ (two centuries at 3 GHz).
///
/// Two readings can only be compared by their signed distance, which is right as long as they lie less than half the
/// range apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ticks(u64);

impl Ticks {
    /// A reading with this raw value.
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// The raw value.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// How many ticks this reading lies after `earlier`; negative if it lies before.
    #[inline(always)]
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.wrapping_sub(earlier.0) as i64
    }

    /// The reading `ticks` ticks later.
    #[inline(always)]
    #[must_use]
    pub const fn plus(self, ticks: i64) -> Self {
        Self(self.0.wrapping_add_signed(ticks))
    }
}
