//! Async code and tasks: a task waits for an async driver on another thread, and async code awaits a task.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use hairspring_exec::{Backend, Create, ExecConfig, Executive, Limit, Priority, RunLimit, Services};

/// The value that the driver hands over, and the waker of the task that awaits it. Any channel for async code would do.
type Reading = Arc<Mutex<(Option<f64>, Option<Waker>)>>;

/// The smallest executor: one thread that sleeps between polls. Programs have one already.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut executive = Executive::new(Backend::fiber(), &ExecConfig::default())?;
    let reading = Reading::default();
    let ours = Arc::clone(&reading);
    let regulates = executive.spawn("regulates", Priority::HIGHEST, move |ctx| {
        let arrives = poll_fn(|context| {
            let mut reading = ours.lock().expect("nobody panics with it");
            reading.1 = Some(context.waker().clone());
            reading.0.take().map_or(Poll::Pending, Poll::Ready)
        });
        // Less urgent tasks run meanwhile.
        ctx.block_on(arrives, Limit::Forever).map(|celsius| celsius > 40.0)
    })?;
    let other = executive.task("idle", Priority::LOWEST, |_| println!("another task runs meanwhile"))?;
    executive.trigger(other)?;

    // The async side, with an executor of its own.
    let driver = std::thread::spawn(move || {
        block_on(async {
            let waker = {
                let mut reading = reading.lock().expect("nobody panics with it");
                reading.0 = Some(41.5);
                reading.1.take()
            };
            waker.into_iter().for_each(Waker::wake);
            // The end of the task, with its result.
            regulates.await
        })
    });
    executive.run(RunLimit::Forever);
    println!("too hot: {:?}", driver.join().map_err(|_| "the driver panicked")??);
    Ok(())
}
