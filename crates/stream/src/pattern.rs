//! Test data that can be computed again from their position, so that every byte of a recording can be verified.

/// What a virtual card produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// 0.
    Zero,
}
