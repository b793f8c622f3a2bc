//! The state of a card's mixer, for the metadata of a recording: what was muted, which input was chosen, how far each
//! gain was up.
//!
//! It is read and never changed. Values are those of the driver; a gain in dB is not guaranteed, because drivers encode
//! it in many ways.

use std::io;

use zerocopy::FromZeros as _;

use super::abi::{ELEM_INACTIVE, ELEM_INFO, ELEM_READ, ELEM_READABLE, ElemId, ElemInfo, ElemValue, IFACE_MIXER, text};
use super::kernel::Node;

/// Most elements that are read; large consoles have more, and the text then notes the limit.
const MOST_ELEMENTS: usize = 256;
/// Most values of an element that are read.
const MOST_VALUES: usize = 16;

const BOOLEAN: i32 = 1;
const INTEGER: i32 = 2;
const ENUMERATED: i32 = 3;

/// The elements that concern recording, or playing, each with its value:
/// `Capture Volume 46 (0 to 63), Capture Switch on`.
pub(super) fn state(control: &Node, is_recording: bool) -> io::Result<String> {
    let mut ids = vec![ElemId::new_zeroed(); MOST_ELEMENTS];
    let found = control.elements(&mut ids)?;
    let other = if is_recording { "Playback" } else { "Capture" };
    let concerned = ids[..found].iter().filter(|id| id.interface == IFACE_MIXER && !text(&id.name).contains(other));
    let mut told: Vec<String> = concerned.filter_map(|id| element(control, *id)).collect();
    if found == MOST_ELEMENTS {
        told.push("more elements that were not read".to_owned());
    }
    Ok(if told.is_empty() { "none".to_owned() } else { told.join(", ") })
}

/// An element and its value; `None` if it has no readable value.
fn element(control: &Node, id: ElemId) -> Option<String> {
    let mut info = ElemInfo::new_zeroed();
    info.id = id;
    control.exchange(&ELEM_INFO, &mut info).ok()?;
    if info.access & ELEM_READABLE == 0 || info.access & ELEM_INACTIVE != 0 {
        return None;
    }
    let mut value = ElemValue::new_zeroed();
    value.id = id;
    control.exchange(&ELEM_READ, &mut value).ok()?;
    let name = match id.index {
        0 => text(&id.name),
        index => format!("{} {index}", text(&id.name)),
    };
    let told = written(&info, &value, |item| {
        let mut named = info;
        named.value[4..8].copy_from_slice(&item.to_ne_bytes());
        control.exchange(&ELEM_INFO, &mut named).ok().map(|()| text(&named.value[8..72]))
    })?;
    Some(format!("{name} {told}"))
}

/// A value as text; `None` for a kind without a readable form.
fn written(info: &ElemInfo, value: &ElemValue, item: impl Fn(u32) -> Option<String>) -> Option<String> {
    let count = (info.count as usize).min(MOST_VALUES);
    let long = |bytes: &[u8], number: usize| {
        let at = number * 8;
        bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, i64::from_ne_bytes)
    };
    let each: Vec<String> = match info.kind {
        BOOLEAN => {
            (0..count).map(|number| if long(&value.value, number) == 0 { "off" } else { "on" }.to_owned()).collect()
        }
        INTEGER => (0..count).map(|number| long(&value.value, number).to_string()).collect(),
        ENUMERATED => (0..count)
            .map(|number| {
                let at = number * 4;
                let chosen = value.value[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
                item(chosen).unwrap_or_else(|| chosen.to_string())
            })
            .collect(),
        _ => return None,
    };
    let first = each.first()?;
    let told = if each.iter().all(|one| one == first) { first.clone() } else { each.join("/") };
    Some(match info.kind {
        INTEGER => format!("{told} ({} to {})", long(&info.value, 0), long(&info.value, 1)),
        _ => told,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: i32, values: &[i64], range: [i64; 2]) -> Option<String> {
        let (mut info, mut value) = (ElemInfo::new_zeroed(), ElemValue::new_zeroed());
        (info.kind, info.count) = (kind, values.len() as u32);
        for (number, word) in range.iter().enumerate() {
            info.value[number * 8..number * 8 + 8].copy_from_slice(&word.to_ne_bytes());
        }
        let width = if kind == ENUMERATED { 4 } else { 8 };
        for (number, word) in values.iter().enumerate() {
            value.value[number * width..(number + 1) * width].copy_from_slice(&word.to_ne_bytes()[..width]);
        }
        written(&info, &value, |item| (item == 1).then(|| "Line".to_owned()))
    }

    #[test]
    fn values_are_told_in_words() {
        assert_eq!(told(BOOLEAN, &[1, 1], [0, 1]).as_deref(), Some("on"));
        assert_eq!(told(BOOLEAN, &[1, 0], [0, 1]).as_deref(), Some("on/off"));
        assert_eq!(told(INTEGER, &[46, 46], [0, 63]).as_deref(), Some("46 (0 to 63)"));
        assert_eq!(told(INTEGER, &[-3], [-12, 0]).as_deref(), Some("-3 (-12 to 0)"));
        assert_eq!(told(ENUMERATED, &[1], [0, 0]).as_deref(), Some("Line"));
        assert_eq!(told(ENUMERATED, &[7], [0, 0]).as_deref(), Some("7"));
        assert_eq!(told(4, &[1], [0, 0]), None);
    }
}
