//! [`Property`]: the settings of a unit that can be changed and read while it runs, like the properties of a front
//! end's device class.
//!
//! **Set-point and read-back** are two values. The set-point is the value that the station has accepted; the read-back
//! is the value in force. A unit adopts accepted values at its next event, before its action, so that an action never
//! changes half-way.
//!
//! **Bound to a cycle.** A value can be bound to a cycle number. The unit applies it at the first event of that cycle,
//! before the action, and keeps it afterwards. If that cycle is passed without an event of its own, the value expires;
//! it is counted, and never applied.
//!
//! **How it works.** The station's main thread holds a [`UnitControl`], which checks a value against its limits and
//! puts it into a bounded queue. The unit's thread takes it out without waiting, and stores the values in force in
//! words that the main thread reads. A unit without settable properties has no queue and no cost; otherwise the cost is
//! one load per event.

mod control;
mod intake;
pub(crate) mod kept;

pub use control::{PutError, UnitControl};
pub(crate) use intake::{PropertyIntake, property_queue};

use std::fmt;
use std::str::FromStr;

/// Settable properties of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Property {
    /// Whether the unit acts: 1, or 0. Events of a unit that does not act are counted as skipped.
    Enable,
    /// An action that begins later than this after its event counts as late; in nanoseconds.
    LateAfter,
    /// The width of the unit's pulse, in nanoseconds.
    Width,
    /// The value that the unit writes to its lines.
    Value,
}

impl Property {
    /// All properties, in the order of their values in the page.
    pub const ALL: [Self; 4] = [Self::Enable, Self::LateAfter, Self::Width, Self::Value];

    /// Its name in station files and commands.
    pub fn name(self) -> &'static str {
        ["enable", "late_after", "width", "value"][self as usize]
    }

    /// The unit of its value: `ns`, or empty.
    pub fn unit(self) -> &'static str {
        match self {
            Self::LateAfter | Self::Width => "ns",
            Self::Enable | Self::Value => "",
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Property {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|property| property.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no property {text:?}; there are {names}")
        })
    }
}

/// A property that may be set, and between which values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertyLimits {
    /// The property that may be set.
    pub property: Property,
    /// The least value.
    pub least: i64,
    /// The greatest value.
    pub most: i64,
}

impl PropertyLimits {
    /// Whether a value lies between the limits.
    pub fn admits(&self, value: i64) -> bool {
        (self.least..=self.most).contains(&value)
    }
}

/// The values of a unit's properties; 0 for those that it lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PropertyValues(pub [i64; Property::ALL.len()]);

impl PropertyValues {
    /// The value of one.
    #[inline]
    pub fn of(&self, property: Property) -> i64 {
        self.0[property as usize]
    }

    /// Sets one.
    #[inline]
    pub fn set(&mut self, property: Property, value: i64) {
        self.0[property as usize] = value;
    }
}
