//! [`Flow`]: data that move from one device to another, through memory; and [`Loads`]: the load of all flows on every
//! segment.
//!
//! Data between two devices go through memory: up from one device, down to the other. If both devices are below one
//! segment, the data cross it twice. That does not matter on a full-duplex link. On a half-duplex bus it halves the
//! rate, which is AN006's warning about a card and a disk controller on one bus.

use std::fmt;
use std::str::FromStr;

use super::Fits;
use super::topology::{Capacity, MEMORY, Topology};
use hairspring_ring::units::ByteRate;

/// Data that move between two devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The source device, or [`MEMORY`].
    pub from: String,
    /// The destination device, or [`MEMORY`].
    pub to: String,
    /// The rate.
    pub rate: ByteRate,
}

/// A text that is not a flow; the message states the correct form.
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

/// The load on a segment, or on a device itself.
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
    /// Its capacity.
    pub capacity: Capacity,
    /// Whether the same data cross it in both directions.
    pub twice: bool,
}

impl Load {
    /// The rate that counts against the capacity: the sum of both directions if half duplex, otherwise the greater one.
    pub fn counted(&self) -> ByteRate {
        let (up, down) = (self.up.bytes_per_s(), self.down.bytes_per_s());
        let shared = matches!(self.capacity, Capacity::Known { shared: true, .. });
        rate(if shared { up + down } else { up.max(down) })
    }

    /// Whether it carries anything.
    pub fn is_used(&self) -> bool {
        self.counted().bytes_per_s() > 0.0
    }

    /// The used share of the capacity; `None` if the capacity is unknown or ample.
    pub fn share(&self) -> Option<f64> {
        match &self.capacity {
            Capacity::Known { sure, .. } => Some(self.counted().bytes_per_s() / sure.bytes_per_s()),
            _ => None,
        }
    }

    /// Whether the capacity is enough.
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

/// The loads of all flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Loads {
    /// Every segment in the order of the topology, then every used device that states a rate of its own.
    pub loads: Vec<Load>,
    /// Devices with a flow but without a known place.
    pub unplaced: Vec<String>,
}

impl Loads {
    /// Computes the loads of flows on a topology.
    ///
    /// # Errors
    /// A flow names a device that does not exist.
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
                        how: format!("stated: the rate at which it {does} by itself"),
                    },
                    twice: false,
                });
            }
        }
        Ok(Self { loads, unplaced })
    }

    /// The limiting segment or device: the one with the greatest used share. `None` if no capacity on the way is known.
    pub fn limiting(&self) -> Option<&Load> {
        let used = self.loads.iter().filter(|load| load.is_used());
        let known = used.filter_map(|load| Some((load, load.share()?)));
        // The upper one of two equals counts.
        known.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(load, _)| load)
    }

    /// The worst verdict of all loads.
    pub fn fits(&self) -> Fits {
        let unplaced = (!self.unplaced.is_empty()).then_some(Fits::Unknown);
        self.loads.iter().map(Load::fits).chain(unplaced).max().unwrap_or(Fits::WithMargin)
    }
}

const UP: usize = 0;
const DOWN: usize = 1;

/// A sum of rates.
fn rate(bytes_per_s: f64) -> ByteRate {
    // The sum is infinite only for the greatest numbers, and then too much in any case.
    ByteRate::new(bytes_per_s).or_else(|| ByteRate::new(f64::MAX)).unwrap_or_else(|| unreachable!("finite"))
}
