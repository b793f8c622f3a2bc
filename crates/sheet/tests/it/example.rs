//! A sheet such as a small virtual machine yields: every unit, absent rows, warnings, long labels, plots. All invented,
//! all reproducible.

use hairspring_sheet::{
    Absent, Axis, Build, Chapter, Conditions, FactValue, Figure, Incident, IncidentKind, IncidentSpan, Method, Note,
    NoteKind, Point, Row, SCHEMA, Series, SeriesLine, Sheet, SheetFact, Table, Taken, ThreadRow, Unit, Value,
};

/// The whole sheet.
pub(crate) fn sheet() -> Sheet {
    Sheet {
        schema: SCHEMA.to_owned(),
        hairspring: Build {
            version: "0.1.0".to_owned(),
            commit: Some("4f2a91c".to_owned()),
            compiler: "rustc 1.95.0".to_owned(),
            flags: "release, lto fat, x86-64".to_owned(),
        },
        taken: Taken {
            start: "2025-03-14T09:26:53Z".to_owned(),
            duration_s: 48.2,
            effort: "normal".to_owned(),
            interrupted: false,
            rounds: 0,
        },
        conditions: conditions(),
        notes: vec![
            note(NoteKind::Remark, "The machine is virtual: other guests take time from it without a trace.", None),
            note(
                NoteKind::Warning,
                "Real-time priority was refused, so every figure under SCHED_FIFO is absent.",
                Some("sudo setcap cap_sys_nice+ep ./hairspring, or run as root"),
            ),
        ],
        summary: None,
        chapters: vec![clocks(), delays(), sleeps(), wakeup(), disturbance(), memory()],
    }
}

/// Samples with a long tail to the right, the same at every call.
pub(crate) fn samples(seed: u64, n: usize, median: f64, spread: f64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f64 + 0.5) / (1u64 << 31) as f64
    };
    let sample = |_| {
        // Twelve uniform numbers make a normal one; one event in 300 is disturbed.
        let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let tail = if uniform() < 1.0 / 300.0 { 1.0 / uniform() } else { 1.0 };
        (median * (normal * spread).exp() * tail * 1e4).round() / 1e4
    };
    (0..n).map(sample).collect()
}

pub(crate) fn figure(seed: u64, n: usize, median: f64, spread: f64) -> Figure {
    Figure::from_samples(Unit::Ns, Method::Stamp, &mut samples(seed, n, median, spread)).with_overhead(21.4)
}

pub(crate) fn row(id: &str, label: &str, figure: Figure) -> Row {
    Row { id: id.to_owned(), label: label.to_owned(), value: Value::Figure(figure) }
}

pub(crate) fn absent(id: &str, label: &str, absent: Absent) -> Row {
    Row { id: id.to_owned(), label: label.to_owned(), value: Value::Absent(absent) }
}

fn table(id: &str, title: &str, rows: Vec<Row>) -> Table {
    Table { id: id.to_owned(), title: title.to_owned(), rows, diagram: None }
}

fn chapter(id: &str, title: &str, intro: &str, tables: Vec<Table>) -> Chapter {
    let (id, title, intro) = (id.to_owned(), title.to_owned(), intro.to_owned());
    Chapter { id, title, intro, tables, series: Vec::new(), incidents: Vec::new(), notes: Vec::new() }
}

pub(crate) fn note(kind: NoteKind, text: &str, remedy: Option<&str>) -> Note {
    Note { kind, text: text.to_owned(), remedy: remedy.map(str::to_owned) }
}

pub(crate) fn fact(id: &str, label: &str, value: &str) -> SheetFact {
    SheetFact { id: id.to_owned(), label: label.to_owned(), value: FactValue::Value(value.to_owned()) }
}

fn conditions() -> Conditions {
    let unread = |id: &str, label: &str, reason: &str, remedy: &str| SheetFact {
        id: id.to_owned(),
        label: label.to_owned(),
        value: FactValue::Absent(Absent::new(reason, remedy)),
    };
    let thread = |tid, name: &str, policy: &str, rt_priority, cpu_ms| ThreadRow {
        pid: tid,
        tid,
        name: Some(name.to_owned()),
        policy: policy.to_owned(),
        rt_priority,
        cpu_ms,
    };
    Conditions {
        facts: vec![
            fact("cpu.model", "Processor", "AMD EPYC 7B13 64-Core Processor"),
            fact("cpu.online", "CPUs online", "2 of 2"),
            fact("cpu.microcode", "Microcode", "0xa0011d5"),
            fact(
                "cpu.tsc_flags",
                "Counter flags",
                "constant_tsc nonstop_tsc rdtscp tsc_known_freq; no invariant-TSC leaf",
            ),
            fact("cpu.caches", "Cache, level 2", "512 KiB"),
            unread(
                "cpu.governor",
                "Frequency governor",
                "there is no cpufreq driver in this guest",
                "look at the host",
            ),
            fact("cpu.memory", "Memory", "7.8 GiB"),
            fact("kernel.release", "Kernel", "6.8.0-45-generic"),
            fact("kernel.preemption", "Preemption model", "PREEMPT_DYNAMIC, voluntary"),
            fact(
                "kernel.command_line",
                "Kernel command line",
                "BOOT_IMAGE=/vmlinuz-6.8.0-45-generic root=/dev/vda1 ro console=ttyS0,115200 mitigations=auto nokaslr",
            ),
            fact("kernel.mitigations", "Mitigations", "retbleed: untrained return thunk; SMT vulnerable"),
            fact("kernel.clocksource", "Clock source", "kvm-clock"),
            fact("clock.ntp", "Clock discipline", "synchronised, offset 41 µs, frequency −12.3 ppm"),
            fact("kernel.hypervisor", "Hypervisor", "KVM"),
            fact("limits.rtprio", "Real-time priority limit", "0"),
            fact("limits.memlock", "Locked memory limit", "8 MiB"),
            fact("limits.rt_throttling", "Real-time throttling", "950 ms in each 1000 ms"),
            fact("load.average", "Load average", "0.31 0.22 0.10"),
        ],
        threads: vec![
            thread(1, "systemd", "other", 0, 4180),
            thread(17, "migration/0", "fifo", 99, 12),
            thread(604, "<script>alert(1)", "other", 0, 7),
        ],
        threads_absent: Some(Absent::new("2 threads ended while the table was read", "take the sheet again")),
    }
}

fn clocks() -> Chapter {
    let diff =
        |seed, n, median, spread| Figure::from_samples(Unit::Ns, Method::Diff, &mut samples(seed, n, median, spread));
    let mut rates = [2_596_136_190.0, 2_596_136_204.0, 2_596_136_171.0, 2_596_136_188.0, 2_596_136_195.0];
    let cost = vec![
        row("clocks.cost.now", "now()", diff(1, 10_000, 9.53, 0.02)),
        row("clocks.cost.tsc", "rdtsc, unordered", diff(2, 10_000, 7.1, 0.02)),
        row("clocks.cost.tsc_ordered", "lfence rdtsc, ordered with everything before it", diff(3, 10_000, 17.0, 0.03)),
        row("clocks.cost.monotonic", "clock_gettime(CLOCK_MONOTONIC) through the vDSO", diff(4, 10_000, 27.9, 0.03)),
        row("clocks.cost.syscall", "clock_gettime by system call", diff(5, 2_000, 312.0, 0.1)),
        absent(
            "clocks.cost.hpet",
            "HPET",
            Absent::final_("this machine has no high precision event timer that a process could map"),
        ),
    ];
    let calibration = vec![
        row("clocks.calibration.rate", "Rate of the counter", Figure::single(Unit::Hz, Method::Rate, 2_596_136_190.0)),
        row(
            "clocks.calibration.bound",
            "Its error bound against the kernel's clock",
            Figure::single(Unit::Ppm, Method::Derived, 0.447),
        ),
        row(
            "clocks.calibration.kernel_error",
            "Estimated error of the kernel's clock",
            Figure::single(Unit::Ppm, Method::Derived, 12_300.0)
                .with_caveat("the kernel had no time source when the sheet began"),
        ),
        row(
            "clocks.calibration.cpu",
            "Share of one CPU spent on it",
            Figure::single(Unit::Ratio, Method::Derived, 0.000_23),
        ),
        row(
            "clocks.calibration.duration",
            "Age at which it was usable",
            Figure::single(Unit::Ns, Method::Stamp, 5_140_000.0),
        ),
    ];
    let stability = vec![
        row(
            "clocks.stability.rate",
            "Rate, calibrated five times",
            Figure::from_samples(Unit::Hz, Method::Rate, &mut rates),
        ),
        row(
            "clocks.stability.timer",
            "Interrupts of the timer",
            Figure::from_samples(Unit::Hz, Method::Rate, &mut samples(31, 40, 250.2, 0.01)),
        ),
    ];
    chapter(
        "clocks",
        "Clocks",
        "What it costs to read the time, and how well the counter's rate is known.",
        vec![
            table("clocks.cost", "Cost of a reading", cost),
            table("clocks.calibration", "Calibration of the counter", calibration),
            table("clocks.stability", "Stability", stability),
        ],
    )
}

fn delays() -> Chapter {
    let refused = || {
        Absent::new(
            "sched_setscheduler(SCHED_FIFO, 80): operation not permitted",
            "sudo setcap cap_sys_nice+ep ./hairspring",
        )
    };
    let mut minimum = Vec::new();
    for (i, (name, label)) in
        [("1us", "1 µs"), ("10us", "10 µs"), ("100us", "100 µs"), ("1ms", "1 ms")].iter().enumerate()
    {
        let id = format!("delays.minimum.other.{name}.late");
        minimum.push(row(&id, &format!("{label}, late by"), figure(40 + i as u64, 10_000, 24.0 + i as f64, 0.05)));
    }
    minimum.push(absent("delays.minimum.fifo.10us.late", "10 µs under SCHED_FIFO, late by", refused()));
    let mut early = samples(7, 500, 60.0, 0.4);
    early.iter_mut().for_each(|s| *s -= 60.0);
    let long = vec![
        row("delays.long.other.1ms.late", "1 ms, late by", figure(50, 1_000, 61.0, 0.2)),
        row("delays.long.other.1s.late", "1 s, late by", figure(51, 12, 74.0, 0.2)),
        row("delays.long.other.1s.cpu", "1 s, share of CPU", Figure::single(Unit::Ratio, Method::Derived, 0.000_164)),
        row(
            "delays.long.tuned.1ms.late",
            "1 ms with a tuned lead, around the target",
            Figure::from_samples(Unit::Ns, Method::Stamp, &mut early),
        ),
        absent("delays.long.fifo.1s.late", "1 s under SCHED_FIFO, late by", refused()),
    ];
    chapter(
        "delays",
        "Delays",
        "How late a delay ends. None ends early, save those that were tuned to.",
        vec![
            table("delays.minimum", "Guaranteed minimum, polled", minimum),
            table("delays.long", "Long delay, slept then polled", long),
        ],
    )
}

fn sleeps() -> Chapter {
    let names = ["nanosleep", "clock_nanosleep, absolute", "timerfd", "condition variable", "hairspring LongDelay"];
    let lines = names.iter().enumerate().map(|(i, name)| {
        let points = (0..13).map(|step| {
            let x = 1e3 * 10f64.powf(f64::from(step) / 2.0);
            let y = if i == 4 { 60.0 } else { 5e4 * (1.0 + i as f64 * 0.3) * (x / 1e6).max(1.0).powf(0.15) };
            Point { x, y: y * (1.0 + 0.1 * f64::from(step % 3)), low: Some(y * 0.6), high: Some(y * 3.0) }
        });
        SeriesLine { name: (*name).to_owned(), points: points.collect(), fitted: false }
    });
    let axis = |label: &str| Axis { label: label.to_owned(), unit: Unit::Ns, log: true };
    let series = Series {
        id: "sleeps.late".to_owned(),
        title: "Lateness over the length of the sleep".to_owned(),
        x: axis("requested"),
        y: axis("late by, median"),
        lines: lines.collect(),
    };
    let intro = "How late the kernel wakes a thread, for each way to ask and each length.";
    Chapter { series: vec![series], ..chapter("sleeps", "Sleeps", intro, Vec::new()) }
}

fn wakeup() -> Chapter {
    let rows = vec![
        row("wakeup.futex.other.late", "Futex, other CPU", figure(60, 5_000, 13_620.0, 0.3)),
        row("wakeup.pipe.other.late", "Pipe, other CPU", figure(61, 5_000, 15_900.0, 0.3)),
        row(
            "wakeup.eventfd.same.late",
            "Event descriptor, same CPU, with a label that is a good deal longer than its column",
            figure(62, 50, 1_870.0, 0.1),
        ),
    ];
    chapter(
        "wakeup",
        "Wake-up",
        "From the call that wakes to the first instruction of the woken thread.",
        vec![table("wakeup", "One thread wakes another", rows)],
    )
}

fn disturbance() -> Chapter {
    let mut frequency = samples(70, 30, 31.0, 0.5);
    let rows = vec![
        row("disturbance.idle.late", "Idle machine, loop with gaps", figure(71, 20_000, 38.0, 0.6)),
        row("disturbance.loaded.late", "Both CPUs loaded", figure(72, 20_000, 190.0, 1.3)),
        row(
            "disturbance.idle.rate",
            "Gaps longer than 1 µs",
            Figure::from_samples(Unit::Hz, Method::Rate, &mut frequency),
        ),
        row("disturbance.idle.events", "Gaps in all", Figure::single(Unit::Count, Method::Count, 1_482.0)),
        row("disturbance.migrations", "Migrations", Figure::single(Unit::Count, Method::Count, 0.0)),
        row(
            "disturbance.idle.stolen",
            "Time that the hypervisor took",
            Figure::single(Unit::Ratio, Method::Derived, 0.000_2),
        ),
    ];
    let mut chapter = chapter(
        "disturbance",
        "Disturbance",
        "What takes the CPU away from a thread that only polls.",
        vec![table("disturbance", "Gaps", rows)],
    );
    chapter.notes.push(note(
        NoteKind::Warning,
        "23 of 20,000 rounds could not be told apart: interrupted or stolen.",
        None,
    ));
    chapter.incidents = vec![gap(), late_wakeup()];
    chapter
}

fn span(from_ns: i64, to_ns: i64, who: &str, kind: &str) -> IncidentSpan {
    let concluded = kind == "hypervisor";
    IncidentSpan { from_ns, to_ns, who: who.to_owned(), kind: kind.to_owned(), concluded }
}

/// A polling loop that a hypervisor and then the timer interrupted.
pub(crate) fn gap() -> Incident {
    Incident {
        kind: IncidentKind::Gap,
        began: "2025-03-08T09:27:10.042Z".to_owned(),
        cpu: 1,
        length_ns: 2_310_000,
        spans: vec![
            span(-577_500, 0, "the thread itself", "thread"),
            span(0, 2_290_000, "hypervisor", "hypervisor"),
            span(2_290_000, 2_301_000, "timer interrupt", "timer"),
            span(2_301_000, 2_310_000, "softirq TIMER", "softirq"),
            span(2_310_000, 2_500_000, "the thread itself", "thread"),
            span(2_500_000, 2_503_000, "interrupt 27, eth0-rx-0", "interrupt"),
            span(2_503_000, 2_887_500, "the thread itself", "thread"),
        ],
        left_out: 0,
    }
}

/// A thread that another task and a name like markup kept waiting.
pub(crate) fn late_wakeup() -> Incident {
    Incident {
        kind: IncidentKind::Wakeup,
        began: "2025-03-08T09:27:11.500Z".to_owned(),
        cpu: 0,
        length_ns: 48_000,
        spans: vec![
            span(-12_000, -2_000, "nobody: the CPU was idle", "idle"),
            span(-2_000, 40_000, "task <script>alert(1), pid 4711, nice 0", "task"),
            span(40_000, 48_000, "the thread's own system call", "own_call"),
            span(48_000, 60_000, "the thread itself", "thread"),
        ],
        left_out: 3,
    }
}

fn memory() -> Chapter {
    let mut rate = samples(80, 200, 11.4e9, 0.03);
    let rows = vec![
        row("memory.copy.4k", "Copy, 4 KiB blocks", Figure::from_samples(Unit::BytesPerS, Method::Rate, &mut rate)),
        row("memory.fault.first", "First touch of a page", figure(81, 3, 741.0, 0.1)),
    ];
    chapter("memory", "Memory", "How fast blocks move.", vec![table("memory", "Blocks", rows)])
}
