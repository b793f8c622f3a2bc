//! Refuses fibers to a thread with a shadow stack (CET on x86_64, GCS on aarch64).
//!
//! A shadow stack holds the return addresses of one stack. A fiber returns to addresses of another, and the processor
//! takes that for an attack: the process would end by SIGSEGV at the first switch.

use crate::config::ExecError;
use crate::host::shadow_stack_pointer;

/// Whether the calling thread can switch stacks.
pub(crate) fn can_switch() -> Result<(), ExecError> {
    judge(pointer())
}

fn judge(pointer: u64) -> Result<(), ExecError> {
    if pointer == 0 { Ok(()) } else { Err(ExecError::ShadowStack) }
}

#[cfg(not(test))]
fn pointer() -> u64 {
    shadow_stack_pointer()
}

/// As if the thread had this shadow stack.
#[cfg(test)]
fn pointer() -> u64 {
    tests::INJECTED.get().unwrap_or_else(shadow_stack_pointer)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{Backend, ExecConfig, Executive};

    thread_local! {
        pub(super) static INJECTED: Cell<Option<u64>> = const { Cell::new(None) };
    }

    #[test]
    fn fibers_are_refused_to_a_thread_with_a_shadow_stack_and_threads_are_not() {
        let made = |backend| Executive::new(backend, &ExecConfig::default()).map(drop);
        INJECTED.set(Some(0x7f00_0000_0ff8));
        for on_fibers in [Backend::fiber(), Backend::sim()] {
            let refused = made(on_fibers).unwrap_err();
            assert!(matches!(refused, ExecError::ShadowStack), "{refused}");
            assert!(refused.to_string().contains("shadow stack"), "{refused}");
        }
        made(Backend::thread_up()).unwrap();
        INJECTED.set(Some(0));
        made(Backend::fiber()).unwrap();
    }

    #[test]
    fn the_processor_says_of_this_thread_what_the_kernel_says() {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let features = status.lines().find_map(|line| line.strip_prefix("x86_Thread_features:"));
        let told = features.is_some_and(|features| features.split_whitespace().any(|feature| feature == "shstk"));
        assert_eq!(shadow_stack_pointer() != 0, told, "{features:?}");
    }
}
