//! `cargo xtask test`: runs checks, in one or two lanes, and prints a table of costs and one closing line.
//!
//! Without options it runs the first tier: what users get. `--rest` runs everything else, `--all` both, `--changed`
//! what a change can break. A step is data: its name, its tier, what it needs, its time limit and how it runs. All
//! steps run, even after a failure. A step that cannot run is skipped with the reason and the remedy, and counted. The
//! last line of the output is `N passed, N failed, N skipped`, where each test case and each other check counts as one.
//! Before it come the reasons of all skips, the ends of the logs of all failures, and what each step cost.
//!
//! The checks need a machine that runs them in time, and a shared host can stop it for longer than any of them allows.
//! What fails is therefore tried again: a case of `cargo test` three times alone, a step of another kind once as a
//! whole. What passes then counts as passed, and the report names it as unsteady, with what it said when it failed. A
//! build, a crash and a check that reads no clock fail both times.

mod aarch64;
mod api;
mod book;
mod cargo_tests;
mod changed;
mod clients;
mod costs;
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

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::child::{self, Share};
use crate::tally::Tally;
use crate::workspace::Workspace;
use changed::Scope;
use costs::Cost;
use steps::{Run, STEPS, Step, Tier};

/// A step that has not begun by then fails, because a check that was left out has not passed. Several times what a tier
/// takes on two cores, because a shared host may be that much slower: this limit and those of the steps end what hangs,
/// and judge no speed.
const WHOLE_RUN: Duration = Duration::from_secs(70 * 60);

/// Optimised builds are optimised little here, and not at link time: optimisation is most of their time, and the checks
/// judge no speed. `cargo xtask release`, the proofs and the peers are built with all of it.
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

const TOGETHER: [Together; 5] = [
    // This lane waits for downloads; the other one needs none of them.
    Together { lane: &["setup"], beside: &["lint", "fmt", "clippy", "build"], share: Share::Equal },
    // A third of the tests' time is sleep.
    Together { lane: &["tests"], beside: &["gen", "examples", "python", "c", "shapes", "readme"], share: Share::Equal },
    Together { lane: &["setup"], beside: &["doc"], share: Share::Equal },
    // The optimised build gets only idle time, because some tests check the clock. It writes to a folder of its own:
    // Cargo locks the folder of a build, and a build that gets only idle time would keep the other lane waiting for the
    // lock.
    Together { lane: &["unchecked", "aarch64", "qemu", "windows"], beside: &["command"], share: Share::Leftover },
    Together {
        lane: &["html", "source", "book", "crates", "static", "lab"],
        beside: &["optimised", "tcl", "install", "wheel", "peers", "debian"],
        share: Share::Equal,
    },
];

impl Together {
    /// How many steps from the first on belong to its group; zero if the first belongs to none.
    fn of(steps: &[&Step]) -> Option<(&'static Together, usize)> {
        let has = |group: &Together, step: &Step| group.lane.iter().chain(group.beside).any(|name| *name == step.name);
        let count = |group: &Together| steps.iter().take_while(|step| has(group, step)).count();
        // Setup begins both tiers: the group is that which has the steps after it.
        TOGETHER
            .iter()
            .map(|group| (group, count(group)))
            .filter(|(_, count)| *count > 0)
            .max_by_key(|(_, count)| *count)
    }
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// First install what the chosen steps need: from the Debian archive when run as root (shells, tools; each step
    /// names its own), by rustup standard libraries for other targets, and Python packages, which stay under the target
    /// directory
    #[arg(long)]
    setup: bool,
    /// Run the steps of both tiers
    #[arg(long, conflicts_with_all = ["only", "changed"])]
    all: bool,
    /// Run only the steps that a run without options leaves out
    #[arg(long, conflicts_with_all = ["only", "all", "changed"])]
    rest: bool,
    /// Run only what a change can break: the crates that differ from this revision, and their dependants
    #[arg(long, value_name = "REVISION", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "only")]
    changed: Option<String>,
    /// Run only the steps with these names
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Name the steps, each with its tier, and end
    #[arg(long)]
    list: bool,
}

/// The context of a running step.
pub(crate) struct Context<'a> {
    pub(crate) workspace: &'a Workspace,
    /// The packages that the run is about.
    pub(crate) scope: &'a Scope,
    /// All steps of the run.
    chosen: &'a [&'static Step],
    begun: Instant,
    limit: Duration,
    share: Share,
    /// Whether the step runs for the second time; its logs lie beside those of the first.
    again: bool,
    /// CPU time of its children so far.
    cpu: Cell<Duration>,
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
        let ended = child::run_with(label, command.envs(RELEASE), limit.min(self.limit()), &log, self.share);
        self.cpu.set(self.cpu.get() + ended.cpu);
        ended
    }
}

/// Runs the steps; `Ok(true)` if none failed.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let mut scope = Scope::whole();
    let parts = if let Some(revision) = &arguments.changed {
        scope = Scope::changed(workspace, revision)?;
        scope.describe();
        vec![choose(&scope.steps())?]
    } else if !arguments.only.is_empty() {
        vec![choose(&arguments.only)?]
    } else if arguments.all {
        vec![tier(Tier::Product), tier(Tier::Rest)]
    } else {
        vec![tier(if arguments.rest { Tier::Rest } else { Tier::Product })]
    };
    if arguments.list {
        // Without a choice all of them are named.
        let chosen = if arguments.only.is_empty() && arguments.changed.is_none() {
            STEPS.iter().collect()
        } else {
            parts.concat()
        };
        for step in chosen {
            println!("{:<10} {:<8} {}", step.name, step.tier.name(), step.about);
        }
        return Ok(true);
    }
    let mut whole = Tally::default();
    let mut lines = Vec::new();
    for part in &parts {
        let tally = run_part(workspace, &scope, part, arguments.setup);
        println!("{}", tally.closing_line());
        if let Some(step) = part.first().filter(|_| parts.len() > 1) {
            lines.push(format!("{}: {}", step.tier.name(), tally.closing_line()));
        }
        whole.add(tally);
    }
    if parts.len() > 1 {
        println!("{} ({})", whole.closing_line(), lines.join("; "));
    }
    Ok(whole.succeeded())
}

/// Runs the steps of one part, and prints their outcome and costs except for the closing line.
fn run_part(workspace: &Workspace, scope: &Scope, chosen: &[&'static Step], with_setup: bool) -> Tally {
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    let begun = Instant::now();
    let mut total = Tally::default();
    let mut costs = Vec::new();
    let steps: Vec<&Step> = with_setup.then_some(&setup::STEP).into_iter().chain(chosen.iter().copied()).collect();
    let mut rest = steps.as_slice();
    while !rest.is_empty() {
        let (beside, share, count) =
            Together::of(rest).map_or((&[][..], Share::Equal, 1), |(group, count)| (group.beside, group.share, count));
        let (now, after) = rest.split_at(count);
        rest = after;
        let (second, first): (Vec<&Step>, Vec<&Step>) = now.iter().partition(|step| beside.contains(&step.name));
        let lane = |steps: Vec<&Step>, share: Share| {
            let context = || Context {
                workspace,
                scope,
                chosen,
                begun,
                limit: Duration::ZERO,
                share,
                again: false,
                cpu: Cell::default(),
            };
            steps.into_iter().map(|step| timed(context(), step)).collect::<Vec<_>>()
        };
        let (first, second) = std::thread::scope(|threads| {
            let second = threads.spawn(|| lane(second, share));
            let first = lane(first, Share::Equal);
            (first, second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        for (tally, cost) in first.into_iter().chain(second) {
            total.add(tally);
            costs.push(cost);
        }
    }
    if in_ci {
        total.hold_to_ci();
    }
    let table = costs::table(costs, begun.elapsed());
    let kept = workspace.scratch("costs.txt");
    // The table is printed anyway.
    let _ = std::fs::write(&kept, &table);
    let logs = workspace.scratch("logs");
    println!("\n{}{table}\nlogs under {}, the table in {}\n", total.details(), logs.display(), kept.display());
    total
}

/// The steps of a tier, in the order of the table.
fn tier(tier: Tier) -> Vec<&'static Step> {
    STEPS.iter().filter(|step| step.tier == tier).collect()
}

/// The steps named, in the order of the table. Steps that run what another step builds include that build, so that they
/// never test an old one.
fn choose(only: &[String]) -> Result<Vec<&'static Step>, String> {
    if let Some(unknown) = only.iter().find(|name| STEPS.iter().all(|step| step.name != name.as_str())) {
        return Err(format!("find a step named {unknown}; --list names them"));
    }
    let named = |step: &Step| only.iter().any(|name| name == step.name);
    let builds: Vec<&str> = STEPS.iter().filter(|step| named(step)).filter_map(|step| step.built_by).collect();
    Ok(STEPS.iter().filter(|step| named(step) || builds.contains(&step.name)).collect())
}

/// Runs one step and prints its name, outcome and time.
fn timed(mut context: Context, step: &Step) -> (Tally, Cost) {
    let (begun, cpu) = (Instant::now(), own_cpu_time());
    let mut cost = Cost { step: step.name, took: Duration::ZERO, cpu: Duration::ZERO };
    if child::interrupted() {
        return (Tally::fail(step.name, "interrupted before it began", ""), cost);
    }
    println!("begin  {:<10} {}", step.name, step.about);
    context.limit = Duration::from_secs(step.limit_s);
    let mut tally = attempt(&context, step);
    if !tally.succeeded() && matches!(step.run, Run::Call(_)) && !child::interrupted() {
        println!("again  {:<10} {} in {} s", step.name, tally.closing_line(), seconds(begun));
        context.again = true;
        tally = attempt(&context, step).after(tally);
    }
    let verdict = match (tally.failures.is_empty(), tally.passed, tally.skips.is_empty()) {
        (false, _, _) => "FAIL",
        (true, 0, false) => "skip",
        _ => "pass",
    };
    println!("{verdict}   {:<10} {} in {} s", step.name, tally.closing_line(), seconds(begun));
    (cost.took, cost.cpu) = (begun.elapsed(), context.cpu.get() + own_cpu_time().saturating_sub(cpu));
    (tally, cost)
}

fn attempt(context: &Context, step: &Step) -> Tally {
    let workspace = context.workspace;
    let missing: Vec<_> = step.needs.iter().filter_map(|need| need.missing(workspace)).collect();
    if !missing.is_empty() {
        let reasons: Vec<String> = missing.iter().map(ToString::to_string).collect();
        return Tally::skip(step.name, reasons.join("; "), missing.iter().all(|missing| missing.installable));
    }
    if context.limit().is_zero() {
        return Tally::fail(step.name, format!("no time left of the run's {} s", WHOLE_RUN.as_secs()), "");
    }
    let tally = match step.run {
        Run::Cargo { arguments, environment } => cargo_tests::passes(context, step.name, arguments, environment),
        Run::Call(call) | Run::Once(call) => call(context, step.name),
    };
    // A step without any check has not passed, so it counts as skipped.
    if tally.passed == 0 && tally.failures.is_empty() && tally.skips.is_empty() {
        return Tally::skip(step.name, "there is nothing to check yet", false);
    }
    tally
}

/// CPU time of this thread.
fn own_cpu_time() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

fn seconds(since: Instant) -> u64 {
    since.elapsed().as_secs()
}

#[cfg(test)]
mod tests {
    use super::needs::Need;
    use super::*;

    fn names(steps: &[&Step]) -> Vec<&'static str> {
        steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn only_known_steps_can_be_chosen_and_keep_their_order() {
        let chosen = choose(&["fmt".to_owned(), "lint".to_owned()]).unwrap();
        assert_eq!(names(&chosen), ["lint", "fmt"]);
        assert!(choose(&["ftm".to_owned()]).is_err_and(|error| error.contains("ftm")));
    }

    #[test]
    fn a_step_brings_the_build_of_what_it_runs() {
        assert_eq!(names(&choose(&["c".to_owned()]).unwrap()), ["build", "c"]);
        assert_eq!(names(&choose(&["html".to_owned()]).unwrap()), ["command", "html"]);
    }

    #[test]
    fn the_two_tiers_are_all_steps_in_their_order() {
        let both = [tier(Tier::Product), tier(Tier::Rest)].concat();
        assert_eq!(names(&both), STEPS.iter().map(|step| step.name).collect::<Vec<_>>());
    }

    /// A first look at the project must not cost a browser, an emulator or a kernel.
    #[test]
    fn the_first_tier_installs_nothing_large() {
        for need in setup::needs(&tier(Tier::Product)) {
            let large = matches!(
                need,
                Need::Chromium | Need::Target(_) | Need::Wine | Need::Book | Need::Lab | Need::CleanDebian
            );
            assert!(!large, "{need:?}");
        }
        assert!(setup::needs(&tier(Tier::Rest)).iter().any(|need| matches!(need, Need::Chromium)));
    }

    #[test]
    fn steps_that_run_together_follow_each_other() {
        for tier in [tier(Tier::Product), tier(Tier::Rest)] {
            let steps: Vec<&Step> = std::iter::once(&setup::STEP).chain(tier.iter().copied()).collect();
            let mut rest = steps.as_slice();
            while let Some((group, count)) = Together::of(rest) {
                assert_eq!(count, group.lane.len() + group.beside.len(), "{:?}", group.lane);
                rest = &rest[count..];
            }
            assert!(rest.is_empty(), "{:?} runs alone", names(rest));
        }
    }

    #[test]
    fn step_names_are_unique() {
        for (index, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..index].iter().all(|before| before.name != step.name), "{} twice", step.name);
        }
    }
}
