//! The real-time priorities of an executive's threads, from the watchdog down to the least urgent task.

use hairspring_exec_core::Priority;
use hairspring_machine::Policy;

/// Kernel priority of a task of priority 0; one of 63 gets 17. So the interrupt threads of a PREEMPT_RT kernel (50) lie
/// among the tasks, and the executive's own threads above them.
const MOST_URGENT: u8 = 80;
/// Ticks and timer procedures: above all tasks.
pub(super) const KERNEL: Policy = Policy::Fifo(85);
/// Interrupt service procedures: above the kernel thread.
pub(super) const INTERRUPT: Policy = Policy::Fifo(88);
/// The watchdog: above everything that could run away.
pub(super) const WATCHDOG: Policy = Policy::Fifo(95);

/// The scheduling policy of a task of this priority.
pub(super) fn policy_of(priority: Priority) -> Policy {
    Policy::Fifo(MOST_URGENT - priority.number())
}
