//! Runs the ten examples in Rust and Python, and compares each with its shape; those in C and Tcl run with the
//! installed library (`clients.rs`).
//!
//! A language is a name and the command that runs an example; a language that cannot run here is skipped with the
//! reason.

use std::process::Command;
use std::time::Duration;

use super::{Context, needs, python as package};
use crate::shapes;
use crate::tally::Tally;
use crate::workspace::Workspace;

const ONE_EXAMPLE: Duration = Duration::from_secs(60);

struct Language {
    name: &'static str,
    /// Why its examples cannot run here, and whether they could after a setup.
    missing: fn(&Context) -> Option<(String, bool)>,
    /// Runs the example of this name, from the root.
    command: fn(&Workspace, &str) -> Command,
}

const LANGUAGES: &[Language] = &[
    Language { name: "rust", missing: |_| None, command: rust },
    Language { name: "python", missing: no_package, command: python },
];

fn rust(workspace: &Workspace, example: &str) -> Command {
    Command::new(workspace.built("examples").join(example))
}

fn python(workspace: &Workspace, example: &str) -> Command {
    let mut command = Command::new(package::with_package(workspace));
    command.arg(format!("bindings/python/examples/{example}.py"));
    command
}

fn no_package(context: &Context) -> Option<(String, bool)> {
    let mut import = Command::new(package::with_package(context.workspace));
    let ended = context.run("shapes import", import.args(["-c", "import hairspring"]));
    let missing = "the package hairspring is not installed: the step python installs it".to_owned();
    (!ended.succeeded()).then(|| (missing, needs::in_path("python3").is_some()))
}

pub(crate) fn run(context: &Context, name: &str) -> Tally {
    let shapes = match shapes::read(context.workspace) {
        Ok(shapes) => shapes,
        Err(why) => return Tally::fail(name, why, ""),
    };
    let mut tally = Tally::default();
    for language in LANGUAGES {
        if let Some((why, could_run)) = (language.missing)(context) {
            tally.add(Tally::skip(&format!("{name} {}", language.name), why, could_run));
            continue;
        }
        for shape in &shapes {
            let label = format!("{name} {} {}", language.name, shape.name);
            let mut command = (language.command)(context.workspace, &shape.name);
            let ended = context.run_at_most(&label, command.current_dir(&context.workspace.root), ONE_EXAMPLE);
            let outcome = if ended.succeeded() { shape.check(&ended.output) } else { Err(ended.how.to_string()) };
            match outcome {
                Ok(()) => tally.passed += 1,
                Err(why) => tally.failure(&label, why, ended.tail()),
            }
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_has_its_example_in_rust() {
        let workspace = Workspace::discover().expect("the workspace");
        for shape in shapes::read(&workspace).expect("shapes") {
            assert!(workspace.packages.iter().any(|package| package.examples.contains(&shape.name)), "{}", shape.name);
        }
    }
}
