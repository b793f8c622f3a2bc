//! The file that keeps set-points after the end of a station: a line `unit.property = value` for each. This file alone
//! knows the format.
//!
//! Values are integers: nanoseconds, numbers, 0 or 1. Lines that begin with `#` are remarks. A file is written whole
//! under another name, synced and renamed, so a reader finds the old values or the new ones.

use super::Property;

/// A set-point that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) unit: String,
    pub(crate) property: Property,
    pub(crate) value: i64,
}

/// The text of a file.
pub(crate) fn write(kept: &[Kept]) -> String {
    let line = |Kept { unit, property, value }: &Kept| format!("{unit}.{property} = {value}\n");
    format!("# Set-points of a station, written by hairspring.\n{}", kept.iter().map(line).collect::<String>())
}

/// The values in a file, and a sentence for each line that is invalid.
pub(crate) fn read(text: &str) -> (Vec<Kept>, Vec<String>) {
    let (mut kept, mut faults) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
    {
        match read_line(line) {
            Some(one) => kept.push(one),
            None => faults.push(format!("line {} of the kept set-points is none: {line:?}", number + 1)),
        }
    }
    (kept, faults)
}

fn read_line(line: &str) -> Option<Kept> {
    let (name, value) = line.split_once('=')?;
    let (unit, property) = name.trim().rsplit_once('.')?;
    Some(Kept { unit: unit.to_owned(), property: property.parse().ok()?, value: value.trim().parse().ok()? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_read_line_by_line(text in "([a-c.]{0,6}(width|enable)? ?= ?-?[0-9]{0,20}\n|[^\n]{0,20}\n){0,8}") {
            let (kept, faults) = read(&text);
            prop_assert!(kept.len() + faults.len() <= text.lines().count());
            prop_assert_eq!(read(&write(&kept)).0, kept);
        }
    }

    #[test]
    fn what_is_written_is_read_and_the_rest_is_told() {
        let kept = vec![
            Kept { unit: "a.b".to_owned(), property: Property::Width, value: 20_000 },
            Kept { unit: "c".to_owned(), property: Property::Enable, value: 0 },
        ];
        assert_eq!(read(&write(&kept)), (kept, vec![]));
        let (kept, faults) = read("a.width = 1\nrubbish\na.colour = 1\na.width = red\n\n");
        assert_eq!((kept.len(), faults.len()), (1, 3), "{faults:?}");
        assert!(faults[0].contains("line 2 ") && faults[0].contains("rubbish"), "{faults:?}");
    }
}
