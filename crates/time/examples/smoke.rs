//! scratch
use hairspring_time::*;
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tb = Timebase::calibrate(Host)?;
    println!("{:?}\n{:?} {:?}", tb.calibration(), tb.cost(), tb.trust());
    std::thread::sleep(std::time::Duration::from_millis(100));
    let tb = tb.refine();
    println!("{:?} {:?}", tb.continuity, tb.timebase.calibration());
    let tb = tb.timebase;
    println!("{:?}", Skew::measure(&tb, Cpu(0), Cpu(1)));
    for us in [1, 2, 3, 5, 10, 100] {
        let mut v: Vec<_> = (0..2000).map(|_| tb.delay(Nanos::from_micros(us)).unwrap()).collect();
        v.sort_by_key(|r| r.late);
        println!(
            "{us} us: min {} med {} p99 {} max {} {}",
            v[0].late,
            v[1000].late,
            v[1980].late,
            v[1999].late,
            v[1999].verdict.name()
        );
    }
    for pol in [Policy::Other, Policy::Fifo(80)] {
        let _g = RealTime { policy: Some(pol), cpu: Some(Cpu(1)), lock_memory: true, slack: None }.apply(&Host);
        let mut long = LongDelay::new(&tb);
        for (ms, n) in [(1, 500usize), (10, 100), (100, 10), (1000, 3)] {
            let mut v: Vec<_> = (0..n)
                .map(|_| {
                    let a = tb.stamp_ordered();
                    let r = long.delay(Nanos::from_millis(ms)).unwrap();
                    let b = tb.stamp_ordered();
                    (r, tb.nanos(b.since(a)) - Nanos::from_millis(ms))
                })
                .collect();
            v.sort_by_key(|r| r.1);
            println!(
                "{pol:?} {ms} ms: min {} med {} (inner {}) p99 {} max {} {} window {} polled {}",
                v[0].1,
                v[n / 2].1,
                v[n / 2].0.late,
                v[n * 99 / 100].1,
                v[n - 1].1,
                v[n - 1].0.verdict.name(),
                v[n / 2].0.window,
                v[n / 2].0.polled
            );
        }
    }
    let mut p = Profile::new(&tb, Ordering::Ordered);
    for _ in 0..1000 {
        p.span(|| std::hint::black_box(1));
    }
    println!("{:?}", p.summary());
    let mut p = Profile::new(&tb, Ordering::Unordered);
    for _ in 0..1000 {
        p.span(|| std::hint::black_box(1));
    }
    println!("{:?}", p.summary());
    Ok(())
}
