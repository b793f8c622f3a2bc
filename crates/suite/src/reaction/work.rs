//! Work: a loop that uses a given CPU time, however often it is preempted.

use hairspring_machine::{Clock, Machine, Nanos};

/// Computes until the calling thread has used `span` more CPU time.
pub(super) fn work<M: Machine>(machine: &M, span: Nanos) {
    let end = machine.read(Clock::ThreadCpu) + span;
    while machine.read(Clock::ThreadCpu) < end {
        machine.relax();
    }
}
