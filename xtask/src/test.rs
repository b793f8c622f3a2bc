//! `cargo xtask test`: runs all checks, in one or two lanes, and prints one closing line.
//!
//! A step is data: its name, what it needs, its time limit and how it runs. All steps run, even after a failure. A step that
//! cannot run is skipped with the reason and the remedy, and counted. The last line of the output is `N passed, N failed, N
//! skipped`, where each test case and each other check counts as one. Before it come the reasons of all skips and the ends of the
//! logs of all failures.
//!
//! The checks need a machine that runs them in time, and a shared host can stop it for longer than any of them allows. What fails is
//! therefore tried again: a case of `cargo test` three times alone, a step of another kind once as a whole. What passes then counts
//! as passed, and the report names it as unsteady, with what it said when it failed. A build, a crash and a check that reads no
//! clock fail both times.

mod aarch64;
mod api;
mod book;
mod cargo_tests;
mod clients;
mod crates;
pub(crate) mod debian;
mod examples;
mod html;
pub(crate) mod interface;
pub(crate) mod needs;
mod netlog;
mod python;
mod readme;
pub(crate) mod setup;
mod shapes;
mod steps;
pub(crate) mod windows;

use std::time::{Duration, Instant};

use crate::child::{self, Share};
use crate::tally::Tally;
use crate::workspace::Workspace;
use steps::{Run, STEPS, Step};

/// The intended time of a whole run on two cores with an empty target directory; a longer run says so.
const MEANT: Duration = Duration::from_secs(20 * 60);

/// A step that has not begun by then fails, because a check that was left out has not passed. More than three times the intended time,
/// because a shared host may be that much slower: this limit and those of the steps end what hangs, and judge no speed.
const WHOLE_RUN: Duration = Duration::from_secs(70 * 60);

/// Optimised builds are optimised little here, and not at link time: optimisation is most of their time, and the checks judge no speed.
/// `cargo xtask release`, the proofs and the peers are built with all of it.
const RELEASE: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
];

/// Consecutive steps of the table that run in two lanes, because the steps of one lane leave CPUs idle.
struct Together {
    lane: &'static [&'static str],
    beside: &'static [&'static str],
    /// The share of the second lane.
    share: Share,
}

const TOGETHER: [Together; 3] = [
    // This lane waits for downloads; the other one needs none of them.
    Together { lane: &["setup"], beside: &["lint", "doc", "build"], share: Share::Equal },
    // A third of the tests' time is sleep. The optimised build gets only idle time, because some tests check the clock. It writes to a folder of its
    // own: Cargo locks the folder of a build, and a build that gets only idle time would keep the other lane waiting for the lock.
    Together {
        lane: &["tests", "unchecked", "aarch64", "qemu", "windows"],
        beside: &["command"],
        share: Share::Leftover,
    },
    Together {
        lane: &["html", "readme", "book", "crates", "static", "lab"],
        beside: &["examples", "c", "tcl", "install", "python", "shapes", "peers", "debian"],
        share: Share::Equal,
    },
];

impl Together {
    /// How many steps from the first on belong to its group; zero if the first belongs to none.
    fn of(steps: &[&Step]) -> Option<(&'static Together, usize)> {
        let has = |group: &Together, step: &Step| group.lane.iter().chain(group.beside).any(|name| *name == step.name);
        let group = TOGETHER.iter().find(|group| has(group, steps[0]))?;
        Some((group, steps.iter().take_while(|step| has(group, step)).count()))
    }
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// First install what the steps need: from the Debian archive when run as root (a browser, shells, tools; each step names
    /// its own), by rustup standard libraries for other targets, and Python packages, which stay under the target directory
    #[arg(long)]
    setup: bool,
    /// Run only the steps with these names
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Name the steps and end
    #[arg(long)]
    list: bool,
}

/// The context of a running step.
pub(crate) struct Context<'a> {
    pub(crate) workspace: &'a Workspace,
    begun: Instant,
    limit: Duration,
    share: Share,
    /// Whether the step runs for the second time; its logs lie beside those of the first.
    again: bool,
}

impl Context<'_> {
    /// Time for one more child: the step's own limit, or less when the whole run nears its end.
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
        let again = if self.again { "-again" } else { "" };
        let log = self.workspace.scratch("logs").join(format!("{name}{again}.log"));
        child::run_with(label, command.envs(RELEASE), limit.min(self.limit()), &log, self.share)
    }
}

/// Runs the steps; `Ok(true)` if none failed.
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
    let steps: Vec<&'static Step> = arguments.setup.then_some(&setup::STEP).into_iter().chain(chosen).collect();
    let mut rest = steps.as_slice();
    while !rest.is_empty() {
        let (beside, share, count) =
            Together::of(rest).map_or((&[][..], Share::Equal, 1), |(group, count)| (group.beside, group.share, count));
        let (now, after) = rest.split_at(count);
        rest = after;
        let (second, first): (Vec<&Step>, Vec<&Step>) = now.iter().partition(|step| beside.contains(&step.name));
        let lane = |steps: Vec<&'static Step>, share: Share| {
            move || steps.into_iter().map(|step| timed(workspace, step, begun, share)).collect::<Vec<_>>()
        };
        std::thread::scope(|scope| {
            let second = scope.spawn(lane(second, share));
            lane(first, Share::Equal)().into_iter().for_each(|tally| total.add(tally));
            let second = second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            second.into_iter().for_each(|tally| total.add(tally));
        });
    }
    if in_ci {
        total.hold_to_ci();
    }
    let over = if begun.elapsed() > MEANT { ", more than the 1200 s it is meant to take" } else { "" };
    let logs = workspace.scratch("logs");
    println!("\n{}logs under {}, {} s in all{over}\n", total.details(), logs.display(), seconds(begun));
    println!("{}", total.closing_line());
    Ok(total.succeeded())
}

/// The steps named, in the order of the table; all of them when none is. Steps that run the command include its build, so that
/// they never test an old one.
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
    let mut tally = attempt(workspace, step, run_began, share, false);
    if !tally.succeeded() && matches!(step.run, Run::Call(_)) && !child::interrupted() {
        println!("again  {:<10} {} in {} s", step.name, tally.closing_line(), seconds(begun));
        tally = attempt(workspace, step, run_began, share, true).after(tally);
    }
    let verdict = match (tally.failures.is_empty(), tally.passed, tally.skips.is_empty()) {
        (false, _, _) => "FAIL",
        (true, 0, false) => "skip",
        _ => "pass",
    };
    println!("{verdict}   {:<10} {} in {} s", step.name, tally.closing_line(), seconds(begun));
    tally
}

fn attempt(workspace: &Workspace, step: &Step, begun: Instant, share: Share, again: bool) -> Tally {
    let missing: Vec<_> = step.needs.iter().filter_map(|need| need.missing(workspace)).collect();
    if !missing.is_empty() {
        let reasons: Vec<String> = missing.iter().map(ToString::to_string).collect();
        return Tally::skip(step.name, reasons.join("; "), missing.iter().all(|missing| missing.installable));
    }
    let context = Context { workspace, begun, limit: Duration::from_secs(step.limit_s), share, again };
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
        Run::Call(call) | Run::Cases(call) => call(&context, step.name),
    };
    // A step without any check has not passed, so it counts as skipped.
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
    fn steps_that_run_together_follow_each_other() {
        let steps: Vec<&Step> = std::iter::once(&setup::STEP).chain(STEPS).collect();
        for group in &TOGETHER {
            let at = steps.iter().position(|step| step.name == group.lane[0]).unwrap();
            let (found, count) = Together::of(&steps[at..]).unwrap();
            assert_eq!((found.lane, count), (group.lane, group.lane.len() + group.beside.len()));
        }
    }

    #[test]
    fn step_names_are_unique() {
        for (index, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..index].iter().all(|before| before.name != step.name), "{} twice", step.name);
        }
    }
}
