//! Attributes the gaps of a run to interrupts or to the hypervisor, from the kernel's counters for the CPU.
//!
//! A guest cannot distinguish a gap by an interrupt from one by the hypervisor. But if its CPU handled *no* interrupt
//! at all during the run, and the kernel saw stolen time, then every gap without a preemption was stolen. Other counts
//! do not decide: steal is counted in steps of 10 ms, so a run without a step excludes little.

use hairspring_machine::CpuCounters;
use hairspring_machine::facts::Unread;
use hairspring_time::Cause;

/// The conclusion from the counters of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Attribution {
    /// Gaps without a preemption were all stolen.
    AllStolen,
    /// The counters do not decide; with their values.
    Open(String),
}

impl Attribution {
    pub(super) fn decide(before: &Result<CpuCounters, Unread>, after: &Result<CpuCounters, Unread>) -> Self {
        match (before, after) {
            (Ok(before), Ok(after)) => {
                let interrupts = after.interrupts.wrapping_sub(before.interrupts);
                let steal = after.steal - before.steal;
                if interrupts == 0 && steal.count() > 0 {
                    Self::AllStolen
                } else {
                    Self::Open(format!(
                        "While the loop polled, its CPU handled {interrupts} interrupts and the kernel counted {steal} stolen \
                         (in steps of 10 ms)."
                    ))
                }
            }
            (Err(unread), _) | (_, Err(unread)) => {
                Self::Open(format!("The CPU's counters could not be read: {}.", unread.reason))
            }
        }
    }

    /// The cause under which the watch recorded the gaps that are reported as `cause`; none if the counters exclude
    /// such gaps.
    pub(super) fn source_of(&self, cause: Cause) -> Option<Cause> {
        match (self, cause) {
            (Self::AllStolen, Cause::Stolen) => Some(Cause::InterruptedOrStolen),
            (Self::AllStolen, Cause::InterruptedOrStolen) | (Self::Open(_), Cause::Stolen) => None,
            (_, cause) => Some(cause),
        }
    }

    /// The note about the counters.
    pub(super) fn remark(&self) -> Option<String> {
        match self {
            Self::AllStolen => Some(
                "The CPU handled no interrupt while the loop polled and the kernel counted stolen time.".to_owned(),
            ),
            Self::Open(remark) => Some(remark.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use hairspring_machine::Nanos;

    use super::*;

    #[track_caller]
    fn decide(interrupts: u64, steal: i64) -> Attribution {
        let counters = |interrupts, steal| Ok(CpuCounters { steal: Nanos::new(steal), interrupts });
        Attribution::decide(&counters(5, 1_000), &counters(5 + interrupts, 1_000 + steal))
    }

    #[test]
    fn gaps_are_called_stolen_only_if_nothing_else_is_left() {
        assert_eq!(decide(0, 10_000_000), Attribution::AllStolen);
        for (interrupts, steal) in [(1, 10_000_000), (0, 0), (7, 0)] {
            let open = decide(interrupts, steal);
            assert!(matches!(open, Attribution::Open(_)), "{interrupts} interrupts, {steal} ns stolen");
            assert_eq!(open.source_of(Cause::Stolen), None);
            assert_eq!(open.source_of(Cause::InterruptedOrStolen), Some(Cause::InterruptedOrStolen));
        }
        let unread = || Err(Unread { reason: "no /proc/stat".to_owned(), remedy: None });
        assert!(matches!(Attribution::decide(&unread(), &unread()), Attribution::Open(_)));
    }
}
