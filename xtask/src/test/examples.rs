//! Builds each file in `crates/*/examples` and runs it to its end under a time limit.
//!
//! All are built at once with the profile of the tests, so that nothing is compiled twice: for one package alone its dependencies
//! would have other features.

use std::process::Command;
use std::time::Duration;

use super::Context;
use crate::tally::Tally;

/// Time limit of one example.
const ONE_EXAMPLE: Duration = Duration::from_secs(60);
/// The arguments that build all of them like the tests.
const BUILD: [&str; 8] = ["build", "--quiet", "--profile", "test", "--workspace", "--exclude", "peers", "--examples"];

/// Builds all of them; the output matters only after a failure.
pub(crate) fn build(context: &Context, name: &str) -> Tally {
    let built = context.run(name, &mut context.workspace.cargo(&BUILD));
    if built.succeeded() {
        return Tally::default();
    }
    Tally::fail(name, format!("{} after {} s", built.how, built.took.as_secs()), built.tail())
}

pub(crate) fn run(context: &Context, name: &str) -> Tally {
    let mut tally = build(context, name);
    if !tally.succeeded() {
        return tally;
    }
    let folder = context.workspace.target.join("debug/examples");
    for package in context.workspace.packages.iter().filter(|package| package.folder.starts_with("crates/")) {
        for example in &package.examples {
            let label = format!("{name} {} {example}", package.name);
            println!("       {label}");
            let mut command = Command::new(folder.join(example));
            let ended = context.run_at_most(&label, command.current_dir(&context.workspace.root), ONE_EXAMPLE);
            if ended.succeeded() {
                tally.passed += 1;
            } else {
                tally.failure(&label, format!("{} after {} s", ended.how, ended.took.as_secs()), ended.tail());
            }
        }
    }
    tally
}
