//! Reading a card's text. No input makes it panic, and what it lets through can be opened as far as this computer allows.

use std::str::FromStr;

use hairspring_machine::Nanos;

use super::{Card, CardError, Kind};
use crate::layout::{Container, Layout, MOST_CHANNELS};
use crate::pattern::Pattern;
use crate::source::udp::{MOST_HEADER_BYTES, Sequence};
use crate::source::virtual_card::Hiccup;
use crate::units::{ByteRate, Bytes, Frames, SampleRate};

/// More than any memory keeps up with.
const MOST_BYTES_PER_S: f64 = 100e9;

/// More than any card has.
const LARGEST_FIFO: Bytes = Bytes::gib(64);

/// What a virtual card has if nothing is said.
const USUAL_FIFO: Bytes = Bytes::mib(64);

/// No interrupt is later.
const MOST_JITTER: Nanos = Nanos::from_secs(1);

/// No recording is longer: ten years.
const LONGEST: Nanos = Nanos::from_secs(10 * 366 * 86_400);

/// Most hiccups of one card.
const MOST_HICCUPS: usize = 64;

/// Most bytes that a card is asked for: so many fit into a signed file offset.
const MOST_BYTES: u128 = i64::MAX as u128;

/// What can follow, by name, and for which kinds.
const OPTIONS: [(&str, &str, &[Kind]); 11] = [
    ("data", "data=noise", &Kind::ALL),
    ("seed", "seed=7", &Kind::ALL),
    ("frames", "frames=1000", &Kind::ALL),
    ("fifo", "fifo=64MiB", &[Kind::Virtual, Kind::Udp]),
    ("jitter", "jitter=50us", &[Kind::Virtual]),
    ("hiccup", "hiccup=2s+300ms", &[Kind::Virtual]),
    ("bus", "bus=500MB/s", &[Kind::Virtual]),
    ("seq", "seq=u32be", &[Kind::Udp]),
    ("header", "header=16", &[Kind::Udp]),
    ("join", "join=192.0.2.1", &[Kind::Udp]),
    ("from", "from=192.0.2.7:5000", &[Kind::Udp]),
];

/// How samples are stored if not signed in whole bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Unsigned,
    Packed,
    Float,
    Digital,
}

/// What was read so far.
#[derive(Default)]
struct Parts {
    channels: Option<u32>,
    bits: Option<u32>,
    form: Option<Form>,
    rate: Option<(SampleRate, String)>,
    data: Option<Pattern>,
    seed: Option<u64>,
    frames: Option<Frames>,
    fifo: Option<Bytes>,
    jitter: Option<Nanos>,
    hiccups: Vec<Hiccup>,
    bus: Option<ByteRate>,
    sequence: Option<Sequence>,
    header_bytes: Option<u32>,
    join: Option<std::net::IpAddr>,
    from: Option<String>,
}

fn wrong<T>(part: &str, why: impl Into<String>) -> Result<T, CardError> {
    // A text can be long and hold anything; what is shown of it is short and printable.
    let shown = part.chars().take(60).map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect::<String>();
    Err(CardError::Text { part: shown, why: why.into() })
}

impl FromStr for Card {
    type Err = CardError;

    fn from_str(text: &str) -> Result<Self, CardError> {
        let (name, rest) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == name) else {
            let names = Kind::ALL.map(Kind::name).join(", ");
            return wrong(name, format!("unknown card: choose {names}, as in virtual:4ch,14bit,40MS/s"));
        };
        let mut parts = rest.split(',').map(str::trim);
        let address = match kind.address() {
            None => String::new(),
            Some(form) => {
                let address = parts.next().unwrap_or("");
                check_address(kind, form, address)?;
                address.to_owned()
            }
        };
        let mut read = Parts::default();
        for part in parts.filter(|part| !part.is_empty()) {
            read.add(kind, part)?;
        }
        read.finish(kind, address)
    }
}

fn check_address(kind: Kind, form: &str, address: &str) -> Result<(), CardError> {
    let name = kind.name();
    if form == "PATH" {
        return if address.is_empty() {
            wrong(name, format!("no path: write {name}:/tmp/samples,1ch,16bit"))
        } else if address.contains('\0') {
            wrong(address, "a path has no zero character")
        } else {
            Ok(())
        };
    }
    match address.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(()),
        _ => wrong(address, format!("no host and port: write {name}:localhost:5000,1ch,16bit or {name}:[::1]:5000,…")),
    }
}

/// Puts a value where there was none.
fn once<T>(place: &mut Option<T>, part: &str, value: T) -> Result<(), CardError> {
    if place.replace(value).is_some() { wrong(part, "given twice: leave one out") } else { Ok(()) }
}

/// The number before a unit.
fn counted<'a>(part: &'a str, unit: &str) -> Option<&'a str> {
    part.strip_suffix(unit).map(str::trim_end).filter(|number| !number.is_empty() && is_digits(number))
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Parts {
    fn add(&mut self, kind: Kind, part: &str) -> Result<(), CardError> {
        if let Some((name, value)) = part.split_once('=') {
            return self.add_option(kind, part, name.trim(), value.trim());
        }
        if let Some(number) = counted(part, "ch") {
            return match number.parse() {
                Ok(channels) => once(&mut self.channels, part, channels),
                Err(_) => wrong(part, format!("choose 1 to {MOST_CHANNELS} channels")),
            };
        }
        if let Some(number) = counted(part, "bit") {
            return match number.parse() {
                Ok(bits) => once(&mut self.bits, part, bits),
                Err(_) => wrong(part, "choose 1 to 32 bits"),
            };
        }
        if part.ends_with("S/s") {
            if kind == Kind::Unpaced {
                return wrong(part, "an unpaced card has no rate: leave it out, or write virtual:");
            }
            return match part.parse() {
                Ok(rate) => once(&mut self.rate, part, (rate, part.split_whitespace().collect())),
                Err(error) => wrong(part, error.to_string()),
            };
        }
        let form = match part {
            "u" => Form::Unsigned,
            "packed" => Form::Packed,
            "float" => Form::Float,
            "digital" => Form::Digital,
            _ => return wrong(part, unknown(kind)),
        };
        once(&mut self.form, part, form)
    }

    fn add_option(&mut self, kind: Kind, part: &str, name: &str, value: &str) -> Result<(), CardError> {
        if !OPTIONS.iter().any(|(option, _, kinds)| *option == name && kinds.contains(&kind)) {
            return wrong(part, unknown(kind));
        }
        let example = OPTIONS.iter().find(|(option, ..)| *option == name).map_or("", |(_, example, _)| example);
        let badly = |why: &str| wrong(part, format!("{why}: write for instance {example}"));
        match name {
            "data" => match value.parse() {
                Ok(pattern) => once(&mut self.data, part, pattern),
                Err(error) => wrong(part, error.to_string()),
            },
            "seed" => match value.parse() {
                Ok(seed) => once(&mut self.seed, part, seed),
                Err(_) => badly("a seed is a number below 2⁶⁴"),
            },
            "frames" => match value.parse::<u64>() {
                Ok(frames) if frames > 0 => once(&mut self.frames, part, Frames(frames)),
                _ => badly("a number of frames is 1 or more"),
            },
            "fifo" => match value.parse::<Bytes>() {
                Ok(fifo) if fifo <= LARGEST_FIFO && fifo.0 > 0 => once(&mut self.fifo, part, fifo),
                Ok(_) => badly(&format!("a FIFO has 1 B to {LARGEST_FIFO}")),
                Err(error) => wrong(part, error.to_string()),
            },
            "jitter" => match value.parse::<Nanos>() {
                Ok(jitter) if (Nanos::ZERO..=MOST_JITTER).contains(&jitter) => once(&mut self.jitter, part, jitter),
                Ok(_) => badly(&format!("jitter is 0 s to {MOST_JITTER}")),
                Err(error) => wrong(part, error.to_string()),
            },
            "hiccup" => self.add_hiccup(part, value),
            "bus" => match value.parse::<ByteRate>() {
                Ok(bus) if (1.0..=MOST_BYTES_PER_S).contains(&bus.bytes_per_s()) => once(&mut self.bus, part, bus),
                Ok(_) => badly("a bus carries 1 B/s to 100 GB/s"),
                Err(error) => wrong(part, error.to_string()),
            },
            "seq" => match value.parse() {
                Ok(sequence) => once(&mut self.sequence, part, sequence),
                Err(why) => badly(why),
            },
            "header" => match value.parse::<u32>() {
                Ok(bytes) if bytes <= MOST_HEADER_BYTES => once(&mut self.header_bytes, part, bytes),
                _ => badly(&format!("a header has 0 to {MOST_HEADER_BYTES} bytes")),
            },
            "from" => match value.rsplit_once(':') {
                Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                    once(&mut self.from, part, value.to_owned())
                }
                _ => badly("a sender is a host and a port, 0 for all its ports"),
            },
            _ => match value.parse() {
                Ok(address) => once(&mut self.join, part, address),
                Err(_) => badly("not an address of an interface"),
            },
        }
    }

    fn add_hiccup(&mut self, part: &str, value: &str) -> Result<(), CardError> {
        let Some((at, lasts)) = value.split_once('+') else {
            return wrong(part, "when, and for how long: write for instance hiccup=2s+300ms");
        };
        let (at, lasts) = match (at.parse::<Nanos>(), lasts.parse::<Nanos>()) {
            (Ok(at), Ok(lasts)) => (at, lasts),
            (Err(error), _) | (_, Err(error)) => return wrong(part, error.to_string()),
        };
        if at.is_negative() || at > LONGEST || lasts <= Nanos::ZERO || lasts > LONGEST {
            return wrong(part, "it begins at 0 s or later, lasts more than 0 s, and both are below ten years");
        }
        if self.hiccups.len() == MOST_HICCUPS {
            return wrong(part, format!("more than {MOST_HICCUPS} hiccups: leave some out"));
        }
        self.hiccups.push(Hiccup { at, lasts });
        Ok(())
    }

    fn layout(&self, kind: Kind) -> Result<Layout, CardError> {
        let example = "as in 4ch,14bit or 16ch,digital";
        let Some(channels) = self.channels else {
            return wrong(kind.name(), format!("no number of channels: say it, {example}"));
        };
        let (usual_bits, container) = match (self.form, self.bits) {
            (Some(Form::Digital), None | Some(1)) => (1, Some(Container::Bits)),
            (Some(Form::Digital), Some(bits)) => {
                return wrong(&format!("{bits}bit"), "a digital line has one bit: leave it out");
            }
            (Some(Form::Packed), _) => (12, Some(Container::Packed12)),
            (Some(Form::Float), _) => (24, Some(Container::F32)),
            (_, None) => return wrong(kind.name(), format!("no resolution: say it, {example}")),
            (Some(Form::Unsigned), Some(..=8)) => (8, Some(Container::U8)),
            (Some(Form::Unsigned), Some(_)) => (16, Some(Container::U16)),
            (None, Some(_)) => (0, None),
        };
        let bits = self.bits.unwrap_or(usual_bits);
        let layout = match container {
            None => Layout::analogue(channels, bits),
            Some(container) => Layout::stored_as(channels, bits, container),
        };
        layout.or_else(|error| wrong(&format!("{channels}ch,{bits}bit"), error.to_string()))
    }

    fn finish(self, kind: Kind, address: String) -> Result<Card, CardError> {
        let layout = self.layout(kind)?;
        if kind == Kind::Virtual && self.rate.is_none() {
            return wrong(kind.name(), "no rate: say it, as in 40MS/s; or write unpaced: for as fast as there is room");
        }
        if let Some((rate, text)) = &self.rate
            && !is_believable(layout, *rate)
        {
            return wrong(
                text,
                format!("{layout} at this rate make {}: choose 100 GB/s or less", layout.byte_rate(*rate)),
            );
        }
        if let Some(frames) = self.frames
            && u128::from(frames.0) * u128::from(layout.grain().bytes) > MOST_BYTES
        {
            return wrong(&format!("frames={}", frames.0), "more than any file holds: choose fewer");
        }
        if let (Some(sequence), Some(header_bytes)) = (self.sequence, self.header_bytes)
            && header_bytes < sequence.end()
        {
            return wrong(
                &format!("header={header_bytes}"),
                format!("the number ends at byte {}: write header={} or more", sequence.end(), sequence.end()),
            );
        }
        let made = matches!(kind, Kind::Virtual | Kind::Unpaced);
        let mut pattern = self.data.or(made.then_some(Pattern::Noise { seed: 0 }));
        if let Some(seed) = self.seed {
            match pattern.and_then(|pattern| pattern.with_seed(seed)) {
                Some(seeded) => pattern = Some(seeded),
                None => return wrong(&format!("seed={seed}"), "a seed is for data=noise or data=prbs"),
            }
        }
        Ok(Card {
            kind,
            address,
            layout,
            rate: self.rate,
            pattern,
            frames: self.frames,
            fifo: self.fifo.or((kind == Kind::Virtual).then_some(USUAL_FIFO)),
            jitter: self.jitter.unwrap_or(Nanos::ZERO),
            hiccups: self.hiccups,
            bus: self.bus,
            sequence: self.sequence,
            header_bytes: self.header_bytes,
            join: self.join,
            from: self.from,
        })
    }
}

/// What can be written instead of something unknown.
fn unknown(kind: Kind) -> String {
    let rate = if kind == Kind::Unpaced { "" } else { "40MS/s, " };
    let options = OPTIONS.iter().filter(|(_, _, kinds)| kinds.contains(&kind)).map(|(_, example, _)| *example);
    let options = options.collect::<Vec<_>>().join(", ");
    format!("no part of a {} card: choose 4ch, 14bit, u, packed, float, digital, {rate}{options}", kind.name())
}

/// Whether a rate makes no more bytes than can be.
pub(super) fn is_believable(layout: Layout, rate: SampleRate) -> bool {
    layout.byte_rate(rate).bytes_per_s() <= MOST_BYTES_PER_S
}

/// A rate as text that is read back as exactly this rate, as far as decimals can say it.
pub(super) fn exact_rate(rate: SampleRate) -> String {
    format!("{}S/s", rate.as_hz())
}

/// An amount as text that is read back as exactly this amount.
pub(super) fn exact_bytes(bytes: Bytes) -> String {
    match bytes.0 {
        count if count.is_multiple_of(1 << 20) => format!("{}MiB", count >> 20),
        count if count.is_multiple_of(1 << 10) => format!("{}KiB", count >> 10),
        count => format!("{count}B"),
    }
}

/// A span as text that is read back as exactly this span.
pub(super) fn exact_nanos(span: Nanos) -> String {
    let nanos = span.count();
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000), ("ns", 1)];
    let (unit, length) = units.into_iter().find(|(_, length)| nanos % length == 0).unwrap_or(("ns", 1));
    format!("{}{unit}", nanos / length)
}
