//! [`Carrier`]: the machines that can run fibers: this computer and the simulated one.

use crate::system::clock::{instant_of, moment_of};
use std::sync::OnceLock;

use hairspring_exec_core::Moment;
use hairspring_machine::{CounterEvidence, Host, Machine, Nanos, Sim};

use crate::interrupt::Doorbell;

/// A machine whose one thread runs all tasks.
pub(crate) trait Carrier: Machine + Clone + Sized + 'static {
    /// The name of the back-end in traces.
    const NAME: &'static str;
    /// Whether other threads exist that could disturb or post.
    const REAL: bool;

    /// Sleeps until the bell rings, at most until `until`.
    fn idle(&self, doorbell: &Doorbell, until: Option<Moment>);

    /// Lets a task compute for this long without a look at interrupts or time.
    fn compute(&self, span: Nanos);

    /// Whether the counter runs at one rate and may be read.
    fn trusts_counter(&self) -> bool;

    /// `CLOCK_MONOTONIC`.
    #[inline]
    fn moment(&self) -> Moment {
        moment_of(self.monotonic())
    }
}

impl Carrier for Host {
    const NAME: &'static str = "fiber";
    const REAL: bool = true;

    fn idle(&self, doorbell: &Doorbell, until: Option<Moment>) {
        doorbell.sleep(until);
    }

    fn compute(&self, span: Nanos) {
        let end = self.monotonic() + span;
        while self.monotonic() < end {
            self.relax();
        }
    }

    fn trusts_counter(&self) -> bool {
        // The evidence is in files. A process that later forbids itself the counter knows the consequences.
        static TRUSTED: OnceLock<bool> = OnceLock::new();
        *TRUSTED.get_or_init(|| is_steady(&self.counter_evidence()))
    }
}

impl Carrier for Sim {
    const NAME: &'static str = "sim";
    const REAL: bool = false;

    fn idle(&self, _doorbell: &Doorbell, until: Option<Moment>) {
        if let Some(until) = until {
            self.sleep_until(instant_of(until));
        }
    }

    fn compute(&self, span: Nanos) {
        self.work(span);
    }

    fn trusts_counter(&self) -> bool {
        is_steady(&self.counter_evidence())
    }
}

/// Whether the evidence speaks for a counter of one rate that this process may read.
fn is_steady(evidence: &CounterEvidence) -> bool {
    evidence.readable && evidence.invariant && evidence.kernel_says_constant
}
