//! Settable properties of a unit, checked against its action.

use hairspring_machine::Nanos;

use super::{Range as Place, Settable, Wrong};
use crate::property::{Property, PropertyLimits};
use crate::station::{Act, UnitSettings};

/// The limits of a unit's settable properties.
///
/// # Errors
/// The unit has no such property, its limits are crossed, or its own value lies outside.
pub(super) fn limits(
    settable: &Settable,
    unit: &UnitSettings,
    place: &Place<usize>,
) -> Result<Vec<PropertyLimits>, Wrong> {
    let wrong = |what: String| (place.clone(), what);
    let span = |limits: &super::Limits<super::Span>| [limits.least.0, limits.most.0].map(Nanos::count);
    let number = |limits: &super::Limits<u32>| [limits.least, limits.most].map(i64::from);
    let wanted = [
        (Property::Enable, (settable.enable == Some(true)).then_some([0, 1]), true, ""),
        (
            Property::LateAfter,
            settable.late_after.as_ref().map(span),
            unit.late_after.is_some(),
            "write late_after= of the unit",
        ),
        (
            Property::Width,
            settable.width.as_ref().map(span),
            matches!(unit.act, Act::Pulse(..)),
            "only a pulse has a width",
        ),
        (
            Property::Value,
            settable.value.as_ref().map(number),
            matches!(unit.act, Act::Write(..)),
            "only do = { write = … } has a value",
        ),
    ];
    let values = unit.property_values();
    let mut all = Vec::new();
    for (property, limits, has, hint) in wanted {
        let Some([least, most]) = limits else { continue };
        if !has {
            return Err(wrong(format!("the unit has no {property} to set: {hint}")));
        }
        if least > most {
            return Err(wrong(format!("{property}: least is greater than most")));
        }
        let limits = PropertyLimits { property, least, most };
        if !limits.admits(values.of(property)) {
            let value = values.of(property);
            return Err(wrong(format!(
                "{property}: the unit's own value {value} is outside its limits {least} to {most}"
            )));
        }
        all.push(limits);
    }
    Ok(all)
}
