//! The setup step: lists what the other steps lack and installs it.
//!
//! Components of the toolchain and its standard libraries for other targets come from rustup. Chromium, programs that single tests use, and
//! linkers and emulators for other systems come from the Debian archive, which needs root. Packages for Python come from PyPI into a
//! virtual environment under the target directory. `lab/supplies.rs` fetches the supplies of the lab.

use std::collections::BTreeSet;
use std::process::Command;

use super::needs::{self, FOR_SINGLE_TESTS, Need};
use super::steps::{Run, STEPS, Step};
use super::{Context, debian};
use crate::lab::kind::Kind;
use crate::lab::supplies;
use crate::tally::Tally;
use crate::toolchain;

pub(crate) const STEP: Step = Step {
    name: "setup",
    about: "what the steps need is installed",
    needs: &[],
    limit_s: 420,
    run: Run::Call(install_all),
};

fn install_all(context: &Context, name: &str) -> Tally {
    let mut tally = Tally::default();
    let mut seen = BTreeSet::new();
    for need in STEPS.iter().flat_map(|step| step.needs).chain(FOR_SINGLE_TESTS) {
        if !seen.insert(format!("{need:?}")) {
            continue;
        }
        let Some(missing) = need.missing(context.workspace) else { continue };
        println!("       missing: {missing}");
        if !missing.installable {
            // Setup cannot install it here; the steps that need it say so.
            continue;
        }
        let outcome = match need {
            Need::Component(component, _) => {
                let mut add = Command::new("rustup");
                must(context, add.args(["component", "add", component]).current_dir(&context.workspace.root)).map(drop)
            }
            Need::Chromium => from_debian(context, &["chromium", "fonts-dejavu-core"]),
            Need::Target(target) => must(context, &mut toolchain::add(context.workspace, target)).map(drop),
            Need::Wine => from_debian(context, &["wine64"]),
            Need::Python | Need::Book => python_from_pip(context),
            Need::Lab => supplies::install(context.workspace, Kind::Pc, &mut |command| must(context, command)),
            Need::Program(names) | Need::Packaged(_, names) => {
                from_debian(context, &names.split(' ').collect::<Vec<_>>())
            }
            Need::Tcl => from_debian(context, &needs::TCL_PACKAGES),
            Need::CleanDebian => from_debian(context, &["mmdebstrap"])
                .and_then(|()| must(context, &mut debian::make_base(context.workspace)?).map(drop)),
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

fn from_debian(context: &Context, packages: &[&str]) -> Result<(), String> {
    must(context, Command::new("apt-get").args(["--quiet", "update"]))?;
    let mut install = Command::new("apt-get");
    install.args(["--quiet", "install", "-y", "--no-install-recommends"]).args(packages);
    must(context, install.env("DEBIAN_FRONTEND", "noninteractive")).map(drop)
}

fn python_from_pip(context: &Context) -> Result<(), String> {
    let folder = context.workspace.scratch("python");
    must(context, Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut install = Command::new(needs::python(context.workspace));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
    install.arg(context.workspace.root.join(needs::PYTHON_REQUIREMENTS));
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
