//! [`Watcher`]: the culprits of the worst cases of a turn, from the kernel's records of the CPU that the jobs run on.

use hairspring_culprit::host::{Tracer, TracerSettings, Untraced, own_thread};
use hairspring_culprit::{CpuHistory, LostTime, Terms, Wanted, blame};
use hairspring_machine::{Cpu, Host, Instant, Nanos};
use hairspring_suite::lost_time::{polled, slept};
use hairspring_suite::time_of_day;
use hairspring_suite::workload::Workload;
use hairspring_time::{POLL_MOST, RealTime};

use super::{CaseCulprit, WorstCase};

/// Size of the kernel's ring. The records of a turn fit, beside a load of disks and networks.
const RING_BYTES: usize = 16 << 20;
/// Time of polling and number of sleeps at the start, which measure how long this machine takes to deliver an
/// interrupt.
const POLLED: Nanos = Nanos::from_millis(200);
const SLEEPS: i64 = 100;
const GAPS_MOST: usize = 20_000;
const PERIOD: Nanos = Nanos::from_millis(1);

/// Reads the kernel's records of one CPU. They are on from [`open`](Self::open) until it is dropped, which takes the
/// kernel up to a second.
pub(super) struct Watcher {
    tracer: Tracer,
    history: CpuHistory,
    terms: Terms,
}

impl Watcher {
    /// Begins to read. Blocks for about half a second; the calling thread's CPU is as before when it returns.
    pub(super) fn open(cpu: Cpu, guest: bool) -> Result<Self, Untraced> {
        let settings =
            TracerSettings { ring_bytes: RING_BYTES, rare_vectors: !guest, ..TracerSettings::of_cpus([cpu]) };
        let _pinned = RealTime { cpu: Some(cpu), ..RealTime::default() }.apply(&Host);
        let mut tracer = Tracer::open(&settings)?;
        tracer.self_test()?;
        let terms = if guest { Terms::guest() } else { Terms::bare_metal() };
        let mut watcher = Self { tracer, history: CpuHistory::new(), terms };
        let mut lost = polled(POLLED, GAPS_MOST);
        lost.extend(slept(PERIOD, PERIOD * SLEEPS, || false));
        watcher.drain();
        watcher.terms = watcher.terms.learned(&lost, &watcher.history);
        Ok(watcher)
    }

    /// Finds the culprits of these values, each with the time at which it ended. The values are from a turn of the
    /// calling thread that has just ended; records from before are forgotten.
    pub(super) fn cases(&mut self, workload: Workload, worst: &[(Nanos, Instant)]) -> Vec<WorstCase> {
        let until = self.drain();
        let wanted = match workload {
            Workload::Gaps => Wanted::Run,
            Workload::Delay(request) if request <= POLL_MOST => Wanted::Run,
            Workload::Loop(_) | Workload::Delay(_) | Workload::Reaction(_) => Wanted::Wake,
        };
        let name = |&(value, ended): &(Nanos, Instant)| {
            let lost = LostTime { thread: own_thread(), from: ended - value, to: ended, wanted };
            let blame = blame(&lost, &self.history, &self.terms);
            case(value, ended, said(&blame))
        };
        let cases = worst.iter().map(name).collect();
        self.history.forget_before(until);
        cases
    }

    fn drain(&mut self) -> Instant {
        let history = &mut self.history;
        let until = self.tracer.drain(|_, record| history.push(record));
        history.known_until(until);
        until
    }
}

/// A worst case with its time of day.
pub(super) fn case(value: Nanos, ended: Instant, culprit: Result<CaseCulprit, String>) -> WorstCase {
    WorstCase { value, ended, when: time_of_day(ended), culprit }
}

/// The greatest culprit, with its share if it is not all.
fn said(blame: &hairspring_culprit::Blame) -> Result<CaseCulprit, String> {
    let chief = blame.chief().ok_or("no time was lost")?;
    if !chief.culprit.is_named() {
        return Err(chief.culprit.to_string());
    }
    let percent = 100.0 * chief.time.count() as f64 / blame.time().count() as f64;
    let part = if percent < 99.5 { format!(" ({percent:.0} % of it)") } else { String::new() };
    Ok(CaseCulprit { kind: chief.culprit.kind(), said: format!("{}{part}", chief.culprit) })
}
