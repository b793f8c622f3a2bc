//! The parser of card descriptions. It never panics, and it accepts only descriptions that a computer could open.

use std::str::FromStr;

use hairspring_describe::{Catalogue, Described, DescriptionError, Part, PlaceForm, Snippet, Syntax};
use hairspring_machine::Nanos;

use super::{Card, CardError, CardKind};
use crate::pattern::Pattern;
use crate::source::udp::{MOST_HEADER_BYTES, Sequence};
use crate::source::virtual_card::Hiccup;
use hairspring_ring::layout::{Container, Layout, MOST_CHANNELS};
use hairspring_ring::units::{ByteRate, Bytes, Frames, SampleRate};

/// The highest accepted rate; no memory is faster.
const MOST_BYTES_PER_S: f64 = 100e9;

/// The largest accepted FIFO; no card has a larger one.
const LARGEST_FIFO: Bytes = Bytes::gib(64);

/// The default FIFO of a virtual card.
const USUAL_FIFO: Bytes = Bytes::mib(64);

/// The largest accepted jitter of interrupts.
const MOST_JITTER: Nanos = Nanos::from_secs(1);

/// The longest accepted time: ten years.
const LONGEST: Nanos = Nanos::from_secs(10 * 366 * 86_400);

/// Most hiccups of one card.
const MOST_HICCUPS: usize = 64;

/// The most bytes of a card: the limit of a signed file offset.
const MOST_BYTES: u128 = i64::MAX as u128;

/// The options, by name, and the kinds that have them.
const OPTIONS: [(&str, &str, &[CardKind]); 11] = [
    ("data", "data=noise", &CardKind::ALL),
    ("seed", "seed=7", &CardKind::ALL),
    ("frames", "frames=1000", &CardKind::ALL),
    ("fifo", "fifo=64MiB", &[CardKind::Virtual, CardKind::Udp]),
    ("jitter", "jitter=50us", &[CardKind::Virtual]),
    ("hiccup", "hiccup=2s+300ms", &[CardKind::Virtual]),
    ("bus", "bus=500MB/s", &[CardKind::Virtual]),
    ("seq", "seq=u32be", &[CardKind::Udp]),
    ("header", "header=16", &[CardKind::Udp]),
    ("join", "join=192.0.2.1", &[CardKind::Udp]),
    ("from", "from=192.0.2.7:5000", &[CardKind::Udp]),
];

/// The other ways of storing samples than signed in whole bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Unsigned,
    Packed,
    Float,
    Digital,
}

/// The parts parsed until now. Later errors point at them.
#[derive(Default)]
struct Parts<'t> {
    channels: Option<(u32, Part<'t>)>,
    bits: Option<(u32, Part<'t>)>,
    form: Option<Form>,
    rate: Option<(SampleRate, Part<'t>)>,
    data: Option<Pattern>,
    seed: Option<(u64, Part<'t>)>,
    frames: Option<(Frames, Part<'t>)>,
    fifo: Option<Bytes>,
    jitter: Option<Nanos>,
    hiccups: Vec<Hiccup>,
    bus: Option<ByteRate>,
    sequence: Option<Sequence>,
    header_bytes: Option<(u32, Part<'t>)>,
    join: Option<std::net::IpAddr>,
    from: Option<String>,
}

const fn card(kind: &'static str, place: PlaceForm, example: &'static str) -> Syntax {
    Syntax { kind, place, example }
}

/// Every kind, in the order of [`CardKind`].
pub(super) const CARDS: Catalogue = Catalogue {
    noun: "card",
    syntaxes: &[
        card("virtual", PlaceForm::Absent, "virtual:4ch,14bit,40MS/s"),
        card("unpaced", PlaceForm::Absent, "unpaced:4ch,14bit"),
        card("file", PlaceForm::UpToComma, "file:/tmp/samples,1ch,16bit"),
        card("pipe", PlaceForm::UpToComma, "pipe:/tmp/samples,1ch,16bit"),
        card("stdin", PlaceForm::Absent, "stdin:1ch,16bit"),
        card("tcp", PlaceForm::UpToComma, "tcp:localhost:5000,1ch,16bit"),
        card("tcp-listen", PlaceForm::UpToComma, "tcp-listen:localhost:5000,1ch,16bit"),
        card("udp", PlaceForm::UpToComma, "udp:localhost:5000,1ch,16bit"),
    ],
};

impl FromStr for Card {
    type Err = CardError;

    fn from_str(text: &str) -> Result<Self, CardError> {
        Ok(read(text)?)
    }
}

fn read(text: &str) -> Result<Card, DescriptionError> {
    let described = CARDS.read(text)?;
    let known = CardKind::ALL.into_iter().find(|kind| kind.name() == described.kind());
    let kind = known.ok_or_else(|| described.missing("there is no such card"))?;
    let mut address = String::new();
    if kind.has_address() {
        check_address(kind, &described)?;
        described.place()?.text().clone_into(&mut address);
    }
    let mut parts = Parts::default();
    for part in described.parts() {
        parts.add(kind, part)?;
    }
    parts.finish(kind, address, &described)
}

fn check_address(kind: CardKind, described: &Described<'_>) -> Result<(), DescriptionError> {
    let place = described.place()?;
    if matches!(kind, CardKind::File | CardKind::Pipe) {
        return if place.text().contains('\0') { Err(place.wrong("a path has no zero character")) } else { Ok(()) };
    }
    let name = kind.name();
    let why = format!("no host and port: write {name}:localhost:5000,1ch,16bit or {name}:[::1]:5000,…");
    host_and_port(place, &why)
}

fn host_and_port(piece: Snippet<'_>, why: &str) -> Result<(), DescriptionError> {
    let (host, port) = piece.split_last(':').ok_or_else(|| piece.wrong(why))?;
    if host.is_empty() {
        return Err(host.wrong(why));
    }
    port.parse_or::<u16>(why).map(drop)
}

/// Sets a value that may be given only once.
fn once<T>(place: &mut Option<T>, part: &Part<'_>, value: T) -> Result<(), DescriptionError> {
    if place.replace(value).is_some() { Err(part.wrong("given twice: leave one out")) } else { Ok(()) }
}

/// The number before a unit.
fn counted<'a>(part: &'a str, unit: &str) -> Option<&'a str> {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    part.strip_suffix(unit).map(str::trim_end).filter(|number| !number.is_empty() && is_digits(number))
}

impl<'t> Parts<'t> {
    fn add(&mut self, kind: CardKind, part: Part<'t>) -> Result<(), DescriptionError> {
        if let Some(key) = part.key() {
            return self.add_option(kind, key, part);
        }
        let word = part.text();
        if let Some(number) = counted(word, "ch") {
            let why = format!("choose 1 to {MOST_CHANNELS} channels");
            let channels = number.parse().map_err(|_| part.wrong(why))?;
            return once(&mut self.channels, &part, (channels, part));
        }
        if let Some(number) = counted(word, "bit") {
            let bits = number.parse().map_err(|_| part.wrong("choose 1 to 32 bits"))?;
            return once(&mut self.bits, &part, (bits, part));
        }
        if word.ends_with("S/s") {
            if kind == CardKind::Unpaced {
                return Err(part.wrong("an unpaced card has no rate: leave it out, or write virtual:"));
            }
            return once(&mut self.rate, &part, (part.value().parse()?, part));
        }
        let form = match word {
            "u" => Form::Unsigned,
            "packed" => Form::Packed,
            "float" => Form::Float,
            "digital" => Form::Digital,
            _ => return Err(part.unknown(unknown(kind))),
        };
        once(&mut self.form, &part, form)
    }

    fn add_option(&mut self, kind: CardKind, key: &str, part: Part<'t>) -> Result<(), DescriptionError> {
        let known = OPTIONS.iter().find(|(option, _, kinds)| *option == key && kinds.contains(&kind));
        let (_, example, _) = known.ok_or_else(|| part.unknown(unknown(kind)))?;
        let value = part.value();
        let instead = |why: &str| format!("{why}: write for instance {example}");
        let badly = |why: &str| Err(value.wrong(instead(why)));
        match key {
            "data" => once(&mut self.data, &part, value.parse()?),
            "seed" => {
                let seed = value.parse_or(instead("a seed is a number below 2⁶⁴"))?;
                once(&mut self.seed, &part, (seed, part))
            }
            "frames" => match value.text().parse::<u64>() {
                Ok(frames) if frames > 0 => once(&mut self.frames, &part, (Frames(frames), part)),
                _ => badly("the number of frames must be 1 or more"),
            },
            "fifo" => match value.parse::<Bytes>()? {
                fifo if fifo <= LARGEST_FIFO && fifo.0 > 0 => once(&mut self.fifo, &part, fifo),
                _ => badly(&format!("a FIFO holds 1 B to {LARGEST_FIFO}")),
            },
            "jitter" => match value.parse::<Nanos>()? {
                jitter if (Nanos::ZERO..=MOST_JITTER).contains(&jitter) => once(&mut self.jitter, &part, jitter),
                _ => badly(&format!("jitter is 0 s to {MOST_JITTER}")),
            },
            "hiccup" => self.add_hiccup(&part),
            "bus" => match value.parse::<ByteRate>()? {
                bus if (1.0..=MOST_BYTES_PER_S).contains(&bus.bytes_per_s()) => once(&mut self.bus, &part, bus),
                _ => badly("a bus carries 1 B/s to 100 GB/s"),
            },
            "seq" => match value.text().parse() {
                Ok(sequence) => once(&mut self.sequence, &part, sequence),
                Err(why) => badly(why),
            },
            "header" => match value.text().parse::<u32>() {
                Ok(bytes) if bytes <= MOST_HEADER_BYTES => once(&mut self.header_bytes, &part, (bytes, part)),
                _ => badly(&format!("a header takes 0 to {MOST_HEADER_BYTES} bytes")),
            },
            "from" => {
                host_and_port(value, &instead("a sender is a host and a port, 0 for all its ports"))?;
                once(&mut self.from, &part, value.text().to_owned())
            }
            _ => once(&mut self.join, &part, value.parse_or(instead("not an address of an interface"))?),
        }
    }

    fn add_hiccup(&mut self, part: &Part<'_>) -> Result<(), DescriptionError> {
        let value = part.value();
        let why = "when, and for how long: write for instance hiccup=2s+300ms";
        let (at, lasts) = value.split_first('+').ok_or_else(|| value.wrong(why))?;
        let (at, lasts) = (at.parse::<Nanos>()?, lasts.parse::<Nanos>()?);
        if at.is_negative() || at > LONGEST || lasts <= Nanos::ZERO || lasts > LONGEST {
            return Err(value.wrong("it begins at 0 s or later, lasts more than 0 s, and both are below ten years"));
        }
        if self.hiccups.len() == MOST_HICCUPS {
            return Err(part.wrong(format!("more than {MOST_HICCUPS} hiccups: leave some out")));
        }
        self.hiccups.push(Hiccup { at, lasts });
        Ok(())
    }

    fn layout(&self, described: &Described<'_>) -> Result<Layout, DescriptionError> {
        let example = "as in 4ch,14bit or 16ch,digital";
        let Some((channels, channels_part)) = self.channels else {
            return Err(described.missing(format!("the number of channels is missing: write it, {example}")));
        };
        let (usual_bits, container) = match (self.form, self.bits) {
            (Some(Form::Digital), None | Some((1, _))) => (1, Some(Container::Bits)),
            (Some(Form::Digital), Some((_, part))) => {
                return Err(part.wrong("a digital line has one bit: leave it out"));
            }
            (Some(Form::Packed), _) => (12, Some(Container::Packed12)),
            (Some(Form::Float), _) => (24, Some(Container::F32)),
            (_, None) => return Err(described.missing(format!("the resolution is missing: write it, {example}"))),
            (Some(Form::Unsigned), Some((..=8, _))) => (8, Some(Container::U8)),
            (Some(Form::Unsigned), Some(_)) => (16, Some(Container::U16)),
            (None, Some(_)) => (0, None),
        };
        let bits = self.bits.map_or(usual_bits, |(bits, _)| bits);
        let layout = match container {
            None => Layout::analogue(channels, bits),
            Some(container) => Layout::stored_as(channels, bits, container),
        };
        layout.map_err(|error| {
            let are_bits_wrong = Layout::stored_as(channels, 1, Container::U8).is_ok();
            let part = self.bits.filter(|_| are_bits_wrong).map_or(channels_part, |(_, part)| part);
            part.wrong(error.to_string())
        })
    }

    fn finish(self, kind: CardKind, address: String, described: &Described<'_>) -> Result<Card, DescriptionError> {
        let layout = self.layout(described)?;
        if kind == CardKind::Virtual && self.rate.is_none() {
            return Err(described.missing(
                "the rate is missing: write it, as in 40MS/s; or write unpaced: for the highest possible speed",
            ));
        }
        if let Some((rate, part)) = &self.rate
            && !is_believable(layout, *rate)
        {
            let why = format!("{layout} at this rate gives {}: choose 100 GB/s or less", layout.byte_rate(*rate));
            return Err(part.wrong(why));
        }
        if let Some((frames, part)) = self.frames
            && u128::from(frames.0) * u128::from(layout.grain().bytes) > MOST_BYTES
        {
            return Err(part.wrong("the data would exceed the largest file: choose fewer frames"));
        }
        if let (Some(sequence), Some((header_bytes, part))) = (self.sequence, self.header_bytes)
            && header_bytes < sequence.end()
        {
            let end = sequence.end();
            return Err(part.wrong(format!("the number ends at byte {end}: write header={end} or more")));
        }
        let made = matches!(kind, CardKind::Virtual | CardKind::Unpaced);
        let mut pattern = self.data.or(made.then_some(Pattern::Noise { seed: 0 }));
        if let Some((seed, part)) = self.seed {
            match pattern.and_then(|pattern| pattern.with_seed(seed)) {
                Some(seeded) => pattern = Some(seeded),
                None => return Err(part.wrong("a seed is for data=noise or data=prbs")),
            }
        }
        Ok(Card {
            kind,
            address,
            layout,
            rate: self.rate.map(|(rate, part)| (rate, part.text().split_whitespace().collect())),
            pattern,
            frames: self.frames.map(|(frames, _)| frames),
            fifo: self.fifo.or((kind == CardKind::Virtual).then_some(USUAL_FIFO)),
            jitter: self.jitter.unwrap_or(Nanos::ZERO),
            hiccups: self.hiccups,
            bus: self.bus,
            sequence: self.sequence,
            header_bytes: self.header_bytes.map(|(bytes, _)| bytes),
            join: self.join,
            from: self.from,
        })
    }
}

/// Example options of this kind of card.
pub(super) fn options(kind: CardKind) -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().filter(move |(_, _, kinds)| kinds.contains(&kind)).map(|(_, example, _)| *example)
}

/// The hint for an unknown part.
fn unknown(kind: CardKind) -> String {
    let rate = if kind == CardKind::Unpaced { "" } else { "40MS/s, " };
    let options = options(kind).collect::<Vec<_>>().join(", ");
    format!("not a part of a {} card: choose 4ch, 14bit, u, packed, float, digital, {rate}{options}", kind.name())
}

/// Whether the bytes per second stay within the limit.
pub(super) fn is_believable(layout: Layout, rate: SampleRate) -> bool {
    layout.byte_rate(rate).bytes_per_s() <= MOST_BYTES_PER_S
}

/// A rate as text. Reading it gives exactly this rate, if decimals can express it.
pub(super) fn exact_rate(rate: SampleRate) -> String {
    format!("{}S/s", rate.as_hz())
}

/// An amount as text. Reading it gives exactly this amount.
pub(super) fn exact_bytes(bytes: Bytes) -> String {
    match bytes.0 {
        count if count.is_multiple_of(1 << 20) => format!("{}MiB", count >> 20),
        count if count.is_multiple_of(1 << 10) => format!("{}KiB", count >> 10),
        count => format!("{count}B"),
    }
}
