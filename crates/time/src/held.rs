//! [`HeldTimebase`]: the time base of an object that lives long, and its successors.

use std::ops::Deref;

use hairspring_machine::Machine;

use crate::timebase::Timebase;

/// The time base that a long-lived object uses: lent by the caller, or the object's own, as every successor is that it
/// adopted.
///
/// [`LongDelay`](crate::LongDelay), [`Profile`](crate::Profile) and objects of other crates have a method `adopt`. It
/// takes the successor that [`Timebase::refine`] returned. From then on the object uses the successor's rate and its
/// smaller bound. The object keeps all that it has learned or recorded.
#[derive(Debug)]
pub enum HeldTimebase<'t, M: Machine> {
    /// The caller's.
    Lent(&'t Timebase<M>),
    /// The object's own.
    Own(Box<Timebase<M>>),
}

impl<M: Machine> HeldTimebase<'_, M> {
    /// Uses this successor from now on. Allocates; not real-time safe.
    pub fn adopt(&mut self, successor: Timebase<M>) {
        *self = Self::from(successor);
    }
}

impl<'t, M: Machine> From<&'t Timebase<M>> for HeldTimebase<'t, M> {
    fn from(timebase: &'t Timebase<M>) -> Self {
        Self::Lent(timebase)
    }
}

impl<M: Machine> From<Timebase<M>> for HeldTimebase<'_, M> {
    fn from(timebase: Timebase<M>) -> Self {
        Self::Own(Box::new(timebase))
    }
}

impl<M: Machine> Deref for HeldTimebase<'_, M> {
    type Target = Timebase<M>;

    #[inline(always)]
    fn deref(&self) -> &Timebase<M> {
        match self {
            Self::Lent(timebase) => timebase,
            Self::Own(timebase) => timebase,
        }
    }
}
