//! A station as TOML. This file alone knows the format.
//!
//! ```toml
//! [source.trigger]
//! from = "udp:239.0.0.1:5000"
//!
//! [device.board]
//! driver = "virtual:/dev/shm/board,safe=0x00000001"
//!
//! [unit.shutter]
//! on = "trigger"
//! device = "board"
//! do = { pulse = { line = 3, width = "10us" } }
//! priority = 50
//! cpu = 1
//! late_after = "500us"
//! ```
//!
//! `docs/station.md` documents the format. Anything else is an error with its line and column.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use hairspring_describe::DescriptionError;
use hairspring_device::{DeviceDescription, Lines, Protocol};
use hairspring_machine::{Cpu, Nanos};
use serde::de::{Deserialize, Deserializer, Error as _};
use toml::Spanned;

use super::{Act, DeviceSettings, PublishSettings, Station, UnitSettings};
use crate::source::EventSourceDescription;

mod alarm;
mod settable;

/// Most units of a station: each is a thread.
const UNITS_MOST: usize = 64;

/// Why a text is no station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationError {
    /// Line and column of the error, from 1. The end of the text if a part is missing entirely.
    pub line: usize,
    /// As above.
    pub column: usize,
    /// The fault, and the correct form.
    pub what: String,
    /// The line as it is written.
    pub text: String,
}

impl fmt::Display for StationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "line {}, column {}: {}", self.line, self.column, self.what)?;
        let number = self.line.to_string();
        writeln!(f, "{number} | {}", self.text)?;
        write!(f, "{:width$} | {:before$}^", "", "", width = number.len(), before = self.column - 1)
    }
}

impl std::error::Error for StationError {}

/// A value written as text.
struct Text<T>(T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

/// A time that has passed before it is over.
struct Span(Nanos);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Text(span) = Text::<Nanos>::deserialize(from)?;
        if span < Nanos::ZERO {
            return Err(D::Error::custom(format!("{span}: a time cannot be negative")));
        }
        Ok(Self(span))
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    source: BTreeMap<String, Source>,
    #[serde(default)]
    device: BTreeMap<String, Device>,
    #[serde(default)]
    unit: BTreeMap<String, Spanned<Unit>>,
    #[serde(default)]
    publish: Publish,
}

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Publish {
    #[serde(default)]
    prefix: Option<Spanned<String>>,
    #[serde(default)]
    keep: Option<PathBuf>,
    #[serde(default)]
    accounts: Option<Vec<String>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    from: Spanned<String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Device {
    driver: Spanned<String>,
    #[serde(default)]
    lock: Option<Spanned<Lock>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Lock {
    file: PathBuf,
    #[serde(default)]
    protocol: Option<Text<Protocol>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Unit {
    on: Spanned<String>,
    #[serde(default)]
    device: Option<Spanned<String>>,
    #[serde(rename = "do")]
    act: Spanned<Do>,
    #[serde(default)]
    priority: Option<Spanned<u8>>,
    #[serde(default)]
    cpu: Option<u32>,
    #[serde(default)]
    late_after: Option<Span>,
    #[serde(default)]
    enable: Option<bool>,
    #[serde(default)]
    settable: Option<Spanned<Settable>>,
    #[serde(default)]
    alarm: Option<Spanned<Alarm>>,
}

/// Latencies of a unit from which on there is an alarm.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Alarm {
    #[serde(default)]
    minor: Option<Span>,
    #[serde(default)]
    major: Option<Span>,
    #[serde(default)]
    hysteresis: Option<Span>,
}

/// Settable properties of a unit, as in the file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Settable {
    #[serde(default)]
    enable: Option<bool>,
    #[serde(default)]
    late_after: Option<Limits<Span>>,
    #[serde(default)]
    width: Option<Limits<Span>>,
    #[serde(default)]
    value: Option<Limits<u32>>,
}

/// The least and the greatest value.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits<T> {
    least: T,
    most: T,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Do {
    Read,
    Write { mask: u32, value: u32 },
    Toggle { line: Spanned<u32> },
    Pulse { line: Spanned<u32>, width: Span },
    Fire(PathBuf),
}

/// Contents of a file, with its descriptions parsed.
struct Front {
    sources: BTreeMap<String, EventSourceDescription>,
    devices: BTreeMap<String, (DeviceDescription, Option<Spanned<Lock>>)>,
    units: BTreeMap<String, Spanned<Unit>>,
    publish: Publish,
}

/// Something wrong at a place.
type Wrong = (Range<usize>, String);

/// Reads a station.
///
/// # Errors
/// The first error, with its place.
pub fn read(text: &str) -> Result<Station, StationError> {
    let file: File = toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(text.len()..text.len());
        at(text, span, error.message().trim().to_owned())
    })?;
    front(file, text).and_then(station).map_err(|(span, what)| at(text, span, what))
}

fn front(file: File, text: &str) -> Result<Front, Wrong> {
    let source = |(name, Source { from }): (String, Source)| Ok((name, described(text, &from)?));
    let device = |(name, Device { driver, lock }): (String, Device)| Ok((name, (described(text, &driver)?, lock)));
    Ok(Front {
        sources: file.source.into_iter().map(source).collect::<Result<_, Wrong>>()?,
        devices: file.device.into_iter().map(device).collect::<Result<_, Wrong>>()?,
        units: file.unit,
        publish: file.publish,
    })
}

/// Reads a description. If it is wrong, the place is the one within the quotes.
fn described<T: FromStr<Err = DescriptionError>>(text: &str, written: &Spanned<String>) -> Result<T, Wrong> {
    let (span, value) = (written.span(), written.get_ref());
    value.parse().map_err(|error: DescriptionError| {
        // In a text with escapes the place of a character within the value is unknown.
        let is_plain = text.get(span.start + 1..span.end - 1) == Some(value);
        let begin = if is_plain { span.start + 1 + error.place().start } else { span.start };
        (begin..span.end, error.in_one_line())
    })
}

fn at(text: &str, span: Range<usize>, what: String) -> StationError {
    let start = (0..=span.start.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let begin = text[..start].rfind('\n').map_or(0, |end| end + 1);
    let line = text[begin..].lines().next().unwrap_or_default();
    // The end of a line is after its last character, also if `\r\n` ends it.
    let column = text[begin..start].chars().count().min(line.chars().count()) + 1;
    StationError { line: text[..start].matches('\n').count() + 1, column, what, text: line.to_owned() }
}

fn station(file: Front) -> Result<Station, Wrong> {
    if file.units.is_empty() {
        return Err((usize::MAX..usize::MAX, "there is no unit: write [unit.NAME] with on = and do =".to_owned()));
    }
    let names: Vec<&String> = file.devices.keys().collect();
    let mut written: Vec<(&String, &Spanned<Unit>)> = file.units.iter().collect();
    // As written, not by name.
    written.sort_by_key(|(_, unit)| unit.span().start);
    if let Some((_, unit)) = written.get(UNITS_MOST) {
        return Err((unit.span(), format!("a station has at most {UNITS_MOST} units")));
    }
    let mut units = Vec::new();
    let mut followed: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, unit) in written {
        let unit = unit.get_ref();
        let settings = settings(name, unit, &file, &names)?;
        let source = unit.on.get_ref().as_str();
        if let Some(other) = followed.insert(source, name).filter(|_| !settings.on.reaches_all()) {
            let what = format!("only one unit can follow {source}, and {other} does: fire a signal from {other}");
            return Err((unit.on.span(), what));
        }
        if let EventSourceDescription::Parport(path) = &settings.on
            && file.devices.values().any(|(device, _)| device.driver.is_parport(path))
        {
            let what =
                format!("{} is a device of this station, and a claimed port cannot also be a source", path.display());
            return Err((unit.on.span(), format!("{what}: use another port, or another source")));
        }
        units.push(settings);
    }
    let devices = file.devices.into_iter().map(|(name, (driver, lock))| device_settings(name, driver, lock));
    let publish = published(file.publish)?;
    Ok(Station { devices: devices.collect::<Result<_, Wrong>>()?, units, publish })
}

/// Longest prefix of variable names: most sites allow names of 60 letters.
const PREFIX_MOST: usize = 30;

fn published(Publish { prefix, keep, accounts }: Publish) -> Result<PublishSettings, Wrong> {
    if let Some(prefix) = &prefix {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_:-".contains(c);
        if prefix.get_ref().is_empty()
            || prefix.get_ref().len() > PREFIX_MOST
            || !prefix.get_ref().chars().all(is_plain)
        {
            let what = format!("a prefix has 1 to {PREFIX_MOST} of the characters A to Z, a to z, 0 to 9, _ : -");
            return Err((prefix.span(), what));
        }
    }
    Ok(PublishSettings { prefix: prefix.map(Spanned::into_inner), keep, accounts })
}

fn device_settings(
    name: String,
    driver: DeviceDescription,
    lock: Option<Spanned<Lock>>,
) -> Result<DeviceSettings, Wrong> {
    if let (Some(lock), Some(why)) = (&lock, driver.driver.refuses_lock_file()) {
        return Err((lock.span(), why.to_owned()));
    }
    let lock = lock.map(|lock| {
        let Lock { file, protocol } = lock.into_inner();
        (file, protocol.map_or(Protocol::default(), |Text(protocol)| protocol))
    });
    Ok(DeviceSettings { name, driver, lock })
}

fn settings(name: &str, unit: &Unit, file: &Front, devices: &[&String]) -> Result<UnitSettings, Wrong> {
    let known = |names: &mut dyn Iterator<Item = &String>| {
        let names: Vec<&str> = names.map(String::as_str).collect();
        if names.is_empty() { "there are none".to_owned() } else { format!("there are {}", names.join(", ")) }
    };
    let source = unit.on.get_ref();
    let Some(on) = file.sources.get(source) else {
        let what = format!("there is no source {source:?}; {}", known(&mut file.sources.keys()));
        return Err((unit.on.span(), what));
    };
    let device = match &unit.device {
        None => None,
        Some(wanted) => Some(devices.iter().position(|name| *name == wanted.get_ref()).ok_or_else(|| {
            let what = format!("there is no device {:?}; {}", wanted.get_ref(), known(&mut devices.iter().copied()));
            (wanted.span(), what)
        })?),
    };
    let act = act(&unit.act)?;
    if act.takes_device() && device.is_none() {
        return Err((unit.act.span(), "it needs a device: write device = \"NAME\"".to_owned()));
    }
    if let Some((driver, _)) = device.and_then(|index| file.devices.get(devices[index])) {
        driver.check_outputs(act.outputs()).map_err(|error| (unit.act.span(), error.to_string()))?;
    }
    let priority = match &unit.priority {
        Some(wanted) if !(1..=99).contains(wanted.get_ref()) => {
            return Err((wanted.span(), format!("priority {}: write 1 to 99", wanted.get_ref())));
        }
        wanted => wanted.as_ref().map(|wanted| *wanted.get_ref()),
    };
    let mut settings = UnitSettings {
        name: name.to_owned(),
        on: on.clone(),
        device,
        act,
        priority,
        cpu: unit.cpu.map(Cpu),
        late_after: unit.late_after.as_ref().map(|Span(span)| *span),
        enabled: unit.enable.unwrap_or(true),
        settable: Vec::new(),
        alarm: unit.alarm.as_ref().map(alarm::limits).transpose()?,
    };
    if let Some(settable) = &unit.settable {
        settings.settable = settable::limits(settable.get_ref(), &settings, &settable.span())?;
    }
    Ok(settings)
}

fn act(act: &Spanned<Do>) -> Result<Act, Wrong> {
    let line = |line: &Spanned<u32>| match *line.get_ref() {
        number @ 0..u32::BITS => Ok(number),
        number => Err((line.span(), format!("line {number}: write 0 to {}", u32::BITS - 1))),
    };
    Ok(match act.get_ref() {
        Do::Read => Act::Read,
        Do::Write { mask, value } => Act::Write(Lines(*mask), Lines(*value)),
        Do::Toggle { line: number } => Act::Toggle(line(number)?),
        Do::Pulse { line: number, width } => Act::Pulse(line(number)?, width.0),
        Do::Fire(path) => Act::Fire(path.clone()),
    })
}

#[cfg(test)]
mod tests;
