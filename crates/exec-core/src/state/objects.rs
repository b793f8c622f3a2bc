//! The records of the objects that tasks share: semaphores, resources, event groups, exchanges, pools and heaps.

use alloc::vec::Vec;

use crate::call::ResourceProtocol;
use crate::state::arena::Arena;
use crate::state::mail::Mailboxes;
use crate::state::queue::Queue;
use crate::state::table::Table;
use crate::state::task::Waiting;

/// The objects that have wait lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    pub(crate) semaphores: Table<Semaphore>,
    pub(crate) resources: Table<Resource>,
    pub(crate) events: Table<Events>,
    pub(crate) exchanges: Table<Exchange>,
    pub(crate) pools: Table<Pool>,
    pub(crate) heaps: Table<Heap>,
    /// The tasks that wait for the end of another task's run.
    pub(crate) joiners: Queue,
}

impl Objects {
    /// The wait list of a task in this wait.
    #[inline(always)]
    pub(crate) fn wait_list(&mut self, waiting: Waiting) -> Option<&mut Queue> {
        match waiting {
            Waiting::Semaphore(slot) => Some(&mut self.semaphores.at_mut(slot).waiters),
            Waiting::Resource(slot) => Some(&mut self.resources.at_mut(slot).waiters),
            Waiting::Events(slot, ..) => Some(&mut self.events.at_mut(slot).waiters),
            Waiting::Exchange(slot) => Some(&mut self.exchanges.at_mut(slot).waiters),
            Waiting::Block(slot, _) => Some(&mut self.heaps.at_mut(slot).waiters),
            Waiting::End(_) => Some(&mut self.joiners),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Semaphore {
    pub(crate) count: u32,
    pub(crate) limit: u32,
    pub(crate) waiters: Queue,
}

#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub(crate) protocol: ResourceProtocol,
    pub(crate) owner: u16,
    pub(crate) depth: u32,
    /// The next resource of the same owner.
    pub(crate) next_held: u16,
    pub(crate) waiters: Queue,
}

#[derive(Clone, Debug)]
pub(crate) struct Events {
    pub(crate) bits: u32,
    pub(crate) waiters: Queue,
}

#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) boxes: Mailboxes,
    pub(crate) waiters: Queue,
}

#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) free: Vec<u16>,
    pub(crate) in_use: Vec<bool>,
}

#[derive(Clone, Debug)]
pub(crate) struct Heap {
    pub(crate) arena: Arena,
    pub(crate) waiters: Queue,
}
