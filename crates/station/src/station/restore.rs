//! Set-points that outlast the station: read before the devices are opened, and written whenever one changes.

use std::io::{self, ErrorKind, Write};
use std::path::Path;

use hairspring_file::NewFile;
use hairspring_machine::Nanos;

use super::run::Watched;
use super::{Act, Station, UnitSettings};
use crate::property::kept::{Kept, read, write};
use crate::property::{Property, PropertyValues};

impl UnitSettings {
    /// The values of its properties, as in the file; 0 for those that it lacks, and -1 for no limit of lateness.
    pub fn property_values(&self) -> PropertyValues {
        let mut values = PropertyValues::default();
        values.set(Property::Enable, i64::from(self.enabled));
        values.set(Property::LateAfter, self.late_after.map_or(-1, Nanos::count));
        match self.act {
            Act::Pulse(_, width) => values.set(Property::Width, width.count()),
            Act::Write(_, value) => values.set(Property::Value, i64::from(value.0)),
            _ => {}
        }
        values
    }

    /// Begins with another value of a property. The caller has checked that the unit has it.
    fn begin_with(&mut self, property: Property, value: i64) {
        match (property, &mut self.act) {
            (Property::Enable, _) => self.enabled = value != 0,
            (Property::LateAfter, _) => self.late_after = Some(Nanos::new(value)),
            (Property::Width, Act::Pulse(_, width)) => *width = Nanos::new(value),
            (Property::Value, Act::Write(_, lines)) => lines.0 = u32::try_from(value).unwrap_or(lines.0),
            _ => {}
        }
    }
}

impl Station {
    /// Adopts the set-points of an earlier run from this file, so that the units begin with them. Returns their number,
    /// and a sentence for each that is not adopted: its unit is gone, it is not settable any more, or outside today's
    /// limits.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    pub fn restore(&mut self, from: &Path) -> io::Result<(usize, Vec<String>)> {
        let text = match std::fs::read_to_string(from) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((0, Vec::new())),
            text => text?,
        };
        let (kept, mut faults) = read(&text);
        let mut restored = 0;
        for Kept { unit, property, value } in kept {
            let found = self.units.iter_mut().find(|settings| settings.name == unit);
            let limits = found.as_ref().and_then(|settings| settings.limits(property));
            match (found, limits) {
                (Some(settings), Some(limits)) if limits.admits(value) => {
                    settings.begin_with(property, value);
                    restored += 1;
                }
                (_, Some(limits)) => faults.push(format!(
                    "{unit}.{property} = {value} was kept, and is outside the limits: {} to {}; it begins as in the file",
                    limits.least, limits.most
                )),
                _ => faults.push(format!("{unit}.{property} was kept, and is not settable; it begins as in the file")),
            }
        }
        Ok((restored, faults))
    }
}

/// The text of a file that keeps the set-points of all units.
pub fn set_points(units: &mut [Watched]) -> String {
    let mut kept = Vec::new();
    for unit in units {
        let Some(control) = &mut unit.control else { continue };
        let values = control.set_points();
        for limits in control.limits() {
            let (property, value) = (limits.property, values.of(limits.property));
            kept.push(Kept { unit: unit.name.clone(), property, value });
        }
    }
    write(&kept)
}

/// Replaces a file of set-points: written to a temporary file, synced, renamed. A reader finds the old values or the
/// new ones. Blocks for the disk.
///
/// # Errors
/// The system refused, and the old file is unchanged.
pub fn keep(text: &str, path: &Path) -> io::Result<()> {
    let mut file = NewFile::begin(path)?;
    file.write_all(text.as_bytes())?;
    file.replace()?;
    // The name outlasts a loss of power only when its folder is on the disk, too.
    std::fs::File::open(hairspring_file::folder_of(path))?.sync_all()
}
