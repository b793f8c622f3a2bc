//! How much memory, what block size, how much volume: the arithmetic of a recording before it begins.
//!
//! A block that is moved takes a fixed time and one in proportion to its length: `T(n) = t₀ + n/r∞`. The length at which the two
//! are equal is `n½ = r∞·t₀`; there half of the full rate is reached, at `19·n½` 95 % of it. Two fitted numbers so say which
//! block is long enough ([`Fit`]). The buffer has to hold what arrives while the disk does not take anything
//! ([`buffer`]): twice the worst stall that is expected and the time between two syncs.

use hairspring_machine::Nanos;

use super::Fits;
use hairspring_ring::units::{ByteRate, Bytes};

/// Part of a measured rate that is planned with: AN006 says 95 to 98 %.
pub const MARGIN: f64 = 0.95;

/// The block without anything measured: "in the region of a few MBytes".
pub const NOTIFY_USUAL: Bytes = Bytes::mib(4);

/// Smallest block that is recommended: a page, which is also the largest alignment that disks ask for.
pub const NOTIFY_LEAST: Bytes = Bytes::kib(4);

/// Largest block that is recommended.
pub const NOTIFY_MOST: Bytes = Bytes::mib(32);

/// Smallest block that is recommended for a disk that reaches its full rate with shorter ones: each block costs a wake-up.
pub const NOTIFY_FITTED_LEAST: Bytes = Bytes::mib(1);

/// A block is full at least this often, so that a slow stream does not lie in memory for long.
pub const NOTIFY_LATEST: Nanos = Nanos::from_secs(1);

/// The least number of blocks in a buffer: one that fills, one on its way, and room for as much again.
pub const BLOCKS_LEAST: u64 = 4;

/// Time between two syncs of the recorder.
pub const SYNC_INTERVAL: Nanos = Nanos::from_secs(1);

/// The worst stall of a disk that is reckoned with where nobody has measured one.
pub const STALL_USUAL: Nanos = Nanos::from_millis(250);

/// Part of all memory that buffers may take.
pub const MEMORY_PART: u64 = 4;

/// Most that a program on a 32-bit system gets for data: 4 GiB less the devices' and the kernel's part.
pub const MEMORY_32_BIT: Bytes = Bytes::gib(3);

/// Part of the full rate that a recommended block reaches.
const NEAR_FULL: f64 = 0.95;

/// The memory of a computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRoom {
    /// All of it.
    pub total: Bytes,
    /// What can be had without driving others out.
    pub available: Bytes,
}

impl MemoryRoom {
    /// From the text of `/proc/meminfo`; `None` if it does not say.
    pub fn parse(meminfo: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
            let kib = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
            kib.checked_mul(1024).map(Bytes)
        };
        Some(Self { total: field("MemTotal:")?, available: field("MemAvailable:")? })
    }

    /// What buffers may take together: a quarter of all, no more than is available, and no more than a program can address.
    pub fn for_buffers(self, pointer_bits: u32) -> Bytes {
        let addressable = if pointer_bits <= 32 { MEMORY_32_BIT } else { Bytes(u64::MAX) };
        Bytes(self.total.0 / MEMORY_PART).min(self.available).min(addressable)
    }
}

/// A line through the times that blocks of several lengths took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The rate of endless blocks, r∞.
    pub full: ByteRate,
    /// What every block takes whatever its length, t₀.
    pub each: Nanos,
    /// The length at which half of the full rate is reached, n½.
    pub half: Bytes,
}

impl Fit {
    /// Through at least three different lengths, by least squares of the relative error of the times. `None` if they do not lie
    /// on a line that rises.
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
        // A line that meets the axis below 0 has no fixed part that could be told from 0; then the best one through 0 counts.
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

/// The block for a stream: long enough for the disk by its fit, or a few MiB without one; short enough to be full once a second.
pub fn notify(rate: ByteRate, fit: Option<Fit>) -> Bytes {
    let wanted = fit.map_or(NOTIFY_USUAL, Fit::near_full).clamp(NOTIFY_FITTED_LEAST, NOTIFY_MOST);
    let in_time = rate.volume_in(NOTIFY_LATEST).0.max(NOTIFY_LEAST.0);
    // The greatest power of two that is not above.
    let in_time = Bytes(1 << in_time.ilog2());
    wanted.min(in_time)
}

/// What a buffer has to outlast.
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

/// The buffer for a stream: what arrives during the stall's budget, as a power of two times the block.
pub fn buffer(rate: ByteRate, notify: Bytes, stall: Stall) -> Bytes {
    let blocks = rate.volume_in(stall.budget()).0.div_ceil(notify.0.max(1)).max(BLOCKS_LEAST);
    let blocks = blocks.checked_next_power_of_two().unwrap_or(1 << 63);
    Bytes(blocks.saturating_mul(notify.0))
}

/// The greatest such buffer that is not above a limit; at least [`BLOCKS_LEAST`] blocks.
pub fn buffer_within(limit: Bytes, notify: Bytes) -> Bytes {
    let blocks = (limit.0 / notify.0.max(1)).max(BLOCKS_LEAST);
    Bytes((1_u64 << blocks.ilog2()).saturating_mul(notify.0))
}

/// The spans that AN006's table has and a day, and the one that is asked for.
pub fn spans(asked: Option<Nanos>) -> Vec<Nanos> {
    let seconds = [1, 10, 60, 600, 3_600, 86_400];
    let mut spans: Vec<Nanos> = seconds.into_iter().map(Nanos::from_secs).chain(asked).collect();
    spans.sort_unstable();
    spans.dedup();
    spans
}

/// A rate that something has been shown to sustain.
#[derive(Clone, Debug, PartialEq)]
pub struct Sustainable {
    /// The rate.
    pub rate: ByteRate,
    /// Who says so.
    pub source: String,
}

impl Sustainable {
    /// Whether it is enough for a rate, and with AN006's margin.
    pub fn carries(&self, rate: ByteRate) -> Fits {
        Fits::judge(rate, self.rate)
    }
}
