//! Each file in `crates/*/examples` is built and run to its end under a time limit.
//!
//! They run with the profile of the tests, so that nothing is compiled a second time for them.

use std::time::Duration;

use super::Context;
use crate::tally::Tally;

/// One example with its share of building; an example that takes longer teaches patience.
const ONE_EXAMPLE: Duration = Duration::from_secs(120);

pub(crate) fn run(context: &Context, name: &str) -> Tally {
    let mut tally = Tally::default();
    for package in context.workspace.packages.iter().filter(|package| package.folder.starts_with("crates/")) {
        for example in &package.examples {
            let label = format!("{name} {} {example}", package.name);
            println!("       {label}");
            let arguments = ["run", "--quiet", "--profile", "test", "-p", &package.name, "--example", example];
            let ended = context.run_at_most(&label, &mut context.workspace.cargo(&arguments), ONE_EXAMPLE);
            if ended.succeeded() {
                tally.passed += 1;
            } else {
                tally.failure(&label, format!("{} after {} s", ended.how, ended.took.as_secs()), ended.tail());
            }
        }
    }
    tally
}
