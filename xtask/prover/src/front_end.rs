//! Front ends: pulses, reactions to events, and exposures.

pub(crate) mod exposures;
pub(crate) mod pulses;
pub(crate) mod reactions;
