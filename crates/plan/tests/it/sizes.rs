//! The arithmetic of blocks, buffers, volumes and memory.

use hairspring_machine::Nanos;
use hairspring_plan::sizes;
use hairspring_plan::sizes::{BLOCKS_LEAST, NOTIFY_MOST, NOTIFY_USUAL, SYNC_INTERVAL};
use hairspring_plan::{Fit, Fits, MemoryRoom, Stall, Sustainable};
use hairspring_ring::{ByteRate, Bytes, Layout, SampleRate};
use proptest::prelude::*;

use super::mb_per_s;

/// A sweep of AN006: block in KiB, rate in its MB/s.
fn sweep(points: &[(u64, f64)]) -> Fit {
    let rate = |mib: f64| ByteRate::new(mib * 1_048_576.0).expect("finite");
    let points: Vec<_> = points.iter().map(|(kib, mib)| (Bytes::kib(*kib), rate(*mib))).collect();
    Fit::of(&points).expect("it is a line")
}

#[test]
fn a_sweep_over_block_sizes_is_two_numbers() {
    // AN006, M2p.5942, FIFO read, continuous buffer: two of its points are noise.
    let card = sweep(&[(4, 279.0), (8, 590.0), (16, 577.0), (32, 800.0), (64, 800.0), (1024, 800.0), (4096, 799.0)]);
    let full = card.full.bytes_per_s() / 1_048_576.0;
    assert!((780.0..880.0).contains(&full), "{card:?}");
    assert!(card.half < Bytes::kib(16), "{card:?}");
    // Exact points give the numbers that they are made of.
    let line = |n: u64| n as f64 / (0.006 + n as f64 / 200e6);
    let exact: Vec<_> =
        (16..24).map(|power| (Bytes(1 << power), ByteRate::new(line(1 << power)).expect("finite"))).collect();
    let fit = Fit::of(&exact).expect("it is a line");
    assert!((fit.full.bytes_per_s() - 200e6).abs() < 1.0 && (fit.each.count() - 6_000_000).abs() <= 1, "{fit:?}");
    assert!((fit.half.0 as i64 - 1_200_000).abs() <= 1, "{fit:?}");
}

#[test]
fn the_recommended_block_reaches_95_percent_of_the_full_rate() {
    let line = |n: f64| n / (0.001 + n / 500e6);
    let points: Vec<_> = (16..23)
        .map(|power| (Bytes(1 << power), ByteRate::new(line(f64::from(1 << power))).expect("finite")))
        .collect();
    let block = Fit::of(&points).expect("it is a line").near_full();
    assert!(line(block.0 as f64) >= 0.95 * 500e6 && line(block.0 as f64 / 2.0) < 0.95 * 500e6, "{block}");
}

#[test]
fn what_is_no_line_gives_no_fit() {
    let rate = mb_per_s(100.0);
    assert_eq!(Fit::of(&[]), None);
    assert_eq!(Fit::of(&[(Bytes(1), rate), (Bytes(2), rate)]), None);
    assert_eq!(Fit::of(&[(Bytes(4096), rate); 5]), None);
    // The noise of a disk that has no fixed part.
    let flat = Fit::of(&[(Bytes(1000), mb_per_s(70.0)), (Bytes(2000), mb_per_s(69.0)), (Bytes(4000), mb_per_s(68.0))]);
    let flat = flat.expect("a line through 0");
    assert_eq!((flat.each, flat.half), (Nanos::ZERO, Bytes(0)));
    assert!((68e6..70e6).contains(&flat.full.bytes_per_s()), "{flat:?}");
    let falling = [(Bytes(1000), mb_per_s(1.0)), (Bytes(2000), mb_per_s(10.0)), (Bytes(4000), mb_per_s(1000.0))];
    assert_eq!(Fit::of(&falling), None);
}

#[test]
fn the_block_is_a_few_mebibytes_and_full_once_a_second() {
    assert_eq!(sizes::notify(mb_per_s(320.0), None), NOTIFY_USUAL);
    assert_eq!(sizes::notify(mb_per_s(1.0), None), Bytes::kib(512));
    assert_eq!(sizes::notify(mb_per_s(0.000_001), None), Bytes::kib(4));
    let at_once = Fit { full: mb_per_s(163.0), each: Nanos::ZERO, half: Bytes(0) };
    assert_eq!(sizes::notify(mb_per_s(320.0), Some(at_once)), Bytes::mib(1));
    let slow_to_start = Fit { full: mb_per_s(163.0), each: Nanos::from_millis(100), half: Bytes(16_300_000) };
    assert_eq!(sizes::notify(mb_per_s(320.0), Some(slow_to_start)), NOTIFY_MOST);
}

#[test]
fn the_buffer_outlasts_two_stalls_and_a_sync() {
    let stall = Stall { worst: Nanos::from_millis(250), sync_interval: SYNC_INTERVAL };
    assert_eq!(stall.budget(), Nanos::from_millis(1500));
    // 480 MB in 1.5 s: 115 blocks of 4 MiB, so 128.
    assert_eq!(sizes::buffer(mb_per_s(320.0), NOTIFY_USUAL, stall), Bytes::mib(512));
    assert_eq!(sizes::buffer(mb_per_s(0.0), NOTIFY_USUAL, stall), Bytes(BLOCKS_LEAST * NOTIFY_USUAL.0));
    assert_eq!(sizes::buffer_within(Bytes::mib(300), Bytes::mib(4)), Bytes::mib(256));
}

/// AN006: "our program won't get more than 3 GByte of room for data storage on a 32 bit system", and buffers "should
/// not exceed 1/4 of system memory".
#[test]
fn buffers_get_a_quarter_of_the_memory_and_on_32_bits_three_gibibytes() {
    let room = MemoryRoom::parse("MemTotal:       67108864 kB\nMemFree: 1 kB\nMemAvailable:   50000000 kB\n");
    let room = room.expect("it says so");
    assert_eq!(room.total, Bytes::gib(64));
    assert_eq!(room.for_buffers(64), Bytes::gib(16));
    assert_eq!(room.for_buffers(32), Bytes::gib(3));
    let full = MemoryRoom { available: Bytes::mib(100), ..room };
    assert_eq!(full.for_buffers(64), Bytes::mib(100));
    assert_eq!(MemoryRoom::parse("MemTotal: 5 kB\n"), None);
}

/// The table of AN006, whose amounts are decimal multiples of its MB.
#[test]
fn volumes_are_rate_times_time() {
    let rate: ByteRate = "200MiB/s".parse().expect("a rate");
    let volumes: Vec<f64> =
        sizes::spans(None).into_iter().map(|span| rate.volume_in(span).0 as f64 / 1_048_576.0).collect();
    assert_eq!(volumes, [200.0, 2_000.0, 12_000.0, 120_000.0, 720_000.0, 17_280_000.0]);
    assert_eq!(sizes::spans(Some(Nanos::from_secs(60))).len(), 6);
    assert_eq!(sizes::spans(Some(Nanos::from_secs(90)))[3], Nanos::from_secs(90));
}

#[test]
fn a_measured_rate_is_planned_with_a_margin() {
    let measured = Sustainable { rate: mb_per_s(1000.0), source: "a sheet".to_owned() };
    assert_eq!(measured.carries(mb_per_s(950.0)), Fits::WithMargin);
    assert_eq!(measured.carries(mb_per_s(990.0)), Fits::Tight);
    assert_eq!(measured.carries(mb_per_s(1001.0)), Fits::No);
}

proptest! {
    #[test]
    fn sizes_are_powers_of_two_that_divide_and_outlast(
        rate_hz in 1_u64..4_000_000_000,
        channels in 1_u32..64,
        worst_ms in 0_i64..100_000,
    ) {
        let layout = Layout::analogue(channels, 14).expect("exists");
        let rate = layout.byte_rate(SampleRate::hz(rate_hz).expect("possible"));
        let stall = Stall { worst: Nanos::from_millis(worst_ms), sync_interval: SYNC_INTERVAL };
        let notify = sizes::notify(rate, None);
        let buffer = sizes::buffer(rate, notify, stall);
        prop_assert!(notify.0.is_power_of_two() && (4096..=NOTIFY_MOST.0).contains(&notify.0));
        prop_assert!((buffer.0 / notify.0).is_power_of_two() && buffer.0.is_multiple_of(notify.0));
        prop_assert!(rate.time_for(buffer).is_none_or(|lasts| lasts >= stall.budget()));
    }
}
