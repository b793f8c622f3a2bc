//! The idle states of the CPU: a stated condition of all wake-up measurements, because a CPU in a deep state takes long
//! to wake.

use hairspring_machine::Machine;

use crate::host::system;
use crate::probe::Context;

/// Notes in the chapter the idle states during its wake-ups.
pub(crate) fn remark<M: Machine + Clone + Sync + 'static>(context: &mut Context<'_, M>) {
    if context.host_timebase().is_some() {
        context.remark_once(sentence(system::idle_states().as_deref(), context.timebase.trust().guest));
    }
}

fn sentence(states: Option<&str>, guest: bool) -> String {
    match (states, guest) {
        (Some(states), false) => {
            format!("Idle states of the CPU: {states}. Every wake-up includes the exit from them.")
        }
        (Some(states), true) => format!(
            "Idle states of the CPU: {states}; the host's CPU has its own idle states below them. Every wake-up includes the exit from both."
        ),
        (None, true) => {
            "Idle states: the host's, which this guest does not see. Every wake-up includes the exit from them."
                .to_owned()
        }
        (None, false) => {
            "Idle states of the CPU: unknown on this system. Every wake-up includes the exit from them.".to_owned()
        }
    }
}

/// The effect of holding the CPU out of its idle states on wake-ups: the medians without and with it.
pub(crate) fn evidence(usual_ns: Option<f64>, held_ns: Option<f64>) -> String {
    match (usual_ns, held_ns) {
        (Some(usual), Some(held)) => format!(
            "With idle states held off (/dev/cpu_dma_latency at 0) wake-ups under SCHED_FIFO are late by {:.1} µs in the median, without by \
             {:.1} µs: the difference is the idle states'.",
            held / 1e3,
            usual / 1e3
        ),
        _ => "The share of the idle states in a wake-up is not verified: no permission to hold /dev/cpu_dma_latency, or the policy was refused.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_names_what_the_system_tells_and_whose_states_they_are() {
        let known = sentence(Some("POLL, C1 (driver intel_idle)"), false);
        assert!(known.contains("C1") && !known.contains("host"), "{known}");
        assert!(
            sentence(Some("haltpoll"), true).contains("haltpoll")
                && sentence(Some("haltpoll"), true).contains("host's")
        );
        assert!(sentence(None, true).starts_with("Idle states: the host's"));
        assert!(sentence(None, false).contains("unknown on this system"));
        assert!(evidence(Some(50_000.0), Some(4_000.0)).contains("4.0 µs in the median, without by 50.0 µs"));
        assert!(evidence(Some(50_000.0), None).contains("not verified"));
    }
}
