//! Runs each file in `crates/*/examples` to its end under a time limit. The step `build` has built them.

use std::process::Command;
use std::time::Duration;

use super::Context;
use crate::tally::Tally;

/// Time limit of one example.
const ONE_EXAMPLE: Duration = Duration::from_secs(60);

pub(crate) fn run(context: &Context, name: &str) -> Tally {
    let mut tally = Tally::default();
    let folder = context.workspace.built("examples");
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
