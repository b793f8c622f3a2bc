//! Reads the topology of this computer from `/sys`, and the disk of a folder.
//!
//! The place of a PCI function is its path in `/sys/devices`: every address before the last is a bridge. The functions
//! on a link state the link below a port (`current_link_speed`, `current_link_width`, `max_…`), or the port itself
//! does. The kind of a bridge follows from the order: below the root complex is a link, below a link the inside of a
//! chip, and within it links again. Functions without link attributes are on a legacy bus, whose width and clock the
//! kernel does not state. Virtual machines state no link attributes at all, so the rate is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::link::{Link, LinkState, Speed};
use super::{BusDevice, DeviceKind, Place, Segment, SegmentKind, Topology};

/// The most layers of volumes between a folder and its disk; a mapped volume on an array on partitions has three.
const LAYERS_MOST: u32 = 8;

/// The largest configuration space.
const CONFIG_BYTES: usize = 4096;

impl Topology {
    /// Reads the topology from the kernel's file system mounted at `sys` (`/sys`). Facts that it does not state are
    /// unknown in the result; there is no error.
    pub fn read(sys: &Path) -> Self {
        let functions = functions(sys);
        let bridges: BTreeSet<&str> = functions.values().flat_map(Function::bridges).collect();
        let is_bridge = |address: &str| {
            bridges.contains(address) || functions.get(address).is_some_and(|function| function.class >> 8 == 0x0604)
        };
        let mut topology = Self::empty("this computer");
        let mut by_depth: Vec<&Function> = functions.values().filter(|f| is_bridge(f.address())).collect();
        by_depth.sort_by_key(|function| function.chain.len());
        for bridge in by_depth {
            let below: Vec<&Function> = functions
                .values()
                .filter(|f| f.bridges().last().is_some_and(|last| last == bridge.address()))
                .collect();
            let above = bridge.bridges().last().and_then(|name| topology.segment(name));
            let inside = above.is_some_and(|above| matches!(topology.segments()[above].kind, SegmentKind::Pcie(_)));
            let kind = below_bridge(bridge, &below, inside);
            // Bridges beyond the limit of a topology are left out.
            let _ = topology.add_segment(Segment { name: bridge.address().to_owned(), below: above, kind });
        }
        let disks = disks(sys);
        for function in functions.values().filter(|f| !is_bridge(f.address())) {
            let place = topology.place_of(function);
            let kind = if function.class >> 16 == 2 { DeviceKind::Network } else { DeviceKind::Other };
            let detail = format!("class {:06x}, {:04x}:{:04x}", function.class, function.vendor, function.device);
            let numa_node = function.numa_node;
            let on_it = disks.iter().filter(|disk| disk.function.as_deref() == Some(function.address()));
            for disk in on_it {
                let (place, detail) = match disk.usb {
                    true => (Place::Unknown, format!("on USB, controller {}", function.address())),
                    false => (place, format!("controller {}", function.address())),
                };
                let _ =
                    topology.add_device(BusDevice { numa_node, ..bare(&disk.name, DeviceKind::Disk, place, detail) });
            }
            if !disks.iter().any(|disk| disk.function.as_deref() == Some(function.address())) {
                let _ = topology.add_device(BusDevice { numa_node, ..bare(function.address(), kind, place, detail) });
            }
        }
        for disk in disks.iter().filter(|disk| disk.function.is_none()) {
            let detail = "the kernel does not state its controller".to_owned();
            let _ = topology.add_device(bare(&disk.name, DeviceKind::Disk, Place::Unknown, detail));
        }
        topology
    }

    /// The place of a function. A function at the root has a segment of its own without known properties: it is inside
    /// the processor or its hub, or it is virtual.
    fn place_of(&mut self, function: &Function) -> Place {
        if let Some(bridge) = function.bridges().last() {
            return self.segment(bridge).map_or(Place::Unknown, Place::On);
        }
        let why = "it is built in or virtual, and the system states no link".to_owned();
        let segment =
            Segment { name: format!("root:{}", function.address()), below: None, kind: SegmentKind::Unknown(why) };
        self.add_segment(segment).map_or(Place::Unknown, Place::On)
    }
}

fn bare(name: &str, kind: DeviceKind, place: Place, detail: String) -> BusDevice {
    let name = name.to_owned();
    BusDevice { name, kind, place, takes: None, gives: None, free: None, detail, numa_node: None }
}

/// The kind of the segment below a bridge.
fn below_bridge(bridge: &Function, below: &[&Function], inside: bool) -> SegmentKind {
    let express = |function: &&&Function| function.best.is_some() || function.now.is_some();
    let is_express = express(&&bridge);
    if !below.is_empty() && !below.iter().any(|function| express(&function)) {
        let bus = "a legacy bus; the system states neither width nor clock";
        let nothing = "the system states neither speed nor lanes";
        return SegmentKind::Unknown(if is_express { bus } else { nothing }.to_owned());
    }
    if inside {
        return SegmentKind::Inside;
    }
    let lower = below.iter().find(|function| express(function));
    let both = |a: Option<Link>, b: Option<Link>| a.zip(b).map(|(a, b)| a.with(b)).or(a).or(b);
    let able = lower.and_then(|function| function.best);
    let payloads = below.iter().copied().chain([bridge]).map(|function| function.payload_bytes);
    SegmentKind::Pcie(LinkState {
        port: bridge.address().to_owned(),
        now: lower.map_or(bridge.now, |lower| lower.now.or(bridge.now)),
        best: both(able, bridge.best),
        able,
        // If one end states nothing, it might be slower than the other.
        payload_bytes: payloads.collect::<Option<Vec<u32>>>().and_then(|payloads| payloads.into_iter().min()),
    })
}

/// One PCI function.
struct Function {
    /// The addresses of the bridges above it, and its own at the end.
    chain: Vec<String>,
    class: u32,
    vendor: u32,
    device: u32,
    now: Option<Link>,
    best: Option<Link>,
    payload_bytes: Option<u32>,
    numa_node: Option<u32>,
}

impl Function {
    fn address(&self) -> &str {
        self.chain.last().map_or("", String::as_str)
    }

    fn bridges(&self) -> impl DoubleEndedIterator<Item = &str> {
        let count = self.chain.len().saturating_sub(1);
        self.chain[..count].iter().map(String::as_str)
    }
}

fn functions(sys: &Path) -> BTreeMap<String, Function> {
    let entries = fs::read_dir(sys.join("bus/pci/devices")).into_iter().flatten().flatten();
    let functions = entries.filter_map(|entry| {
        let path = entry.path().canonicalize().ok()?;
        let chain = addresses(&path);
        let own = chain.last()?.clone();
        let text = |name: &str| fs::read_to_string(path.join(name)).ok();
        let hexadecimal = |name: &str| {
            let text = text(name)?;
            u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
        };
        let link = |speed: &str, width: &str| {
            let speed: Speed = text(speed)?.parse().ok()?;
            Link::new(speed, text(width)?.trim().parse().ok()?)
        };
        let function = Function {
            chain,
            class: hexadecimal("class").unwrap_or(0),
            vendor: hexadecimal("vendor").unwrap_or(0),
            device: hexadecimal("device").unwrap_or(0),
            now: link("current_link_speed", "current_link_width"),
            best: link("max_link_speed", "max_link_width"),
            payload_bytes: fs::read(path.join("config")).ok().and_then(|config| payload_bytes(&config)),
            // -1 on computers with only one node.
            numa_node: text("numa_node").and_then(|node| node.trim().parse().ok()),
        };
        Some((own, function))
    });
    functions.collect()
}

/// The PCI addresses in a path, in their order.
fn addresses(path: &Path) -> Vec<String> {
    let parts = path.components().filter_map(|part| part.as_os_str().to_str());
    parts.filter(|part| is_address(part)).map(str::to_owned).collect()
}

/// Whether a text is like `0000:03:00.1`.
fn is_address(text: &str) -> bool {
    let Some((bus, function)) = text.rsplit_once('.') else { return false };
    let parts: Vec<&str> = bus.split(':').collect();
    let hexadecimal = |text: &str, digits: std::ops::RangeInclusive<usize>| {
        digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    // Domains behind some controllers have more than four digits.
    matches!(parts[..], [domain, bus, device] if hexadecimal(domain, 4..=8) && hexadecimal(bus, 2..=2) && hexadecimal(device, 2..=2))
        && hexadecimal(function, 1..=1)
}

/// The largest payload for which a function is configured, from its configuration space. Only root can read that beyond
/// its first 64 bytes; `None` if it is unreadable, or if the function is not PCI Express.
pub fn payload_bytes(config: &[u8]) -> Option<u32> {
    const CAPABILITIES: u8 = 1 << 4;
    const EXPRESS: u8 = 0x10;
    let config = config.get(..CONFIG_BYTES).unwrap_or(config);
    if config.get(6)? & CAPABILITIES == 0 {
        return None;
    }
    let mut at = usize::from(config.get(0x34)? & !3);
    // At most as many as fit between the header and the end, which also ends a loop.
    for _ in 0..48 {
        if at < 0x40 {
            return None;
        }
        if *config.get(at)? == EXPRESS {
            let control = u16::from_le_bytes([*config.get(at + 8)?, *config.get(at + 9)?]);
            let exponent = u32::from(control >> 5) & 7;
            return (exponent <= 5).then_some(128 << exponent);
        }
        at = usize::from(config.get(at + 1)? & !3);
    }
    None
}

/// A disk of the kernel.
struct Disk {
    name: String,
    /// The PCI function of its controller.
    function: Option<String>,
    usb: bool,
}

/// The physical disks: those that do not consist of others.
fn disks(sys: &Path) -> Vec<Disk> {
    let entries = fs::read_dir(sys.join("block")).into_iter().flatten().flatten();
    let disks = entries.filter_map(|entry| {
        let path = entry.path().canonicalize().ok()?;
        let name = entry.file_name().into_string().ok()?;
        let function = addresses(&path).pop();
        let is_virtual = path.components().any(|part| part.as_os_str() == "virtual");
        let made = is_virtual && !path.components().any(|part| part.as_os_str() == "nvme-subsystem");
        let usb = path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("usb"));
        (!made).then_some(Disk { name, function, usb })
    });
    let mut disks: Vec<Disk> = disks.collect();
    disks.sort_by(|a, b| a.name.cmp(&b.name));
    disks
}

/// The disks of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Below {
    /// The names of the physical disks; several for an array or a volume over several.
    Disks(Vec<String>),
    /// Not known, for this reason.
    Unknown(String),
}

/// Finds the disks of a folder's file system, from the kernel's files mounted at `sys` and `proc`.
pub fn disks_below(folder: &Path, sys: &Path, proc: &Path) -> Below {
    let device = match fs::metadata(folder) {
        Ok(metadata) => metadata.dev(),
        Err(error) => return Below::Unknown(format!("{}: {error}", folder.display())),
    };
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let own = sys.join("dev/block").join(&number);
    let mounts = fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
    let block = if own.exists() { Ok(own) } else { mounted_from(&mounts, &number, sys) };
    match block {
        Err(why) => Below::Unknown(why),
        Ok(block) => {
            let mut found = BTreeSet::new();
            collect(&block, LAYERS_MOST, &mut found);
            match found.is_empty() {
                true => Below::Unknown(
                    "it is on a virtual disk, and the system does not state what is below that".to_owned(),
                ),
                false => Below::Disks(found.into_iter().collect()),
            }
        }
    }
}

/// Finds the block device of a file system with several or none in the list of mounts.
fn mounted_from(mounts: &str, number: &str, sys: &Path) -> Result<PathBuf, String> {
    let mut lines = mounts.lines().filter_map(|line| line.split_once(" - "));
    let line = lines.find(|(before, _)| before.split(' ').nth(2) == Some(number));
    let Some((kind, source)) = line.and_then(|(_, after)| {
        let mut words = after.split(' ');
        Some((words.next()?, words.next()?))
    }) else {
        return Err("its file system is not in the list of mounts".to_owned());
    };
    let Some(name) = source.strip_prefix("/dev/") else {
        return Err(format!("{kind} is not on a disk of this computer"));
    };
    let block = sys.join("class/block").join(name);
    // A name like mapper/data is a link to the real one.
    let block = if block.exists() {
        Some(block)
    } else {
        let real = Path::new(source).canonicalize().ok();
        real.and_then(|real| Some(sys.join("class/block").join(real.file_name()?))).filter(|block| block.exists())
    };
    block.ok_or_else(|| format!("the system does not know the disk {source}"))
}

/// The physical disks of which a block device consists.
fn collect(block: &Path, layers: u32, found: &mut BTreeSet<String>) {
    let Ok(path) = block.canonicalize() else { return };
    if layers == 0 {
        return;
    }
    if path.join("partition").exists() {
        if let Some(whole) = path.parent() {
            collect(whole, layers - 1, found);
        }
        return;
    }
    let members: Vec<PathBuf> =
        fs::read_dir(path.join("slaves")).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    for member in &members {
        collect(member, layers - 1, found);
    }
    let made = path.components().any(|part| part.as_os_str() == "virtual")
        && !path.components().any(|part| part.as_os_str() == "nvme-subsystem");
    if members.is_empty() && !made {
        found.extend(path.file_name().and_then(|name| name.to_str()).map(str::to_owned));
    }
}
