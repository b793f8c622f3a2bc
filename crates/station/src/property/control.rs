//! [`UnitControl`]: the main thread's end: checks values, hands them to the unit, and reads the values in force.

use std::fmt;

use super::intake::{Change, QueueEnd, WAITING_MOST};
use super::{Property, PropertyLimits, PropertyValues};

/// Why a value was refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutError {
    /// The unit has no such property, or the station's file does not make it settable.
    NotSettable(Property),
    /// The value is outside the limits of the station's file.
    OutOfLimits {
        /// The limits.
        limits: PropertyLimits,
        /// The value.
        value: i64,
    },
    /// Too many values wait for the unit's next event or for their cycles.
    TooMany,
}

impl fmt::Display for PutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSettable(property) => {
                write!(f, "{property} is read-only: write it under settable= of the unit in the station's file")
            }
            Self::OutOfLimits { limits: PropertyLimits { property, least, most }, value } => {
                let unit = property.unit();
                let space = if unit.is_empty() { "" } else { " " };
                write!(f, "{value}{space}{unit} is outside the limits of {property}: {least} to {most}{space}{unit}")
            }
            Self::TooMany => {
                write!(f, "{WAITING_MOST} values wait for the unit's events already: set this one after some have come")
            }
        }
    }
}

impl std::error::Error for PutError {}

/// The settable properties of a unit, for the thread that watches the station.
#[derive(Debug)]
pub struct UnitControl {
    limits: Vec<PropertyLimits>,
    queue: QueueEnd,
    set_points: PropertyValues,
    /// The ticket of each property's latest value without a cycle.
    unbound: [u64; Property::ALL.len()],
    tickets: u64,
}

impl UnitControl {
    pub(crate) fn new(limits: Vec<PropertyLimits>, queue: QueueEnd) -> Self {
        let set_points = queue.read_back.values();
        Self { limits, queue, set_points, unbound: [0; Property::ALL.len()], tickets: 0 }
    }

    /// The settable properties with their limits.
    pub fn limits(&self) -> &[PropertyLimits] {
        &self.limits
    }

    /// Accepts a value. The unit applies it at its next event, or at the event of this cycle. Does not wait for that.
    ///
    /// # Errors
    /// The value is refused, and nothing has changed.
    pub fn put(&mut self, property: Property, value: i64, cycle: Option<u64>) -> Result<(), PutError> {
        let limits = self.limits.iter().find(|limits| limits.property == property);
        let limits = *limits.ok_or(PutError::NotSettable(property))?;
        if !limits.admits(value) {
            return Err(PutError::OutOfLimits { limits, value });
        }
        if self.waiting() >= WAITING_MOST {
            return Err(PutError::TooMany);
        }
        let change = Change { ticket: self.tickets + 1, property, value, cycle };
        self.queue.changes.push(change).map_err(|_| PutError::TooMany)?;
        self.tickets += 1;
        if cycle.is_none() {
            self.unbound[property as usize] = self.tickets;
            self.set_points.set(property, value);
        }
        Ok(())
    }

    /// The set-points: values accepted for the next event, and those applied at the event of their cycle.
    pub fn set_points(&mut self) -> PropertyValues {
        // Read the ticket first: changes taken out by then are in the values.
        let taken = self.queue.read_back.taken();
        let in_force = self.read_back();
        for property in Property::ALL {
            // A value that the unit has not taken yet is newer than the one in force.
            if self.unbound[property as usize] <= taken {
                self.set_points.set(property, in_force.of(property));
            }
        }
        self.set_points
    }

    /// The values in force.
    pub fn read_back(&self) -> PropertyValues {
        self.queue.read_back.values()
    }

    /// Number of accepted values that wait for the unit's next event or for their cycles.
    pub fn waiting(&self) -> u64 {
        self.tickets - self.queue.read_back.done().min(self.tickets)
    }

    /// Number of values that were never applied, because their cycle passed without an event.
    pub fn expired(&self) -> u64 {
        self.queue.read_back.expired()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PropertyIntake, property_queue};
    use super::*;

    const WIDTH: PropertyLimits = PropertyLimits { property: Property::Width, least: 5, most: 90 };

    fn ends() -> (UnitControl, PropertyIntake) {
        let (queue, intake) = property_queue(PropertyValues([1, 0, 10, 0]));
        (UnitControl::new(vec![WIDTH], queue), intake)
    }

    #[track_caller]
    fn check(control: &mut UnitControl, set_point: i64, read_back: i64) {
        let width = |values: PropertyValues| values.of(Property::Width);
        assert_eq!((width(control.set_points()), width(control.read_back())), (set_point, read_back));
    }

    #[test]
    fn a_value_is_in_force_from_the_next_event_on() {
        let (mut control, mut unit) = ends();
        check(&mut control, 10, 10);
        assert_eq!(control.put(Property::Width, 20, None), Ok(()));
        check(&mut control, 20, 10);
        assert_eq!(unit.at(None), PropertyValues([1, 0, 20, 0]));
        check(&mut control, 20, 20);
        assert_eq!((control.waiting(), control.expired()), (0, 0));
    }

    #[test]
    fn a_bound_value_is_applied_at_its_cycle_and_expires_when_that_has_passed() {
        let (mut control, mut unit) = ends();
        for (value, cycle) in [(30, 7), (40, 9), (50, 8)] {
            assert_eq!(control.put(Property::Width, value, Some(cycle)), Ok(()));
        }
        for (cycle, width, waiting, expired) in
            [(Some(6), 10, 3, 0), (None, 10, 3, 0), (Some(7), 30, 2, 0), (Some(9), 40, 0, 1), (Some(8), 40, 0, 1)]
        {
            assert_eq!(unit.at(cycle).of(Property::Width), width, "{cycle:?}");
            check(&mut control, width, width);
            assert_eq!((control.waiting(), control.expired()), (waiting, expired), "{cycle:?}");
        }
    }

    #[test]
    fn a_newer_value_that_waits_stays_the_set_point_when_an_older_bound_one_is_applied() {
        let (mut control, mut unit) = ends();
        assert_eq!(control.put(Property::Width, 30, Some(7)), Ok(()));
        unit.at(Some(6));
        assert_eq!(unit.at(Some(7)).of(Property::Width), 30);
        assert_eq!(control.put(Property::Width, 60, None), Ok(()));
        check(&mut control, 60, 30);
        unit.at(Some(8));
        check(&mut control, 60, 60);
    }

    #[test]
    fn what_is_refused_changes_nothing_and_says_why() {
        let (mut control, mut unit) = ends();
        for (property, value, says) in [
            (Property::Width, 4, "4 ns is outside the limits of width: 5 to 90 ns"),
            (Property::Width, 91, "91 ns is outside the limits of width: 5 to 90 ns"),
            (Property::Enable, 0, "enable is read-only: write it under settable= of the unit in the station's file"),
        ] {
            assert_eq!(control.put(property, value, None).map_err(|error| error.to_string()), Err(says.to_owned()));
        }
        for cycle in 0..WAITING_MOST {
            assert_eq!(control.put(Property::Width, 20, Some(1000 + cycle)), Ok(()));
        }
        assert_eq!(control.put(Property::Width, 20, None), Err(PutError::TooMany));
        assert_eq!(unit.at(Some(1)), PropertyValues([1, 0, 10, 0]));
        // They wait in the unit now, and count as before.
        assert_eq!(control.put(Property::Width, 20, None), Err(PutError::TooMany));
        unit.at(Some(1000));
        assert_eq!(control.put(Property::Width, 20, None), Ok(()));
    }
}
