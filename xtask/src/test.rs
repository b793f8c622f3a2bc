//! `cargo xtask test`: every check there is, one after the other but for a few, and one closing line.
//!
//! A step is data: its name, what it needs, its time limit and how it runs. All steps run, whatever became of the
//! ones before. What cannot run is skipped with its reason and the remedy, and counted. The last line of the
//! output is `N passed, N failed, N skipped`, where the single test cases count one each and every other check
//! counts one; before it stand the reasons of all skips and the ends of all failures' logs.

pub(crate) mod aarch64;
mod cargo_tests;
mod clients;
mod examples;
mod html;
pub(crate) mod needs;
mod netlog;
mod python;
mod readme;
pub(crate) mod setup;
mod shapes;
mod steps;
mod windows;

use std::time::{Duration, Instant};

use crate::child::{self, Share};
use crate::tally::Tally;
use crate::workspace::Workspace;
use steps::{Run, STEPS, Step};

/// The whole run ends within this time on two cores with an empty target directory. What has not begun by then
/// fails: a check that was left out for lack of time is not a check that passed.
const WHOLE_RUN: Duration = Duration::from_secs(20 * 60);

/// What runs beside a step that leaves the CPUs idle much of its time, if it follows it in the table.
struct Alongside {
    step: &'static str,
    beside: &'static [&'static str],
    share: Share,
}

const ALONGSIDE: [Alongside; 5] = [
    // Waits for downloads.
    Alongside { step: "setup", beside: &["lint", "doc"], share: Share::Equal },
    // A third of it is sleep, and what is left belongs to the tests: some look at the clock.
    Alongside { step: "tests", beside: &["aarch64", "command"], share: Share::Leftover },
    Alongside { step: "qemu", beside: &["windows"], share: Share::Equal },
    Alongside { step: "html", beside: &["examples", "c", "tcl"], share: Share::Equal },
    Alongside { step: "readme", beside: &["python", "shapes", "lab"], share: Share::Equal },
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// First install what the steps need: from the Debian archive when run as root (a browser, shells, tools; each step names
    /// its own), Python packages and a compiler with the aarch64 standard library, which stay under the target directory
    #[arg(long)]
    setup: bool,
    /// Run only the steps with these names
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Name the steps and end
    #[arg(long)]
    list: bool,
}

/// What a step may ask for while it runs.
pub(crate) struct Context<'a> {
    pub(crate) workspace: &'a Workspace,
    begun: Instant,
    limit: Duration,
    share: Share,
}

impl Context<'_> {
    /// What is left for one more child: the step's own limit, or less when the whole run is nearly over.
    pub(crate) fn limit(&self) -> Duration {
        self.limit.min(WHOLE_RUN.saturating_sub(self.begun.elapsed()))
    }

    /// Runs a child under the step's limit with a log named after it.
    pub(crate) fn run(&self, label: &str, command: &mut std::process::Command) -> child::Ended {
        self.run_at_most(label, command, self.limit)
    }

    /// Runs a child under a limit of its own.
    pub(crate) fn run_at_most(
        &self,
        label: &str,
        command: &mut std::process::Command,
        limit: Duration,
    ) -> child::Ended {
        let name: String = label.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(80).collect();
        let log = self.workspace.scratch("logs").join(format!("{name}.log"));
        child::run_with(label, command, limit.min(self.limit()), &log, self.share)
    }
}

/// Runs the steps; `Ok(true)` when nothing failed.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let chosen = choose(&arguments.only)?;
    if arguments.list {
        for step in chosen {
            println!("{:<10} {}", step.name, step.about);
        }
        return Ok(true);
    }
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    let begun = Instant::now();
    let mut total = Tally::default();
    let steps: Vec<&Step> = arguments.setup.then_some(&setup::STEP).into_iter().chain(chosen).collect();
    let mut rest = steps.as_slice();
    while let [step, after @ ..] = rest {
        let alongside = ALONGSIDE.iter().find(|alongside| alongside.step == step.name);
        let (names, share) = alongside.map_or((&[][..], Share::Equal), |found| (found.beside, found.share));
        let count = after.iter().take_while(|next| names.contains(&next.name)).count();
        let (beside, after) = after.split_at(count);
        rest = after;
        std::thread::scope(|scope| {
            let beside =
                scope.spawn(|| beside.iter().map(|step| timed(workspace, step, begun, share)).collect::<Vec<_>>());
            total.add(timed(workspace, step, begun, Share::Equal));
            let beside = beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            beside.into_iter().for_each(|tally| total.add(tally));
        });
    }
    if in_ci {
        total.hold_to_ci();
    }
    println!("\n{}logs under {}, {} s in all\n", total.details(), workspace.scratch("logs").display(), seconds(begun));
    println!("{}", total.closing_line());
    Ok(total.succeeded())
}

/// The steps named, in the order of the table; all of them when none is. The build of the command comes along with
/// those that run it, so that none of them looks at yesterday's.
fn choose(only: &[String]) -> Result<Vec<&'static Step>, String> {
    if let Some(unknown) = only.iter().find(|name| STEPS.iter().all(|step| step.name != name.as_str())) {
        return Err(format!("find a step named {unknown}; --list names them"));
    }
    let named = |step: &Step| only.iter().any(|name| name == step.name);
    let runs_command = only.iter().any(|name| steps::runs_command(name));
    let wanted = |step: &&Step| only.is_empty() || named(step) || (runs_command && step.name == steps::COMMAND);
    Ok(STEPS.iter().filter(wanted).collect())
}

/// Runs one step and prints its name, outcome and time.
fn timed(workspace: &Workspace, step: &Step, run_began: Instant, share: Share) -> Tally {
    if child::interrupted() {
        return Tally::fail(step.name, "interrupted before it began", "");
    }
    println!("begin  {:<10} {}", step.name, step.about);
    let begun = Instant::now();
    let tally = attempt(workspace, step, run_began, share);
    let verdict = match (tally.failures.is_empty(), tally.passed, tally.skips.is_empty()) {
        (false, _, _) => "FAIL",
        (true, 0, false) => "skip",
        _ => "pass",
    };
    println!("{verdict}   {:<10} {} in {} s", step.name, tally.closing_line(), seconds(begun));
    tally
}

fn attempt(workspace: &Workspace, step: &Step, begun: Instant, share: Share) -> Tally {
    let missing: Vec<_> = step.needs.iter().filter_map(|need| need.missing(workspace)).collect();
    if !missing.is_empty() {
        let reasons: Vec<String> = missing.iter().map(ToString::to_string).collect();
        return Tally::skip(step.name, reasons.join("; "), missing.iter().all(|missing| missing.installable));
    }
    let context = Context { workspace, begun, limit: Duration::from_secs(step.limit_s), share };
    if context.limit().is_zero() {
        return Tally::fail(step.name, format!("no time left of the run's {} s", WHOLE_RUN.as_secs()), "");
    }
    let tally = match step.run {
        Run::Cargo { arguments, environment } => {
            let mut command = workspace.cargo(arguments);
            let ended = context.run(step.name, command.envs(environment.iter().copied()));
            if ended.succeeded() {
                Tally::pass()
            } else {
                let why = format!("cargo {}: {}, log {}", arguments.join(" "), ended.how, ended.log.display());
                Tally::fail(step.name, why, ended.tail())
            }
        }
        Run::Call(call) => call(&context, step.name),
    };
    // A step that checked nothing has not passed; it says so instead of adding zero to each column.
    if tally.passed == 0 && tally.failures.is_empty() && tally.skips.is_empty() {
        return Tally::skip(step.name, "there is nothing to check yet", false);
    }
    tally
}

fn seconds(since: Instant) -> u64 {
    since.elapsed().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_steps_can_be_chosen_and_keep_their_order() {
        assert_eq!(choose(&[]).unwrap().len(), STEPS.len());
        let chosen = choose(&["fmt".to_owned(), "lint".to_owned()]).unwrap();
        assert_eq!(chosen.iter().map(|step| step.name).collect::<Vec<_>>(), ["lint", "fmt"]);
        let chosen = choose(&["html".to_owned()]).unwrap();
        assert_eq!(chosen.iter().map(|step| step.name).collect::<Vec<_>>(), ["command", "html"]);
        assert!(choose(&["ftm".to_owned()]).is_err_and(|error| error.contains("ftm")));
    }

    #[test]
    fn what_runs_beside_a_step_follows_it() {
        let names: Vec<&str> = std::iter::once(&setup::STEP).chain(STEPS).map(|step| step.name).collect();
        for Alongside { step, beside, .. } in ALONGSIDE {
            let at = names.iter().position(|name| *name == step).unwrap();
            assert_eq!(&names[at + 1..][..beside.len()], beside, "beside {step}");
        }
    }

    #[test]
    fn step_names_are_unique() {
        for (index, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..index].iter().all(|before| before.name != step.name), "{} twice", step.name);
        }
    }
}
