//! Plans a set-up before it is bought: whether it can do a job, what limits it, and which sizes it needs.
//!
//! A [`Request`] names the streams and their targets; a [`Topology`] describes the links between them. [`Plan::of`]
//! computes the load on every segment, compares it with measured rates, the room on the disks and the memory, and
//! returns one verdict with its reasons. It does not measure: the caller supplies the rates that the machine sustains,
//! as [`Sustainable`].

mod amounts;
pub mod flows;
pub mod maxrate;
mod reasons;
pub mod sizes;
pub mod topology;

use hairspring_machine::Nanos;

pub use amounts::{Written, exact, rounded};
pub use flows::{Flow, FlowError, Load, Loads};
pub use reasons::PlanReason;
pub use sizes::{Fit, MemoryRoom, Stall, Sustainable};
pub use topology::{
    BusDevice, Capacity, DeviceKind, MEMORY, Move, Place, Segment, SegmentKind, Topology, TopologyError,
};

use hairspring_ring::units::{ByteRate, Bytes};

/// Whether something is enough. Ordered by weight: of several verdicts the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fits {
    /// Yes, with a margin: see [`sizes::MARGIN`].
    WithMargin,
    /// Yes, but without a margin, or based on an assumption.
    Tight,
    /// A necessary fact is not known.
    Unknown,
    /// No.
    No,
}

impl Fits {
    /// Compares a need with a supply.
    pub fn judge(needed: ByteRate, there: ByteRate) -> Self {
        let (needed, there) = (needed.bytes_per_s(), there.bytes_per_s());
        if needed <= there * sizes::MARGIN {
            Self::WithMargin
        } else if needed <= there {
            Self::Tight
        } else {
            Self::No
        }
    }

    /// Its stable name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::WithMargin => "fits",
            Self::Tight => "tight",
            Self::Unknown => "unknown",
            Self::No => "exceeds",
        }
    }
}

/// The direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the cards to the targets.
    Record,
    /// From the targets to the cards.
    Play,
}

/// One stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// The card's name in the topology; see [`Topology::with_cards`].
    pub card: String,
    /// Its rate.
    pub rate: ByteRate,
}

/// A folder or disk to which recordings are written, or from which they are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its name: a folder, or a disk of a topology file.
    pub name: String,
    /// Its disks in the topology; empty if they are not known.
    pub disks: Vec<String>,
    /// Why its disks are not known; empty if they are.
    pub unknown: String,
    /// The id of its file system; `None` if the folder does not exist yet.
    pub file_system: Option<u64>,
    /// Room on it; `None` if it is not known.
    pub free: Option<Bytes>,
}

/// A set-up to be planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The direction.
    pub direction: Direction,
    /// The streams, all at once.
    pub streams: Vec<Stream>,
    /// The folders over which the streams are striped; none if the data only go to memory.
    pub targets: Vec<Target>,
    /// The length.
    pub span: Option<Nanos>,
    /// The stall that the buffers must outlast.
    pub stall: Stall,
    /// Whether the worst stall is assumed and not measured.
    pub stall_is_assumed: bool,
    /// The computer's memory; `None` if it is not known.
    pub memory: Option<MemoryRoom>,
    /// Bits of an address, which limit the memory of a program.
    pub pointer_bits: u32,
    /// The rate that the targets sustained in a measurement, or why it is not known and what to do.
    pub sustainable: Result<Sustainable, String>,
    /// The fitted line of the disks' times, for the block size.
    pub fit: Option<Fit>,
    /// Other flows at the same time.
    pub also: Vec<Flow>,
    /// The units of the reasons.
    pub written: Written,
}

/// The sizes for one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// The card's name in the topology.
    pub card: String,
    /// Its rate.
    pub rate: ByteRate,
    /// The block size.
    pub notify: Bytes,
    /// The buffer size that outlasts the stall.
    pub wanted: Bytes,
    /// The buffer size for which there is memory.
    pub buffer: Bytes,
    /// How long that buffer lasts if nothing is taken out of it.
    pub lasts: Option<Nanos>,
}

/// The result of planning.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Whether the set-up can do the job: the worst of the reasons.
    pub verdict: Fits,
    /// The reasons, the worst first.
    pub reasons: Vec<PlanReason>,
    /// All streams together.
    pub rate: ByteRate,
    /// Their volume in the requested time.
    pub volume: Option<Bytes>,
    /// Their volumes in usual times.
    pub volumes: Vec<(Nanos, Bytes)>,
    /// How long the room on the targets lasts; `None` if it is not known.
    pub room_lasts: Option<Nanos>,
    /// Sizes for each stream.
    pub sizes: Vec<Sizes>,
    /// The most memory for all buffers together; `None` if the memory is not known.
    pub memory_for_buffers: Option<Bytes>,
    /// The load on every segment.
    pub loads: Loads,
    /// The rate of all streams together at which the limiting segment is full; `None` if no capacity is known.
    pub most: Option<ByteRate>,
    /// The kernel's sentence about the links to each card and disk of the plan, where all are known.
    pub links: Vec<(String, String)>,
}

impl Plan {
    /// Plans a set-up.
    ///
    /// # Errors
    /// A flow from or to a device that the topology does not have.
    pub fn of(request: &Request, topology: &Topology) -> Result<Self, FlowError> {
        let flows = flows_of(request);
        let loads = Loads::of(topology, &flows)?;
        let rate = sum(request.streams.iter().map(|stream| stream.rate));
        let most = loads.limiting().and_then(Load::share).and_then(|share| {
            // Other flows take their part first. The share covers both.
            let also = request.also.is_empty();
            (also && share > 0.0).then(|| ByteRate::new(rate.bytes_per_s() / share)).flatten()
        });
        let memory_for_buffers = request.memory.map(|memory| memory.for_buffers(request.pointer_bits));
        let mut plan = Self {
            verdict: Fits::WithMargin,
            reasons: Vec::new(),
            rate,
            volume: request.span.map(|span| rate.volume_in(span)),
            volumes: sizes::spans(request.span).into_iter().map(|span| (span, rate.volume_in(span))).collect(),
            room_lasts: room_lasts(request, rate),
            sizes: sizes_of(request, memory_for_buffers),
            memory_for_buffers,
            loads,
            most,
            links: links(request, topology),
        };
        plan.reasons = reasons::of(&plan, request, topology);
        plan.verdict = plan.reasons.iter().filter_map(|reason| reason.fits).max().unwrap_or(Fits::WithMargin);
        Ok(plan)
    }

    /// All buffers together.
    pub fn buffer(&self) -> Bytes {
        Bytes(self.sizes.iter().fold(0, |sum, sizes| sum.saturating_add(sizes.buffer.0)))
    }

    /// The greatest block.
    pub fn notify(&self) -> Bytes {
        self.sizes.iter().map(|sizes| sizes.notify).max().unwrap_or_default()
    }

    /// The time until the first buffer is full if nothing is taken out.
    pub fn buffer_lasts(&self) -> Option<Nanos> {
        self.sizes.iter().filter_map(|sizes| sizes.lasts).min()
    }
}

fn sum(rates: impl Iterator<Item = ByteRate>) -> ByteRate {
    let sum = rates.map(ByteRate::bytes_per_s).sum::<f64>().min(f64::MAX);
    ByteRate::new(sum).unwrap_or_else(|| unreachable!("a sum of finite numbers, cut off at the greatest"))
}

/// Splits every stream equally over the targets, and over the disks of each target.
fn flows_of(request: &Request) -> Vec<Flow> {
    let mut flows = Vec::new();
    for stream in &request.streams {
        let mut flow = |other: &str, part: f64| {
            let rate = ByteRate::new(stream.rate.bytes_per_s() / part).unwrap_or(stream.rate);
            let (card, other) = (stream.card.clone(), other.to_owned());
            let (from, to) = match request.direction {
                Direction::Record => (card, other),
                Direction::Play => (other, card),
            };
            flows.push(Flow { from, to, rate });
        };
        if request.targets.is_empty() {
            flow(MEMORY, 1.0);
        }
        for target in &request.targets {
            let part = request.targets.len() as f64;
            if target.disks.is_empty() {
                flow(MEMORY, part);
            }
            for disk in &target.disks {
                flow(disk, part * target.disks.len() as f64);
            }
        }
    }
    flows.extend(request.also.iter().cloned());
    flows
}

/// The time until the first file system is full, if all targets get the same rate.
fn room_lasts(request: &Request, rate: ByteRate) -> Option<Nanos> {
    let count = request.targets.len();
    if count == 0 || request.direction == Direction::Play {
        return None;
    }
    let mut least: Option<Nanos> = None;
    for target in &request.targets {
        // Folders of one file system share its room.
        let same = |other: &&Target| match (target.file_system, other.file_system) {
            (Some(one), Some(other)) => one == other,
            _ => target.name == other.name,
        };
        let folders = request.targets.iter().filter(same).count();
        let share = ByteRate::new(rate.bytes_per_s() * folders as f64 / count as f64)?;
        let lasts = share.time_for(target.free?)?;
        least = Some(least.map_or(lasts, |least| least.min(lasts)));
    }
    least
}

fn sizes_of(request: &Request, memory: Option<Bytes>) -> Vec<Sizes> {
    let sizes = request.streams.iter().map(|stream| {
        let notify = sizes::notify(stream.rate, request.fit);
        let wanted = sizes::buffer(stream.rate, notify, request.stall);
        Sizes { card: stream.card.clone(), rate: stream.rate, notify, wanted, buffer: wanted, lasts: None }
    });
    let mut sizes: Vec<Sizes> = sizes.collect();
    let wanted = sizes.iter().fold(0_u64, |sum, sizes| sum.saturating_add(sizes.wanted.0));
    for sizes in &mut sizes {
        if let Some(memory) = memory.filter(|memory| memory.0 < wanted) {
            let part = u128::from(memory.0) * u128::from(sizes.wanted.0) / u128::from(wanted);
            sizes.buffer = sizes::buffer_within(Bytes(part as u64), sizes.notify).min(sizes.wanted);
        }
        sizes.lasts = sizes.rate.time_for(sizes.buffer);
    }
    sizes
}

/// The kernel's sentences.
fn links(request: &Request, topology: &Topology) -> Vec<(String, String)> {
    let disks = request.targets.iter().flat_map(|target| &target.disks);
    let mut names: Vec<&String> = request.streams.iter().map(|stream| &stream.card).chain(disks).collect();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(*name));
    let sentence = |name: &&String| Some(((*name).clone(), topology.available(topology.device(name)?)?));
    names.iter().filter_map(sentence).collect()
}

impl Topology {
    /// Returns the topology with this many cards, and their names: its own cards first, then new ones at an unknown
    /// place.
    ///
    /// # Errors
    /// There are too many.
    pub fn with_cards(&self, count: usize) -> Result<(Self, Vec<String>), TopologyError> {
        let mut topology = self.clone();
        let cards = self.devices().iter().filter(|device| device.kind == DeviceKind::Card);
        let mut names: Vec<String> = cards.map(|device| device.name.clone()).take(count).collect();
        for number in 0_usize.. {
            if names.len() >= count {
                break;
            }
            let name = format!("card{number}");
            if topology.device(&name).is_some() || topology.segment(&name).is_some() {
                continue;
            }
            topology.add_device(BusDevice {
                name: name.clone(),
                kind: DeviceKind::Card,
                place: Place::Unknown,
                takes: None,
                gives: None,
                free: None,
                detail: "its place is not known".to_owned(),
                numa_node: None,
            })?;
            names.push(name);
        }
        Ok((topology, names))
    }
}
