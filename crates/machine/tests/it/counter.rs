//! The evidence of `Host` for and against its counter agrees with the kernel's.

use std::fs::read_to_string;

use hairspring_machine::{CpuSet, Host, Machine, Nanos};

#[test]
fn the_evidence_names_the_clock_source_of_the_kernel() {
    let file = read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let evidence = Host.counter_evidence();
    assert_eq!(evidence.clocksource.as_deref().ok(), file.as_deref().ok().map(str::trim));
    assert_eq!(Host.clocksource(), evidence.clocksource);
}

#[test]
fn the_evidence_agrees_with_the_flags_of_the_cpu() {
    let evidence = Host.counter_evidence();
    let Some(flags) = read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        text.lines().find(|line| line.starts_with("flags")).map(|line| format!("{line} ").replace('\t', " "))
    }) else {
        return testing::skip(
            "counter::the_evidence_agrees_with_the_flags_of_the_cpu",
            "/proc/cpuinfo lists no x86 flags",
        );
    };
    let has = |flag: &str| flags.contains(&format!(" {flag} "));
    if evidence.name != "tsc" {
        return testing::skip(
            "counter::the_evidence_agrees_with_the_flags_of_the_cpu",
            "the flags are of the host of an emulator",
        );
    }
    assert_eq!(evidence.kernel_says_constant, has("constant_tsc") && has("nonstop_tsc"));
    assert_eq!(evidence.hypervisor.is_some(), has("hypervisor"), "{:?}", evidence.hypervisor);
    assert!(
        !evidence.kernel_says_constant || evidence.invariant,
        "the kernel takes nonstop_tsc from the same CPUID bit"
    );
}

#[test]
fn a_readable_counter_has_a_cost_that_is_plausible() {
    let evidence = Host.counter_evidence();
    assert!(!evidence.name.is_empty());
    if evidence.readable {
        // Even a trapped read ends within a millisecond; a negative cost would be a fault of the method.
        assert!(evidence.read_cost >= Nanos::ZERO && evidence.read_cost < Nanos::from_millis(1));
    } else {
        assert_eq!(evidence.read_cost, Nanos::MAX);
    }
}

#[test]
fn the_cost_of_a_read_is_what_many_reads_take_each() {
    const TEST: &str = "counter::the_cost_of_a_read_is_what_many_reads_take_each";
    let evidence = Host.counter_evidence();
    if !evidence.readable {
        return testing::skip(TEST, "the counter cannot be read");
    }
    if let Ok("hpet" | "acpi_pm" | "jiffies" | "refined-jiffies") = evidence.clocksource.as_deref() {
        return testing::skip(TEST, "the steps of the kernel's clock are longer than the reads");
    }
    const READS: u32 = 1_000;
    let round = |_| {
        let start = std::time::Instant::now();
        for _ in 0..READS {
            std::hint::black_box(Host.ticks_ordered());
        }
        start.elapsed().as_nanos() as f64 / f64::from(READS)
    };
    let each = (0..100).map(round).fold(f64::INFINITY, f64::min);
    let cost = evidence.read_cost.count() as f64;
    // The clock's step is 1 ns at best, and the loop around a read costs something, too.
    assert!(cost >= each / 4.0 - 1.0 && cost <= each * 4.0 + 1.0, "{cost} ns, {each} ns each of many");
}

#[test]
fn the_rates_in_the_kernels_log_are_published() {
    const TEST: &str = "counter::the_rates_in_the_kernels_log_are_published";
    let log = match std::process::Command::new("dmesg").arg("--syslog").output() {
        Ok(told) if told.status.success() => String::from_utf8_lossy(&told.stdout).into_owned(),
        Ok(told) => return testing::skip(TEST, String::from_utf8_lossy(&told.stderr).trim()),
        Err(error) => return testing::skip(TEST, format!("dmesg: {error}")),
    };
    // Only this much of its end is read.
    if log.len() > 200_000 {
        return testing::skip(TEST, "the log is too long");
    }
    let found = log.rsplit_once("tsc: Detected ");
    let detected = found.and_then(|(_, rest)| rest.split(' ').next()?.parse::<f64>().ok());
    let Some(megahertz) = detected else { return testing::skip(TEST, "the log does not name the TSC, or no more") };
    if Host.counter_evidence().name != "tsc" {
        return testing::skip(TEST, "the log is of the host of an emulator");
    }
    let rates = Host.published_rates();
    let told = rates.iter().find(|rate| rate.source == "kernel log: detected").map(|rate| rate.rate_hz);
    assert_eq!(told, Some(megahertz * 1e6), "{rates:?}");
}

#[test]
fn the_published_rates_are_near_the_rate_that_is_measured() {
    let rates = Host.published_rates();
    if rates.is_empty() {
        return testing::skip(
            "counter::the_published_rates_are_near_the_rate_that_is_measured",
            "neither CPUID nor the kernel's log states a rate",
        );
    }
    let (ticks, clock) = (Host.ticks_ordered(), Host.monotonic());
    Host.sleep_until(clock + Nanos::from_millis(200));
    let measured = Host.ticks_ordered().since(ticks) as f64 / (Host.monotonic() - clock).as_secs_f64();
    for rate in rates {
        assert!(rate.rate_hz > 0.0 && rate.step_hz > 0.0, "{rate:?}");
        // A preemption between the two reads at an end, 10 ms at the worst, is 5 percent.
        assert!((rate.rate_hz / measured - 1.0).abs() < 0.06, "{rate:?}, measured {measured}");
    }
}

#[test]
fn the_counter_goes_on_across_a_move_to_another_cpu() {
    super::on_own_thread(|| {
        let cpus = Host.affinity().0;
        let mut last = Host.ticks_ordered();
        for round in 0..200 {
            Host.set_affinity(&CpuSet(vec![cpus[round % cpus.len()]])).expect("our own CPU");
            let now = Host.ticks_ordered();
            // A move takes microseconds, which is more than a trusted counter may differ between CPUs.
            assert!(now.since(last) > 0, "round {round}");
            last = now;
        }
    });
}
