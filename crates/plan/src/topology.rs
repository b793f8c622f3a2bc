//! [`Topology`]: the data paths of a computer, as a tree of segments with devices on them and the memory at its root.
//!
//! ```text
//!                 memory
//!               ╱        ╲
//!         0000:00:03.1    hub            segments: each is the link or bus below something
//!            │             │
//!         nvme0n1        pcix-2          devices stand on a segment, or at the root
//!                        ╱    ╲
//!                    card0    disk0
//! ```
//!
//! It comes from a file ([`Topology::parse`]), from the system ([`Topology::read`]) or from the built-in list
//! ([`Topology::named`]). A capacity that the system does not state is [`Capacity::Unknown`] with the reason, never a
//! guess.

pub mod file;
mod json_position;
pub mod link;
pub mod system;

use std::fmt;
use std::str::FromStr;

use hairspring_ring::units::{ByteRate, Bytes};
use link::{Bus, Link, LinkState, PAYLOAD_LEAST_BYTES, PAYLOAD_MOST_BYTES, available};

/// The name of the root: the memory with the processor.
pub const MEMORY: &str = "memory";

/// The most segments, and the most devices; a file with more is a mistake.
pub const PARTS_MOST: usize = 4096;

/// The longest name of a part, in bytes.
pub const NAME_MOST_BYTES: usize = 64;

/// A tree of segments with the memory at its root, and devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Its name.
    pub name: String,
    /// A note; may be empty.
    pub note: String,
    /// Each comes after the segment above it.
    segments: Vec<Segment>,
    devices: Vec<BusDevice>,
}

/// A link or bus below the memory or another segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Its name; for a link the port above it.
    pub name: String,
    /// The segment above it; `None` for the memory. Less than its own number.
    pub below: Option<usize>,
    /// The kind of link or bus.
    pub kind: SegmentKind,
}

/// The kind of a segment.
#[derive(Clone, Debug, PartialEq)]
pub enum SegmentKind {
    /// A PCI Express link.
    Pcie(LinkState),
    /// A PCI or PCI-X bus: half duplex, and shared by its devices.
    Bus(Bus),
    /// A link with a stated rate.
    Stated {
        /// Bytes per second: for each direction, or for both together.
        rate: ByteRate,
        /// Whether it is half duplex.
        shared: bool,
    },
    /// The inside of a chip, which is not a bottleneck.
    Inside,
    /// A link whose rate is not known, for this reason.
    Unknown(String),
}

/// A device on a segment.
#[derive(Clone, Debug, PartialEq)]
pub struct BusDevice {
    /// Its name.
    pub name: String,
    /// The kind of device.
    pub kind: DeviceKind,
    /// Its place in the tree.
    pub place: Place,
    /// The most bytes per second that the device itself takes from memory; the write rate of a disk.
    pub takes: Option<ByteRate>,
    /// The most bytes per second that the device itself sends to memory; the read rate of a disk.
    pub gives: Option<ByteRate>,
    /// Room on it, for a disk.
    pub free: Option<Bytes>,
    /// A note; may be empty.
    pub detail: String,
    /// The memory node that it is near to, on computers with several.
    pub numa_node: Option<u32>,
}

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A data acquisition or generator card.
    Card,
    /// A disk, or several behind one controller.
    Disk,
    /// A network interface.
    Network,
    /// Anything else.
    Other,
}

impl DeviceKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Card, Self::Disk, Self::Network, Self::Other];

    /// Its stable name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::Disk => "disk",
            Self::Network => "network",
            Self::Other => "other",
        }
    }
}

/// The place of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the memory, with no segment between.
    Memory,
    /// On this segment.
    On(usize),
    /// Not known.
    Unknown,
}

/// The capacity of a segment.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// A number.
    Known {
        /// Bytes per second that it certainly carries, less the overhead of protocols and pauses.
        sure: ByteRate,
        /// Bytes per second that it cannot exceed. Differs from `sure` if a setting could not be read.
        most: ByteRate,
        /// Whether the numbers are for both directions together instead of for each.
        shared: bool,
        /// The source of the numbers.
        how: String,
    },
    /// More than any other segment needs.
    Ample,
    /// Not known, for this reason.
    Unknown(String),
}

/// An invalid topology or change of a topology; the message states the correct form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError {
    /// Line and column in the file, from 1.
    pub at: Option<(usize, usize)>,
    /// The mistake and its remedy.
    pub what: String,
}

impl TopologyError {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { at: None, what: what.into() }
    }
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.at {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for TopologyError {}

impl Topology {
    /// Makes an empty topology.
    pub fn empty(name: &str) -> Self {
        Self { name: name.to_owned(), note: String::new(), segments: Vec::new(), devices: Vec::new() }
    }

    /// Adds a segment and returns its number.
    ///
    /// # Errors
    /// The name is taken or invalid, the segment above does not exist, or there are too many segments.
    pub fn add_segment(&mut self, segment: Segment) -> Result<usize, TopologyError> {
        self.check_name(&segment.name)?;
        if segment.below.is_some_and(|above| above >= self.segments.len()) {
            return Err(TopologyError::new("a segment must come after the segment above it"));
        }
        if self.segments.len() >= PARTS_MOST {
            return Err(TopologyError::new(format!("more than {PARTS_MOST} segments")));
        }
        self.segments.push(segment);
        Ok(self.segments.len() - 1)
    }

    /// Adds a device.
    ///
    /// # Errors
    /// As for a segment.
    pub fn add_device(&mut self, device: BusDevice) -> Result<(), TopologyError> {
        self.check_name(&device.name)?;
        if matches!(device.place, Place::On(segment) if segment >= self.segments.len()) {
            return Err(TopologyError::new("a device must be on an existing segment"));
        }
        if self.devices.len() >= PARTS_MOST {
            return Err(TopologyError::new(format!("more than {PARTS_MOST} devices")));
        }
        self.devices.push(device);
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), TopologyError> {
        let fault = if name == MEMORY {
            "is the root itself: choose another name"
        } else if name.is_empty() || name.len() > NAME_MOST_BYTES {
            "is no name: write 1 to 64 characters"
        } else if name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '>') {
            "is no name: write it without spaces and '>'"
        } else if self.segment(name).is_some() || self.device(name).is_some() {
            "is there twice: give each segment and device a name of its own"
        } else {
            return Ok(());
        };
        Err(TopologyError::new(format!("'{name}' {fault}")))
    }

    /// All segments, each after the segment above it.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// All devices.
    pub fn devices(&self) -> &[BusDevice] {
        &self.devices
    }

    /// The number of the segment with this name.
    pub fn segment(&self, name: &str) -> Option<usize> {
        self.segments.iter().position(|segment| segment.name == name)
    }

    /// The device with this name.
    pub fn device(&self, name: &str) -> Option<&BusDevice> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// The place with this name: the memory or a segment.
    pub fn place(&self, name: &str) -> Option<Place> {
        if name == MEMORY { Some(Place::Memory) } else { self.segment(name).map(Place::On) }
    }

    /// The numbers of the segments from a place up to the memory, the nearest first; `None` if the place is not known.
    pub fn path(&self, place: Place) -> Option<Vec<usize>> {
        let mut next = match place {
            Place::Unknown => return None,
            Place::Memory => None,
            Place::On(segment) => Some(segment),
        };
        let mut path = Vec::new();
        while let Some(segment) = next {
            path.push(segment);
            // Always less, so this ends.
            next = self.segments.get(segment)?.below;
        }
        Some(path)
    }

    /// The kernel's sentence about the links from a device up to the memory; `None` if one is not known.
    pub fn available(&self, device: &BusDevice) -> Option<String> {
        let path = self.path(device.place)?;
        let links = path.iter().filter_map(|segment| match &self.segments[*segment].kind {
            SegmentKind::Pcie(state) => Some(state),
            _ => None,
        });
        available(links)
    }

    /// Returns the topology with a device at another place.
    ///
    /// # Errors
    /// The device or the place does not exist; the error lists those that do.
    pub fn with(&self, change: &Move) -> Result<Self, TopologyError> {
        let mut changed = self.clone();
        let Some(device) = changed.devices.iter_mut().find(|device| device.name == change.device) else {
            let names = self.devices.iter().map(|device| device.name.as_str());
            let what = format!("there is no device '{}'; there are: {}", change.device, listed(names));
            return Err(TopologyError::new(what));
        };
        let Some(place) = self.place(&change.to) else {
            let names = [MEMORY].into_iter().chain(self.segments.iter().map(|segment| segment.name.as_str()));
            let what = format!("there is no segment '{}'; there are: {}", change.to, listed(names));
            return Err(TopologyError::new(what));
        };
        device.place = place;
        Ok(changed)
    }
}

/// Joins names with commas; leaves out all but the first ones.
pub(super) fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const MOST: usize = 24;
    let names: Vec<&str> = names.collect();
    let shown = names.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "none".to_owned(),
        count if count > MOST => format!("{shown} and {} more", count - MOST),
        _ => shown,
    }
}

impl Segment {
    /// The rate that it can carry.
    pub fn capacity(&self) -> Capacity {
        match &self.kind {
            SegmentKind::Inside => Capacity::Ample,
            SegmentKind::Unknown(why) => Capacity::Unknown(why.clone()),
            SegmentKind::Bus(bus) => {
                let rate = bus.of_data();
                Capacity::Known { sure: rate, most: rate, shared: true, how: format!("{bus}, half duplex") }
            }
            SegmentKind::Stated { rate, shared } => {
                let how = if *shared { "stated, for both directions together" } else { "stated, for each direction" };
                Capacity::Known { sure: *rate, most: *rate, shared: *shared, how: how.to_owned() }
            }
            SegmentKind::Pcie(state) => pcie(state),
        }
    }
}

fn pcie(state: &LinkState) -> Capacity {
    let (link, resting): (Link, &str) = match (state.now, state.best) {
        (Some(now), _) => (now, ""),
        (None, Some(best)) => (best, ", which it could run at"),
        (None, None) => {
            return Capacity::Unknown("the system states neither speed nor lanes of this link".to_owned());
        }
    };
    let (least, most, payload) = match state.payload_bytes {
        Some(bytes) => (bytes, bytes, format!("packets of {bytes} bytes")),
        None => {
            let payload = format!("at least packets of {PAYLOAD_LEAST_BYTES} bytes");
            (PAYLOAD_LEAST_BYTES, PAYLOAD_MOST_BYTES, payload)
        }
    };
    let how = format!("{link}{resting}, {payload}");
    Capacity::Known { sure: link.of_data(least), most: link.of_data(most), shared: false, how }
}

/// A change of a device's place: `move card0 to pcix-1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which device.
    pub device: String,
    /// The new segment, or [`MEMORY`].
    pub to: String,
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "move {} to {}", self.device, self.to)
    }
}

impl FromStr for Move {
    type Err = TopologyError;

    /// Reads `move card0 to pcix-1`.
    fn from_str(text: &str) -> Result<Self, TopologyError> {
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            ["move", device, "to", segment] => Ok(Self { device: device.to_owned(), to: segment.to_owned() }),
            _ => Err(TopologyError::new(format!("'{text}' is no change: write for instance 'move card0 to SEGMENT'"))),
        }
    }
}
