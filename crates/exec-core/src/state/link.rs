//! [`Link`]: the place of a task in its queue, and [`NIL`], which means no slot.

use crate::id::Priority;

/// No task.
pub(crate) const NIL: u16 = u16::MAX;

/// The place of a task in its queue. Meaningless while the task is in none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) next: u16,
    pub(crate) previous: u16,
    /// The priority it was queued at, which is not always its own.
    pub(crate) at: Priority,
}

impl Default for Link {
    fn default() -> Self {
        Self { next: NIL, previous: NIL, at: Priority::LOWEST }
    }
}
