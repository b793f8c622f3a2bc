//! [`Card`]: a source as written on a command line.
//!
//! ```text
//! virtual:4ch,14bit,40MS/s               a clocked card whose data can be verified
//! unpaced:4ch,14bit                      the same data, limited only by the room in the ring
//! file:PATH,1ch,16bit                    a file or device, from its beginning
//! pipe:PATH,1ch,16bit                    a named pipe; waits for its writer
//! stdin:1ch,16bit                        the standard input
//! tcp:HOST:PORT,1ch,16bit                connects
//! tcp-listen:HOST:PORT,1ch,16bit         waits for one connection
//! udp:HOST:PORT,1ch,16bit,seq=u32be      receives datagrams; joins HOST if it is a multicast group
//! ```
//!
//! A path or host has no comma. After it, in any order:
//!
//! | part | for | meaning |
//! |---|---|---|
//! | `4ch` | all | channels |
//! | `14bit` | all | resolution; stored signed in 1, 2 or 4 bytes |
//! | `u`, `packed`, `float`, `digital` | all | stored unsigned; 12 bits packed; as `f32`; one bit for each channel |
//! | `40MS/s` | all but unpaced | frames per second; `virtual` must have it, for the others it is only recorded |
//! | `data=noise` | all | `noise` (default), `counter`, `prbs`, `sine`, `zero`: generated, or expected of the sender |
//! | `seed=7` | all | with `data=noise` or `prbs` |
//! | `frames=1000` | all | ends after this many frames |
//! | `fifo=64MiB` | virtual, udp | the hardware's FIFO; the kernel's receive buffer |
//! | `jitter=50us` | virtual | interrupts are late by up to this |
//! | `hiccup=2s+300ms` | virtual | from 2 s on the bus does not deliver for 300 ms; may be repeated |
//! | `bus=500MB/s` | virtual | the highest rate of the bus |
//! | `seq=u32be@4` | udp | the datagram's number: `u8` to `u64`, `le` or `be`, at this byte |
//! | `header=16` | udp | bytes before the samples; without it up to the end of the number |
//! | `join=192.0.2.1` | udp | the address of the interface that joins the group |
//! | `from=192.0.2.7:5000` | udp | the accepted sender, port 0 for all its ports; by default the first that sends |

mod open;
mod parse;

use std::fmt;
use std::io;

use hairspring_describe::{DescriptionError, PlaceForm, exact_span};
use hairspring_machine::Nanos;

use crate::pattern::Pattern;
use crate::source::udp::Sequence;
use crate::source::virtual_card::Hiccup;
use hairspring_ring::OnOverrun;
use hairspring_ring::layout::{Container, Layout};
use hairspring_ring::units::{ByteRate, Bytes, Frames, SampleRate};

/// The kinds of cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CardKind {
    /// [`VirtualCard`](crate::source::virtual_card::VirtualCard).
    Virtual,
    /// [`UnpacedCard`](crate::source::virtual_card::UnpacedCard).
    Unpaced,
    /// A file or device.
    File,
    /// A named pipe.
    Pipe,
    /// The standard input.
    Stdin,
    /// A TCP connection that this side opens.
    Tcp,
    /// A TCP connection that the other side opens.
    TcpListen,
    /// Datagrams.
    Udp,
}

impl CardKind {
    /// Every kind.
    pub const ALL: [Self; 8] =
        [Self::Virtual, Self::Unpaced, Self::File, Self::Pipe, Self::Stdin, Self::Tcp, Self::TcpListen, Self::Udp];

    /// Example options of this kind of card, in their written form: `seed=7`.
    pub fn options(self) -> impl Iterator<Item = &'static str> {
        parse::options(self)
    }

    /// The word before the first colon.
    pub fn name(self) -> &'static str {
        parse::CARDS.syntaxes[self as usize].kind
    }

    /// Whether its description has a place.
    fn has_address(self) -> bool {
        parse::CARDS.syntaxes[self as usize].place != PlaceForm::Absent
    }
}

/// The description of a source that is not open yet. Every value is a valid description.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    kind: CardKind,
    /// Path, or host and port; empty where there is none.
    address: String,
    layout: Layout,
    /// With its original text, so that it prints exactly.
    rate: Option<(SampleRate, String)>,
    pattern: Option<Pattern>,
    frames: Option<Frames>,
    fifo: Option<Bytes>,
    jitter: Nanos,
    hiccups: Vec<Hiccup>,
    bus: Option<ByteRate>,
    sequence: Option<Sequence>,
    header_bytes: Option<u32>,
    join: Option<std::net::IpAddr>,
    from: Option<String>,
}

/// Why a text is not a card, or why a card does not open.
#[derive(Debug)]
pub enum CardError {
    /// The text does not describe a card.
    Text(DescriptionError),
    /// The system refused.
    Open {
        /// The attempted operation.
        what: String,
        /// The system's reason.
        error: io::Error,
        /// Advice for the user.
        remedy: &'static str,
    },
    /// This card does not support the policy.
    Policy(OnOverrun),
}

impl fmt::Display for CardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(error) => error.fmt(f),
            Self::Open { what, error, remedy } => write!(f, "{what}: {error}; {remedy}"),
            Self::Policy(policy) => write!(
                f,
                "policy '{}': a card with its own clock cannot wait; choose stop, gap or overwrite",
                policy.name()
            ),
        }
    }
}

impl From<DescriptionError> for CardError {
    fn from(error: DescriptionError) -> Self {
        Self::Text(error)
    }
}

impl std::error::Error for CardError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl Card {
    /// Whether a text describes a card, correctly or not.
    pub fn is_named_in(text: &str) -> bool {
        parse::CARDS.has_kind_of(text)
    }

    /// The kind of card.
    pub fn kind(&self) -> CardKind {
        self.kind
    }

    /// The path, or host and port; empty where there is none.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Channels, resolution, container.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Frames per second, if the description states them.
    pub fn rate(&self) -> Option<SampleRate> {
        self.rate.as_ref().map(|(rate, _)| *rate)
    }

    /// The pattern of the data, if they can be verified.
    pub fn pattern(&self) -> Option<Pattern> {
        self.pattern
    }

    /// The number of frames after which it ends, if the description states it.
    pub fn frames(&self) -> Option<Frames> {
        self.frames
    }

    /// The size of the hardware's FIFO, or of the kernel's buffer for datagrams, if the description states it.
    pub fn fifo(&self) -> Option<Bytes> {
        self.fifo
    }

    /// Whether the card has a clock of its own and continues while the ring is full.
    pub fn is_clocked(&self) -> bool {
        matches!(self.kind, CardKind::Virtual | CardKind::Udp)
    }

    /// The same card at another rate, for the search for the highest rate. `None` if it has no clock, or would exceed
    /// 100 GB/s.
    pub fn at_rate(&self, rate: SampleRate) -> Option<Self> {
        let text = parse::exact_rate(rate);
        let rate = text.parse().ok().filter(|rate| parse::is_believable(self.layout, *rate))?;
        (self.kind == CardKind::Virtual).then(|| Self { rate: Some((rate, text)), ..self.clone() })
    }

    /// Checks that the card supports this policy for data that do not fit.
    ///
    /// # Errors
    /// [`OnOverrun::Block`] for a clocked card.
    pub fn accepts(&self, on_overrun: OnOverrun) -> Result<(), CardError> {
        if self.is_clocked() && on_overrun == OnOverrun::Block { Err(CardError::Policy(on_overrun)) } else { Ok(()) }
    }
}

impl fmt::Display for Card {
    /// The description as the user wrote it, with all its parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind.name())?;
        if self.kind.has_address() {
            write!(f, "{},", self.address)?;
        }
        write!(f, "{}ch", self.layout.channels())?;
        match self.layout.container() {
            Container::Bits => f.write_str(",digital")?,
            container => {
                write!(f, ",{}bit", self.layout.resolution_bits())?;
                f.write_str(match container {
                    Container::U8 | Container::U16 => ",u",
                    Container::Packed12 => ",packed",
                    Container::F32 => ",float",
                    _ => "",
                })?;
            }
        }
        if let Some((_, text)) = &self.rate {
            write!(f, ",{text}")?;
        }
        if let Some(pattern) = self.pattern {
            write!(f, ",data={}", pattern.name())?;
            if pattern.seed() != 0 {
                write!(f, ",seed={}", pattern.seed())?;
            }
        }
        if let Some(frames) = self.frames {
            write!(f, ",frames={}", frames.0)?;
        }
        if let Some(fifo) = self.fifo {
            write!(f, ",fifo={}", parse::exact_bytes(fifo))?;
        }
        if self.jitter != Nanos::ZERO {
            write!(f, ",jitter={}", exact_span(self.jitter.count()))?;
        }
        for Hiccup { at, lasts } in &self.hiccups {
            write!(f, ",hiccup={}+{}", exact_span(at.count()), exact_span(lasts.count()))?;
        }
        if let Some(bus) = self.bus {
            write!(f, ",bus={}B/s", bus.bytes_per_s())?;
        }
        if let Some(sequence) = self.sequence {
            write!(f, ",seq={sequence}")?;
        }
        if let Some(header_bytes) = self.header_bytes {
            write!(f, ",header={header_bytes}")?;
        }
        if let Some(join) = self.join {
            write!(f, ",join={join}")?;
        }
        match &self.from {
            Some(from) => write!(f, ",from={from}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
