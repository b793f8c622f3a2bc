//! Memory of a parked fiber: the resident set before and after a thousand of them, in a fresh process.

use std::process::Command;
use std::sync::{Arc, Mutex};

use hairspring_exec::{Backend, Create, ExecConfig, Executive, Limit, Priority, RunLimit, Services};

/// Number of parked fibers.
const FIBERS: usize = 1_000;

/// In the fresh process: prints the bytes for each fiber.
pub(crate) fn once() -> Result<(), String> {
    let bytes = measure()?;
    println!("{bytes}");
    Ok(())
}

/// Starts the fresh process; bytes for each fiber.
pub(crate) fn take() -> Result<f64, String> {
    let own = std::env::current_exe().map_err(|error| format!("find this program: {error}"))?;
    let output = Command::new(own).arg("parked-fibers").output();
    let output = output.map_err(|error| format!("start a fresh process: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| format!("read a result: {text:?}"))
}

fn measure() -> Result<f64, String> {
    let executive = Executive::new(Backend::fiber(), &ExecConfig::default()).map_err(|error| error.to_string())?;
    let tray = Arc::new(Mutex::new(Err("the run came to no end".to_owned())));
    let left = Arc::clone(&tray);
    let urgent = Priority::new(10).unwrap_or(Priority::LOWEST);
    let measuring = executive.task("B", Priority::LOWEST, move |ctx| {
        // One fiber that is not counted, so that one-time allocations are done.
        let outcome = park(ctx, urgent, 1).and_then(|()| {
            let before = resident_bytes()?;
            park(ctx, urgent, FIBERS)?;
            Ok((resident_bytes()? - before) / FIBERS as f64)
        });
        if let Ok(mut left) = left.lock() {
            *left = outcome;
        }
        ctx.stop();
    });
    let measuring = measuring.map_err(|status| format!("make a task: {status}"))?;
    executive.trigger(measuring).map_err(|status| format!("start a task: {status}"))?;
    let mut executive = executive;
    executive.run(RunLimit::Forever);
    tray.lock().map_err(|_| "read the result".to_owned())?.clone()
}

/// Makes tasks that run at once, and wait.
fn park(ctx: &hairspring_exec::TaskCtx<'_>, urgent: Priority, count: usize) -> Result<(), String> {
    for _ in 0..count {
        let task = ctx.task("parked", urgent, |ctx| {
            let _ = ctx.wait(Limit::Forever);
        });
        let task = task.map_err(|status| format!("make a task: {status}"))?;
        ctx.trigger(task).map_err(|status| format!("start a task: {status}"))?;
    }
    Ok(())
}

/// The exact count; `statm` sums counters of each CPU and is some pages off.
fn resident_bytes() -> Result<f64, String> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").map_err(|error| format!("read memory: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")).and_then(|number| number.trim().parse().ok());
    kilobytes.map(|kilobytes: f64| kilobytes * 1024.0).ok_or_else(|| "find Rss in smaps_rollup".to_owned())
}
