//! The settings of the measuring thread: each probe names its own, and the runner applies them while the probe runs.

use hairspring_machine::{Machine, Nanos};
use hairspring_sheet::Absent;
use hairspring_time::{RealTime, RealTimeGuard};

use super::context::{Class, Context, policy_refused};

/// The settings of the thread for a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// Unchanged settings: the probe places its own threads.
    AsStarted,
    /// On the CPU of the sheet, if the system permits it.
    Pinned,
    /// On the CPU of the sheet, under this policy. The rows are absent if the policy is refused.
    Class(Class),
    /// The same with a timer slack of 1 ns, as periodic threads set it.
    Punctual(Class),
    /// On the CPU of the sheet, under `SCHED_FIFO` or, if that is refused, as an ordinary thread.
    BestClass,
}

/// Settings in force.
pub(super) struct Held<'m, M: Machine> {
    setting: Setting,
    refused: Option<Absent>,
    _guard: Option<RealTimeGuard<'m, M>>,
}

impl<'m, M: Machine + Clone + Sync> Held<'m, M> {
    /// Applies the settings until this is dropped.
    pub(super) fn take(setting: Setting, context: &Context<'_, M>, machine: &'m M) -> Self {
        let (wanted, strict) = match setting {
            Setting::AsStarted => return Self { setting, refused: None, _guard: None },
            Setting::Pinned => (RealTime { cpu: Some(context.cpu), ..RealTime::default() }, false),
            Setting::Class(class) => (context.settings(class), true),
            Setting::Punctual(class) => (RealTime { slack: Some(Nanos::new(1)), ..context.settings(class) }, true),
            Setting::BestClass => {
                let best = Self::take(Setting::Class(Class::Fifo), context, machine);
                return match best.refused {
                    None => best,
                    Some(_) => {
                        drop(best);
                        Self::take(Setting::Class(Class::Other), context, machine)
                    }
                };
            }
        };
        let guard = wanted.apply(machine);
        let refused = policy_refused(&guard).filter(|_| strict);
        Self { setting, refused, _guard: Some(guard) }
    }

    /// Why the settings were refused, if they were.
    pub(super) fn refused(&self) -> Option<Absent> {
        self.refused.clone()
    }

    /// Whether a probe with that setting can run under these.
    pub(super) fn suits(&self, setting: Setting) -> bool {
        let best = setting == Setting::BestClass && matches!(self.setting, Setting::Class(_)) && self.refused.is_none();
        self.setting == setting || best
    }
}
