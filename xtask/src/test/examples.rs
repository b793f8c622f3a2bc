//! Each file in `crates/*/examples` is built and run to its end under a time limit.
//!
//! They are built with the profile of the tests and all at once, so that nothing is compiled a second time for them: for one
//! package alone the features of its dependencies would be others.

use std::process::Command;
use std::time::Duration;

use super::Context;
use crate::tally::Tally;

/// One example; one that takes longer teaches patience.
const ONE_EXAMPLE: Duration = Duration::from_secs(60);
/// All of them, built as the tests are.
const BUILD: [&str; 8] = ["build", "--quiet", "--profile", "test", "--workspace", "--exclude", "peers", "--examples"];

/// Builds them all; what it says counts only if it failed.
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
