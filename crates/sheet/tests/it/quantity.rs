//! Numbers as people write them.

use hairspring_sheet::Unit;
use hairspring_sheet::render::{quantity, quantity_with_digits};
use proptest::prelude::*;

#[track_caller]
fn check(value: f64, unit: Unit, expected: &str) {
    assert_eq!(quantity(value, unit).to_string(), expected);
}

#[test]
fn a_quantity_has_three_digits_and_the_unit_that_fits() {
    check(9.53, Unit::Ns, "9.53 ns");
    check(13_620.0, Unit::Ns, "13.6 µs");
    check(1_240_000.0, Unit::Ns, "1.24 ms");
    check(48.2e9, Unit::Ns, "48.2 s");
    check(3_600e9, Unit::Ns, "3,600 s");
    check(0.45, Unit::Ppm, "0.450 ppm");
    check(12_300.0, Unit::Ppm, "12,300 ppm");
    check(0.000_2, Unit::Ratio, "0.0200 %");
    check(1.0, Unit::Ratio, "100 %");
    check(11.4e9, Unit::BytesPerS, "11.4 GB/s");
    check(250.0, Unit::Hz, "250 Hz");
    check(250.0, Unit::PerSecond, "250 /s");
    check(1_153_891.0, Unit::PerSecond, "1.15 M/s");
    check(1_482.0, Unit::Count, "1,482");
    check(2.5, Unit::Count, "2.50");
}

#[test]
fn rounding_up_to_a_thousand_takes_the_next_unit() {
    check(999.4, Unit::Ns, "999 ns");
    check(999.6, Unit::Ns, "1.00 µs");
    check(999_999.0, Unit::Ns, "1.00 ms");
    check(9.996, Unit::Ns, "10.0 ns");
    check(0.099_96, Unit::Ns, "0.100 ns");
}

#[test]
fn small_and_negative_values_keep_their_digits() {
    check(0.25, Unit::Ns, "0.250 ns");
    check(0.005, Unit::Ns, "5.00 ps");
    check(0.000_3, Unit::Ppm, "0.300 ppb");
    check(-44.4, Unit::Ns, "-44.4 ns");
    check(-1_240_000.0, Unit::Ns, "-1.24 ms");
    check(0.0, Unit::Ns, "0 ns");
    check(-0.0, Unit::Ns, "0 ns");
    check(-0.0, Unit::Count, "0");
}

#[test]
fn a_rate_can_be_written_to_the_hertz() {
    assert_eq!(quantity_with_digits(2_596_136_190.0, Unit::Hz, 10).to_string(), "2.596136190 GHz");
}

#[test]
fn a_tick_has_no_zeros_at_its_end() {
    assert_eq!(quantity(1_000.0, Unit::Ns).trimmed().to_string(), "1 µs");
    assert_eq!(quantity(2.5e6, Unit::Ns).trimmed().to_string(), "2.5 ms");
    assert_eq!(quantity(100.0, Unit::Ns).trimmed().to_string(), "100 ns");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_number_is_short_and_right_within_its_digits(value in prop::num::f64::ANY) {
        for unit in [Unit::Ns, Unit::Ppm, Unit::Hz, Unit::Ratio, Unit::Count, Unit::BytesPerS] {
            let written = quantity(value, unit);
            prop_assert!(written.to_string().chars().count() <= 24, "{written}");
            let factor = match written.unit {
                "ps" | "ppb" => 1e-3,
                "%" => 0.01,
                "µs" | "kHz" | "kB/s" => 1e3,
                "ms" | "MHz" | "MB/s" => 1e6,
                "s" | "GHz" | "GB/s" => 1e9,
                _ => 1.0,
            };
            let read: f64 = written.number().replace(',', "").parse::<f64>().unwrap() * factor;
            if value.is_finite() && value.abs() > 1e-300 && value.abs() < 1e300 {
                prop_assert!((read - value).abs() <= value.abs() * 0.006, "{value} as {written}");
            }
        }
    }
}

#[test]
fn a_ratio_is_a_percentage_until_it_is_many_times() {
    assert_eq!(quantity(0.0123, Unit::Ratio).to_string(), "1.23 %");
    assert_eq!(quantity(9.5, Unit::Ratio).to_string(), "950 %");
    assert_eq!(quantity(10.0, Unit::Ratio).to_string(), "10.0 ×");
    assert_eq!(quantity(2_000.0, Unit::Ratio).to_string(), "2,000 ×");
}

#[test]
fn a_rate_of_bytes_is_written_in_powers_of_two_as_well() {
    use crate::example;
    use hairspring_sheet::{Figure, Method, TextStyle, render};
    let mib = f64::from(1 << 20);
    for (rate, decimal, binary) in [
        (190.0 * mib, "199 MB/s", "190 MiB/s"),
        (12.0 * mib, "12.6 MB/s", "12.0 MiB/s"),
        (3_389.0 * mib, "3.55 GB/s", "3,389 MiB/s"),
        (9_999.0 * mib, "10.5 GB/s", "9,999 MiB/s"),
        (12_288.0 * mib, "12.9 GB/s", "12.0 GiB/s"),
        (1_500.0, "1.50 kB/s", "1.46 KiB/s"),
        (1_023.9, "1.02 kB/s", "1.00 KiB/s"),
        (0.0, "0 B/s", "0 B/s"),
    ] {
        let mut sheet = example::sheet();
        let figure = Figure::single(Unit::BytesPerS, Method::Rate, rate);
        sheet.chapters[0].tables[0].rows = vec![example::row("transfer.x", "x", figure)];
        let text = render::text(&sheet, &TextStyle::default());
        let line = text.lines().find(|line| line.trim_start().starts_with("x ·")).expect("the row");
        assert!(line.contains(decimal) && line.ends_with(binary), "{line}");
        assert!(render::markdown(&sheet).contains(&format!("| {decimal} ({binary}) |")), "{binary}");
        assert!(render::html(&sheet).contains(&format!("<span class=\"binary\">{binary}</span>")), "{binary}");
    }
}
