//! `hairspring top`: the tasks of a running executive, live.

use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use hairspring_exec::status::{ExecStatus, PublishedStatus, StatusError, TaskStatus, WRITE_PERIOD, published};
use hairspring_exec::{Instant, Nanos};
use hairspring_machine::{Host, Machine};

use crate::arguments::duration;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::output;
use crate::page::{Example, Page};
use crate::table::{Side, table};

/// Texts for help and manual.
pub(crate) const PAGE: Page = Page::new(
    "top",
    &[
        Example { does: "List the executives that can be watched", line: "hairspring top" },
        Example { does: "Watch the one that is published as `stand`", line: "hairspring top stand" },
        Example { does: "Print its tasks once, over two seconds", line: "hairspring top stand --once --every 2s" },
    ],
);

/// The shortest time between two pictures.
const LEAST: Nanos = WRITE_PERIOD;
/// Time between two looks at the flag of Ctrl-C.
const PATIENCE: Nanos = Nanos::from_millis(50);

/// Watch the tasks of a running executive
///
/// The program publishes its executive under a name; see Executive::publish. On fibers CPU shares are samples, and no
/// more exact.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Executive to watch: its name, its process or its file [default: list them]
    #[arg(value_name = "NAME|PID")]
    which: Option<String>,
    /// Time from one picture to the next, and the time that CPU shares are of
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    every: Nanos,
    /// Print one picture and end
    #[arg(long)]
    once: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Some(which) = &arguments.which else { return list() };
    if arguments.every < LEAST {
        return Err(Failure::bad_request("--every is at least 200ms: states do not change more often"));
    }
    let found = PublishedStatus::find(which).map_err(Failure::failed_to)?;
    let interrupted = interrupt::watch()?;
    let mut before = found.read().map_err(Failure::failed_to)?;
    loop {
        if !pause(arguments.every, &interrupted) {
            return Ok(Exit::Success);
        }
        if !found.is_alive() {
            return output::print(&format!("process {} has ended\n", found.pid));
        }
        let now = match found.read() {
            Ok(now) => now,
            Err(StatusError::NotPublished(_)) => {
                return output::print(&format!("process {} does not publish {} any more\n", found.pid, found.name));
            }
            Err(error) => return Err(Failure::failed_to(error)),
        };
        let style = output::style(false);
        let clear = if style.colour && !arguments.once { "\x1b[2J\x1b[H" } else { "" };
        output::print(&format!("{clear}{}", picture(&before, &now, Host.monotonic(), style.width)))?;
        if arguments.once {
            return Ok(Exit::Success);
        }
        before = now;
    }
}

/// Sleeps; false if the user asked to end.
fn pause(span: Nanos, interrupted: &AtomicBool) -> bool {
    let end = Host.monotonic() + span;
    loop {
        // Relaxed: only the flag itself counts.
        if interrupted.load(Ordering::Relaxed) {
            return false;
        }
        let left = end - Host.monotonic();
        if left <= Nanos::ZERO {
            return true;
        }
        let step = left.min(PATIENCE);
        std::thread::sleep(std::time::Duration::from_nanos(step.count().unsigned_abs()));
    }
}

fn list() -> Result<Exit, Failure> {
    let all = published().map_err(Failure::failed_to)?;
    if all.is_empty() {
        return output::print("no executive is published: a program publishes its own with Executive::publish(NAME)\n");
    }
    let rows: Vec<Vec<String>> = all.iter().map(|one| vec![one.name.clone(), one.pid.to_string()]).collect();
    output::print(&table(&[("executive", Side::Left), ("process", Side::Right)], &rows, output::style(false).width))
}

/// One picture: the executive, and a row for each task, the most urgent first.
fn picture(before: &ExecStatus, now: &ExecStatus, read_at: Instant, width: usize) -> String {
    let span = now.at - before.at;
    let mut text = format!("{} (process {}), back-end {}", now.name, now.pid, now.backend);
    if !now.running {
        text.push_str(", between two runs");
    } else if let (Some(now), Some(before)) = (now.idle, before.idle)
        && now.taken > before.taken
    {
        let (idle, all) = (now.idle.saturating_sub(before.idle), now.taken - before.taken);
        text.push_str(&format!(", idle {:.0} % of {all} samples", 100.0 * idle as f64 / all as f64));
    }
    text.push_str(&format!(", state {} old\n", (read_at - now.at)));
    let mut tasks: Vec<&TaskStatus> = now.tasks.iter().collect();
    tasks.sort_by_key(|task| (task.effective, task.id));
    let rows: Vec<Vec<String>> = tasks.iter().map(|task| row(task, before, span, now.at)).collect();
    let headings = [
        ("task", Side::Left),
        ("prio", Side::Right),
        ("state", Side::Left),
        ("CPU", Side::Right),
        ("switches", Side::Right),
        ("stack", Side::Right),
        ("starts", Side::Right),
        ("mail", Side::Right),
        ("ready, not run", Side::Right),
        ("waits for", Side::Left),
    ];
    text.push_str(&table(&headings, &rows, width));
    text
}

fn row(task: &TaskStatus, before: &ExecStatus, span: Nanos, at: Instant) -> Vec<String> {
    let priority = if task.effective == task.priority {
        task.priority.to_string()
    } else {
        format!("{}→{}", task.priority, task.effective)
    };
    // A task that came between the two has no share.
    let earlier = before.tasks.iter().find(|earlier| earlier.id == task.id);
    let share = earlier.filter(|_| span > Nanos::ZERO).map(|earlier| {
        let used = (task.cpu - earlier.cpu).count();
        format!("{:.1} %", 100.0 * used as f64 / span.count() as f64)
    });
    let stack = task.stack.map(|stack| format!("{}/{} KiB", stack.used_bytes.div_ceil(1024), stack.bytes / 1024));
    let starved = if task.starved > Nanos::ZERO { task.starved.to_string() } else { String::new() };
    let mut waits = task.waits_for.clone();
    if let Some(ends) = task.wait_ends {
        waits.push_str(&format!(", {} more", (ends - at).max(Nanos::ZERO)));
    }
    let none = || "–".to_owned();
    let switches = task.switches.map(|count| count.to_string());
    vec![
        // A name with a line feed must not break the table.
        task.name.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect(),
        priority,
        task.state.clone(),
        share.unwrap_or_else(none),
        switches.unwrap_or_else(none),
        stack.unwrap_or_else(none),
        task.starts.to_string(),
        task.messages.to_string(),
        starved,
        waits,
    ]
}
