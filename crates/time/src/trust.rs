//! [`Trust`]: whether the machine's counter can be trusted, and why.

use hairspring_machine::{CounterEvidence, Nanos};

/// A counter read that takes longer is emulated by a hypervisor: two hundred times the cost of the instruction.
pub(crate) const TRAPPED_READ_COST: Nanos = Nanos::new(1_000);

/// Clock sources that are the counter itself.
const DIRECT_SOURCES: [&str; 2] = ["tsc", "arch_sys_counter"];
/// Clock sources of hypervisors, which scale the counter for the guest.
const LAYERED_SOURCES: [&str; 3] = ["kvm-clock", "hyperv_clocksource_tsc_page", "xen"];

/// Whether a kernel with this clock source keeps its time with the counter.
pub(crate) fn is_kept_with_the_counter(clocksource: &str) -> bool {
    DIRECT_SOURCES.contains(&clocksource) || LAYERED_SOURCES.contains(&clocksource)
}

/// The source of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSource {
    /// The CPU's counter.
    Counter,
    /// `CLOCK_MONOTONIC`, because the counter is not trusted: correct, but slower to read and coarser.
    KernelClock,
}

/// The verdict on the counter, with its reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// Whether the counter is used.
    pub trusted: bool,
    /// Whether the machine is a guest, where the hypervisor can take time unseen.
    pub guest: bool,
    /// Each piece of evidence, for and against.
    pub reasons: Vec<TrustReason>,
}

/// One piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustReason {
    /// Whether it speaks for the counter.
    pub supports: bool,
    /// The evidence, as a sentence fragment.
    pub text: String,
}

impl Trust {
    /// Judges the evidence. The counter is used only if the CPU promises its rate **and** the kernel relies on it
    /// (clock source `tsc` or `arch_sys_counter`, or a hypervisor's clock on top of a TSC that the kernel knows to be
    /// constant and non-stop) **and** the process may read the counter without a trap.
    pub fn judge(evidence: &CounterEvidence) -> Self {
        let name = evidence.name;
        let mut reasons = Vec::new();
        let mut weigh = |supports: bool, yes: String, no: String| {
            reasons.push(TrustReason { supports, text: if supports { yes } else { no } });
        };
        weigh(
            evidence.invariant,
            format!("the CPU promises that {name} runs at a constant rate"),
            format!("the CPU does not promise a constant rate of {name}"),
        );
        match &evidence.clocksource {
            Ok(source) => {
                let direct = DIRECT_SOURCES.contains(&source.as_str());
                weigh(
                    direct || (is_kept_with_the_counter(source) && evidence.kernel_says_constant),
                    format!("the kernel keeps its time with it (clock source {source})"),
                    format!("the kernel keeps its time with {source}, not with {name}"),
                );
            }
            Err(unread) => weigh(false, String::new(), format!("the clock source is unknown: {}", unread.reason)),
        }
        weigh(
            evidence.readable,
            "this process may read it".to_owned(),
            "this process may not read it (PR_SET_TSC)".to_owned(),
        );
        weigh(
            evidence.read_cost < TRAPPED_READ_COST,
            format!("a read is not trapped: it takes {}", evidence.read_cost),
            format!("a read takes {}: a hypervisor traps it", evidence.read_cost),
        );
        Self { trusted: reasons.iter().all(|reason| reason.supports), guest: evidence.hypervisor.is_some(), reasons }
    }

    /// The source of time under this verdict.
    pub fn source(&self) -> TimeSource {
        if self.trusted { TimeSource::Counter } else { TimeSource::KernelClock }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hairspring_machine::facts::Unread;

    fn evidence() -> CounterEvidence {
        CounterEvidence {
            name: "tsc",
            invariant: true,
            clocksource: Ok("tsc".to_owned()),
            kernel_says_constant: true,
            readable: true,
            read_cost: Nanos::new(9),
            hypervisor: None,
        }
    }

    #[track_caller]
    fn check(evidence: &CounterEvidence, trusted: bool, because: &str) {
        let trust = Trust::judge(evidence);
        assert_eq!(trust.trusted, trusted, "{trust:?}");
        assert!(trust.reasons.iter().any(|reason| reason.supports == trusted && reason.text.contains(because)));
    }

    #[test]
    fn the_counter_is_trusted_only_if_cpu_kernel_and_process_agree() {
        check(&evidence(), true, "clock source tsc");
        check(&CounterEvidence { invariant: false, ..evidence() }, false, "does not promise");
        check(&CounterEvidence { clocksource: Ok("hpet".to_owned()), ..evidence() }, false, "hpet");
        check(&CounterEvidence { clocksource: Ok("kvm-clock".to_owned()), ..evidence() }, true, "kvm-clock");
        check(&CounterEvidence { readable: false, ..evidence() }, false, "may not read");
        check(&CounterEvidence { read_cost: Nanos::from_micros(2), ..evidence() }, false, "traps");
        check(&CounterEvidence { read_cost: TRAPPED_READ_COST, ..evidence() }, false, "traps");
        let layered =
            CounterEvidence { clocksource: Ok("kvm-clock".to_owned()), kernel_says_constant: false, ..evidence() };
        check(&layered, false, "kvm-clock");
        let unread = Unread { reason: "no /sys here".to_owned(), remedy: None };
        check(&CounterEvidence { clocksource: Err(unread), ..evidence() }, false, "no /sys here");
    }
}
