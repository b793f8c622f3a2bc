//! The path of data from cards to disks: arguments of every recording, and default sizes.

use clap::{Args, ValueEnum};
use hairspring_record::recorder::{BlockPlacement, MOST_DEPTH, WriteSettings};
use hairspring_record::session::RecordConfig;
use hairspring_ring::memory::{Pages, free_memory};
use hairspring_ring::{ByteRate, Bytes};
use hairspring_store::Ways;
use hairspring_time::Nanos;

use crate::arguments::{duration, number, parsed};
use crate::exit::Failure;

/// The path of data from a card to the disks.
#[derive(Args, Debug)]
#[command(next_help_heading = "Buffer and disks")]
pub(crate) struct DataPath {
    /// Size of the buffer of each card [default: 256MiB, but at most a quarter of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = parsed::<Bytes>, allow_hyphen_values = true)]
    buffer: Option<Bytes>,
    /// Data to collect before they are written; must divide the buffer [default: 4MiB, less for slow cards]
    #[arg(long, value_name = "SIZE", value_parser = parsed::<Bytes>, allow_hyphen_values = true)]
    notify: Option<Bytes>,
    /// Pages of the buffer. Falls back to smaller pages, and reports it, if unavailable
    #[arg(long, value_enum, default_value_t = PagesName::Huge2m)]
    pages: PagesName,
    /// Most writes under way at once
    #[arg(long, value_name = "N", default_value_t = 8, allow_negative_numbers = true)]
    #[arg(value_parser = number::<u16>(1, MOST_DEPTH as u16))]
    depth: u16,
    /// Which folder of a stripe gets the next block
    #[arg(long, value_name = "RULE", value_enum, default_value_t = PlacementName::LeastLoaded)]
    placement: PlacementName,
    /// System calls that write. Falls back to pwrite, and reports it, if io_uring is unavailable
    #[arg(long, value_enum, default_value_t = EngineName::IoUring)]
    engine: EngineName,
    /// Write through the page cache
    #[arg(long)]
    no_direct: bool,
    /// Time between two syncs; what an earlier sync covers survives a power cut
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1s", allow_hyphen_values = true)]
    sync: Nanos,
}

/// The pages of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PagesName {
    /// The machine's ordinary pages
    Small,
    /// Transparent huge pages
    Thp,
    /// Reserved 2 MiB pages
    Huge2m,
    /// Reserved 1 GiB pages
    Huge1g,
}

impl From<PagesName> for Pages {
    fn from(name: PagesName) -> Self {
        match name {
            PagesName::Small => Self::Small,
            PagesName::Thp => Self::Transparent,
            PagesName::Huge2m => Self::Huge2M,
            PagesName::Huge1g => Self::Huge1G,
        }
    }
}

/// Placement of blocks in the folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlacementName {
    /// The folder with the fewest writes under way
    LeastLoaded,
    /// Each folder in turn
    Static,
}

impl From<PlacementName> for BlockPlacement {
    fn from(name: PlacementName) -> Self {
        match name {
            PlacementName::LeastLoaded => Self::LeastLoaded,
            PlacementName::Static => Self::Static,
        }
    }
}

/// System interface for writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// Many writes at once
    #[value(name = "io_uring")]
    IoUring,
    /// One write after the other
    Pwrite,
}

/// Default buffer of each card.
const BUFFER: Bytes = Bytes::mib(256);
/// Largest default of --notify; larger writes are hardly faster on any disk.
const NOTIFY_MOST: u64 = 4 << 20;
/// Least default of --notify: a page.
const NOTIFY_LEAST: u64 = 4096;
/// The default of --notify fills this many times a second, so that data do not wait long to be written.
const NOTIFIES_PER_S: f64 = 4.0;
/// Least number of writes that fit into the buffer: one is filled while others are written.
const WRITES_IN_BUFFER: u64 = 4;

/// Checks the arguments that do not depend on a card.
pub(crate) fn check(data_path: &DataPath) -> Result<(), Failure> {
    if data_path.sync <= Nanos::ZERO {
        return Err(Failure::bad_request("--sync 0s: write the time between two syncs, for instance 1s"));
    }
    Ok(())
}

/// The configuration for this many cards. `fastest` is the highest rate of a card; `held` is the amount that a card
/// holds back before a trigger.
pub(crate) fn config(data_path: &DataPath, cards: usize, fastest: Option<ByteRate>, held: Bytes) -> RecordConfig {
    let (buffer, notify) = sizes(data_path, cards, fastest, held);
    RecordConfig {
        buffer,
        pages: data_path.pages.into(),
        write: WriteSettings {
            block: notify,
            depth: usize::from(data_path.depth),
            placement: data_path.placement.into(),
            sync_every: data_path.sync,
            ..WriteSettings::default()
        },
        ways: Ways { uring: data_path.engine == EngineName::IoUring, direct: !data_path.no_direct, ..Ways::default() },
        ..RecordConfig::default()
    }
}

/// Sizes of each card's buffer and of one notification.
fn sizes(data_path: &DataPath, cards: usize, fastest: Option<ByteRate>, held: Bytes) -> (Bytes, Bytes) {
    let usual = fastest.map_or(NOTIFY_MOST, |rate| power_of_two_below((rate.bytes_per_s() / NOTIFIES_PER_S) as u64));
    let usual = usual.clamp(NOTIFY_LEAST, NOTIFY_MOST);
    match (data_path.buffer, data_path.notify) {
        (Some(buffer), Some(notify)) => (buffer, notify),
        (Some(buffer), None) => {
            // The largest size that divides the buffer and leaves room for several writes.
            let mut notify = usual;
            while notify > NOTIFY_LEAST && (buffer.0 % notify != 0 || buffer.0 / notify < WRITES_IN_BUFFER) {
                notify /= 2;
            }
            (buffer, Bytes(notify))
        }
        (None, notify) => {
            let notify = notify.unwrap_or(Bytes(usual));
            let free = free_memory().map_or(BUFFER.0, |free| free.0 / 4 / cards.max(1) as u64);
            let wanted = BUFFER.0.min(free).max(held.0.saturating_mul(2));
            let wanted = wanted.max(notify.0.saturating_mul(WRITES_IN_BUFFER));
            let wanted = if notify.0 == 0 { wanted } else { wanted.div_ceil(notify.0).saturating_mul(notify.0) };
            (Bytes(wanted), notify)
        }
    }
}

fn power_of_two_below(number: u64) -> u64 {
    1 << number.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// A command line with only these arguments.
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        data_path: DataPath,
    }

    /// The sizes for a card of this many bytes per second and these arguments.
    fn sizes_of(fastest: Option<f64>, arguments: &str) -> (Bytes, Bytes) {
        let line = Line::parse_from(format!("record {arguments}").split_whitespace());
        sizes(&line.data_path, 1, fastest.and_then(ByteRate::new), Bytes(0))
    }

    #[test]
    fn what_comes_together_is_written_within_a_part_of_a_second_and_divides_the_buffer() {
        for (fastest, arguments, notify) in [
            (Some(320e6), "", Bytes::mib(4)),
            (Some(2e6), "", Bytes::kib(256)),
            (Some(2e3), "", Bytes::kib(4)),
            (None, "", Bytes::mib(4)),
            (None, "--buffer 24MiB", Bytes::mib(4)),
            (None, "--buffer 1MiB", Bytes::kib(256)),
        ] {
            let sizes = sizes_of(fastest, arguments);
            assert_eq!(sizes.1, notify, "{fastest:?} {arguments}");
            assert_eq!(sizes.0.0 % sizes.1.0, 0, "{fastest:?} {arguments}");
        }
        let odd = sizes_of(None, "--notify 3MB");
        assert_eq!((odd.0.0 % 3_000_000, odd.1), (0, Bytes(3_000_000)));
    }
}
