//! [`Flow`]: data on their way from one device to another, through memory; and [`Loads`]: what all flows make on every segment.
//!
//! Between two devices data go through memory: up from the one, down to the other. Where both are below the same segment they
//! cross it twice. On a link with its two directions that hurts nobody; on a bus where the directions take turns it halves
//! what gets through, which is AN006's warning about a card and a disk controller on one bus.

use std::fmt;
use std::str::FromStr;

use super::Fits;
use super::topology::{Capacity, MEMORY, Topology};
use hairspring_ring::units::ByteRate;

/// Data on their way.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The device that they come from, or [`MEMORY`].
    pub from: String,
    /// The device that they go to, or [`MEMORY`].
    pub to: String,
    /// How fast.
    pub rate: ByteRate,
}

/// A flow that makes no sense; what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowError(String);

impl fmt::Display for FlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FlowError {}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}>{}:{}", self.from, self.to, self.rate)
    }
}

impl FromStr for Flow {
    type Err = FlowError;

    /// Reads `nic0>memory:110MB/s`.
    fn from_str(text: &str) -> Result<Self, FlowError> {
        let error = |what: &str| FlowError(format!("'{text}' {what}: write for instance net0>memory:110MB/s"));
        let (ends, rate) = text.rsplit_once(':').ok_or_else(|| error("is no flow"))?;
        let (from, to) = ends.split_once('>').ok_or_else(|| error("is no flow"))?;
        let rate: ByteRate = rate.parse().map_err(|_| error("has no rate of data at its end"))?;
        let (from, to) = (from.trim(), to.trim());
        if from.is_empty() || to.is_empty() || from == to {
            return Err(error("goes nowhere"));
        }
        Ok(Self { from: from.to_owned(), to: to.to_owned(), rate })
    }
}

/// What flows make on a segment, or on a device itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The segment, or the device.
    pub name: String,
    /// The segment that it is below; `None` for a device itself.
    pub below: Option<String>,
    /// Bytes per second towards memory.
    pub up: ByteRate,
    /// Bytes per second from memory.
    pub down: ByteRate,
    /// What it can carry.
    pub capacity: Capacity,
    /// Whether some data cross it both ways.
    pub twice: bool,
}

impl Load {
    /// What counts against the capacity: the sum where the directions take turns, else the greater one.
    pub fn counted(&self) -> ByteRate {
        let (up, down) = (self.up.bytes_per_s(), self.down.bytes_per_s());
        let shared = matches!(self.capacity, Capacity::Known { shared: true, .. });
        rate(if shared { up + down } else { up.max(down) })
    }

    /// Whether it carries anything.
    pub fn is_used(&self) -> bool {
        self.counted().bytes_per_s() > 0.0
    }

    /// How much of the capacity is taken; `None` if that is not known, or ample.
    pub fn share(&self) -> Option<f64> {
        match &self.capacity {
            Capacity::Known { sure, .. } => Some(self.counted().bytes_per_s() / sure.bytes_per_s()),
            _ => None,
        }
    }

    /// Whether it is enough.
    pub fn fits(&self) -> Fits {
        let load = self.counted();
        match &self.capacity {
            Capacity::Ample => Fits::WithMargin,
            _ if !self.is_used() => Fits::WithMargin,
            Capacity::Unknown(_) => Fits::Unknown,
            Capacity::Known { sure, .. } if load <= *sure => Fits::judge(load, *sure),
            Capacity::Known { most, .. } if load <= *most => Fits::Tight,
            Capacity::Known { .. } => Fits::No,
        }
    }
}

/// What flows make everywhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Loads {
    /// Every segment in the order of the topology, then every device that states what it can do by itself and is used.
    pub loads: Vec<Load>,
    /// Devices with a flow whose place is not known.
    pub unplaced: Vec<String>,
}

impl Loads {
    /// Puts flows on a topology.
    ///
    /// # Errors
    /// A flow from or to something that does not exist.
    pub fn of(topology: &Topology, flows: &[Flow]) -> Result<Self, FlowError> {
        let mut ways = vec![[0.0_f64; 2]; topology.segments().len()];
        let mut twice = vec![false; ways.len()];
        let mut itself = vec![[0.0_f64; 2]; topology.devices().len()];
        let mut unplaced = Vec::new();
        for flow in flows {
            let mut crossed = vec![0_u8; ways.len()];
            for (end, way) in [(&flow.from, UP), (&flow.to, DOWN)] {
                if end == MEMORY {
                    continue;
                }
                let device = topology.devices().iter().position(|device| device.name == *end).ok_or_else(|| {
                    let names = topology.devices().iter().map(|device| device.name.as_str());
                    let names = super::topology::listed([MEMORY].into_iter().chain(names));
                    FlowError(format!("there is no device '{end}' for the flow {flow}; there are: {names}"))
                })?;
                itself[device][way] += flow.rate.bytes_per_s();
                match topology.path(topology.devices()[device].place) {
                    None => unplaced.push(end.clone()),
                    Some(path) => {
                        for segment in path {
                            ways[segment][way] += flow.rate.bytes_per_s();
                            crossed[segment] += 1;
                        }
                    }
                }
            }
            for (twice, crossed) in twice.iter_mut().zip(crossed) {
                *twice |= crossed == 2;
            }
        }
        unplaced.sort();
        unplaced.dedup();
        let segments = topology.segments().iter().zip(ways).zip(twice).map(|((segment, way), twice)| Load {
            name: segment.name.clone(),
            below: Some(segment.below.map_or(MEMORY, |above| topology.segments()[above].name.as_str()).to_owned()),
            up: rate(way[UP]),
            down: rate(way[DOWN]),
            capacity: segment.capacity(),
            twice,
        });
        let mut loads: Vec<Load> = segments.collect();
        for (device, way) in topology.devices().iter().zip(itself) {
            for (limit, up, down, does) in
                [(device.gives, way[UP], 0.0, "gives"), (device.takes, 0.0, way[DOWN], "takes")]
            {
                let Some(limit) = limit.filter(|_| up + down > 0.0) else { continue };
                loads.push(Load {
                    name: device.name.clone(),
                    below: None,
                    up: rate(up),
                    down: rate(down),
                    capacity: Capacity::Known {
                        sure: limit,
                        most: limit,
                        shared: false,
                        how: format!("stated: so much it {does} by itself"),
                    },
                    twice: false,
                });
            }
        }
        Ok(Self { loads, unplaced })
    }

    /// What limits: the segment or device of which the greatest part is taken. `None` if no capacity is known on the way.
    pub fn limiting(&self) -> Option<&Load> {
        let used = self.loads.iter().filter(|load| load.is_used());
        let known = used.filter_map(|load| Some((load, load.share()?)));
        // Of equal ones the upper stands first.
        known.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(load, _)| load)
    }

    /// Whether everything on the way is enough, as far as it is known: the worst of all loads.
    pub fn fits(&self) -> Fits {
        let unplaced = (!self.unplaced.is_empty()).then_some(Fits::Unknown);
        self.loads.iter().map(Load::fits).chain(unplaced).max().unwrap_or(Fits::WithMargin)
    }
}

const UP: usize = 0;
const DOWN: usize = 1;

/// A sum of rates.
fn rate(bytes_per_s: f64) -> ByteRate {
    // Only a sum of the greatest numbers that there are is not finite; then it is too much in any case.
    ByteRate::new(bytes_per_s).or_else(|| ByteRate::new(f64::MAX)).unwrap_or_else(|| unreachable!("finite"))
}
