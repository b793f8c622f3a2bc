//! Topologies as JSON files (`"schema": "hairspring.topology/1"`), and the built-in topologies.
//!
//! A file lists segments, each after the segment above it, then the devices on them:
//!
//! ```
//! # use hairspring_plan::Topology;
//! let topology = Topology::parse(r#"{
//!   "schema": "hairspring.topology/1",
//!   "name": "example",
//!   "note": "a card and a disk on links of their own",
//!   "segments": [
//!     { "name": "slot1", "below": "memory", "pcie": { "gt_per_s": 5.0, "lanes": 8, "payload_bytes": 256 } },
//!     { "name": "hub", "below": "memory", "rate": "2GB/s", "duplex": "full" },
//!     { "name": "pci", "below": "hub", "bus": { "width_bits": 32, "clock_mhz": 33 } }
//!   ],
//!   "devices": [
//!     { "name": "card0", "kind": "card", "on": "slot1" },
//!     { "name": "disk0", "kind": "disk", "on": "pci", "write": "100MB/s", "read": "110MB/s", "free": "2TB" }
//!   ]
//! }"#)?;
//! assert_eq!(topology.segments().len(), 3);
//! # Ok::<(), hairspring_plan::TopologyError>(())
//! ```
//!
//! A segment states its capacity by one of `pcie` (with `max_gt_per_s` and `max_lanes` if both ends could run faster),
//! `bus` (PCI or PCI-X: 32 or 64 bits, 33, 66, 100 or 133 MHz), or `rate` with `duplex` `full` (the default) or `half`.
//! A segment without any has an unknown capacity, and the plan reports it. Any other key is an error with its line and
//! column.

use serde::Deserialize;

use super::json_position::{Step, position};
use super::link::{Bus, Link, LinkState, PAYLOAD_LEAST_BYTES, PAYLOAD_MOST_BYTES, Speed};
use super::{BusDevice, DeviceKind, MEMORY, Segment, SegmentKind, Topology, TopologyError, listed};
use hairspring_ring::units::{ByteRate, Bytes};

/// The schema that this version reads.
const SCHEMA: &str = "hairspring.topology/1";

/// The largest accepted file.
pub const FILE_MOST_BYTES: usize = 4 << 20;

/// The built-in topologies: name and text.
const BUILT_IN: [(&str, &str); 4] = [
    ("an006-shared-pcix", include_str!("../../topologies/an006-shared-pcix.json")),
    ("an006-own-pcix", include_str!("../../topologies/an006-own-pcix.json")),
    ("an006-shared-pci", include_str!("../../topologies/an006-shared-pci.json")),
    ("an006-own-bus", include_str!("../../topologies/an006-own-bus.json")),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    schema: String,
    name: String,
    #[serde(default)]
    note: String,
    segments: Vec<SegmentForm>,
    devices: Vec<DeviceForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SegmentForm {
    name: String,
    below: String,
    pcie: Option<PcieForm>,
    bus: Option<BusForm>,
    rate: Option<String>,
    duplex: Option<Duplex>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PcieForm {
    gt_per_s: f64,
    lanes: u32,
    max_gt_per_s: Option<f64>,
    max_lanes: Option<u32>,
    payload_bytes: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BusForm {
    width_bits: u32,
    clock_mhz: u32,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Duplex {
    Full,
    Half,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceForm {
    name: String,
    kind: String,
    on: String,
    write: Option<String>,
    read: Option<String>,
    free: Option<String>,
    #[serde(default)]
    detail: String,
    numa_node: Option<u32>,
}

/// An error, and the member that causes it.
type Fault = (&'static str, String);

impl Topology {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// The text is not JSON, does not match the schema, or contradicts itself; with line and column.
    pub fn parse(text: &str) -> Result<Self, TopologyError> {
        if text.len() > FILE_MOST_BYTES {
            return Err(TopologyError::new(format!("longer than {FILE_MOST_BYTES} bytes: this is not a topology")));
        }
        let form: FileForm = serde_json::from_str(text).map_err(|error| {
            let words = error.to_string();
            // Our message begins with the place, so serde's is removed.
            let what = words.rsplit_once(" at line ").map_or(words.as_str(), |(what, _)| what);
            TopologyError { at: Some((error.line(), error.column())), what: what.to_owned() }
        })?;
        let place = |steps: &[Step], what: String| TopologyError { at: Some(position(text, steps)), what };
        if form.schema != SCHEMA {
            let what = format!("the schema is '{}', and this version reads {SCHEMA}", form.schema);
            return Err(place(&[Step::Member("schema")], what));
        }
        let mut topology = Self::empty(&form.name);
        topology.note = form.note;
        for (index, segment) in form.segments.into_iter().enumerate() {
            topology.add_segment_form(segment).map_err(|(member, what)| {
                place(&[Step::Member("segments"), Step::Index(index), Step::Member(member)], what)
            })?;
        }
        for (index, device) in form.devices.into_iter().enumerate() {
            topology.add_device_form(device).map_err(|(member, what)| {
                place(&[Step::Member("devices"), Step::Index(index), Step::Member(member)], what)
            })?;
        }
        Ok(topology)
    }

    /// Returns a built-in topology.
    ///
    /// # Errors
    /// None has that name; the error lists them.
    pub fn named(name: &str) -> Result<Self, TopologyError> {
        match BUILT_IN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Self::parse(text),
            None => {
                let names = Self::names().collect::<Vec<_>>().join(", ");
                Err(TopologyError::new(format!("no topology is called '{name}'; built in are: {names}")))
            }
        }
    }

    /// The names of the built-in topologies.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    fn add_segment_form(&mut self, form: SegmentForm) -> Result<(), Fault> {
        let below = match form.below.as_str() {
            MEMORY => None,
            above => Some(self.segment(above).ok_or_else(|| self.missing("below", above))?),
        };
        let kind = kind(&form)?;
        let segment = Segment { name: form.name, below, kind };
        self.add_segment(segment).map(drop).map_err(|error| ("name", error.what))
    }

    fn add_device_form(&mut self, form: DeviceForm) -> Result<(), Fault> {
        let place = self.place(&form.on).ok_or_else(|| self.missing("on", &form.on))?;
        let kind = DeviceKind::ALL.into_iter().find(|kind| kind.name() == form.kind).ok_or_else(|| {
            let kinds = DeviceKind::ALL.map(DeviceKind::name).join(", ");
            ("kind", format!("'{}' is no kind of device: write one of {kinds}", form.kind))
        })?;
        let device = BusDevice {
            name: form.name,
            kind,
            place,
            takes: optional("write", form.write, rate)?,
            gives: optional("read", form.read, rate)?,
            free: optional("free", form.free, |text| text.parse::<Bytes>().map_err(|error| error.to_string()))?,
            detail: form.detail,
            numa_node: form.numa_node,
        };
        self.add_device(device).map_err(|error| ("name", error.what))
    }

    fn missing(&self, member: &'static str, name: &str) -> Fault {
        let known = [MEMORY].into_iter().chain(self.segments().iter().map(|segment| segment.name.as_str()));
        (member, format!("no segment '{name}' comes before this one; there are: {}", listed(known)))
    }
}

fn optional<T>(
    member: &'static str,
    text: Option<String>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Fault> {
    text.map(|text| parse(&text)).transpose().map_err(|what| (member, what))
}

/// Parses a rate above zero.
fn rate(text: &str) -> Result<ByteRate, String> {
    let rate: ByteRate = text.parse().map_err(|error: hairspring_ring::units::UnitError| error.to_string())?;
    if rate.bytes_per_s() < 1.0 {
        return Err(format!("'{text}' is less than a byte per second: leave out what is not known"));
    }
    Ok(rate)
}

fn kind(form: &SegmentForm) -> Result<SegmentKind, Fault> {
    if form.duplex.is_some() && form.rate.is_none() {
        return Err(("duplex", "duplex belongs to a rate: pcie is full duplex, a bus half".to_owned()));
    }
    match (&form.pcie, &form.bus, &form.rate) {
        (None, None, None) => Ok(SegmentKind::Unknown("the topology does not state a rate".to_owned())),
        (Some(pcie), None, None) => Ok(SegmentKind::Pcie(link_state(&form.name, pcie).map_err(|what| ("pcie", what))?)),
        (None, Some(bus), None) => {
            let what = "there are buses of 32 and 64 bits at 33, 66, 100 and 133 MHz: write one of these, or a rate";
            let bus = Bus::new(bus.width_bits, bus.clock_mhz).ok_or_else(|| ("bus", what.to_owned()))?;
            Ok(SegmentKind::Bus(bus))
        }
        (None, None, Some(text)) => {
            let rate = rate(text).map_err(|what| ("rate", what))?;
            Ok(SegmentKind::Stated { rate, shared: form.duplex == Some(Duplex::Half) })
        }
        _ => Err(("name", "a segment has one of pcie, bus and rate: leave out the others".to_owned())),
    }
}

fn link_state(port: &str, form: &PcieForm) -> Result<LinkState, String> {
    let link = |gt_per_s, lanes| {
        let link = Speed::of_gt_per_s(gt_per_s).and_then(|speed| Link::new(speed, lanes));
        link.ok_or("a PCIe link has 1 to 32 lanes of 2.5, 5, 8, 16, 32 or 64 gt_per_s")
    };
    let now = link(form.gt_per_s, form.lanes)?;
    let best = link(form.max_gt_per_s.unwrap_or(form.gt_per_s), form.max_lanes.unwrap_or(form.lanes))?;
    if best.with(now) != now {
        return Err("the link is faster than its max_gt_per_s and max_lanes".to_owned());
    }
    let exists = |bytes: u32| bytes.is_power_of_two() && (PAYLOAD_LEAST_BYTES..=PAYLOAD_MOST_BYTES).contains(&bytes);
    if form.payload_bytes.is_some_and(|bytes| !exists(bytes)) {
        return Err("payload_bytes is 128, 256, 512, 1024, 2048 or 4096".to_owned());
    }
    Ok(LinkState {
        port: port.to_owned(),
        now: Some(now),
        best: Some(best),
        able: Some(best),
        payload_bytes: form.payload_bytes,
    })
}
