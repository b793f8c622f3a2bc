//! Computes the sizes of a recording before it begins: memory, block and volume.
//!
//! Moving a block takes a fixed time and a time in proportion to its length: `T(n) = t₀ + n/r∞`. The two are equal at
//! the length `n½ = r∞·t₀`, which reaches half of the full rate; `19·n½` reaches 95 %. So two fitted numbers determine
//! which block is long enough ([`Fit`]). The buffer must hold the data that arrive while the disk takes nothing
//! ([`buffer`]): for twice the worst expected stall plus the time between two syncs.

use hairspring_machine::Nanos;

use super::Fits;
use hairspring_ring::units::{ByteRate, Bytes};

/// The share of a measured rate that a plan uses; AN006 recommends 95 to 98 %.
pub const MARGIN: f64 = 0.95;

/// The block size without a measurement: "in the region of a few MBytes".
pub const NOTIFY_USUAL: Bytes = Bytes::mib(4);

/// The smallest recommended block: a page, which is also the largest alignment that disks require.
pub const NOTIFY_LEAST: Bytes = Bytes::kib(4);

/// The largest recommended block.
pub const NOTIFY_MOST: Bytes = Bytes::mib(32);

/// The smallest recommended block for a disk that reaches its full rate with shorter ones, because each block costs a
/// wake-up.
pub const NOTIFY_FITTED_LEAST: Bytes = Bytes::mib(1);

/// The longest time to fill a block, so that a slow stream does not stay in memory for long.
pub const NOTIFY_LATEST: Nanos = Nanos::from_secs(1);

/// The least number of blocks in a buffer: one being filled, one under way, and room for as many again.
pub const BLOCKS_LEAST: u64 = 4;

/// Time between two syncs of the recorder.
pub const SYNC_INTERVAL: Nanos = Nanos::from_secs(1);

/// The worst stall of a disk that is assumed if none was measured.
pub const STALL_USUAL: Nanos = Nanos::from_millis(250);

/// The share of all memory that buffers may take.
pub const MEMORY_PART: u64 = 4;

/// The most memory for data in a program on a 32-bit system: 4 GiB minus the devices' and the kernel's part.
pub const MEMORY_32_BIT: Bytes = Bytes::gib(3);

/// The share of the full rate that a recommended block reaches.
const NEAR_FULL: f64 = 0.95;

/// The memory of a computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRoom {
    /// All of it.
    pub total: Bytes,
    /// The available memory, without swapping out other programs.
    pub available: Bytes,
}

impl MemoryRoom {
    /// Reads the text of `/proc/meminfo`; `None` if the numbers are missing.
    pub fn parse(meminfo: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
            let kib = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
            kib.checked_mul(1024).map(Bytes)
        };
        Some(Self { total: field("MemTotal:")?, available: field("MemAvailable:")? })
    }

    /// The most memory for all buffers together: a quarter of all, at most the available memory, and at most what a
    /// program can address.
    pub fn for_buffers(self, pointer_bits: u32) -> Bytes {
        let addressable = if pointer_bits <= 32 { MEMORY_32_BIT } else { Bytes(u64::MAX) };
        Bytes(self.total.0 / MEMORY_PART).min(self.available).min(addressable)
    }
}

/// A line through the times that blocks of several lengths took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The rate of infinitely long blocks, r∞.
    pub full: ByteRate,
    /// The fixed time of a block, t₀.
    pub each: Nanos,
    /// The length at which half of the full rate is reached, n½.
    pub half: Bytes,
}

impl Fit {
    /// Through at least three different lengths, by least squares of the relative error of the times. `None` if they do
    /// not lie on a line that rises.
    pub fn of(points: &[(Bytes, ByteRate)]) -> Option<Self> {
        let times = points.iter().filter(|(length, rate)| length.0 > 0 && rate.bytes_per_s() > 0.0);
        let times: Vec<(f64, f64)> =
            times.map(|(length, rate)| (length.0 as f64, length.0 as f64 / rate.bytes_per_s())).collect();
        let mut lengths: Vec<u64> = points.iter().map(|(length, _)| length.0).collect();
        lengths.sort_unstable();
        lengths.dedup();
        if lengths.len() < 3 || times.len() < 3 {
            return None;
        }
        // T = a + b n, each residual divided by its T.
        let sum = |term: fn(f64, f64) -> f64| times.iter().map(|(n, t)| term(*n, *t)).sum::<f64>();
        let (w, n, nn) = (sum(|_, t| 1.0 / (t * t)), sum(|n, t| n / (t * t)), sum(|n, t| n * n / (t * t)));
        let (t, nt) = (sum(|_, t| 1.0 / t), sum(|n, t| n / t));
        let determinant = w * nn - n * n;
        let slope = (w * nt - n * t) / determinant;
        let start = (nn * t - n * nt) / determinant;
        if !(slope.is_finite() && start.is_finite() && slope > 0.0) {
            return None;
        }
        // A line that meets the axis below 0 has no measurable fixed time. Then the best line through 0 counts.
        let (each, slope) = if start > 0.0 { (start, slope) } else { (0.0, nt / nn) };
        let full = ByteRate::new(1.0 / slope)?;
        Some(Self { full, each: Nanos::try_from_secs_f64(each).ok()?, half: Bytes((each / slope) as u64) })
    }

    /// The smallest power of two at which a block reaches 95 % of the full rate.
    pub fn near_full(self) -> Bytes {
        let bytes = self.half.0 as f64 * NEAR_FULL / (1.0 - NEAR_FULL);
        Bytes((bytes.min(NOTIFY_MOST.0 as f64).ceil() as u64).max(1).next_power_of_two())
    }
}

/// The block size for a stream: long enough for the disk by its fit, or a few MiB without a fit, and short enough to
/// fill within a second.
pub fn notify(rate: ByteRate, fit: Option<Fit>) -> Bytes {
    let wanted = fit.map_or(NOTIFY_USUAL, Fit::near_full).clamp(NOTIFY_FITTED_LEAST, NOTIFY_MOST);
    let in_time = rate.volume_in(NOTIFY_LATEST).0.max(NOTIFY_LEAST.0);
    // The greatest power of two that is not above.
    let in_time = Bytes(1 << in_time.ilog2());
    wanted.min(in_time)
}

/// The time that a buffer must outlast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The worst stall that is expected of the disk.
    pub worst: Nanos,
    /// Time between two syncs.
    pub sync_interval: Nanos,
}

impl Stall {
    /// Twice the worst, and the time between two syncs.
    pub fn budget(self) -> Nanos {
        let sum = i128::from(self.worst.count()) * 2 + i128::from(self.sync_interval.count());
        Nanos::new(i64::try_from(sum).unwrap_or(i64::MAX))
    }
}

/// The buffer size for a stream: the data that arrive during the budget, rounded up to a power of two times the block.
pub fn buffer(rate: ByteRate, notify: Bytes, stall: Stall) -> Bytes {
    let blocks = rate.volume_in(stall.budget()).0.div_ceil(notify.0.max(1)).max(BLOCKS_LEAST);
    let blocks = blocks.checked_next_power_of_two().unwrap_or(1 << 63);
    Bytes(blocks.saturating_mul(notify.0))
}

/// The largest such buffer within a limit; at least [`BLOCKS_LEAST`] blocks.
pub fn buffer_within(limit: Bytes, notify: Bytes) -> Bytes {
    let blocks = (limit.0 / notify.0.max(1)).max(BLOCKS_LEAST);
    Bytes((1_u64 << blocks.ilog2()).saturating_mul(notify.0))
}

/// The spans of AN006's table, a day, and the requested span.
pub fn spans(asked: Option<Nanos>) -> Vec<Nanos> {
    let seconds = [1, 10, 60, 600, 3_600, 86_400];
    let mut spans: Vec<Nanos> = seconds.into_iter().map(Nanos::from_secs).chain(asked).collect();
    spans.sort_unstable();
    spans.dedup();
    spans
}

/// A rate that something sustained in a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Sustainable {
    /// The rate.
    pub rate: ByteRate,
    /// The source of the rate.
    pub source: String,
}

impl Sustainable {
    /// Whether it is enough for a rate, with AN006's margin or without.
    pub fn carries(&self, rate: ByteRate) -> Fits {
        Fits::judge(rate, self.rate)
    }
}
