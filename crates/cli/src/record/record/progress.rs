//! The progress of recordings, in one line.

use hairspring_record::session::RecordProgress;
use hairspring_ring::{ByteRate, Bytes};
use hairspring_time::Nanos;

use crate::listing::{clock, span};

/// The progress line. A card that waits for its first data shows its source and the time of waiting. The others show
/// wanted and reached rate, present and greatest fill of the buffer, worst stall, loss, and how long the disk space
/// lasts. With several cards rates and losses are sums; the other values are the worst.
pub(crate) fn line(cards: &[RecordProgress], length: Option<Nanos>, wait: Option<Nanos>) -> String {
    let waiting = cards.iter().filter_map(|card| Some(waiting(&card.description.hardware, card.waits?, wait)));
    let waiting: Vec<String> = waiting.collect();
    if waiting.len() == cards.len() {
        return waiting.join("  ");
    }
    let elapsed = cards.iter().map(|card| card.elapsed).max().unwrap_or(Nanos::ZERO);
    let mut parts = vec![match length {
        Some(length) => format!("{} of {}", clock(elapsed), clock(length)),
        None => clock(elapsed),
    }];
    let taken: u64 = cards.iter().map(taken_bytes).sum();
    let reached = ByteRate::of(Bytes(taken), elapsed);
    let wanted: f64 = cards.iter().filter_map(|card| card.wanted).map(ByteRate::bytes_per_s).sum();
    let reached_bytes_per_s = reached.map_or(0.0, ByteRate::bytes_per_s);
    parts.push(match wanted > 0.0 {
        true => format!("{} of {} MB/s", megabytes(reached_bytes_per_s), megabytes(wanted)),
        false => format!("{} MB/s", megabytes(reached_bytes_per_s)),
    });
    let fill = |worst: bool| {
        let fills = cards.iter().map(|card| {
            let fill = card.status.fill;
            let bytes = if worst { fill.high_water.0 } else { fill.now.0 };
            bytes.saturating_mul(100).div_ceil(fill.capacity.0.max(1))
        });
        fills.max().unwrap_or(0)
    };
    parts.push(format!("buffer {} %, worst {} %", fill(false), fill(true)));
    let stall = cards.iter().map(|card| card.status.worst_stall).max().unwrap_or(Nanos::ZERO);
    parts.push(format!("stall {}", span(stall)));
    let lost: u64 = cards.iter().map(|card| card.status.ledger.lost_bytes).sum();
    parts.push(match lost {
        0 => "lost 0".to_owned(),
        lost => format!("LOST {} MB", megabytes(lost as f64)),
    });
    if let Some(segment) = cards.iter().filter_map(|card| card.segment).max() {
        parts.push(format!("segment {segment}"));
    }
    if cards.iter().any(|card| card.status.shots > 0) {
        parts.push(format!("shots {}", cards.iter().map(|card| card.status.shots).sum::<u64>()));
    }
    // All cards write to the same folders, so they share the free space.
    let free = cards.iter().filter_map(|card| card.status.free).min();
    let rate = if wanted > 0.0 { ByteRate::new(wanted) } else { reached };
    if let Some(left) = free.zip(rate).and_then(|(free, rate)| rate.time_for(free)) {
        parts.push(format!("disk {}", clock(left)));
    }
    if let Some(free) = cards.iter().filter_map(|card| card.low_space).min() {
        parts.push(format!("LOW SPACE, {free} free"));
    }
    parts.extend(waiting);
    parts.join("  ")
}

/// The source that a card waits for, and how long.
fn waiting(hardware: &str, waits: Nanos, at_most: Option<Nanos>) -> String {
    // The other options of the description are for the metadata.
    let name = hardware.split(';').next().unwrap_or_default();
    let at_most = at_most.map_or_else(String::new, |wait| format!(" of {}", clock(wait)));
    format!("waiting for the first data of {name} for {}{at_most}", clock(waits))
}

/// Bytes produced and not lost.
fn taken_bytes(card: &RecordProgress) -> u64 {
    card.status.ledger.produced_bytes.saturating_sub(card.status.ledger.lost_bytes)
}

/// Megabytes with at least three digits.
fn megabytes(bytes: f64) -> String {
    let megabytes = bytes / 1e6;
    let decimals = if megabytes < 10.0 {
        2
    } else if megabytes < 1000.0 {
        1
    } else {
        0
    };
    format!("{megabytes:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_says_for_whom_and_how_long() {
        let name = "udp 127.0.0.1:5000; without numbers: loss on the network cannot be seen";
        let line = waiting(name, Nanos::from_secs(30), Some(Nanos::from_secs(60)));
        assert_eq!(line, "waiting for the first data of udp 127.0.0.1:5000 for 0:30 of 1:00");
        assert!(waiting("tcp-listen :5000", Nanos::from_secs(3700), None).ends_with("tcp-listen :5000 for 1:01:40"));
    }
}
