//! Pools of buffers: which of a fixed number is in use. The core does not see their contents.

use crate::call::{CallStatus, Reply};
use crate::id::PoolId;
use crate::observer::Observer;
use crate::state::core::Core;
use crate::state::objects::Pool;

impl<O: Observer> Core<O> {
    pub(crate) fn create_pool(&mut self, buffers: u16) -> Reply {
        let pool = Pool { free: (0..buffers).rev().collect(), in_use: alloc::vec![false; usize::from(buffers)] };
        match self.objects.pools.add(pool) {
            Some((index, generation)) => Reply::ok(PoolId { index, generation }.number()),
            None => CallStatus::TooMany.into(),
        }
    }

    pub(crate) fn delete_pool(&mut self, pool: PoolId) -> Reply {
        let Some(found) = self.objects.pools.get(pool.index, pool.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        if found.in_use.contains(&true) {
            return CallStatus::InUse.into();
        }
        self.objects.pools.remove(pool.index);
        Reply::OK
    }

    pub(crate) fn get_buffer(&mut self, pool: PoolId) -> Reply {
        let Some(pool) = self.objects.pools.get_mut(pool.index, pool.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        let Some(buffer) = pool.free.pop() else { return CallStatus::Empty.into() };
        pool.in_use[usize::from(buffer)] = true;
        Reply::ok(u32::from(buffer))
    }

    pub(crate) fn free_buffer(&mut self, pool: PoolId, buffer: u16) -> Reply {
        let Some(pool) = self.objects.pools.get_mut(pool.index, pool.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        match pool.in_use.get_mut(usize::from(buffer)) {
            Some(in_use) if *in_use => *in_use = false,
            _ => return CallStatus::NotInUse.into(),
        }
        // Never allocates: there was room for all of them at the beginning.
        pool.free.push(buffer);
        Reply::OK
    }

    /// How many buffers of a pool are free.
    pub fn free_buffers(&self, pool: PoolId) -> Option<usize> {
        Some(self.objects.pools.get(pool.index, pool.generation)?.free.len())
    }
}
