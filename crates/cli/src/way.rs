//! How data go from cards to disks: the arguments that all recordings have, and the sizes that are taken where none is given.

use hairspring_stream::memory::free_memory;
use hairspring_stream::session::Config;
use hairspring_stream::store::Ways;
use hairspring_stream::{ByteRate, Bytes};
use hairspring_time::Nanos;

use crate::arguments::{EngineName, Way};
use crate::exit::Failure;

/// The buffer of each card unless one is given.
const BUFFER: Bytes = Bytes::mib(256);
/// The most that comes together unless a size is given; larger writes are hardly faster on any disk.
const NOTIFY_MOST: u64 = 4 << 20;
/// The least: a page.
const NOTIFY_LEAST: u64 = 4096;
/// Unless a size is given, data wait no longer than a part of a second to be written.
const NOTIFIES_PER_S: f64 = 4.0;
/// So many writes fit into the buffer at least: one is filled while another is written.
const WRITES_IN_BUFFER: u64 = 4;

/// Whether the arguments make sense by themselves.
pub(crate) fn check(way: &Way) -> Result<(), Failure> {
    if way.sync <= Nanos::ZERO {
        return Err(Failure::bad_request("--sync 0s: write the time between two syncs, for instance 1s"));
    }
    Ok(())
}

/// For so many cards, of which the fastest makes this rate, and which hold back so much before a trigger.
pub(crate) fn config(way: &Way, cards: usize, fastest: Option<ByteRate>, held: Bytes) -> Config {
    let (buffer, notify) = sizes(way, cards, fastest, held);
    Config {
        buffer,
        pages: way.pages.into(),
        notify,
        depth: usize::from(way.depth),
        placement: way.placement.into(),
        ways: Ways { uring: way.engine == EngineName::IoUring, direct: !way.no_direct, ..Ways::default() },
        sync_every: way.sync,
        ..Config::default()
    }
}

/// Sizes of the buffer of each card and of what comes together in it.
fn sizes(way: &Way, cards: usize, fastest: Option<ByteRate>, held: Bytes) -> (Bytes, Bytes) {
    let usual = fastest.map_or(NOTIFY_MOST, |rate| power_of_two_below((rate.bytes_per_s() / NOTIFIES_PER_S) as u64));
    let usual = usual.clamp(NOTIFY_LEAST, NOTIFY_MOST);
    match (way.buffer, way.notify) {
        (Some(buffer), Some(notify)) => (buffer, notify),
        (Some(buffer), None) => {
            // The largest that divides it and leaves room for several.
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
    use crate::SystemCommand;
    use crate::arguments::{Arguments, Command};

    /// The sizes for a card of this many bytes per second and these arguments.
    fn sizes_of(fastest: Option<f64>, arguments: &str) -> (Bytes, Bytes) {
        let words = format!("hairspring record --to /tmp/x --card unpaced:1ch,16bit {arguments}");
        let Command::System(SystemCommand::Record(arguments)) = Arguments::parse_from(words.split_whitespace()).command
        else {
            panic!("another command");
        };
        sizes(&arguments.way, 1, fastest.and_then(ByteRate::new), Bytes(0))
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
