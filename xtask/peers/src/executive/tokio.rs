//! tokio: its current-thread runtime with a `LocalSet`, without timers or I/O drivers.

use std::future::Future;

use hairspring_sheet::Absent;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use super::asynchronous::{Asynchronous, Driver};

/// tokio behind the port.
pub(crate) type Tokio = Asynchronous<CurrentThread>;

/// A runtime and the set of its tasks; dropping it drops them.
pub(crate) struct CurrentThread {
    tasks: LocalSet,
    runtime: Runtime,
}

impl Driver for CurrentThread {
    fn make() -> Result<Self, Absent> {
        let runtime = Builder::new_current_thread().build();
        let runtime = runtime.map_err(|error| Absent::final_(format!("failed to make a runtime: {error}")))?;
        Ok(Self { tasks: LocalSet::new(), runtime })
    }

    fn spawn(&mut self, future: impl Future<Output = ()> + 'static) {
        self.tasks.spawn_local(future);
    }

    fn run(&mut self, stopped: impl Future<Output = ()> + 'static) {
        self.tasks.block_on(&self.runtime, stopped);
    }
}
