//! The setup step: lists what the other steps of the run lack and installs it, and nothing else.
//!
//! Components of the toolchain and its standard libraries for other targets come from rustup. Chromium, programs that
//! single tests use, and linkers and emulators for other systems come from the Debian archive, which needs root.
//! Packages for Python come from PyPI into a virtual environment under the target directory. `lab/supplies.rs` fetches
//! the supplies of the lab.

use std::process::Command;

use super::needs::{self, Need};
use super::steps::{Run, Step, Tier};
use super::{Context, debian};
use crate::lab::kind::Kind;
use crate::lab::supplies;
use crate::tally::Tally;
use crate::toolchain;

pub(crate) const STEP: Step = Step {
    name: "setup",
    tier: Tier::Product,
    about: "what the steps need is installed",
    needs: &[],
    uses: &[],
    built_by: None,
    limit_s: 420,
    run: Run::Call(install_all),
};

/// What these steps need and use, each thing once.
pub(super) fn needs(steps: &[&Step]) -> Vec<Need> {
    let mut all: Vec<Need> = Vec::new();
    for need in steps.iter().flat_map(|step| step.needs.iter().chain(step.uses)) {
        if !all.contains(need) {
            all.push(*need);
        }
    }
    all
}

fn install_all(context: &Context, name: &str) -> Tally {
    let mut tally = Tally::default();
    let mut missing = needs(context.chosen);
    // What cannot be installed here is left to the steps that need it: they say so.
    missing.retain(|need| {
        let lack = need.missing(context.workspace);
        lack.iter().for_each(|lack| println!("       missing: {lack}"));
        lack.is_some_and(|lack| lack.installable)
    });
    // All at once: apt spends more time on reading its lists than on a small package.
    let packages: Vec<&str> = missing.iter().flat_map(|need| from_archive(*need)).collect();
    let archive = if packages.is_empty() { Ok(()) } else { from_debian(context, &packages) };
    for need in &missing {
        let outcome = match need {
            Need::Component(component, _) => {
                let mut add = Command::new("rustup");
                must(context, add.args(["component", "add", component]).current_dir(&context.workspace.root)).map(drop)
            }
            Need::Target(target) => must(context, &mut toolchain::add(context.workspace, target)).map(drop),
            Need::Python => python_from_pip(context, needs::PYTHON_REQUIREMENTS),
            Need::Book => python_from_pip(context, needs::BOOK_REQUIREMENTS),
            Need::Lab => supplies::install(context.workspace, Kind::Pc, &mut |command| must(context, command)),
            Need::CleanDebian => {
                archive.clone().and_then(|()| must(context, &mut debian::make_base(context.workspace)?).map(drop))
            }
            Need::Chromium | Need::Wine | Need::Program(_) | Need::Packaged(..) | Need::Tcl => archive.clone(),
        };
        let still = outcome.err().or_else(|| need.missing(context.workspace).map(|missing| missing.to_string()));
        if let Some(why) = still {
            tally.failure(&format!("{name} {need:?}"), why, "");
        }
    }
    if tally.succeeded() {
        tally.passed += 1;
    }
    tally
}

/// The packages of Debian that a need means.
fn from_archive(need: Need) -> Vec<&'static str> {
    match need {
        Need::Chromium => vec!["chromium", "fonts-dejavu-core"],
        Need::Wine => vec!["wine64"],
        Need::Program(names) | Need::Packaged(_, names) => names.split(' ').collect(),
        Need::Tcl => needs::TCL_PACKAGES.to_vec(),
        Need::CleanDebian => vec!["mmdebstrap"],
        Need::Component(..) | Need::Target(_) | Need::Python | Need::Book | Need::Lab => Vec::new(),
    }
}

fn from_debian(context: &Context, packages: &[&str]) -> Result<(), String> {
    must(context, Command::new("apt-get").args(["--quiet", "update"]))?;
    let mut install = Command::new("apt-get");
    install.args(["--quiet", "install", "-y", "--no-install-recommends"]).args(packages);
    must(context, install.env("DEBIAN_FRONTEND", "noninteractive")).map(drop)
}

fn python_from_pip(context: &Context, requirements: &str) -> Result<(), String> {
    let folder = context.workspace.scratch("python");
    must(context, Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut install = Command::new(needs::python(context.workspace));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
    install.arg(context.workspace.root.join(requirements));
    must(context, &mut install).map(drop)
}

/// Runs a command that must succeed and returns its output.
fn must(context: &Context, command: &mut Command) -> Result<String, String> {
    let said = std::iter::once(command.get_program()).chain(command.get_args().filter(|word| *word != "-o"));
    let words: Vec<String> = said.map(|word| word.to_string_lossy().into_owned()).collect();
    let told: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.contains("::")).collect();
    let label = format!("setup {}", told.join(" "));
    let ended = context.run(&label, command);
    if ended.succeeded() { Ok(ended.output) } else { Err(format!("{label}: {}\n{}", ended.how, ended.tail())) }
}
