//! Computes the capacity of a PCI bus or a PCI Express link.
//!
//! A link has a rate for each direction: transfers per second × lanes × encoding, minus the headers of the packets. A
//! legacy bus has one rate that both directions share: width × clock. Both are upper limits; measured rates lie 3 to 30
//! % below them.

use std::fmt;
use std::str::FromStr;

use hairspring_ring::units::ByteRate;

/// The speed of one lane of PCI Express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Speed {
    megatransfers_per_s: u32,
}

/// Megatransfers per second, and the payload that its encoding leaves: bits of data in bits sent.
const GENERATIONS: [(u32, u32, u32); 6] =
    [(2_500, 8, 10), (5_000, 8, 10), (8_000, 128, 130), (16_000, 128, 130), (32_000, 128, 130), (64_000, 1, 1)];

/// The generation that puts its packets into frames of 256 bytes, 236 of which carry packets.
const FRAMED: (u32, f64) = (64_000, 236.0 / 256.0);

/// Bytes of a data packet besides its payload: framing and sequence number 4, header with a 64-bit address 16, checksum
/// 4.
pub const PACKET_OVERHEAD_BYTES: u32 = 24;

/// The payload that every device supports. It gives the least rate of a link whose setting cannot be read.
pub const PAYLOAD_LEAST_BYTES: u32 = 128;

/// The largest payload.
pub const PAYLOAD_MOST_BYTES: u32 = 4096;

impl Speed {
    /// Returns the speed with this many gigatransfers per second; `None` if no generation has it.
    pub fn of_gt_per_s(gt_per_s: f64) -> Option<Self> {
        let speed = GENERATIONS.iter().find(|(speed, ..)| f64::from(*speed) == gt_per_s * 1e3);
        speed.map(|(speed, ..)| Self { megatransfers_per_s: *speed })
    }

    /// Gigatransfers per second.
    pub fn gt_per_s(self) -> f64 {
        f64::from(self.megatransfers_per_s) / 1e3
    }

    /// Megabits per second and lane, in the whole numbers that the Linux kernel uses.
    fn megabits_per_s(self) -> u32 {
        let coded = GENERATIONS.iter().find(|(speed, ..)| *speed == self.megatransfers_per_s);
        // Every speed comes from the table.
        coded.map_or(0, |(speed, payload, bits)| speed * payload / bits)
    }

    /// Bytes per second and lane.
    fn bytes_per_s(self) -> f64 {
        let coded = GENERATIONS.iter().find(|(speed, ..)| *speed == self.megatransfers_per_s);
        coded.map_or(0.0, |(speed, payload, bits)| {
            f64::from(*speed) * 1e6 / 8.0 * f64::from(*payload) / f64::from(*bits)
        })
    }
}

impl fmt::Display for Speed {
    /// As the kernel writes it: `8.0 GT/s PCIe`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} GT/s PCIe", self.gt_per_s())
    }
}

/// A text that is not a speed of PCI Express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeedError(String);

impl fmt::Display for SpeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a speed of PCI Express: it is 2.5, 5, 8, 16, 32 or 64 GT/s", self.0)
    }
}

impl std::error::Error for SpeedError {}

impl FromStr for Speed {
    type Err = SpeedError;

    /// Reads what the kernel writes into `current_link_speed`: `8.0 GT/s PCIe`, in older ones `8 GT/s`.
    fn from_str(text: &str) -> Result<Self, SpeedError> {
        let number = text.trim().trim_end_matches("PCIe").trim_end().strip_suffix("GT/s").map(str::trim);
        let speed = number.and_then(|number| number.parse().ok()).and_then(Self::of_gt_per_s);
        speed.ok_or_else(|| SpeedError(text.trim().to_owned()))
    }
}

/// A PCI Express link: the speed of a lane, and the number of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    speed: Speed,
    lanes: u32,
}

/// The most lanes of a link.
pub const LANES_MOST: u32 = 32;

impl Link {
    /// `None` unless it has 1 to [`LANES_MOST`] lanes.
    pub fn new(speed: Speed, lanes: u32) -> Option<Self> {
        (1..=LANES_MOST).contains(&lanes).then_some(Self { speed, lanes })
    }

    /// The speed of each lane.
    pub fn speed(self) -> Speed {
        self.speed
    }

    /// Number of lanes.
    pub fn lanes(self) -> u32 {
        self.lanes
    }

    /// The link that both support: the lower speed with the smaller number of lanes.
    pub fn with(self, other: Self) -> Self {
        Self { speed: self.speed.min(other.speed), lanes: self.lanes.min(other.lanes) }
    }

    /// Bytes per second in each direction, headers included.
    pub fn raw(self) -> ByteRate {
        rate(self.speed.bytes_per_s() * f64::from(self.lanes))
    }

    /// Bytes of data per second in each direction, if every packet carries `payload_bytes`.
    pub fn of_data(self, payload_bytes: u32) -> ByteRate {
        let framed = if self.speed.megatransfers_per_s == FRAMED.0 { FRAMED.1 } else { 1.0 };
        let packet = f64::from(payload_bytes) / (f64::from(payload_bytes) + f64::from(PACKET_OVERHEAD_BYTES));
        rate(self.raw().bytes_per_s() * framed * packet)
    }

    /// Megabits per second, in the whole numbers that the Linux kernel uses.
    pub fn megabits_per_s(self) -> u32 {
        self.speed.megabits_per_s() * self.lanes
    }
}

impl fmt::Display for Link {
    /// As the kernel writes it: `8.0 GT/s PCIe x16 link`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x{} link", self.speed, self.lanes)
    }
}

fn rate(bytes_per_s: f64) -> ByteRate {
    ByteRate::new(bytes_per_s).unwrap_or_else(|| unreachable!("finite and not negative"))
}

/// The link below a port, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkState {
    /// The port above it, by the kernel's name.
    pub port: String,
    /// Its present speed and width; `None` if the system does not state them, or nothing is plugged in.
    pub now: Option<Link>,
    /// The fastest that both ends support; `None` if the system does not state it.
    pub best: Option<Link>,
    /// The fastest that its lower end supports; `None` if the system does not state it, or nothing is plugged in.
    pub able: Option<Link>,
    /// The largest payload of a packet; `None` if the system does not state it.
    pub payload_bytes: Option<u32>,
}

impl LinkState {
    /// Whether it runs slower than both ends support. An idle link runs at a low speed.
    pub fn is_below_its_best(&self) -> bool {
        match (self.now, self.best) {
            (Some(now), Some(best)) => now.megabits_per_s() < best.megabits_per_s(),
            _ => false,
        }
    }
}

/// The Linux kernel's sentence about a device and the links above it, the nearest first; `None` if a link is not known.
pub fn available<'l>(path: impl Iterator<Item = &'l LinkState> + Clone) -> Option<String> {
    let able = path.clone().next()?.able?;
    let mut narrowest: Option<(Link, &str)> = None;
    for state in path {
        let now = state.now?;
        // The upper one of two equals is named.
        if narrowest.is_none_or(|(link, _)| now.megabits_per_s() <= link.megabits_per_s()) {
            narrowest = Some((now, &state.port));
        }
    }
    let (link, port) = narrowest?;
    let gigabits = |link: Link| format!("{:.3} Gb/s", f64::from(link.megabits_per_s()) / 1e3);
    let available = format!("{} available PCIe bandwidth", gigabits(link));
    Some(if link.megabits_per_s() == able.megabits_per_s() {
        format!("{available} ({link})")
    } else {
        format!("{available}, limited by {link} at {port} (capable of {} with {able})", gigabits(able))
    })
}

/// A PCI or PCI-X bus: half duplex, and shared by its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bus {
    /// Bits that move at once.
    pub width_bits: u32,
    /// Its nominal clock in megahertz (33 for 33⅓).
    pub clock_mhz: u32,
}

impl Bus {
    /// Returns a bus of 32 or 64 bits at 33, 66, 100 or 133 MHz; `None` for any other.
    pub fn new(width_bits: u32, clock_mhz: u32) -> Option<Self> {
        let exists = matches!(width_bits, 32 | 64) && matches!(clock_mhz, 33 | 66 | 100 | 133);
        exists.then_some(Self { width_bits, clock_mhz })
    }

    /// Bytes per second for all directions together.
    pub fn of_data(self) -> ByteRate {
        rate(f64::from(self.width_bits / 8) * f64::from(self.clock_mhz) * 1e6)
    }
}

impl fmt::Display for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PCI bus of {} bit at {} MHz", self.width_bits, self.clock_mhz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(gt_per_s: f64, lanes: u32) -> Link {
        Link::new(Speed::of_gt_per_s(gt_per_s).expect("exists"), lanes).expect("exists")
    }

    #[test]
    fn the_rates_are_those_of_the_standard() {
        for (gt_per_s, lanes, megabytes) in
            [(2.5, 1, 250.0), (2.5, 4, 1000.0), (5.0, 8, 4000.0), (8.0, 16, 15_753.8), (16.0, 4, 7_876.9)]
        {
            let raw = link(gt_per_s, lanes).raw().bytes_per_s() / 1e6;
            assert!((raw - megabytes).abs() < 0.1, "{gt_per_s} x{lanes}: {raw}");
        }
        assert_eq!(Bus::new(32, 33).expect("exists").of_data().bytes_per_s(), 132e6);
        assert_eq!(Bus::new(32, 66).expect("exists").of_data().bytes_per_s(), 264e6);
        assert_eq!(Bus::new(64, 133).expect("exists").of_data().bytes_per_s(), 1064e6);
        assert_eq!(Bus::new(16, 33), None);
    }

    /// Measured rates of cards (MiB/s) stay below the link's rate without packet headers, and come close to it.
    #[test]
    fn measured_cards_stay_below_their_links() {
        for (gt_per_s, lanes, payload_bytes, mib_per_s, share) in
            [(5.0, 8, 256, 3389.0, 0.96), (2.5, 4, 128, 800.0, 0.99)]
        {
            let of_data = link(gt_per_s, lanes).of_data(payload_bytes).bytes_per_s();
            let measured = mib_per_s * 1_048_576.0;
            assert!(measured < of_data && measured > share * of_data, "{measured} of {of_data}");
        }
    }

    #[test]
    fn speeds_are_read_as_old_and_new_kernels_write_them() {
        for text in ["8.0 GT/s PCIe", "8 GT/s", "8.0 GT/s PCIe\n"] {
            assert_eq!(text.parse::<Speed>().map(Speed::gt_per_s), Ok(8.0), "{text}");
        }
        for text in ["Unknown", "Unknown speed", "", "GT/s", "9 GT/s", "nan GT/s", "8", "5.0 GB/s"] {
            assert!(text.parse::<Speed>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_kernels_sentence_is_word_for_word() {
        let state = |port: &str, now, able| LinkState {
            port: port.to_owned(),
            now: Some(now),
            best: Some(now),
            able: Some(able),
            payload_bytes: None,
        };
        let card = state("0000:00:03.1", link(8.0, 16), link(16.0, 16));
        assert_eq!(
            available([&card].into_iter()).as_deref(),
            Some(
                "126.016 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x16 link at 0000:00:03.1 \
                 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)"
            )
        );
        let whole = state("0000:00:01.0", link(5.0, 8), link(5.0, 8));
        let sentence = "32.000 Gb/s available PCIe bandwidth (5.0 GT/s PCIe x8 link)";
        assert_eq!(available([&whole].into_iter()).as_deref(), Some(sentence));
        // Behind a switch whose uplink is narrower.
        let uplink = state("0000:00:1c.0", link(8.0, 2), link(8.0, 16));
        let sentence = available([&card, &uplink].into_iter()).expect("all are known");
        assert!(sentence.starts_with("15.752 Gb/s") && sentence.contains("x2 link at 0000:00:1c.0"), "{sentence}");
        let unknown = LinkState::default();
        assert_eq!(available([&card, &unknown].into_iter()), None);
    }
}
