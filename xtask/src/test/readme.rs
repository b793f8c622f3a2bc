//! Runs every command in README.md: each line that begins with `$ ` in a block marked `console`.
//!
//! The commands run from the root, in their order, each in a shell of its own with a time limit and without standard
//! input. Commands that fetch the repository, change the folder, or would start this run again are left out.
//!
//! There are two forms. The step `readme` leaves out `cargo install`, which builds the command once more, and runs the
//! one that the step `build` has built. In the step `source` it goes to a folder under the target directory that is
//! first in their PATH, so that `hairspring` then is the one just installed, and the user's own stays untouched.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::Context;
use crate::tally::Tally;

const ONE_COMMAND: Duration = Duration::from_secs(240);

/// Beginnings of commands that are left out.
const LEFT_OUT: &[&str] = &["git clone", "cd", "cargo xtask test", ".ci/run", "./.ci/run"];

/// Begins a command that builds the product once more.
const INSTALLATION: &str = "cargo install";

/// Runs the commands with what the step `build` has built.
pub(crate) fn run(context: &Context, name: &str) -> Tally {
    let built = context.workspace.built("");
    run_all(context, name, &built, |command| !starts_with_words(command, INSTALLATION))
}

/// Installs as README.md says, and runs the commands with what was installed.
pub(crate) fn run_installed(context: &Context, name: &str) -> Tally {
    let installed = context.workspace.scratch("installed");
    // Removes the installation of an earlier run.
    let _ = std::fs::remove_dir_all(&installed);
    run_all(context, name, &installed.join("bin"), |_| true)
}

/// Runs the wanted commands with the programs of a folder.
fn run_all(context: &Context, name: &str, programs: &Path, wanted: impl Fn(&str) -> bool) -> Tally {
    let root = &context.workspace.root;
    let text = match std::fs::read_to_string(root.join("README.md")) {
        Ok(text) => text,
        Err(error) => return Tally::fail(name, format!("README.md cannot be read: {error}"), ""),
    };
    let mut commands = commands(&text);
    commands.retain(|command| wanted(command));
    if commands.is_empty() {
        return Tally::fail(name, "README.md has no command to run in a ```console block", "");
    }
    let installed = context.workspace.scratch("installed");
    let own = [programs.to_owned()];
    let before = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&before))).unwrap_or(before);
    let mut tally = Tally::default();
    for command in commands {
        println!("       $ {command}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(root).env("PATH", &path).env("CARGO_INSTALL_ROOT", &installed);
        let ended = context.run_at_most(&format!("{name} {command}"), &mut shell, ONE_COMMAND);
        if ended.succeeded() {
            tally.passed += 1;
        } else {
            tally.failure(&format!("{name}: {command}"), ended.how.to_string(), ended.tail());
        }
    }
    tally
}

/// The commands of all console blocks, continuation lines joined.
pub(super) fn commands(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let (mut in_block, mut in_console, mut continued) = (false, false, false);
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(info) = trimmed.strip_prefix("```") {
            in_console = !in_block && info.trim() == "console";
            in_block = !in_block;
            continued = false;
            continue;
        }
        if !in_console {
            continue;
        }
        let part = match trimmed.strip_prefix("$ ") {
            Some(command) if !continued => {
                found.push(String::new());
                command
            }
            _ if continued => trimmed,
            _ => continue,
        };
        continued = part.ends_with('\\');
        if let Some(command) = found.last_mut() {
            *command += part.trim_end_matches('\\');
        }
    }
    found.retain(|command| !LEFT_OUT.iter().any(|left_out| starts_with_words(command, left_out)));
    found
}

fn starts_with_words(command: &str, words: &str) -> bool {
    command.trim().strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prompt_lines_of_console_blocks_are_commands() {
        let text = "$ not this\n```console\n$ cargo run -- sheet\noutput $ no\n```\n```sh\n$ nor this\n```\n\
                    ```console\n$ one \\\n  two\n$ three\n```\n";
        assert_eq!(commands(text), ["cargo run -- sheet", "one two", "three"]);
    }

    #[test]
    fn fetching_changing_folder_and_this_run_itself_are_left_out() {
        let text = "```console\n$ git clone x\n$ cd x\n$ cargo xtask test --setup\n$ cdrecord\n$ cargo xtask lint\n```";
        assert_eq!(commands(text), ["cdrecord", "cargo xtask lint"]);
    }
}
