//! Asks for a real-time policy, a CPU and locked memory; says what was granted, and gives it all back.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_time::{Grant, Host, Machine, Nanos, Policy, RealTime, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate(Host)?;
    let wishes = RealTime {
        policy: Some(Policy::Fifo(50)),
        cpu: Host.affinity().0.last().copied(),
        lock_memory: true,
        slack: Some(Nanos::new(1)),
    };
    let guard = wishes.apply(&Host);
    for grant in guard.grants() {
        match grant {
            Grant::Granted(setting) => println!("{setting}: granted"),
            Grant::Refused(setting, refused) => println!("{setting}: failed to {refused}"),
        }
    }
    let report = timebase.delay(Nanos::from_millis(1))?;
    println!("under {:?}: {} late, {}", Host.policy(), report.late, report.verdict.name());
    drop(guard);
    println!("and back to {:?}", Host.policy());
    Ok(())
}
